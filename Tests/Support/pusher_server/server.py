"""The server: its URLs and its apps."""

from __future__ import annotations

import base64
import secrets

from aiohttp import web
from background_server import BackgroundServer, perform
from certificates import TLS

from pusher_server import publishing, push
from pusher_server.app import App
from pusher_server.control import Control

ID, KEY, SECRET = "1", "demo", "demo-secret"
#: The master key of encrypted channels, from the specification's test vector.
MASTER_KEY = base64.b64decode("8QtOksU0XPlmeKk+Z8GMsHUSB9O51fyoqQ9YIEaVFt4=")


class Router:
    """Routes requests to the apps. What concerns one app is below /apps/ID; for the first one, the
    authorization endpoints and /control can be used without that."""

    def __init__(self, app: App) -> None:
        self._apps = {app.id: app}

    def application(self) -> web.Application:
        application = web.Application(client_max_size=1 << 20)
        ours = "/apps/{id}"
        application.add_routes(
            [
                web.get("/{prefix:(.*/)?}app/{key}", self._connect, allow_head=False),
                *(
                    route
                    for prefix in ("", ours)
                    for route in (
                        web.post(prefix + "/pusher/auth", self._channel_auth),
                        web.post(prefix + "/pusher/user-auth", self._user_auth),
                        web.post(prefix + "/control/{action}", self._control),
                    )
                ),
                web.post(ours + "/{action:events|batch_events}", self._publish),
                web.get(ours + "/channels", self._publish),
                web.get(ours + "/channels/{channel}", self._publish),
                web.get(ours + "/channels/{channel}/users", self._publish),
                web.post(ours + "/users/{user}/terminate_connections", self._publish),
                web.post("/push/clients", self._push),
                web.put("/push/clients/{client}/interests/", self._push),
                web.post("/push/clients/{client}/interests/{interest}", self._push),
                web.delete("/push/clients/{client}/interests/{interest}", self._push),
                # The path that the PyPI package `pusher` uses.
                web.post("/users/{user}/terminate_connections", self._publish),
            ]
        )
        return application

    def add(self) -> App:
        """Makes a further app, with an id, key and secret of its own."""
        id = str(len(self._apps) + 1)
        app = App(id, secrets.token_hex(10), secrets.token_hex(10), secrets.token_bytes(32))
        self._apps[id] = app
        return app

    def _app(self, request: web.Request) -> App:
        """The app of a request that names its id, or its key, or the first one."""
        if "id" not in request.match_info:
            key = request.query.get("auth_key")
            apps = list(self._apps.values())
            return next((app for app in apps if app.key == key), apps[0])
        app = self._apps.get(request.match_info["id"])
        if app is None:
            raise web.HTTPNotFound(text="no such app\n")
        return app

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        key, apps = request.match_info["key"], list(self._apps.values())
        app = next((app for app in apps if app.key == key), apps[0])
        return await app.connect(request, key)

    async def _channel_auth(self, request: web.Request) -> web.StreamResponse:
        return await self._app(request).authorizer.channels(request)

    async def _user_auth(self, request: web.Request) -> web.StreamResponse:
        return await self._app(request).authorizer.user_auth(request)

    async def _publish(self, request: web.Request) -> web.Response:
        return await publishing.answer(self._app(request), request)

    async def _push(self, request: web.Request) -> web.Response:
        return await push.route(list(self._apps.values()), request)

    async def _control(self, request: web.Request) -> web.Response:
        if request.match_info["action"] == "new_app":
            app = self.add()
            fields = {"id": app.id, "key": app.key, "secret": app.secret}
            master = base64.b64encode(app.master_key).decode()
            return web.json_response({**fields, "master_key": master})
        return await perform(Control(self._app(request)), request)


class PusherServer(BackgroundServer):
    """A server on its own thread, with one app. TLS and plain connections use the same port.

    with PusherServer() as server:
        server.control.settings(dialect="soketi")     # the actions of control.py
        await server.actions.wait(what="in", event="pusher:subscribe")    # for coroutines
    """

    def __init__(self, tls: TLS | None = None, host: str = "127.0.0.1") -> None:
        super().__init__(tls, host)
        self.app_id, self.key, self.secret, self.master_key = ID, KEY, SECRET, MASTER_KEY

    def open(self) -> tuple[web.Application, object]:
        self.app = App(self.app_id, self.key, self.secret, self.master_key)
        return Router(self.app).application(), Control(self.app)

    def crash(self) -> None:
        self.app.crash()
