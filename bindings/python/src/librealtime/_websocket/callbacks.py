"""The callbacks that C makes for a WebSocket connection."""

from __future__ import annotations

import ctypes
from typing import Any

from .._core import abi
from .._core.failure import Failure
from .._core.kind import ON_CREDENTIALS, ON_OPEN, Callback, Kind, callback
from .._core.registry import find
from .batch import decode

WEBSOCKET = Kind("websocket", "connection", "message")

_TEXT = int(abi.rt_message_kind.TEXT)


def _on_messages(base: int, table: Any, count: int, key: int) -> None:
    """Has its own trampoline, because a general one would slow down small reads."""
    target = find(key)
    if target is not None:
        try:
            target._received(*decode(base, table, count))
        except BaseException as error:
            target._keep(error)


def _piece(target: Any, address: int) -> None:
    view = abi.rt_websocket_piece.from_address(address)
    piece = ctypes.string_at(view.data, view.data_length)
    target._came(piece.decode() if view.kind == _TEXT else piece, view.data_length, view.last)


def _error(target: Any, address: int) -> None:
    view = abi.rt_failure.from_address(address)
    reason = ctypes.string_at(view.close_reason, view.close_reason_length).decode()
    target._failed(Failure.at(address), view.close_code, reason)


def _close(target: Any, address: int) -> None:
    view = abi.rt_closed.from_address(address)
    reason = ctypes.string_at(view.reason, view.reason_length).decode()
    target._closed(view.code, reason, view.clean)


_ALWAYS = (
    ON_OPEN,
    callback("error", abi.rt_failure_fn, _error),
    callback("closed", abi.rt_closed_fn, _close),
    callback("drained", abi.rt_websocket_drained_fn, lambda target: target._drained()),
    callback("pong", abi.rt_websocket_pong_fn, lambda target, time_us: target._ponged(time_us)),
)
_WHOLE = Callback("messages", abi.rt_websocket_messages_fn(_on_messages))
_IN_PIECES = callback("piece", abi.rt_websocket_piece_fn, _piece)
# An exception ends the connection, like False.
_RECONNECTING = callback(
    "reconnect", abi.rt_attempt_fn, lambda target, attempt: target._tries_again(attempt), False
)


def callbacks(*, in_pieces: bool, reconnects: bool, asks: bool) -> tuple[Callback, ...]:
    """The callbacks that a connection needs."""
    found: tuple[Callback, ...] = (*_ALWAYS, _IN_PIECES if in_pieces else _WHOLE)
    if asks:
        found = (*found, ON_CREDENTIALS)
    return (*found, _RECONNECTING) if reconnects else found
