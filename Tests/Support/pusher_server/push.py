"""The service of push notifications: devices register and choose interests."""

from __future__ import annotations

import dataclasses
import json
import secrets
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from pusher_server.app import App


@dataclasses.dataclass
class Plan:
    """How the service answers: with a status or body, or not until `release`."""

    status: int | None = None
    body: str = ""
    hold: bool = False
    times: int | None = 1


class Push:
    """The interests of one app's devices, by the ids that they got when they registered."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._plans: list[Plan] = []
        self.interests: dict[str, list[str]] = {}

    def plan(self, **fields: Any) -> None:
        self._plans.append(Plan(**fields))

    def clear(self) -> None:
        self._plans.clear()

    async def answer(self, request: web.Request) -> web.Response:
        """Answers a request whose app key was checked, and logs it."""
        fields = await request.json()
        plan = next((plan for plan in self._plans if plan.times != 0), Plan())
        if plan.times is not None:
            plan.times -= 1
        if plan.hold:
            await self._app.hold()
        if plan.status is not None and plan.status >= 300:
            status, text = plan.status, plan.body
        else:
            status, value = self._perform(request, fields)
            status = plan.status or status
            text = plan.body or (json.dumps(value) if value else "")
        self._app.log.add(
            "push",
            method=request.method,
            path=request.path,
            raw_path=request.rel_url.raw_path,
            headers=dict(request.headers),
            body=fields,
            status=status,
        )
        return web.Response(status=status, text=text or None, content_type="application/json")

    def _perform(self, request: web.Request, fields: Any) -> tuple[int, Any]:
        client, interest = (request.match_info.get(name) for name in ("client", "interest"))
        if client is None:
            client = secrets.token_hex(8)
            self.interests[client] = []
            answer = {name: fields.get(name) for name in ("platform_type", "token")}
            return 201, {"id": client, "pusher_app_key": self._app.key, **answer}
        known = self.interests.get(client)
        if known is None:
            return 404, {"error": "unknown client"}
        if not interest:
            known[:] = fields.get("interests", [])
        elif request.method == "DELETE":
            known[:] = [name for name in known if name != interest]
        elif interest not in known:
            known.append(interest)
        return 204, None


async def route(apps: list[App], request: web.Request) -> web.Response:
    """Finds the app by the key in the body."""
    try:
        key = (await request.json())["app_key"]
    except (ValueError, TypeError, KeyError):
        raise web.HTTPBadRequest(text="the body must be a JSON object with app_key\n") from None
    for app in apps:
        if app.key == key:
            return await app.push.answer(request)
    raise web.HTTPUnauthorized(text="unknown app_key\n")
