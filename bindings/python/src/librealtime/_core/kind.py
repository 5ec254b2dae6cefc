"""A kind of object of the C interface: its functions and its callbacks.

Trampolines are kept forever, since C may call them at any time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import abi
from .abi import rt_credentials
from .errors import check
from .failure import Failure
from .handle import Handle, new
from .headers import Pairs, header
from .loader import lib
from .registry import Registration, find
from .response import Opened


class Callback(NamedTuple):
    """A function that C calls.

    :ivar name: the name of its setter without ``rt_<chapter>_on_``.
    """

    name: str
    trampoline: Any


def _keep(target: Any, error: BaseException) -> None:
    target._keep(error)


def trampoline(
    call: Callable[..., Any],
    default: Any = None,
    found: Callable[[int], Any] = find,
    failed: Callable[[Any, BaseException], None] = _keep,
) -> Callable[..., Any]:
    """Wraps `call` for C, which passes its own arguments and, as the last, the key of an object.

    :param call: receives the object and the other arguments.
    :param default: returned when the object is gone, or `call` fails.
    :param failed: receives the object and what `call` raised.
    """

    def called(*arguments: Any) -> Any:
        target = found(arguments[-1])
        if target is not None:
            try:
                return call(target, *arguments[:-1])
            except BaseException as error:
                failed(target, error)
        return default

    return called


def callback(name: str, type_: Any, call: Callable[..., Any], default: Any = None) -> Callback:
    """Like ``trampoline``; what `call` raises is kept until the dispatch has returned."""
    return Callback(name, type_(trampoline(call, default)))


# Callbacks that several kinds have, with the same meaning.
ON_OPEN = callback(
    "open", abi.rt_opened_fn, lambda target, view: target._was_opened(Opened.at(view))
)
ON_ERROR = callback(
    "error", abi.rt_failure_fn, lambda target, view: target._erred(Failure.at(view))
)
ON_REQUEST = callback(
    "request", abi.rt_attempt_fn, lambda target, attempt: target._requests(attempt), False
)
ON_CREDENTIALS = callback(
    "credentials",
    abi.rt_credentials_fn,
    lambda target, view: target._asks(abi.rt_failure.from_address(view).http_status),
    rt_credentials.NONE,
)


class Kind:
    """A kind of object; its C functions ``rt_<chapter>_<name>`` are attributes named `name`.

    :ivar noun: how messages call such an object.
    :ivar item: how messages call what it delivers.
    """

    #: May be set if the chapter names it differently.
    close: Any

    def __init__(self, chapter: str, noun: str, item: str) -> None:
        self._prefix = f"rt_{chapter}_"
        self.noun = noun
        self.item = item

    def __getattr__(self, name: str) -> Any:
        function = getattr(lib, self._prefix + name)
        # Cached: the next access does not come here.
        setattr(self, name, function)
        return function

    def make(self, loop: Handle, url: bytes | None) -> Handle:
        return new(self.new, self.free, loop, url)

    def attach(self, target: object, handle: Handle, callbacks: Iterable[Callback]) -> Registration:
        """Sets the C callbacks; `target` is referenced weakly."""
        registration = Registration(target)
        for one in callbacks:
            self.set_callback(registration, handle, one)
        return registration

    def set_callback(self, registration: Registration, handle: Handle, one: Callback) -> None:
        registration.set(getattr(self, f"on_{one.name}"), handle, one.trampoline)

    def set_headers(self, handle: Handle, pairs: Pairs) -> None:
        """Replaces all headers with these."""
        check(self.clear_headers(handle))
        self.add_headers(handle, pairs)

    def add_headers(self, handle: Handle, pairs: Pairs) -> None:
        for name, value in pairs:
            check(self.add_header(handle, *header(name, value, "headers")))


def read_opened(getter: Callable[..., int], handle: Handle) -> Opened | None:
    """The response that opened a connection, which a function of the C interface passes to its
    callback; None before the first connection."""
    found: list[Opened] = []
    keep = abi.rt_opened_fn(lambda view, _: found.append(Opened.at(view)))
    status = getter(handle, keep, None)
    if status == abi.rt_status.ERROR_NOT_FOUND:
        return None
    check(status)
    return found[0]


def read_text(getter: Callable[..., int], handle: Handle) -> str:
    """Reads a text of any length from the C interface."""
    size, length = 256, ctypes.c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(size)
        check(getter(handle, buffer, size, ctypes.byref(length)))
        if length.value < size:
            return buffer.raw[: length.value].decode()
        size = length.value + 1
