"""From C to Python: one trampoline for each callback type, kept for ever.

A connection's user data is an integer, the key of a weak reference to it: memory that C holds is
never an address of Python's. The library calls ``destroy`` once for each callback that was set;
with the last one the key goes.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from . import _abi
from ._batch import Message, decode
from ._loader import lib
from ._response import Response
from .exceptions import check

_string_at = ctypes.string_at
_TEXT = int(_abi.rt_message_kind.TEXT)


class Target(Protocol):
    """Who is called back, always inside a dispatch."""

    def _opened(self, subprotocol: str) -> None: ...
    def _received(self, messages: list[Message], lengths: list[int]) -> None: ...
    def _came(self, piece: Message, length: int, is_last: bool) -> None: ...
    def _refused(self, response: Response) -> None: ...
    def _erred(self, status: int, message: str) -> None: ...
    def _lost(self, code: int, reason: str, delay_ms: int, attempt: int) -> None: ...
    def _tries_again(self, attempt: int) -> bool: ...
    def _closed(self, code: int, reason: str, clean: bool) -> None: ...
    def _drained(self) -> None: ...
    def _ponged(self, round_trip_us: int) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


class Handle:
    """Owns a handle of the C interface; given back when nobody refers to it any more.

    Passed to C as it is, so that a call on another thread keeps it alive. The library may free
    a handle on any thread.
    """

    __slots__ = ("__weakref__", "_as_parameter_", "_free")

    def __init__(self, address: int | None, free: Callable[[Any], None]) -> None:
        self._as_parameter_ = address
        self._free = free

    # The default outlives the module at interpreter exit, when memory is given back anyway.
    def __del__(self, _is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_finalizing():
            self._free(self._as_parameter_)


def new_loop() -> Handle:
    out = ctypes.c_void_p()
    check(lib.rt_loop_new(ctypes.byref(out)))
    return Handle(out.value, lib.rt_loop_free)


def new_websocket(loop: Handle, url: bytes) -> Handle:
    out = ctypes.c_void_p()
    check(lib.rt_websocket_new(loop, url, ctypes.byref(out)))
    return Handle(out.value, lib.rt_websocket_free)


class _Entry:
    __slots__ = ("reference", "uses")

    def __init__(self, target: Target) -> None:
        self.reference = weakref.ref(target)
        # One for each callback that is set. A list, since destroy may run on any thread, and taking
        # one out of a list needs no lock.
        self.uses: list[None] = []


_entries: dict[int, _Entry] = {}
_keys = itertools.count(1)


def _target(key: int) -> Target | None:
    entry = _entries.get(key)
    return None if entry is None else entry.reference()


def _destroy(key: int) -> None:
    uses = _entries[key].uses
    uses.pop()
    if not uses:
        _entries.pop(key, None)


def _on_open(subprotocol: bytes, extensions: bytes, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._opened(subprotocol.decode())
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


def _on_refused(
    status: int, reason: bytes, lines: int, size: int, body: int, length: int, key: int
) -> None:
    target = _target(key)
    if target is not None:
        try:
            head, rest = _string_at(lines, size), _string_at(body, length)
            target._refused(Response.parse(status, reason, head, rest))
        except BaseException as error:
            target._keep(error)


def _on_lost(code: int, reason: int, length: int, delay_ms: int, attempt: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            text = _string_at(reason, length).decode() if length else ""
            target._lost(code, text, delay_ms, attempt)
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


def _on_error(status: int, message: bytes, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._erred(status, message.decode())
        except BaseException as error:
            target._keep(error)


def _on_close(code: int, reason: int, length: int, clean: bool, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            text = _string_at(reason, length).decode() if length else ""
            target._closed(code, text, clean)
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
_DESTROY = _abi.rt_destroy_fn(_destroy)
_ALWAYS = (
    (lib.rt_websocket_on_open, _abi.rt_websocket_open_fn(_on_open)),
    (lib.rt_websocket_on_error, _abi.rt_websocket_error_fn(_on_error)),
    (lib.rt_websocket_on_refused, _abi.rt_websocket_refused_fn(_on_refused)),
    (lib.rt_websocket_on_close, _abi.rt_websocket_close_fn(_on_close)),
    (lib.rt_websocket_on_drained, _abi.rt_websocket_drained_fn(_on_drained)),
    (lib.rt_websocket_on_pong, _abi.rt_websocket_pong_fn(_on_pong)),
)
_WHOLE = ((lib.rt_websocket_on_messages, _abi.rt_websocket_messages_fn(_on_messages)),)
_IN_PIECES = ((lib.rt_websocket_on_piece, _abi.rt_websocket_piece_fn(_on_piece)),)
_RECONNECTING = (
    (lib.rt_websocket_on_lost, _abi.rt_websocket_lost_fn(_on_lost)),
    (lib.rt_websocket_on_reconnect, _abi.rt_websocket_reconnect_fn(_on_reconnect)),
)


def attach(websocket: Handle, target: Target, *, in_pieces: bool, reconnects: bool) -> None:
    """Sets the callbacks of a connection that was not started; `target` is referred to weakly."""
    key = next(_keys)
    entry = _entries[key] = _Entry(target)
    trampolines = _ALWAYS + (_IN_PIECES if in_pieces else _WHOLE)
    for setter, trampoline in trampolines + (_RECONNECTING if reconnects else ()):
        # A setter that fails destroys its user data, too.
        entry.uses.append(None)
        check(setter(websocket, trampoline, key, _DESTROY))
