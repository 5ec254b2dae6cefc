"""What the server does with each message of a client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pusher_server import signatures
from pusher_server.channels import USER_PREFIX, Channel, Member, is_cache, is_valid, kind_of
from pusher_server.messages import ABSENT, as_object, as_text, compact

if TYPE_CHECKING:
    from pusher_server.app import App
    from pusher_server.connection import Connection


def receive(app: App, connection: Connection, message: dict[str, Any]) -> None:
    """Processes a message that has an event."""
    event, data = message["event"], as_object(message.get("data"))
    handlers = {
        "pusher:ping": _ping,
        "pusher:pong": _pong,
        "pusher:subscribe": _subscribe,
        "pusher:unsubscribe": _unsubscribe,
        "pusher:signin": _sign_in,
    }
    if not connection.is_established:
        connection.error(None, "The connection is not established")
    elif handler := handlers.get(event):
        handler(app, connection, data if isinstance(data, dict) else {})
    elif event.startswith("client-"):
        _client_event(app, connection, message)
    else:
        connection.error(4200 if app.settings.not_json == "error" else None, "Unknown event")


def _ping(app: App, connection: Connection, data: dict[str, Any]) -> None:
    if app.settings.answers_pings:
        connection.send("pusher:pong", data="{}")


def _pong(app: App, connection: Connection, data: dict[str, Any]) -> None:
    """The keep-alive has noticed it."""


# Subscriptions


def _subscribe(app: App, connection: Connection, data: dict[str, Any]) -> None:
    name = data.get("channel")
    if not isinstance(name, str):
        return connection.error(None, "The channel is missing")
    settings, kind = app.settings, kind_of(name)
    if settings.bad_name != "accept" and kind != "user" and not is_valid(name, settings.max_name):
        return _refuse_name(app, connection, name)
    again = name in connection.channels
    if again and settings.second_subscribe == "error":
        return connection.error(None, f"Existing subscription to channel {name}", name)
    member = None
    if kind == "user":
        if connection.user_id is None or name != USER_PREFIX + connection.user_id:
            return refuse_auth(app, connection, name, "The user is not signed in")
    elif kind != "public":
        wrong, member = _check(app, connection, name, kind, data)
        if wrong:
            return refuse_auth(app, connection, name, wrong)
    channel = app.channels.setdefault(name, Channel(name))
    if member and len({*channel.users(), member.key}) > settings.max_members:
        return refuse_auth(app, connection, name, "The channel has too many members", 4004)
    if again and settings.second_subscribe == "success":
        return _succeed(app, connection, channel)
    connection.channels[name] = connection.channels.get(name, 0) + 1
    is_known = member is not None and channel.others_of(connection, member)
    channel.subscribers[connection] = member
    _succeed(app, connection, channel)
    if member and (not is_known or settings.presence_by == "connection"):
        added: dict[str, Any] = {"user_id": member.id}
        if member.info is not None:
            added["user_info"] = member.info
        _tell_others(connection, channel, "pusher_internal:member_added", added)
    app.count(channel)
    return None


def _check(
    app: App, connection: Connection, name: str, kind: str, data: dict[str, Any]
) -> tuple[str, Member | None]:
    """Why the authorization is refused, or ""; and the member of a presence channel."""
    text = data.get("channel_data")
    if kind == "presence" and text is None and connection.user_id is not None:
        # Signed-in users are members without channel data.
        wanted = signatures.channel_auth(app.key, app.secret, connection.socket_id, name)
        if signatures.matches(data.get("auth"), wanted):
            return "", Member(connection.user_id, connection.user_info)
    if text is not None and not isinstance(text, str):
        return "channel_data must be a string", None
    wanted = signatures.channel_auth(app.key, app.secret, connection.socket_id, name, text)
    if not signatures.matches(data.get("auth"), wanted):
        signed = ":".join([connection.socket_id, name, *([text] if text is not None else [])])
        return f"Invalid signature: Expected HMAC SHA256 hex digest of {signed}", None
    if kind != "presence":
        return "", None
    fields = as_object(text)
    user_id = fields.get("user_id") if isinstance(fields, dict) else None
    if isinstance(user_id, bool) or not isinstance(user_id, (str, int)):
        return "channel_data has no valid user_id", None
    member = Member(user_id, fields.get("user_info"))
    if len(member.key) > app.settings.max_user_id:
        return "The user_id is too long", None
    if len(compact(member.info).encode()) > app.settings.max_user_info:
        return "The user_info is too long", None
    return "", member


def _succeed(app: App, connection: Connection, channel: Channel) -> None:
    """Confirms a subscription; a cache channel sends its last event, too."""
    settings, data = app.settings, ABSENT
    if channel.kind == "presence":
        table = channel.presence(settings.presence_by, settings.presence_ids)
        data = compact(table)
    elif settings.success_data == "always" or (
        settings.success_data == "public" and channel.kind == "public"
    ):
        data = "{}"
    connection.send("pusher_internal:subscription_succeeded", channel.name, data)
    if not is_cache(channel.name):
        return
    if cached := channel.take_cached():
        connection.send(cached.event, channel.name, cached.data)
    else:
        missed = {"absent": ABSENT, "null": "null", "object": "{}"}[settings.cache_miss_data]
        connection.send("pusher:cache_miss", channel.name, missed)


def _refuse_name(app: App, connection: Connection, name: str) -> None:
    text = f"Invalid channel name: {name}"
    if app.settings.bad_name == "subscription_error":
        # soketi sends no `type` here.
        connection.send("pusher:subscription_error", name, {"error": text, "status": 4009})
    else:
        connection.error(None, text, name)


def refuse_auth(app: App, connection: Connection, name: str, text: str, status: int = 401) -> None:
    how = app.settings.bad_auth
    if how == "subscription_error":
        data = {"type": "AuthError", "error": text, "status": status}
        connection.send("pusher:subscription_error", name, data)
    elif how == "internal_subscription_error":
        connection.send("pusher_internal:subscription_error", name, {})
    else:
        text = app.settings.bad_auth_text or text
        connection.error(app.settings.bad_auth_code, text, name)


def _unsubscribe(app: App, connection: Connection, data: dict[str, Any]) -> None:
    name = data.get("channel")
    if isinstance(name, str) and name in connection.channels:
        leave(app, connection, name)
    elif app.settings.unsubscribe_error:
        text = f"No current subscription to channel {name}, or subscription in progress"
        connection.error(None, text, name if isinstance(name, str) else None)


def leave(app: App, connection: Connection, name: str) -> None:
    """Removes all subscriptions of a connection to a channel."""
    connection.channels.pop(name)
    channel = app.channels[name]
    member = channel.subscribers.pop(connection)
    if member and (
        app.settings.presence_by == "connection" or not channel.others_of(connection, member)
    ):
        removed = {"user_id": member.id}
        _tell_others(connection, channel, "pusher_internal:member_removed", removed)
    app.count(channel)
    app.forget(channel)


def _tell_others(
    connection: Connection, channel: Channel, event: str, data: dict[str, Any]
) -> None:
    for other in list(channel.subscribers):
        if other is not connection:
            other.send(event, channel.name, compact(data))


# Client events


def _client_event(app: App, connection: Connection, message: dict[str, Any]) -> None:
    event, name, data = message["event"], message.get("channel"), message.get("data", ABSENT)
    settings = app.settings
    if not isinstance(name, str) or name not in connection.channels:
        return connection.error(None, f"Client event rejected - no subscription to {name}")
    kind, wrong = kind_of(name), ""
    code: int | None = 4301
    if not settings.client_events:
        wrong, code = "the app does not enable client events", settings.client_events_code
    elif kind not in ("private", "presence") and not settings.client_events_public:
        wrong, code = f"{kind} channels have no client events", None
    elif len(event) > settings.max_event_name:
        wrong = f"the name is longer than {settings.max_event_name} characters"
    elif _size(data) > settings.max_event_data:
        wrong = f"the data are longer than {settings.max_event_data} bytes"
    elif not app.allows_client_event(connection):
        wrong = "rate limit exceeded"
    if wrong:
        return connection.error(code, f"Client event rejected - {wrong}", name)
    if settings.client_event_data == "string":
        data = as_text(data)
    channel = app.channels[name]
    member = channel.subscribers.get(connection)
    more = {"user_id": member.id} if member and settings.client_event_user_id else {}
    for other in list(channel.subscribers):
        if other is not connection:
            for _ in range(other.channels[name]):
                other.send(event, name, data, **more)
    return None


def _size(data: object) -> int:
    return 0 if data is ABSENT else len(str(as_text(data)).encode())


# Users


def _sign_in(app: App, connection: Connection, data: dict[str, Any]) -> None:
    settings = app.settings
    if settings.signin == "ignore":
        return
    if settings.signin == "error":
        return connection.error(4200, "Unknown event pusher:signin")
    text = data.get("user_data")
    wanted = signatures.user_auth(app.key, app.secret, connection.socket_id, str(text))
    if not isinstance(text, str) or not signatures.matches(data.get("auth"), wanted):
        return _refuse_sign_in(app, connection, "Invalid signature of the sign-in")
    try:
        user = json.loads(text)
    except ValueError:
        user = None
    user_id = user.get("id") if isinstance(user, dict) else None
    if not isinstance(user_id, str) or not user_id:
        return _refuse_sign_in(app, connection, "user_data has no id")
    watchlist = user.get("watchlist") or []
    result: object = {"user_data": text}
    if settings.signin_data == "string":
        result = compact(result)
    connection.send("pusher:signin_success", data=result)
    if len(watchlist) > settings.max_watchlist:
        connection.error(4302, f"The watchlist has more than {settings.max_watchlist} users")
        watchlist = []
    app.users.sign_in(connection, user_id, user.get("user_info"), watchlist)
    return None


def _refuse_sign_in(app: App, connection: Connection, text: str) -> None:
    connection.error(4009, text)
    if app.settings.bad_signin == "close":
        connection.close(4009, text)
