"""From C to a WebSocket connection: one trampoline for each callback type, kept for ever."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

from .._core import abi
from .._core.failure import Failure
from .._core.handle import Handle, new
from .._core.loader import lib
from .._core.registry import Registration, find
from .._core.response import Opened
from .batch import Message, decode

_string_at = ctypes.string_at
_TEXT = int(abi.rt_message_kind.TEXT)


class Target(Protocol):
    """Who is called back, always inside a dispatch."""

    def _was_opened(self, opened: Opened) -> None: ...
    def _received(self, messages: list[Message], lengths: list[int]) -> None: ...
    def _came(self, piece: Message, length: int, is_last: bool) -> None: ...
    def _failed(self, failure: Failure, code: int, reason: str) -> None: ...
    def _tries_again(self, attempt: int) -> bool: ...
    def _closed(self, code: int, reason: str, clean: bool) -> None: ...
    def _drained(self) -> None: ...
    def _ponged(self, round_trip_us: int) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def new_websocket(loop: Handle, url: bytes) -> Handle:
    return new(lib.rt_websocket_new, lib.rt_websocket_free, loop, url)


def _target(key: int) -> Target | None:
    target: Target | None = find(key)
    return target


def _on_open(view: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._was_opened(Opened.at(view))
        except BaseException as error:
            target._keep(error)


def _on_messages(base: int, table: Any, count: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._received(*decode(base, table, count))
        except BaseException as error:
            target._keep(error)


def _on_piece(kind: int, data: int, length: int, first: bool, last: bool, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            piece = _string_at(data, length)
            target._came(piece.decode() if kind == _TEXT else piece, length, last)
        except BaseException as error:
            target._keep(error)


def _on_error(address: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            view = abi.rt_failure.from_address(address)
            reason = _string_at(view.close_reason, view.close_reason_length).decode()
            target._failed(Failure.at(address), view.close_code, reason)
        except BaseException as error:
            target._keep(error)


def _on_reconnect(attempt: int, key: int) -> bool:
    """An exception ends the connection, as False does."""
    target = _target(key)
    if target is not None:
        try:
            return target._tries_again(attempt)
        except BaseException as error:
            target._keep(error)
    return False


def _on_close(address: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            view = abi.rt_closed.from_address(address)
            reason = _string_at(view.reason, view.reason_length).decode()
            target._closed(view.code, reason, view.clean)
        except BaseException as error:
            target._keep(error)


def _on_drained(key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._drained()
        except BaseException as error:
            target._keep(error)


def _on_pong(round_trip_us: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._ponged(round_trip_us)
        except BaseException as error:
            target._keep(error)


# Kept as long as the process lives: C may call them at any time.
_ALWAYS = (
    (lib.rt_websocket_on_open, abi.rt_opened_fn(_on_open)),
    (lib.rt_websocket_on_error, abi.rt_failure_fn(_on_error)),
    (lib.rt_websocket_on_close, abi.rt_closed_fn(_on_close)),
    (lib.rt_websocket_on_drained, abi.rt_websocket_drained_fn(_on_drained)),
    (lib.rt_websocket_on_pong, abi.rt_websocket_pong_fn(_on_pong)),
)
_WHOLE = ((lib.rt_websocket_on_messages, abi.rt_websocket_messages_fn(_on_messages)),)
_IN_PIECES = ((lib.rt_websocket_on_piece, abi.rt_websocket_piece_fn(_on_piece)),)
_RECONNECTING = ((lib.rt_websocket_on_reconnect, abi.rt_attempt_fn(_on_reconnect)),)


def attach(websocket: Handle, target: Target, *, in_pieces: bool, reconnects: bool) -> None:
    """Sets the callbacks of a connection that was not started; `target` is referred to weakly."""
    registration = Registration(target)
    trampolines = _ALWAYS + (_IN_PIECES if in_pieces else _WHOLE)
    for setter, trampoline in trampolines + (_RECONNECTING if reconnects else ()):
        registration.set(setter, websocket, trampoline)
