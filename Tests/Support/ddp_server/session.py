"""A DDP session: one client from `connect` on, in Meteor 3.5 over several connections."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ddp_server import methods
from ddp_server.alea import new_id
from ddp_server.documents import Document
from ddp_server.ejson import encode
from ddp_server.errors import MeteorError, visible
from ddp_server.subscription import Subscription
from ddp_server.views import MergeBox

if TYPE_CHECKING:
    from ddp_server.app import App
    from ddp_server.links import Link

Message = dict[str, Any]
#: Continues with the next message of the client.
Unblock = Callable[[], None]


class Session:
    """Handles the client's messages one at a time, unless a method unblocks the next one."""

    def __init__(self, app: App, link: Link, version: str) -> None:
        self.app, self.version = app, version
        self.link: Link | None = link
        self.id = new_id()
        self.user_id: str | None = None
        self.token: str | None = None  # the one of the login
        self.subscriptions: dict[str, Subscription] = {}
        self.view = MergeBox(self)
        self.is_closed = False
        #: False after `disconnect`: the session is not kept for a new connection.
        self.is_kept = True
        #: Called when the result of the present method has been sent.
        self.after_result: list[Callable[[], object]] = []
        self.login_times: list[float] = []
        self.sent = 0  # messages, as a client counts them
        self._unnamed: list[Subscription] = []
        self._ready: list[str] | None = None  # collected while nothing is sent
        self._waiting: collections.deque[Message] = collections.deque()  # for a new connection
        self._grace: asyncio.TimerHandle | None = None
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._worker = asyncio.create_task(self._work())
        self._beat: asyncio.Task[None] | None = None
        self._has_received = False
        self._patience: asyncio.TimerHandle | None = None

    # Connections

    def begin(self) -> None:
        """Says `connected`, and starts what does not wait for the client."""
        self.send({"msg": "connected", "session": self.id})
        self._start_heartbeat()
        self.app.start(self._publish_unnamed())

    def lost(self, link: Link) -> None:
        """The connection is lost: waits for another one, if the server is to do so."""
        if self.link is not link:
            return None
        settings = self.app.settings
        self.link = None
        self._stop_heartbeat()
        if self.is_closed or not settings.resumes or not self.is_kept:
            return self.close()
        loop = asyncio.get_running_loop()
        self._grace = loop.call_later(settings.resume_grace, self.close)
        return None

    def resume(self, link: Link, received: object) -> bool:
        """Continues on a new connection, if the client has received everything that was sent."""
        if self.link is not None or self.is_closed or received != self.sent:
            return False
        if self._grace:
            self._grace.cancel()
        self.link, link.session = link, self
        waiting, self._waiting = self._waiting, collections.deque()
        self.send({"msg": "connected", "session": self.id})
        for message in waiting:
            self.send(message)
        self._start_heartbeat()
        return True

    def close(self) -> None:
        """Ends the session and its connection."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._grace:
            self._grace.cancel()
        self._stop_heartbeat()
        self._worker.cancel()
        for one in [*self.subscriptions.values(), *self._unnamed]:
            one.deactivate()
        self.app.sessions.pop(self.id, None)
        if self.link:
            self.link.close()

    # Messages

    def send(self, message: Message) -> None:
        if self.is_closed:
            return
        if self.link is None:
            self._waiting.append(message)
            if len(self._waiting) > self.app.settings.resume_queue:
                self.close()
            return
        if message["msg"] not in ("ping", "pong"):
            self.sent += 1
        self.link.send(message)

    def error(self, reason: str, offending: Message) -> None:
        self.send({"msg": "error", "reason": reason, "offendingMessage": offending})

    def receive(self, message: Message) -> None:
        """Answers pings at once; other messages wait for those before."""
        self._calm()
        if self.version != "pre1" and message["msg"] in ("ping", "pong"):
            if message["msg"] == "ping" and self.app.settings.answers_pings:
                named = {"id": message["id"]} if "id" in message else {}
                self.send({"msg": "pong", **named})
            return
        self._inbox.put_nowait(message)

    async def _work(self) -> None:
        while True:
            message = await self._inbox.get()
            is_free = asyncio.Event()
            # Methods continue if the connection ends.
            task = self.app.start(self._handle(message, is_free.set))
            waiting = asyncio.create_task(is_free.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    async def _handle(self, message: Message, unblock: Unblock) -> None:
        kind = message["msg"]
        if kind == "sub":
            await self._subscribe(message)
        elif kind == "unsub":
            self.stop(message.get("id"))
        elif kind == "method":
            await methods.run(self, message, unblock)
        elif kind == "disconnect" and self.app.settings.resumes:
            self.is_kept = False
        else:
            self.error("Bad request", message)

    # Heartbeat

    def _start_heartbeat(self) -> None:
        if self.version != "pre1" and self.app.settings.heartbeat_interval:
            self._has_received = False
            self._beat = asyncio.create_task(self._keep_alive())

    def _stop_heartbeat(self) -> None:
        if self._beat:
            self._beat.cancel()
        self._calm()

    def _calm(self) -> None:
        """The client is not silent."""
        self._has_received = True
        if self._patience:
            self._patience.cancel()
            self._patience = None

    async def _keep_alive(self) -> None:
        """Sends a ping in each interval in which the client was silent."""
        loop, settings = asyncio.get_running_loop(), self.app.settings
        while True:
            await asyncio.sleep(settings.heartbeat_interval)
            if not self._has_received and self._patience is None:
                self.send({"msg": "ping"})
                self._patience = loop.call_later(settings.heartbeat_timeout, self._time_out)
            self._has_received = False

    def _time_out(self) -> None:
        """Ends the connection of a silent client; the session is kept as after a loss."""
        if link := self.link:
            self.lost(link)
            link.close()

    # Subscriptions

    async def _subscribe(self, message: Message) -> None:
        id, name, params = message.get("id"), message.get("name"), message.get("params", [])
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(params, list)):
            return self.error("Malformed subscription", message)
        publication = self.app.publications.get(name)
        if publication is None:
            error = MeteorError(404, f"Subscription '{name}' not found")
            return self.send({"msg": "nosub", "id": id, "error": error.as_json()})
        if id not in self.subscriptions:
            self.app.log.add("run", kind="sub", name=name, id=id, user_id=self.user_id)
            self.subscriptions[id] = Subscription(self, publication, id, params)
            await self.subscriptions[id].run()
        return None

    def stop(self, id: Any, error: Exception | None = None) -> None:
        """Ends a subscription, whether the client or its publication wants that."""
        found = self.subscriptions.pop(id, None) if isinstance(id, str) else None
        if found:
            found.remove_all()
            found.deactivate()
        failure = {"error": visible(error).as_json()} if error else {}
        self.send({"msg": "nosub", "id": id, **failure})

    def ready(self, id: str) -> None:
        if self._ready is None:
            self.send({"msg": "ready", "subs": [id]})
        else:
            self._ready.append(id)

    async def _publish_unnamed(self) -> None:
        for number, publication in enumerate(self.app.unnamed):
            one = Subscription(self, publication, f"({number})", [])
            self._unnamed.append(one)
            await one.run()

    async def set_user(self, user_id: str | None) -> None:
        """Runs all publications again, and sends only what differs."""
        for one in [*self.subscriptions.values(), *self._unnamed]:
            one.deactivate()
        self.user_id = user_id
        self.view.reset()
        self._ready, self._unnamed = [], []
        again = {id: one.again() for id, one in self.subscriptions.items()}
        self.subscriptions = dict(again)
        for one in again.values():
            await one.run()
        if self.app.settings.late_user_document:
            self.after_result.append(lambda: self.app.start(self._publish_unnamed()))
        else:
            await self._publish_unnamed()
        self.view.continue_()
        ready, self._ready = self._ready, None
        if ready:
            self.send({"msg": "ready", "subs": ready})

    # Output of the view

    def added(self, collection: str, id: str, fields: Document) -> None:
        some = {"fields": {key: encode(value) for key, value in fields.items()}} if fields else {}
        self.send({"msg": "added", "collection": collection, "id": id, **some})

    def changed(self, collection: str, id: str, fields: Document, cleared: list[str]) -> None:
        message: Message = {"msg": "changed", "collection": collection, "id": id}
        if fields:
            message["fields"] = {key: encode(value) for key, value in fields.items()}
        if cleared:
            message["cleared"] = cleared
        self.send(message)

    def removed(self, collection: str, id: str) -> None:
        self.send({"msg": "removed", "collection": collection, "id": id})
