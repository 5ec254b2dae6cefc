"""How calls of the C interface fail. What uses a client while another thread closes it raises the
same as what uses it later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._core import errors, registry
from .._core.abi import rt_status
from .._core.errors import RealtimeError
from .._core.handle import Handle
from .errors import closed

T = TypeVar("T")


def check(status: int) -> None:
    """Raises an exception if a call of the C interface returned an error."""
    if status == rt_status.ERROR_CLOSED:
        raise closed("the client is closed")
    errors.check(status)


def as_closed(call: Callable[[], T]) -> T:
    """Makes a call, whose failure because of a closed client is raised as that."""
    try:
        return call()
    except RealtimeError as error:
        if error.status != rt_status.ERROR_CLOSED:
            raise
    raise closed("the client is closed")


class Registration(registry.Registration):
    """Sets the callbacks of one object in C."""

    __slots__ = ()

    def set(self, setter: Callable[..., int], handle: Handle, trampoline: Any) -> None:
        plain = super().set
        as_closed(lambda: plain(setter, handle, trampoline))
