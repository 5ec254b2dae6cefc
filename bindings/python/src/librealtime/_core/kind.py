"""A kind of object of the C interface: its functions, and what C calls back.

A trampoline is kept for ever, since C may call it at any time.
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
    """What C calls.

    :ivar name: its setter's, without what the chapter's callbacks begin with.
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
    """What C calls with arguments of its own and, as the last, the key of an object.

    :param call: is given the object, and the other arguments.
    :param default: is returned when the object is gone, or `call` fails.
    :param failed: is told what it raises.
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
    """See ``trampoline``; what `call` raises is kept until the dispatch is over."""
    return Callback(name, type_(trampoline(call, default)))


# Those that several kinds have, with the same meaning.
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
    """A kind of object: its functions ``rt_<chapter>_<name>`` are attributes by their names.

    :ivar noun: what messages call such an object.
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

    def make(self, loop: Handle, url: bytes | None) -> Handle:
        return new(self.new, self.free, loop, url)

    def attach(self, target: object, handle: Handle, callbacks: Iterable[Callback]) -> Registration:
        """Has C call back; `target` is referred to weakly."""
        registration = Registration(target)
        for one in callbacks:
            self.set_callback(registration, handle, one)
        return registration

    def set_callback(self, registration: Registration, handle: Handle, one: Callback) -> None:
        registration.set(getattr(self, f"on_{one.name}"), handle, one.trampoline)

    def set_headers(self, handle: Handle, pairs: Pairs) -> None:
        """Sets these headers in the place of all."""
        check(self.clear_headers(handle))
        self.add_headers(handle, pairs)

    def add_headers(self, handle: Handle, pairs: Pairs) -> None:
        for name, value in pairs:
            check(self.add_header(handle, *header(name, value)))


def read_text(getter: Callable[..., int], handle: Handle) -> str:
    """A text of the C interface's, whatever its length."""
    size, length = 256, ctypes.c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(size)
        check(getter(handle, buffer, size, ctypes.byref(length)))
        if length.value < size:
            return buffer.raw[: length.value].decode()
        size = length.value + 1
