"""An app: its key and secret, its channels and connections, and what a test ordered for it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping

from aiohttp import web
from background_server import reset
from event_log import Log
from step_faults import StepFaults

from pusher_server import protocol
from pusher_server.auth import Authorizer
from pusher_server.channels import Channel, is_cache
from pusher_server.connection import Connection
from pusher_server.faults import Fault
from pusher_server.messages import compact
from pusher_server.push import Push
from pusher_server.settings import Settings
from pusher_server.users import Users

PROTOCOLS = ("5", "6", "7")  # The versions that the server speaks: old libraries name old ones.


class App:
    """The state of one app. All of it belongs to the server's event loop."""

    def __init__(self, id: str, key: str, secret: str, master_key: bytes) -> None:
        self.id, self.key, self.secret, self.master_key = id, key, secret, master_key
        self.settings = Settings()
        self.faults = StepFaults(Fault)
        self.log = Log()
        self.users = Users(self.settings)
        self.authorizer = Authorizer(self)
        self.push = Push(self)
        self.channels: dict[str, Channel] = {}
        self.connections: list[Connection] = []
        #: The steps that faults hold.
        self.held: list[Callable[[], None]] = []
        self._count = 0

    def new_socket_id(self) -> str:
        if self.settings.socket_id:
            return self.settings.socket_id
        return f"{random.randrange(1, 10**6)}.{random.randrange(1, 10**9)}"

    async def hold(self) -> None:
        """Waits until a test calls `release`."""
        released = asyncio.Event()
        self.held.append(released.set)
        self.log.changed()
        await released.wait()

    # Connections

    async def connect(self, request: web.Request, key: str) -> web.StreamResponse:
        """Serves a WebSocket until it ends."""
        if fault := self.faults.take("handshake", (None, None)):
            if (response := await self._fail_handshake(request, fault)) is not None:
                return response
        settings = self.settings
        ws = web.WebSocketResponse(
            protocols=settings.subprotocols,
            autoping=False,
            autoclose=False,
            timeout=0.1,
            compress=settings.compression,
            max_msg_size=16 << 20,
        )
        await ws.prepare(request)
        self._count += 1
        connection = Connection(self, ws, self._count)
        self.log.add(
            "open",
            connection=connection.number,
            socket_id=connection.socket_id,
            path=request.path,
            query=dict(request.query),
            headers=dict(request.headers),
            tls=request.secure,
        )
        self.connections.append(connection)
        try:
            self._begin(connection, request, key)
            await connection.run(lambda message: protocol.receive(self, connection, message))
        finally:
            self._end(connection)
        return ws

    async def _fail_handshake(
        self, request: web.Request, fault: Fault
    ) -> web.StreamResponse | None:
        transport = request.transport
        if fault.do == "status":
            return web.Response(status=fault.code, text=fault.text)
        if fault.do == "delay":
            await asyncio.sleep(fault.seconds)
            return None
        if fault.do == "hold":
            await self.hold()
            return None
        if fault.do in ("ignore", "stall"):
            await asyncio.Event().wait()
        if transport is not None:
            reset(transport) if fault.do == "reset" else transport.close()
        return web.Response()

    def _begin(self, connection: Connection, request: web.Request, key: str) -> None:
        """Establishes the connection, or refuses it with a close code."""
        settings = self.settings
        if key != self.key and settings.unknown_key != "accept":
            return refuse_key(connection, key)
        if settings.tls_only and not request.secure:
            return connection.close(4000, "The app accepts only TLS connections")
        if settings.checks_protocol and (wrong := self._wrong_query(request.query)):
            return connection.close(*wrong)
        if settings.max_connections and len(self.connections) > settings.max_connections:
            return connection.close(4100, "Over capacity")
        connection.establish()
        if settings.authorized_within:
            asyncio.get_running_loop().call_later(
                settings.authorized_within, self._check_authorized, connection
            )
        return None

    def _wrong_query(self, query: Mapping[str, str]) -> tuple[int, str] | None:
        """The close code for the parameters of the URL, and its reason."""
        if "protocol" not in query:
            return 4008, "No protocol version supplied"
        if query["protocol"] not in PROTOCOLS:
            return 4007, "Unsupported protocol version"
        client = "[A-Za-z0-9.]+(-[A-Za-z0-9.]+)+" if self.settings.checks_client_name else ".+"
        version = r"\d+(\.\d+)+([-+.].*)?"
        for name, pattern in (("client", client), ("version", version)):
            if not re.fullmatch(pattern, query.get(name, "")):
                return 4006, f"Invalid version string format: {name}"
        return None

    def _check_authorized(self, connection: Connection) -> None:
        names = (self.channels[name].kind for name in connection.channels)
        if connection.user_id is None and all(kind == "public" for kind in names):
            connection.close(4009, "Connection not authorized within timeout")

    def _end(self, connection: Connection) -> None:
        self.connections.remove(connection)
        for name in list(connection.channels):
            protocol.leave(self, connection, name)
        self.users.sign_out(connection)

    def crash(self) -> None:
        """What the end of the server's process does to its connections."""
        for connection in list(self.connections):
            connection.abort()

    # Channels

    def publish(
        self, name: str, event: str, data: object, except_socket: str | None = None
    ) -> None:
        """Sends an event to the subscribers of a channel."""
        channel = self.channels.get(name)
        if is_cache(name):
            channel = self.channels.setdefault(name, Channel(name))
            channel.cache(event, data, self.settings.cache_ttl)
        if channel is None:
            return
        for connection in list(channel.subscribers):
            if connection.socket_id != except_socket:
                for _ in range(connection.channels[name]):
                    connection.send(event, name, data)

    def forget(self, channel: Channel) -> None:
        """Removes a channel that nobody needs."""
        if not channel.subscribers and not channel.take_cached():
            self.channels.pop(channel.name, None)

    def count(self, channel: Channel) -> None:
        """Sends the number of subscribers, if the app has that feature; less often to many."""
        if not self.settings.subscription_count or channel.kind in ("presence", "user"):
            return
        loop, often = asyncio.get_running_loop(), self.settings.count_every
        if len(channel.subscribers) <= self.settings.count_always:
            self._send_count(channel)
        elif not channel.is_count_due:
            channel.is_count_due = True
            wait = max(0, channel.counted + often - loop.time())
            loop.call_later(wait, self._send_count, channel)

    def _send_count(self, channel: Channel) -> None:
        channel.counted, channel.is_count_due = asyncio.get_running_loop().time(), False
        data = compact({"subscription_count": len(channel.subscribers)})
        for connection in list(channel.subscribers):
            connection.send("pusher_internal:subscription_count", channel.name, data)

    def allows_client_event(self, connection: Connection) -> bool:
        """Counts a client event; whether the connection may send it within its rate."""
        rate, now = self.settings.client_event_rate, asyncio.get_running_loop().time()
        begin = now - self.settings.client_event_window
        recent = [when for when in connection.sent_client_events if when > begin]
        connection.sent_client_events = recent
        if rate and len(recent) >= rate:
            return False
        recent.append(now)
        return True


def refuse_key(connection: Connection, key: str) -> None:
    """Refuses a connection to an app that does not exist."""
    how = connection.app.settings.unknown_key
    text = f"App key {key} not in this cluster"
    if how != "close":
        connection.error(4001, text)
    if how == "error-end":
        connection.end()
    else:
        connection.close(4001, text)
