"""An aiohttp server of messages by WebSocket, event streams and polls, on its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web
from servers import AsyncServer


class BotServer(AsyncServer):
    """What it does depends on the requested path.

    A path without WebSocket answers its handshake with 404. `posts` holds the posted bodies.
    """

    def __init__(self) -> None:
        super().__init__(self._serve)
        self.posts: queue.Queue[tuple[str, bytes, Any]] = queue.Queue()
        self.requests: queue.Queue[tuple[str, Any]] = queue.Queue()
        #: The accepted token, how many were issued, and the response to a refresh.
        self.token = "good"
        self.refreshes = 0
        self.refusal = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self) -> tuple[int, Callable[[], Any]]:
        application = web.Application()
        application.router.add_route("*", "/{name}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._stops = asyncio.Event()

        async def stop() -> None:
            self._stops.set()
            await runner.cleanup()

        return runner.addresses[0][1], stop

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.requests.put((f"{request.method} {request.path_qs}", request.headers))
        if request.method == "POST" and name != "auth":
            return await self._post(request, name)
        is_socket = request.headers.get("Upgrade") == "websocket"
        does = getattr(self, ("socket_" if is_socket else "do_") + name, None)
        if does is None:
            return web.Response(status=404)
        with contextlib.suppress(ConnectionError):
            return await does(request)
        return web.Response()

    async def _post(self, request: web.Request, name: str) -> web.Response:
        self.posts.put((name, await request.read(), request.headers))
        if name == "forbidden":
            return web.Response(status=403, text="not you")
        if name == "guarded" and not self._allows(request):
            return web.Response(status=401)
        return web.json_response({"stored": True}, status=201)

    def _allows(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"

    # WebSockets

    async def _socket(self, request: web.Request, **options: Any) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0, **options)
        await socket.prepare(request)
        return socket

    async def socket_echo(self, request: web.Request) -> web.WebSocketResponse:
        socket = await self._socket(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            else:
                await socket.send_bytes(message.data)
        return socket

    async def socket_json(self, request: web.Request) -> web.WebSocketResponse:
        socket = await self._socket(request)
        await socket.send_json({"id": "7", "event": "tick", "data": {"a": 1}})
        await socket.send_bytes(b"\xff\x00")
        await socket.receive()
        return socket

    async def socket_deaf(self, request: web.Request) -> web.WebSocketResponse:
        """Answers no pings, and drops the connection when it receives the text "go"."""
        socket = await self._socket(request, autoping=False)
        async for message in socket:
            if message.data == "go":
                assert request.transport is not None
                request.transport.abort()
        return socket

    async def socket_flood(self, request: web.Request) -> web.WebSocketResponse:
        """Sends fifty messages at the start and for each message it receives."""
        socket = await self._socket(request)
        first = 0
        while True:
            for number in range(first, first + 50):
                await socket.send_str(str(number))
            first += 50
            if (await socket.receive()).type is not WSMsgType.TEXT:
                return socket

    # Event streams and polls

    async def do_events(self, request: web.Request) -> web.StreamResponse:
        """Sends the three events after the id it received, then holds."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        last = int(request.headers.get("Last-Event-ID", "0"))
        for number in range(last + 1, last + 4):
            await response.write(f"id: {number}\ndata: number {number}\n\n".encode())
        await self._stops.wait()
        return response

    async def do_poll(self, request: web.Request) -> web.Response:
        """Not an event stream: five messages, one per response; then holds."""
        if "event-stream" in request.headers.get("Accept", ""):
            return web.Response(status=404)
        number = int(request.headers.get("Last-Event-ID", "0")) + 1
        if number > 5:
            await self._stops.wait()
        return web.Response(text=f"number {number}", headers={"Last-Event-ID": str(number)})

    async def do_guarded(self, request: web.Request) -> web.StreamResponse:
        if not self._allows(request):
            return web.Response(status=401)
        return await self.do_events(request)

    async def do_secret(self, request: web.Request) -> web.Response:
        if not self._allows(request):
            return web.Response(status=401)
        return web.json_response({"secret": 42})

    async def do_refused(self, request: web.Request) -> web.Response:
        return web.Response(status=403)

    async def do_auth(self, request: web.Request) -> web.Response:
        """Issues tokens for the last refresh token."""
        form = await request.post()
        assert request.headers["Authorization"] == "Basic Y2xpZW50OnNlY3JldA=="
        assert form["grant_type"] == "refresh_token"
        if self.refusal or form["refresh_token"] != f"r{self.refreshes}":
            return web.json_response({"error": "invalid_grant"}, status=self.refusal or 400)
        self.refreshes += 1
        self.token = f"a{self.refreshes}"
        return web.json_response(
            {
                "access_token": self.token,
                "refresh_token": f"r{self.refreshes}",
                "token_type": "bearer",
            }
        )
