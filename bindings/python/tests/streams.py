"""An aiohttp server of event streams, on its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from aiohttp import web
from servers import AsyncServer


class EventServer(AsyncServer):
    """What it sends depends on the requested path; `requests` holds the requests."""

    def __init__(self) -> None:
        super().__init__(self._serve)
        self.requests: queue.Queue[tuple[str, Any]] = queue.Queue()
        #: How many events of /flood were sent, and whether all were.
        self.sent = 0
        self.is_done = threading.Event()
        self._released = asyncio.Event()

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
        self.requests.put((request.method, request.headers))
        with contextlib.suppress(ConnectionError):
            return await getattr(self, "do_" + request.match_info["name"])(request)
        return web.Response()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        return response

    async def _hold(self) -> None:
        await self._stops.wait()

    async def do_count(self, request: web.Request) -> web.StreamResponse:
        """Sends the three events after the id it received, then ends; every other has type odd."""
        response = await self._stream(request)
        last = int(request.headers.get("Last-Event-ID", "0"))
        for number in range(last + 1, last + 4):
            kind = "event: odd\n" if number % 2 else ""
            await response.write(f"{kind}id: {number}\ndata: number {number}\n\n".encode())
        return response

    async def do_held(self, request: web.Request) -> web.StreamResponse:
        """One event, and a comment."""
        response = await self._stream(request)
        await response.write(b': hello \xff\nretry: 20\nid: a\ndata: {"a": 1}\n\n')
        await self._hold()
        return response

    async def do_retries(self, request: web.Request) -> web.StreamResponse:
        response = await self._stream(request)
        await response.write(b"retry: 20\n\ndata: 1\n\ndata: 2\n\nretry: 20\ndata: 3\n\n")
        await self._hold()
        return response

    async def do_three(self, request: web.Request) -> web.StreamResponse:
        response = await self._stream(request)
        await response.write(b"data: 1\n\ndata: 2\n\ndata: 3\n\n")
        await self._hold()
        return response

    async def do_flood(self, request: web.Request) -> web.StreamResponse:
        """Sends more than the kernels buffer."""
        response = await self._stream(request)
        filling = "x" * 10_000
        for number in range(6000):
            await response.write(f"data: {number} {filling}\n\n".encode())
            self.sent = number + 1
        self.is_done.set()
        await self._hold()
        return response

    async def do_guarded(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer good":
            return web.Response(status=401)
        return await self.do_held(request)

    async def do_echo(self, request: web.Request) -> web.StreamResponse:
        """Sends the request's body back as data."""
        response = await self._stream(request)
        body = (await request.read()).decode()
        await response.write(f"event: {request.method}\ndata: {body}\n\n".encode())
        await self._hold()
        return response

    async def do_poll(self, request: web.Request) -> web.Response:
        """Sends the five messages after the validators it received, one by one; then holds."""
        number = int(request.headers.get("If-None-Match", "0")) + 1
        if number > 5:
            await self._hold()
        validators = {"ETag": str(number), "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}
        return web.Response(text=f"number {number}", headers=validators)

    async def do_page(self, request: web.Request) -> web.Response:
        return web.Response(text="no stream")

    async def do_later(self, request: web.Request) -> web.StreamResponse:
        """The head; the body ends after a request of /release."""
        response = await self._stream(request)
        await self._released.wait()
        return response

    async def do_release(self, request: web.Request) -> web.Response:
        self._released.set()
        return web.Response()
