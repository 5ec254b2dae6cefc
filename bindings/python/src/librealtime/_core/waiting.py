"""How a blocking call waits for the library's loop: inside the library or, in a program that gevent
has patched, in gevent, so that other greenlets run meanwhile."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from .handle import Handle
from .loader import lib

_MONKEY = "gevent.monkey"


def is_patched() -> bool:
    """Whether ``gevent.monkey.patch_all()`` has replaced threads by greenlets."""
    monkey = sys.modules.get(_MONKEY)
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def dispatch(loop: Callable[[], Handle | None], wait_ms: int) -> int:
    """Runs one turn of a loop; returns C's status.

    :param loop: returns the loop. No variable here refers to it, as a traceback of what a callback
        raises may be kept, and would keep the loop's descriptors open.
    :param wait_ms: how long to wait for something to do; -1 for no limit.
    """
    if wait_ms and is_patched():
        _wait_in_gevent(loop(), wait_ms)
        wait_ms = 0
    status: int = lib.rt_loop_dispatch(loop(), wait_ms)
    return status


def _wait_in_gevent(loop: Handle | None, wait_ms: int) -> None:
    """Keeps the loop, which another greenlet may release, so that its descriptor stays open."""
    fd = lib.rt_loop_fd(loop)
    if fd < 0:  # the loop is gone; the dispatch says why
        return
    socket: Any = importlib.import_module("gevent.socket")
    try:
        socket.wait_read(fd, None if wait_ms < 0 else wait_ms / 1000, _Over)
    except _Over:
        return


class _Over(Exception):
    """The time is over."""
