"""From C to a long poll: one trampoline for each callback type, kept for ever."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from . import _abi
from ._abi import rt_credentials
from ._loader import lib
from ._reconnect import Setters
from ._registry import Handle, find
from .exceptions import check

_string_at = ctypes.string_at

SETTERS = Setters(
    lib.rt_longpoll_set_url,
    lib.rt_longpoll_set_header,
    lib.rt_longpoll_set_bearer_token,
    lib.rt_longpoll_clear_headers,
    lib.rt_longpoll_set_network,
)


class Target(Protocol):
    """Who is called back, inside a dispatch."""

    def _opened(self) -> None: ...
    def _came(self, data: bytes, content_type: str, id_: str, had_id: bool) -> None: ...
    def _erred(
        self, status: int, message: str, http_status: int, fatal: bool, delay_ms: int, attempt: int
    ) -> None: ...
    def _requests(self, attempt: int) -> bool: ...
    def _asks(self, http_status: int) -> int: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def new_longpoll(loop: Handle, url: bytes) -> Handle:
    out = ctypes.c_void_p()
    check(lib.rt_longpoll_new(loop, url, ctypes.byref(out)))
    return Handle(out.value, lib.rt_longpoll_free)


def _target(key: int) -> Target | None:
    target: Target | None = find(key)
    return target


def _on_open(key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._opened()
        except BaseException as error:
            target._keep(error)


def _on_message(
    id_: int,
    id_length: int,
    content_type: bytes,
    data: int,
    length: int,
    had_id: bool,
    key: int,
) -> None:
    target = _target(key)
    if target is not None:
        try:
            name = _string_at(id_, id_length).decode() if id_length else ""
            kind = content_type.decode("utf-8", "replace")
            target._came(_string_at(data, length), kind, name, had_id)
        except BaseException as error:
            target._keep(error)


def _on_error(
    status: int,
    message: bytes,
    http_status: int,
    fatal: bool,
    delay_ms: int,
    attempt: int,
    key: int,
) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._erred(status, message.decode(), http_status, fatal, delay_ms, attempt)
        except BaseException as error:
            target._keep(error)


def _on_request(attempt: int, key: int) -> bool:
    target = _target(key)
    if target is not None:
        try:
            return target._requests(attempt)
        except BaseException as error:
            target._keep(error)
    return False


def _on_credentials(http_status: int, key: int) -> int:
    target = _target(key)
    if target is not None:
        try:
            return target._asks(http_status)
        except BaseException as error:
            target._keep(error)
    return rt_credentials.NONE


#: How a callback is set, and what C calls; kept as long as the process lives.
Callback = tuple[Callable[..., int], Any]

ON_OPEN: Callback = (lib.rt_longpoll_on_open, _abi.rt_longpoll_open_fn(_on_open))
ON_MESSAGE: Callback = (lib.rt_longpoll_on_message, _abi.rt_longpoll_message_fn(_on_message))
ON_ERROR: Callback = (lib.rt_longpoll_on_error, _abi.rt_longpoll_error_fn(_on_error))
ON_REQUEST: Callback = (lib.rt_longpoll_on_request, _abi.rt_longpoll_request_fn(_on_request))
ON_CREDENTIALS: Callback = (
    lib.rt_longpoll_on_credentials,
    _abi.rt_longpoll_credentials_fn(_on_credentials),
)
