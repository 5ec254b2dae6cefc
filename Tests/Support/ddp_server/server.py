"""The server: its URLs and its apps."""

from __future__ import annotations

from aiohttp import web
from background_server import BackgroundServer, perform

from ddp_server.app import App
from ddp_server.control import Control

#: The first app, whose URLs need no prefix.
FIRST = "1"


class Router:
    """Routes requests to the apps. What concerns one app is below /apps/ID."""

    def __init__(self) -> None:
        self.apps = {FIRST: App(FIRST)}

    def application(self) -> web.Application:
        application = web.Application(client_max_size=64 << 20)
        for prefix in ("", "/apps/{id}"):
            application.add_routes(
                [
                    web.get(prefix + "/websocket", self._answer, allow_head=False),
                    web.route("*", prefix + "/sockjs{path:(/.*)?}", self._answer),
                    web.post(prefix + "/control/{action}", self._control),
                ]
            )
        return application

    def _app(self, request: web.Request) -> App:
        app = self.apps.get(request.match_info.get("id", FIRST))
        if app is None:
            raise web.HTTPNotFound(text="no such app\n")
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return await self._app(request).answer(request)

    async def _control(self, request: web.Request) -> web.Response:
        if request.match_info["action"] == "new_app":
            app = App(str(len(self.apps) + 1))
            self.apps[app.id] = app
            return web.json_response({"id": app.id})
        return await perform(Control(self._app(request)), request)


class DDPServer(BackgroundServer):
    """A server on its own thread, with one app. TLS and plain connections use the same port.

    with DDPServer() as server:
        server.control.collection("players")     # the actions of control.py
        await server.actions.wait(what="in", msg="sub")    # for coroutines
    """

    cancels_handlers = True

    def open(self) -> tuple[web.Application, object]:
        self._router = Router()
        self.app = self._router.apps[FIRST]
        return self._router.application(), Control(self.app)

    def crash(self) -> None:
        for app in self._router.apps.values():
            app.stop()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"ws://{self.host}:{self.port}/websocket"
