"""From C to an event source: one trampoline for each callback type, kept for ever."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from . import _abi
from ._abi import rt_credentials
from ._eventsource_parameters import Handlers
from ._loader import lib
from ._reconnect import Setters
from ._registry import Handle, find
from .exceptions import check

_string_at = ctypes.string_at

SETTERS = Setters(
    lib.rt_eventsource_set_url,
    lib.rt_eventsource_set_header,
    lib.rt_eventsource_set_bearer_token,
    lib.rt_eventsource_clear_headers,
    lib.rt_eventsource_set_network,
)


class Target(Protocol):
    """Who is called back, inside a dispatch; `_stores` inside a close, too."""

    def _opened(self) -> None: ...
    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None: ...
    def _commented(self, comment: str) -> None: ...
    def _erred(
        self, status: int, message: str, http_status: int, fatal: bool, delay_ms: int, attempt: int
    ) -> None: ...
    def _requests(self, attempt: int) -> bool: ...
    def _asks(self, http_status: int) -> int: ...
    def _stores(self, key: str, id_: str) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def new_eventsource(loop: Handle, url: bytes) -> Handle:
    out = ctypes.c_void_p()
    check(lib.rt_eventsource_new(loop, url, ctypes.byref(out)))
    return Handle(out.value, lib.rt_eventsource_free)


def read_text(getter: Callable[..., int], handle: Handle) -> str:
    """A text of the C interface's, whatever its length."""
    size, length = 256, ctypes.c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(size)
        check(getter(handle, buffer, size, ctypes.byref(length)))
        if length.value < size:
            return buffer.raw[: length.value].decode()
        size = length.value + 1


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


def _on_event(
    id_: int,
    id_length: int,
    event: int,
    event_length: int,
    data: int,
    data_length: int,
    had_id: bool,
    key: int,
) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._came(
                _string_at(event, event_length).decode(),
                _string_at(data, data_length).decode(),
                _string_at(id_, id_length).decode() if id_length else "",
                had_id,
                id_length + event_length + data_length,
            )
        except BaseException as error:
            target._keep(error)


def _on_comment(comment: int, length: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            # A comment may be anything.
            target._commented(_string_at(comment, length).decode("utf-8", "replace"))
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


def _on_store(key_: bytes, id_: int, length: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._stores(key_.decode(), _string_at(id_, length).decode())
        except BaseException as error:
            target._keep(error)


#: How a callback is set, and what C calls; kept as long as the process lives.
Callback = tuple[Callable[..., int], Any]

ON_OPEN: Callback = (lib.rt_eventsource_on_open, _abi.rt_eventsource_open_fn(_on_open))
ON_EVENT: Callback = (lib.rt_eventsource_on_any, _abi.rt_eventsource_event_fn(_on_event))
ON_COMMENT: Callback = (lib.rt_eventsource_on_comment, _abi.rt_eventsource_comment_fn(_on_comment))
ON_ERROR: Callback = (lib.rt_eventsource_on_error, _abi.rt_eventsource_error_fn(_on_error))
ON_REQUEST: Callback = (lib.rt_eventsource_on_request, _abi.rt_eventsource_request_fn(_on_request))
ON_CREDENTIALS: Callback = (
    lib.rt_eventsource_on_credentials,
    _abi.rt_eventsource_credentials_fn(_on_credentials),
)
ON_STORE: Callback = (lib.rt_eventsource_on_store, _abi.rt_eventsource_store_fn(_on_store))


def callbacks(handlers: Handlers) -> list[Callback]:
    """Those that a caller with these functions needs."""
    asks = handlers.on_request is not None or handlers.header_provider is not None
    optional = (
        (ON_COMMENT, handlers.on_comment is not None),
        (ON_REQUEST, asks),
        (ON_CREDENTIALS, handlers.credentials is not None),
        (ON_STORE, handlers.on_store is not None),
    )
    wanted = [callback for callback, is_wanted in optional if is_wanted]
    return [ON_OPEN, ON_EVENT, ON_ERROR, *wanted]
