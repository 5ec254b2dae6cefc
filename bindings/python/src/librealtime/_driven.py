"""Blocking use: the thread that waits drives the library's loop, the others wait for it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import _abi
from ._abi import rt_status
from ._loader import lib
from ._registry import Handle
from .exceptions import InvalidState, check

_logger = logging.getLogger("librealtime")

#: The longest wait in one call of the library, whose clock counts in 32 bits.
_LONGEST_TURN_MS = 2**31 - 1


class Wheel:
    """Who drives a loop of the library's; shared by all objects that live on it."""

    def __init__(self) -> None:
        # A lock that cannot be nested: a turn gives it back wholly while the library waits.
        self.lock = threading.Lock()
        self.condition = threading.Condition(self.lock)
        # The thread inside the library; the others wait for the condition.
        self.driver: int | None = None
        self.errors: list[BaseException] = []


class Driven:
    """What lives on a loop that is driven by whoever waits for it."""

    _loop_handle: Handle | None

    def _prepare_driving(self, wheel: Wheel | None = None) -> None:
        """:param wheel: of whoever else lives on the same loop."""
        self._wheel = wheel = wheel or Wheel()
        self._lock = wheel.lock
        self._condition = wheel.condition

    def _is_inside_callback(self) -> bool:
        return self._wheel.driver == threading.get_ident()

    def _until(self, is_ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Drives the connection, or waits for the thread that does; False when time is up."""
        with self._condition:
            return self._drive(is_ready, timeout)

    def _drive(self, is_ready: Callable[[], bool], timeout: float | None) -> bool:
        """The same with the lock held."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_ready():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._is_inside_callback():
                raise InvalidState(
                    rt_status.ERROR_REENTRANT, "a callback cannot wait for its own connection"
                )
            if self._wheel.driver is not None:
                self._condition.wait(left)
            elif left is None:
                self._turn(-1)
            else:
                self._turn(min(math.ceil(left * 1000), _LONGEST_TURN_MS))
            if left == 0 and not is_ready():
                return False
        return True

    def _turn(self, timeout_ms: int) -> None:
        """One dispatch of the library's loop, with our lock given back meanwhile."""
        if self._loop_handle is None:
            return
        self._wheel.driver = threading.get_ident()
        self._condition.release()
        try:
            # No name for it here: a traceback that is kept would keep the loop's descriptors.
            status = lib.rt_loop_dispatch(self._loop_handle, timeout_ms)
        finally:
            self._condition.acquire()
            self._wheel.driver = None
            self._condition.notify_all()
        # Another thread may have closed, and let the loop go, before the call or inside it.
        if self._loop_handle is not None:
            check(status)
        if self._wheel.errors:
            self._raise_errors()

    def _raise_errors(self) -> None:
        """Raises what a callback raised; further ones of the same turn are logged."""
        errors, self._wheel.errors = self._wheel.errors, []
        for error in errors[1:]:
            _logger.error("another callback of the same turn failed", exc_info=error)
        raise errors[0]

    def _await(self, awaitable: Awaitable[Any], size: int) -> None:
        """Nothing runs coroutines here."""
        if hasattr(awaitable, "close"):
            awaitable.close()
        raise TypeError("the handlers of a blocking object are plain functions; one is not")

    def _keep(self, error: BaseException) -> None:
        self._wheel.errors.append(error)

    def _ended(self) -> None:
        """Closed by a call, it has those who wait in another thread look around."""
        loop = self._loop_handle
        super()._ended()  # type: ignore[misc]
        self._rouse(loop)

    def _rouse(self, loop: Handle | None) -> None:
        """Ends the turn that runs, or begins: those who wait look around."""
        if loop is not None and not self._is_inside_callback():
            # Fails when the loop is over: then nobody waits.
            lib.rt_loop_post(loop, _NOTHING, None, _NOBODY)


# Kept for ever, as C may call it at any time.
_NOTHING = _abi.rt_loop_fn(lambda _: None)
_NOBODY = _abi.rt_destroy_fn()
