"""The HTTP API by which servers publish events and ask about channels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pusher_server import signatures
from pusher_server.channels import Channel, is_valid, kind_of

if TYPE_CHECKING:
    from pusher_server.app import App

MAX_CHANNELS = 100
MAX_BATCH = 10


class Refused(Exception):
    """A request to the publish API that fails with this status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def answer(app: App, request: web.Request) -> web.Response:
    """Checks the signature of a request and answers it."""
    body = await request.read()
    status, value = 200, ""
    try:
        path, query = request.rel_url.raw_path, dict(request.query)
        wrong = signatures.publish_error(app.key, app.secret, request.method, path, query, body)
        if wrong:
            raise Refused(401, wrong)
        value = json.dumps(_perform(app, request, body))
    except Refused as refusal:
        status, value = refusal.status, f"{refusal}\n"
    app.log.add(
        "publish",
        method=request.method,
        path=request.path,
        query=dict(request.query),
        body=body.decode(errors="replace"),
        status=status,
    )
    kind = "application/json" if status == 200 else "text/plain"
    return web.Response(status=status, text=value, content_type=kind)


def _perform(app: App, request: web.Request, body: bytes) -> Any:
    parts = request.match_info
    if "user" in parts:
        for connection in app.users.connections(parts["user"]):
            connection.close(4009, "Connection terminated by the application")
        return {}
    name = parts.get("channel")
    if name is not None:
        _check_name(app, name)
        return (
            _users(app, name) if request.path.endswith("/users") else _channel(app, name, request)
        )
    if request.method == "GET":
        return _channels(app, request)
    fields = _object(body)
    if request.path.endswith("/batch_events"):
        events = fields.get("batch")
        if not isinstance(events, list) or len(events) > MAX_BATCH:
            raise Refused(400, f"batch must be a list of up to {MAX_BATCH} events")
        # All are checked before the first is published.
        checked = [_checked(app, event, [event.get("channel")]) for event in events]
        infos = [_publish(app, event, names, event) for event, names in checked]
        return {"batch": [next(iter(info.values()), {}) for info in infos]} if any(infos) else {}
    names = fields.get("channels", [fields.get("channel")])
    info = _publish(app, *_checked(app, fields, names), fields)
    return {"channels": info} if info else {}


def _checked(app: App, event: Any, names: Any) -> tuple[dict[str, Any], list[str]]:
    """An event and its channels, if both are valid."""
    if not isinstance(event, dict) or not isinstance(event.get("name"), str):
        raise Refused(400, "an event needs a name")
    if not isinstance(event.get("data"), str):
        raise Refused(400, "data must be a string")
    if len(event["data"].encode()) > app.settings.max_event_data:
        raise Refused(413, f"The data are longer than {app.settings.max_event_data} bytes")
    if len(event["name"]) > app.settings.max_event_name or event["name"].startswith("pusher:"):
        raise Refused(400, f"invalid event name: {event['name']}")
    if not isinstance(names, list) or not 1 <= len(names) <= MAX_CHANNELS:
        raise Refused(400, f"an event needs 1 to {MAX_CHANNELS} channels")
    for name in names:
        _check_name(app, name)
    if len(names) > 1 and any(kind_of(name) == "encrypted" for name in names):
        raise Refused(400, "an encrypted event has only one channel")
    return event, names


def _publish(
    app: App, event: dict[str, Any], names: list[str], options: dict[str, Any]
) -> dict[str, Any]:
    """Publishes an event; returns the attributes of its channels that were asked for."""
    for name in names:
        app.publish(name, event["name"], event["data"], options.get("socket_id"))
    wanted = _attributes(options.get("info"))
    return {name: _info(app.channels.get(name), wanted) for name in names} if wanted else {}


def _channels(app: App, request: web.Request) -> dict[str, Any]:
    """The channels with subscribers."""
    prefix, wanted = (
        request.query.get("filter_by_prefix", ""),
        _attributes(request.query.get("info")),
    )
    if "user_count" in wanted and not prefix.startswith("presence-"):
        raise Refused(400, "user_count may only be requested for presence channels")
    return {
        "channels": {
            name: _info(channel, wanted)
            for name, channel in app.channels.items()
            if channel.subscribers and name.startswith(prefix) and channel.kind != "user"
        }
    }


def _channel(app: App, name: str, request: web.Request) -> dict[str, Any]:
    channel, wanted = app.channels.get(name), _attributes(request.query.get("info"))
    if "user_count" in wanted and kind_of(name) != "presence":
        raise Refused(400, "user_count may only be requested for presence channels")
    occupied = channel is not None and bool(channel.subscribers)
    return {"occupied": occupied, **_info(channel, wanted)}


def _users(app: App, name: str) -> dict[str, Any]:
    if kind_of(name) != "presence":
        raise Refused(400, "users can only be retrieved for presence channels")
    channel = app.channels.get(name)
    return {"users": [{"id": key} for key in (channel.users() if channel else {})]}


def _info(channel: Channel | None, wanted: set[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    if "user_count" in wanted and (channel is None or channel.kind == "presence"):
        values["user_count"] = len(channel.users()) if channel else 0
    if "subscription_count" in wanted:
        values["subscription_count"] = len(channel.subscribers) if channel else 0
    return values


def _attributes(text: object) -> set[str]:
    return set(text.split(",")) if isinstance(text, str) and text else set()


def _check_name(app: App, name: object) -> None:
    if not isinstance(name, str) or not is_valid(name, app.settings.max_name):
        raise Refused(400, f"invalid channel name: {name}")


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value
