"""The callbacks that C makes for a Pusher connection."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from .._core import abi
from .._core.abi import rt_pusher_data, rt_state, rt_status
from .._core.collecting import add, collect
from .._core.errors import ConnectionClosedError, RealtimeError, check, from_status
from .._core.failure import Failure
from .._core.kind import Callback, Kind, callback
from .._core.memory import Memory, bytes_at, shown_at
from .._core.registry import find
from .._core.response import Response
from .._core.values import names_of
from .authorization import authorization
from .errors import PusherError, PushError, SignInError, SubscriptionError, TriggerError
from .event import PusherEvent, parsed
from .objects import (
    PusherMember,
    PusherPushResult,
    PusherStateChange,
    PusherWatchlistEvent,
    State,
)

PUSHER = Kind("pusher", "Pusher connection", "event")
CHANNEL = Kind("pusher_channel", "channel", "event")

STATES: dict[int, State] = {
    rt_state.IDLE: "disconnected",
    rt_state.CONNECTING: "connecting",
    rt_state.OPEN: "connected",
    rt_state.WAITING: "reconnecting",
    rt_state.CLOSING: "disconnecting",
    rt_state.CLOSED: "disconnected",
}
_PUSHES: dict[int, Any] = {value: name for name, value in names_of(abi.rt_pusher_push).items()}
_NO_DATA = int(rt_pusher_data.NONE)
_Text = ctypes.POINTER(ctypes.c_char_p)

#: Channel number; offset and length of name, data, user id and message; the form of the data.
_RECORD = struct.Struct("=9qii")
_ROW = ctypes.sizeof(abi.rt_pusher_record)
assert _RECORD.size == _ROW


def _on_events(base: int, table: Any, count: int, key: int) -> None:
    """Has its own trampoline, because a general one would slow down small reads."""
    target = find(key)
    if target is not None:
        try:
            rows = ctypes.string_at(table, count * _ROW)
            target._received(Memory.from_address(base), _RECORD.iter_unpack(rows))
        except BaseException as error:
            target._keep(error)


def _event(address: int) -> PusherEvent:
    view = abi.rt_pusher_event.from_address(address)
    return PusherEvent(
        shown_at(view.event, view.event_length),
        shown_at(view.channel, view.channel_length) or None,
        None if view.data_kind == _NO_DATA else shown_at(view.data, view.data_length),
        shown_at(view.user_id, view.user_id_length) or None,
        bytes_at(view.message, view.message_length),
    )


def _undecrypted(target: Any, address: int) -> None:
    target._failed_to_decrypt(
        abi.rt_pusher_event.from_address(address).channel_number, _event(address)
    )


def _state(target: Any, address: int) -> None:
    view = abi.rt_pusher_state_change.from_address(address)
    reason = shown_at(view.close_reason, view.close_reason_length)
    delay_ms = view.retry_in_ms
    target._state_changed(
        PusherStateChange(
            STATES[view.old_state],
            STATES[view.new_state],
            view.close_code or None,
            reason,
            _loss(view.status, view.message.decode("utf-8", "replace"), view.close_code, reason),
            None if delay_ms < 0 else delay_ms / 1000,
            view.attempts,
        )
    )


def _loss(status: int, message: str, code: int, reason: str) -> RealtimeError | None:
    if status == rt_status.OK:
        return None
    if code:
        return ConnectionClosedError(status, message, code, reason)
    return from_status(status, message)


def _error(target: Any, address: int) -> None:
    view = abi.rt_pusher_error.from_address(address)
    message = shown_at(view.message, view.message_length)
    code = view.code if view.has_code else None
    channel = shown_at(view.channel, view.channel_length) or None
    target._erred(PusherError(rt_status.ERROR_PROTOCOL, message, code, channel))


def _subscribed(target: Any, address: int) -> None:
    target._subscribed(abi.rt_pusher_subscription.from_address(address).channel_number)


def _refused(target: Any, address: int) -> None:
    view = abi.rt_pusher_subscription.from_address(address)
    body = bytes_at(view.body, view.body_length)
    text = body.decode("utf-8", "replace")
    message, channel = view.message.decode("utf-8", "replace"), view.channel.decode()
    error = SubscriptionError(view.status, message, channel, view.http_status, text)
    if view.headers_length:
        lines = bytes_at(view.headers, view.headers_length)
        error.response = Response.parse(view.http_status, b"", lines, body)
    target._subscription_failed(view.channel_number, error)


def _counted(target: Any, address: int) -> None:
    view = abi.rt_pusher_subscription.from_address(address)
    target._counted(view.channel_number, view.count)


def _member(address: int) -> PusherMember:
    view = abi.rt_pusher_member.from_address(address)
    info = shown_at(view.user_info, view.user_info_length)
    return PusherMember(shown_at(view.user_id, view.user_id_length), parsed(info) if info else None)


def _of_member(name: str) -> Callback:
    def called(target: Any, address: int) -> None:
        number = abi.rt_pusher_member.from_address(address).channel_number
        target._member_changed(f"on_{name}", number, _member(address))

    return callback(name, abi.rt_pusher_member_fn, called)


def _dropped(target: Any, address: int) -> None:
    view = abi.rt_pusher_trigger_failure.from_address(address)
    message = view.message.decode("utf-8", "replace")
    error = TriggerError(view.status, message, view.channel.decode(), view.event.decode())
    target._tell("on_trigger_failed", error)


def _signed_in(target: Any, address: int) -> None:
    view = abi.rt_pusher_user.from_address(address)
    data = shown_at(view.user_data, view.user_data_length)
    target._signed_in(shown_at(view.user_id, view.user_id_length), parsed(data) if data else None)


def _not_signed_in(target: Any, address: int) -> None:
    failure = Failure.at(address)
    response = failure.response
    body = "" if response is None else response.body.decode("utf-8", "replace")
    error = SignInError(failure.status, failure.message, failure.http_status, body)
    error.response = response
    target._sign_in_failed(error)


def _watched(target: Any, address: int) -> None:
    view = abi.rt_pusher_watchlist.from_address(address)
    found: Any = view.user_ids
    ids = (shown_at(one.text, one.text_length) for one in found[: view.user_id_count])
    name: Any = "online" if view.online else "offline"
    target._watched(PusherWatchlistEvent(name, tuple(ids)))


def _pushed(target: Any, address: int) -> None:
    view = abi.rt_pusher_push_result.from_address(address)
    error, body = None, shown_at(view.body, view.body_length)
    if view.status != rt_status.OK:
        message = view.message.decode("utf-8", "replace")
        error = PushError(view.status, message, view.http_status, body)
    name, call = shown_at(view.name, view.name_length), _PUSHES[view.kind]
    names: tuple[str, ...] = (name,) if name else ()
    if call == "set_subscriptions":
        names = tuple(name.split("\n")[:-1])
    target._pushed(PusherPushResult(call, names, error, view.http_status, body))


def _user_data(target: Any, out_id: Any, out_info: Any) -> bool:
    named = target._names_user()
    if named is None:
        return False
    for out, value in zip((out_id, out_info), named):
        ctypes.cast(out, _Text)[0] = value
    return True


ALWAYS = (
    callback("state", abi.rt_pusher_state_fn, _state),
    callback("error", abi.rt_pusher_error_fn, _error),
    callback("subscribed", abi.rt_pusher_subscription_fn, _subscribed),
    callback("subscription_failed", abi.rt_pusher_subscription_fn, _refused),
    callback("subscription_count", abi.rt_pusher_subscription_fn, _counted),
    _of_member("member_added"),
    _of_member("member_removed"),
    callback("decryption_failed", abi.rt_pusher_event_fn, _undecrypted),
    callback("trigger_failed", abi.rt_pusher_trigger_failed_fn, _dropped),
    callback("signed_in", abi.rt_pusher_user_fn, _signed_in),
    callback("sign_in_failed", abi.rt_failure_fn, _not_signed_in),
    callback("watchlist", abi.rt_pusher_watchlist_fn, _watched),
    callback("push", abi.rt_pusher_push_fn, _pushed),
    Callback("events", abi.rt_pusher_events_fn(_on_events)),
)
ON_DEBUG = callback(
    "debug",
    abi.rt_pusher_debug_fn,
    lambda target, line: target._tell("on_debug", line.decode("utf-8", "replace")),
)
ON_AUTHORIZE = callback(
    "authorize",
    abi.rt_pusher_authorize_fn,
    lambda target, request, address: target._authorizes(authorization(request, address)),
)
#: By the endpoint, with a request that the program prepares. This takes the place of
#: `rt_pusher_on_prepare_authorization`, because a coroutine has no result at once.
ON_PREPARE = callback(
    "authorize",
    abi.rt_pusher_authorize_fn,
    lambda target, request, address: target._prepares(authorization(request, address)),
)
ON_USER_DATA = callback("user_data", abi.rt_pusher_user_data_fn, _user_data, False)
#: Set by `rt_pusher_user_bind`, for all events.
USER_EVENT = callback(
    "user_event",
    abi.rt_pusher_event_fn,
    lambda target, address: target._user_received(_event(address)),
)

#: Set by `rt_pusher_sign_in`, for the result of this call.
SIGN_IN = callback(
    "sign_in",
    abi.rt_pusher_sign_in_fn,
    lambda target, address: target._answered(Failure.at(address) if address else None),
)

_MEMBER = abi.rt_pusher_member_fn(lambda address, key: add(key, _member(address)))


def members(call: Callable[[Any, int], int]) -> list[PusherMember]:
    """The members that a function of the C interface passes to its callback."""
    status, found = collect(_MEMBER, call)
    if status != rt_status.ERROR_NOT_FOUND:
        check(status)
    return found
