"""SockJS: /sockjs/info, and sessions by polling. WebSockets below /sockjs are in links.py."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web
from background_server import reset

from ddp_server.ejson import text_of
from ddp_server.links import Link

if TYPE_CHECKING:
    from ddp_server.app import App

#: The other types get 500.
_TYPES = ("text/plain", "T", "application/json", "application/xml", "text/xml")
_HEADERS = {"Cache-Control": "no-store, no-cache, no-transform, must-revalidate, max-age=0"}


class PollingLink(Link):
    """A SockJS session whose client polls with POST …/xhr and sends with POST …/xhr_send."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._frames: list[str] = []  # complete ones
        self._texts: list[str] = []  # for the next frame of messages
        self._has_news = asyncio.Event()
        self._poll: web.Request | None = None
        self._timeout: asyncio.TimerHandle | None = None
        self._has_opened = False
        #: The cookie of a load balancer, which leads to this session; "" without one.
        self.route = ""

    def is_reached(self, request: web.Request) -> bool:
        return not self.route or request.cookies.get("route") == self.route

    async def poll(
        self, request: web.Request, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        """Answers with the next frame."""
        if self._poll is not None:
            return _frame("c" + text_of([2010, "Another connection still open"]))
        self._poll = request
        if self._timeout:
            self._timeout.cancel()
        try:
            response = _frame(await self._next())
            response.headers.update(headers or {})
            # Before the messages that may follow, the answer must be written.
            await response.prepare(request)
            await response.write_eof()
            return response
        except (asyncio.CancelledError, ConnectionError):
            self.finish()
            raise
        finally:
            self._poll = None
            loop = asyncio.get_running_loop()
            self._timeout = loop.call_later(self.app.settings.sockjs_timeout, self.finish)

    async def _next(self) -> str:
        if not self._has_opened:
            self._has_opened = True
            return "o"
        while not self._frames and not self._texts or self.is_stalled:
            self._has_news.clear()
            try:
                beat = None if self.is_stalled else self.app.settings.sockjs_heartbeat
                await asyncio.wait_for(self._has_news.wait(), beat)
            except asyncio.TimeoutError:
                return "h"
        if self._texts:
            texts, self._texts = self._texts, []
            return "a" + text_of(texts)
        frame = self._frames[0]
        if not self.has_closed:
            del self._frames[0]
        return frame

    async def send_in(self, request: web.Request) -> web.Response:
        """Processes the client's messages."""
        kind = request.headers.get("Content-Type", "").split(";")[0]
        body = await request.text()
        if kind not in _TYPES or not body:
            return web.Response(status=500, text="Payload expected.")
        try:
            texts = json.loads(body)
        except ValueError:
            return web.Response(status=500, text="Broken JSON encoding.")
        if not isinstance(texts, list):
            return web.Response(status=500, text="Payload expected.")
        for text in texts:
            if not self.is_stalled:
                self.receive(str(text))
        return web.Response(status=204, headers=_HEADERS, content_type="text/plain")

    async def write(self, text: str) -> None:
        self._texts.append(text)
        self._has_news.set()

    async def write_close(self, code: int, reason: str) -> None:
        if not self.has_closed:
            self.has_closed = True
            self._frames.append("c" + text_of([3000, "Go away!"]))
            self._has_news.set()

    def abort(self, how: str = "reset") -> None:
        transport = self._poll.transport if self._poll else None
        if transport is not None:
            reset(transport) if how == "reset" else transport.close()
        self.finish()

    def stall(self) -> None:
        pass  # Polls hang, and what the client sends is ignored.

    def finish(self) -> None:
        if self._timeout:
            self._timeout.cancel()
        self.app.polling = {k: one for k, one in self.app.polling.items() if one is not self}
        super().finish()


async def answer(app: App, request: web.Request) -> web.StreamResponse:
    """Answers what is below /sockjs, except WebSockets."""
    path = request.match_info["path"].strip("/").split("/")
    if path == [""]:
        return web.Response(text="Welcome to SockJS!\n")
    if path == ["info"]:
        info = {
            "websocket": app.settings.websocket,
            "origins": ["*:*"],
            "cookie_needed": False,
            "entropy": random.randrange(2**32),
        }
        return web.json_response(info, headers=_HEADERS)
    if len(path) == 3 and request.method == "POST" and all("." not in one for one in path):
        key = "/".join(path[:2])
        link = app.polling.get(key)
        if path[2] == "xhr":
            if link is None:
                link = app.polling[key] = PollingLink(app)
                link.begin("xhr", request)
                link.route, headers = app.route(request)
                return await link.poll(request, headers)
            if link.is_reached(request):
                return await link.poll(request)
        if path[2] == "xhr_send" and link is not None and link.is_reached(request):
            return await link.send_in(request)
    raise web.HTTPNotFound(text="404 Error: Page not found\n")


def _frame(text: str) -> web.Response:
    return web.Response(
        text=text + "\n",
        headers={**_HEADERS, "Content-Type": "application/javascript; charset=UTF-8"},
    )
