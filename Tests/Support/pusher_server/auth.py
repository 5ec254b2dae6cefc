"""The endpoints that authorize subscriptions and sign-ins, as a user of Pusher would write them."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

from aiohttp import web
from background_server import reset

from pusher_server import signatures
from pusher_server.channels import kind_of
from pusher_server.messages import compact

if TYPE_CHECKING:
    from pusher_server.app import App

#: What plans call the request of a sign-in, instead of a channel.
USER = "(user)"

MODES = (
    "ok",
    "deny",
    "error",
    "hang",
    "drop",
    "bad_json",
    "no_auth",
    "wrong_signature",
    "no_channel_data",
    "no_shared_secret",
    "wrong_shared_secret",
)


@dataclasses.dataclass
class Plan:
    """How the endpoints answer.

    mode:
    ok                   a valid answer
    deny                 403 with `body`
    error                500 with `body`
    hang                 no answer until `release`, then a valid one
    drop                 a reset of the connection
    bad_json             200 with something else than JSON
    no_auth, no_channel_data, no_shared_secret: a valid answer without these
    wrong_signature, wrong_shared_secret: an answer in which these are wrong

    status, body: instead of those of the mode. seconds: a delay. times: how often it happens;
    None: always. channel: only for requests that name this channel, or `(user)` for sign-ins; in a
    batch, all modes but `hang` and `drop` then concern this channel alone.
    """

    mode: str = "ok"
    status: int | None = None
    body: str | None = None
    seconds: float = 0
    channel: str | None = None
    times: int | None = 1

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode}, one of {', '.join(MODES)} is expected")


class Authorizer:
    """Answers the requests of one app's clients.

    The user is `user`, or what the form says: user_id, and user_info and watchlist as JSON.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._plans: list[Plan] = []
        self.user: dict[str, Any] = {}
        #: The form of a batch's answer: an object for each channel, or with `status` and `data`.
        self.wraps_batches = False

    def plan(self, **fields: Any) -> None:
        self._plans.append(Plan(**fields))

    def clear(self) -> None:
        self._plans.clear()

    async def channels(self, request: web.Request) -> web.StreamResponse:
        """POST /pusher/auth: one channel, or several in our batched form."""
        form = await _form(request)
        batch = [
            value for name, value in form.items() if re.fullmatch(r"channel_name\[\d+\]", name)
        ]
        names = batch or ([form["channel_name"]] if "channel_name" in form else [])
        if not names or "socket_id" not in form:
            return self._say(request, form, names, 400, "socket_id or channel_name is missing")
        plan = self._take(names)
        if response := await self._begin(request, plan):
            self._log(request, form, names, None)
            return response
        answers = {
            name: self._answer(name, form, plan if _concerns(plan, name) else Plan())
            for name in names
        }
        if not batch:
            status, text = answers[names[0]]
            return self._say(request, form, names, plan.status or status, text)
        if plan.mode in ("deny", "error", "bad_json") and plan.channel is None:
            status, text = answers[names[0]]
            return self._say(request, form, names, plan.status or status, text)
        whole = {name: self._part(*answer) for name, answer in answers.items()}
        return self._say(request, form, names, 200, compact(whole))

    async def user_auth(self, request: web.Request) -> web.StreamResponse:
        """POST /pusher/user-auth."""
        form, app = await _form(request), self._app
        plan = self._take([USER])
        if response := await self._begin(request, plan):
            self._log(request, form, [], None)
            return response
        status, text = _refusal(plan)
        if not text:
            fields = self._user(form)
            user = {"id": fields.pop("user_id", "u-1"), **fields}
            data = compact(user)
            auth = signatures.user_auth(
                app.key, self._secret(plan), form.get("socket_id", ""), data
            )
            answer = {"auth": auth, "user_data": data}
            if plan.mode == "no_auth":
                del answer["auth"]
            text = compact(answer)
        return self._say(request, form, [], plan.status or status, text)

    def _take(self, names: list[str]) -> Plan:
        for plan in self._plans:
            if plan.times != 0 and (plan.channel is None or plan.channel in names):
                if plan.times is not None:
                    plan.times -= 1
                return plan
        return Plan()

    async def _begin(self, request: web.Request, plan: Plan) -> web.StreamResponse | None:
        """Waits, or ends the connection and returns a response that nobody gets."""
        await asyncio.sleep(plan.seconds)
        if plan.mode == "hang":
            await self._app.hold()
        if plan.mode == "drop" and request.transport is not None:
            reset(request.transport)
            return web.Response()
        return None

    def _answer(self, name: str, form: dict[str, str], plan: Plan) -> tuple[int, str]:
        """The status and body for one channel."""
        status, text = _refusal(plan)
        if text:
            return status, text
        app, kind, answer = self._app, kind_of(name), {}
        data = compact(self._member(form)) if kind == "presence" else None
        auth = signatures.channel_auth(app.key, self._secret(plan), form["socket_id"], name, data)
        answer["auth"] = auth
        if data is not None:
            answer["channel_data"] = data
        if kind == "encrypted":
            secret = signatures.shared_secret(app.master_key, name)
            if plan.mode == "wrong_shared_secret":
                secret = secret[::-1]
            answer["shared_secret"] = base64.b64encode(secret).decode()
        answer.pop(plan.mode.removeprefix("no_"), None)
        return 200, plan.body if plan.body is not None else compact(answer)

    def _part(self, status: int, text: str) -> Any:
        """The answer for one channel of a batch."""
        try:
            data: Any = json.loads(text)
        except ValueError:
            data = text
        if self.wraps_batches or status != 200:
            return {"status": status, "data": data}
        return data

    def _user(self, form: dict[str, str]) -> dict[str, Any]:
        fields = dict(self.user)
        if "user_id" in form:
            fields["user_id"] = form["user_id"]
        for name in ("user_info", "watchlist"):
            if name in form:
                fields[name] = json.loads(form[name])
        return fields

    def _member(self, form: dict[str, str]) -> dict[str, Any]:
        fields = {"user_id": form["socket_id"], **self._user(form)}
        fields.pop("watchlist", None)
        return fields

    def _secret(self, plan: Plan) -> str:
        return "wrong" if plan.mode == "wrong_signature" else self._app.secret

    def _say(
        self, request: web.Request, form: dict[str, str], names: list[str], status: int, text: str
    ) -> web.Response:
        self._log(request, form, names, status)
        return web.Response(status=status, text=text, content_type="application/json")

    def _log(
        self, request: web.Request, form: dict[str, str], names: list[str], status: int | None
    ) -> None:
        self._app.log.add(
            "auth",
            path=request.path,
            form=form,
            headers=dict(request.headers),
            channels=names,
            status=status,
        )


def _concerns(plan: Plan, name: str) -> bool:
    return plan.channel is None or plan.channel == name


def _refusal(plan: Plan) -> tuple[int, str]:
    """The status of a mode, and its body unless it is a signature."""
    if plan.mode == "deny":
        return 403, plan.body or "denied"
    if plan.mode == "error":
        return 500, plan.body or "internal error"
    if plan.mode == "bad_json":
        return 200, plan.body or "this is not JSON"
    return 200, ""


async def _form(request: web.Request) -> dict[str, str]:
    """The fields of a form. The log has the exact body, too."""
    return {name: str(value) for name, value in (await request.post()).items()}
