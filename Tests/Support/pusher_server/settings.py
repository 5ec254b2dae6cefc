"""What a Pusher app allows and how its server behaves.

Servers that speak the protocol differ in many details. A dialect is the set of details of one of
them; every detail can also be changed on its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Settings:
    """The comments name the possible values. Times are in seconds."""

    dialect: str = "pusher"

    # Connections
    socket_id: str = ""  # of all connections; "": random ones
    activity_timeout: float | None = 120  # sent to the client; None: not sent
    established_data: str = "string"  # or object
    unknown_key: str = "close"  # or error-close, error-end, accept
    checks_protocol: bool = True  # close codes 4006, 4007 and 4008
    checks_client_name: bool = True  # `client` must look like platform-library
    tls_only: bool = False  # close code 4000
    max_connections: int = 0  # close code 4100; 0: no limit
    subprotocols: tuple[str, ...] = ()  # those that the server accepts
    compression: bool = True  # whether the server accepts permessage-deflate
    authorized_within: float = 0  # close code 4009 after this time; 0: never
    not_json: str = "ignore"  # or error, crash

    # Keep-alive: which side must show activity, and how the server asks the client for it.
    # frames: the client; WebSocket pings. events: the client; pusher:ping. mixed: the client;
    # frames once it has sent one itself. output: the server, so it does not ask. Or none.
    keep_alive: str = "frames"
    ping_after: float = 120
    pong_within: float = 30
    answers_pings: bool = True  # both kinds of pings
    idle_end: str = "close"  # or error-end: an error event, then the end without a close frame

    # Errors
    error_data: str = "object"  # or string
    error_channel: bool = False  # whether errors name the channel
    bad_auth: str = "error"  # or subscription_error, internal_subscription_error
    bad_auth_code: int | None = None  # in an error
    bad_auth_text: str = ""  # in an error; "": why
    bad_name: str = "error"  # or subscription_error, accept

    # Channels
    success_data: str = "public"  # {} for public channels only; or always, never
    second_subscribe: str = "error"  # or success, duplicate: success, and every event twice
    unsubscribe_error: bool = True  # without a subscription, an error
    presence_by: str = "user"  # or connection: each counts as a member of its own
    presence_ids: bool = True  # whether presence data has `ids`
    cache_ttl: float = 1800
    cache_miss_data: str = "absent"  # or null, object
    subscription_count: bool = False
    count_every: float = 5  # above `count_always`
    count_always: int = 100
    max_name: int = 164
    max_members: int = 100
    max_user_id: int = 128
    max_user_info: int = 1024

    # Client events
    client_events: bool = True
    client_events_code: int | None = None  # of the error if they are not allowed
    client_events_public: bool = False
    client_event_data: str = "string"  # or sent: what is an object stays one
    client_event_user_id: bool = True
    client_event_rate: int = 10  # in `client_event_window`; 0: no limit
    client_event_window: float = 1  # longer in tests, since a busy client may need more time
    max_event_name: int = 200
    max_event_data: int = 10 * 1024

    # Users
    signin: str = "yes"  # or error, ignore
    signin_data: str = "string"  # or object
    bad_signin: str = "error"  # or close
    watchlist: str = "wrapped"  # or bare, none
    max_watchlist: int = 100

    def change(self, changes: dict[str, Any]) -> None:
        """Sets a dialect first, if one is named, then single values."""
        unknown = set(changes) - {field.name for field in dataclasses.fields(self)}
        if unknown:
            raise ValueError(f"no such setting: {', '.join(sorted(unknown))}")
        name = changes.get("dialect")
        if name is not None:
            if name not in DIALECTS:
                raise ValueError(f"dialect is {name}, one of {', '.join(DIALECTS)} is expected")
            for key, value in {**DIALECTS["pusher"], **DIALECTS[name]}.items():
                setattr(self, key, value)
        for key, value in changes.items():
            setattr(self, key, tuple(value) if isinstance(value, list) else value)


_SOKETI: dict[str, Any] = {
    "activity_timeout": 30,
    "unknown_key": "error-close",
    "checks_protocol": False,
    "keep_alive": "output",
    "error_channel": True,
    "bad_auth": "subscription_error",
    "bad_name": "subscription_error",
    "success_data": "never",
    "second_subscribe": "success",
    "unsubscribe_error": False,
    "max_name": 200,
    "max_user_info": 2048,
    "client_events_code": 4301,
    "client_event_data": "sent",
    "signin_data": "object",
    "bad_signin": "close",
    "watchlist": "none",
}

_REVERB: dict[str, Any] = {
    "activity_timeout": 30,
    "unknown_key": "error-end",
    "checks_protocol": False,
    "not_json": "error",
    "keep_alive": "mixed",
    "ping_after": 60,
    "idle_end": "error-end",
    "error_data": "string",
    "bad_auth_code": 4009,
    "bad_auth_text": "Connection is unauthorized",
    "bad_name": "accept",
    "success_data": "always",
    "second_subscribe": "success",
    "unsubscribe_error": False,
    "cache_miss_data": "object",
    "client_events_code": 4301,
    "client_events_public": True,
    "client_event_data": "sent",
    "client_event_rate": 0,
    "signin": "error",
    "watchlist": "none",
}

_SOCKUDO: dict[str, Any] = {
    "keep_alive": "events",
    "error_channel": True,
    "bad_auth_code": 4009,
    "success_data": "always",
    "second_subscribe": "success",
    "unsubscribe_error": False,
    "max_name": 200,
    "cache_miss_data": "null",
    "client_events_code": 4301,
    "client_event_data": "sent",
    "watchlist": "bare",
}

_PUSHER_FAKE: dict[str, Any] = {
    "unknown_key": "accept",
    "checks_protocol": False,
    "not_json": "crash",
    "keep_alive": "none",
    "bad_auth": "internal_subscription_error",
    "bad_name": "accept",
    "success_data": "always",
    "second_subscribe": "duplicate",
    "unsubscribe_error": False,
    "presence_by": "connection",
    "presence_ids": False,
    "client_event_user_id": False,
    "client_event_rate": 0,
    "signin": "ignore",
    "watchlist": "none",
}

_CHANGED = {*_SOKETI, *_REVERB, *_SOCKUDO, *_PUSHER_FAKE}

#: The details of each server, as differences from Pusher.
DIALECTS: dict[str, dict[str, Any]] = {
    "pusher": {f.name: f.default for f in dataclasses.fields(Settings) if f.name in _CHANGED},
    "soketi": _SOKETI,
    "reverb": _REVERB,
    "sockudo": _SOCKUDO,
    "pusher-fake": _PUSHER_FAKE,
}
