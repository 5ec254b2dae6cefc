"""An app: its collections, publications, methods and users, and its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web
from background_server import reset
from event_log import Log
from step_faults import StepFaults

from ddp_server import sockjs
from ddp_server.accounts import Accounts
from ddp_server.documents import Collection
from ddp_server.faults import Fault
from ddp_server.links import Link, WebSocketLink
from ddp_server.session import Session
from ddp_server.settings import Settings
from ddp_server.subscription import Publication

if TYPE_CHECKING:
    from ddp_server.methods import Method
    from ddp_server.sockjs import PollingLink


class App:
    """The state of one app. All of it belongs to the server's event loop."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.settings = Settings()
        self.faults = StepFaults(Fault)
        self.log = Log()
        self.links: list[Link] = []
        self.polling: dict[str, PollingLink] = {}
        self.sessions: dict[str, Session] = {}
        self.accounts = Accounts(self)
        self.collections: dict[str, Collection] = {"users": self.accounts.documents}
        self.publications: dict[str, Publication] = {}
        self.unnamed = [Publication(None, self.accounts.publish)]
        self.methods: dict[str, Method] = dict(self.accounts.methods)
        #: The steps that faults and programs hold.
        self.held: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    def new_number(self) -> int:
        self._count += 1
        return self._count

    def collection(self, name: str) -> Collection:
        """A collection, which is made if there is none of this name."""
        return self.collections.setdefault(name, Collection(name))

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def hold(self, step: Callable[[], None]) -> None:
        """Keeps a step until a test calls `release`."""
        self.held.append(step)
        self.log.changed()

    async def wait_for_release(self) -> None:
        released = asyncio.Event()
        self.hold(released.set)
        await released.wait()

    # Requests

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answers a request for a WebSocket, or what is below /sockjs."""
        if fault := self.faults.take("handshake", {}):
            if (response := await self._fail(request, fault)) is not None:
                return response
        path = request.match_info.get("path")
        if path is not None and not self.settings.sockjs:
            raise web.HTTPNotFound
        parts = (path or "").strip("/").split("/")
        is_wrapped = len(parts) == 3 and parts[2] == "websocket"
        if path is not None and not is_wrapped and parts != ["websocket"]:
            return await sockjs.answer(self, request)
        _, headers = self.route(request)
        if not self.settings.websocket:
            raise web.HTTPNotFound(headers=headers)
        ws = web.WebSocketResponse(
            autoping=False,
            autoclose=False,
            timeout=0.1,
            compress=self.settings.compression,
            max_msg_size=64 << 20,
        )
        ws.headers.update(headers)
        await ws.prepare(request)
        await WebSocketLink(self, ws, is_wrapped).run(request)
        return ws

    def route(self, request: web.Request) -> tuple[str, dict[str, str]]:
        """A load balancer's cookie, and the headers of the response, which may set it.

        It is "" unless the setting `sticky` wants it.
        """
        if not self.settings.sticky:
            return "", {}
        if known := request.cookies.get("route"):
            return known, {}
        route = f"r{self.new_number()}"
        return route, {"Set-Cookie": f"route={route}; Path=/; HttpOnly"}

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        if fault.do == "status":
            return web.Response(status=fault.code, text=fault.text)
        if fault.do == "delay":
            await asyncio.sleep(fault.seconds)
            return None
        if fault.do == "hold":
            await self.wait_for_release()
            return None
        if fault.do in ("ignore", "stall"):
            await asyncio.Event().wait()
        if isinstance(request.transport, asyncio.Transport):
            reset(request.transport) if fault.do == "reset" else request.transport.close()
        return web.Response()

    # Messages

    def receive(self, link: Link, message: Any) -> None:
        """Handles what comes before a session, and gives it the rest."""
        if not isinstance(message, dict) or not isinstance(message.get("msg"), str):
            link.error("Bad request", message)
        elif message["msg"] == "connect":
            if link.session is not None:
                link.error("Already connected", message)
            else:
                self._connect(link, message)
        elif link.session is None:
            link.error("Must connect first", message)
        elif link.session.link is link:
            link.session.receive(message)

    def _connect(self, link: Link, message: Mapping[str, Any]) -> None:
        versions = self.settings.versions
        version, support = message.get("version"), message.get("support")
        chosen = versions[0]
        is_whole = isinstance(support, list) and version in support
        if is_whole:
            assert isinstance(support, list)
            chosen = next((one for one in support if one in versions), versions[0])
        if not is_whole or chosen != version:
            link.send({"msg": "failed", "version": chosen})
            return link.close()
        old = self.sessions.get(str(message.get("session")))
        if self.settings.resumes and old and old.resume(link, message.get("receivedCount")):
            return None
        link.session = Session(self, link, chosen)
        self.sessions[link.session.id] = link.session
        link.session.begin()
        return None

    def lost(self, link: Link) -> None:
        if link.session is not None:
            link.session.lost(link)

    def crash(self) -> None:
        """Resets all connections and forgets all sessions, as the end of the process does."""
        for session in list(self.sessions.values()):
            session.close()
        for link in list(self.links):
            link.abort()

    def stop(self) -> None:
        self.crash()
        for task in self._tasks:
            task.cancel()
