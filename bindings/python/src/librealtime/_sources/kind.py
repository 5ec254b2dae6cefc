"""From C to a source of whatever kind, and back: what their chapters of the header have in common.

A trampoline is kept for ever, since C may call it at any time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

from .._core import abi
from .._core.abi import rt_credentials
from .._core.errors import check
from .._core.failure import Failure
from .._core.handle import Handle, new
from .._core.headers import Pairs, header
from .._core.loader import lib
from .._core.reconnect import Setters
from .._core.registry import find
from .._core.response import Opened

#: How a callback is set, and what C calls.
Callback = tuple[Callable[..., int], Any]


class Target(Protocol):
    """Who is called back, inside a dispatch."""

    def _was_opened(self, opened: Opened) -> None: ...
    def _erred(self, failure: Failure) -> None: ...
    def _requests(self, attempt: int) -> bool: ...
    def _asks(self, http_status: int) -> int: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


class Kind:
    """A kind of source: its functions ``rt_<chapter>_<name>`` are attributes by their names.

    :ivar noun: what messages call such a source.
    :ivar item: and what it delivers.
    """

    #: May be set where the chapter has another name for it.
    close: Any

    def __init__(self, chapter: str, noun: str, item: str) -> None:
        self._prefix = f"rt_{chapter}_"
        self.noun = noun
        self.item = item

    def __getattr__(self, name: str) -> Any:
        function = getattr(lib, self._prefix + name)
        # Asked once: from now on it is found without this.
        setattr(self, name, function)
        return function

    @cached_property
    def setters(self) -> Setters:
        """By which an ``Attempt`` is changed."""
        return Setters(
            self.set_url,
            self.set_header,
            self.set_bearer_token,
            self.clear_headers,
            self.set_network,
        )

    @cached_property
    def open_callback(self) -> Callback:
        return self.callback("open", abi.rt_opened_fn, _on_open)

    @cached_property
    def error_callback(self) -> Callback:
        return self.callback("error", abi.rt_failure_fn, _on_error)

    @cached_property
    def request_callback(self) -> Callback:
        return self.callback("request", abi.rt_attempt_fn, _on_request)

    @cached_property
    def credentials_callback(self) -> Callback:
        return self.callback("credentials", abi.rt_credentials_fn, _on_credentials)

    def callback(self, name: str, type_: Any, function: Callable[..., Any]) -> Callback:
        """Of the setter that has this name; whoever asks keeps it."""
        return getattr(self, f"on_{name}"), type_(function)

    def make(self, loop: Handle, url: bytes) -> Handle:
        return new(self.new, self.free, loop, url)

    def set_headers(self, source: Handle, pairs: Pairs) -> None:
        """Sets these headers in the place of all."""
        check(self.clear_headers(source))
        self.add_headers(source, pairs)

    def add_headers(self, source: Handle, pairs: Pairs) -> None:
        for name, value in pairs:
            check(self.add_header(source, *header(name, value)))


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


def _on_open(view: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._was_opened(Opened.at(view))
        except BaseException as error:
            target._keep(error)


def _on_error(view: int, key: int) -> None:
    target = _target(key)
    if target is not None:
        try:
            target._erred(Failure.at(view))
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


def _on_credentials(view: int, key: int) -> int:
    target = _target(key)
    if target is not None:
        try:
            return target._asks(abi.rt_failure.from_address(view).http_status)
        except BaseException as error:
            target._keep(error)
    return rt_credentials.NONE
