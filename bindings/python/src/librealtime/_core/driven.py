"""Blocking use: the thread that waits drives the library's loop, the others wait for it.

``KeyboardInterrupt`` may be raised after any call in the main thread. A lock is therefore either
held by a ``with`` statement on the lock itself, which the interpreter enters and leaves in one
step, or released by the first step of a ``finally``. ``threading.Condition`` does neither.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import abi
from .abi import rt_status
from .errors import InvalidState, check
from .handle import Handle
from .interrupts import deferring
from .loader import lib

_logger = logging.getLogger("librealtime")

#: The longest wait in one call of the library, whose clock counts in 32 bits.
_LONGEST_TURN_MS = 2**31 - 1


class Wheel:
    """Who drives a loop of the library's; shared by all objects that live on it.

    Each turn has a lock of its own, which the thread that drives holds as long as the turn lasts.
    The others wait for that lock, and then look whether what they wait for has come. So the end of
    a turn wakes them all, even if the driver goes on with the next turn at once or is interrupted.
    """

    def __init__(self) -> None:
        #: Guards what both a dispatch and calls outside of one change. Never held in a turn.
        self.lock = threading.RLock()
        # The lock of the last turn.
        self._last: Any = threading.RLock()
        self.errors: list[BaseException] = []

    @property
    def is_driven(self) -> bool:
        """Whether a thread, maybe this one, is inside the library."""
        return self.is_driven_here or not wait_for(self._last, 0)

    @property
    def is_driven_here(self) -> bool:
        """Whether this thread is inside the library, so that a callback asks."""
        return bool(self._last._is_owned())

    def claim(self, turn: Any) -> Any:
        """Makes `turn`, which the caller holds, the next one.

        :returns: `turn`; or the turn of another thread, which is not over.
        """
        with self.lock:
            if wait_for(self._last, 0):
                self._last = turn
            return self._last


def deadline_after(timeout: float | None) -> float | None:
    """For a wait that may have several rounds, as another thread may take what it waits for."""
    return None if timeout is None else time.monotonic() + timeout


def wait_for(turn: Any, timeout: float | None) -> bool:
    """Waits until the turn of another thread is over; False when time is up."""
    try:
        return bool(turn.acquire(timeout=-1 if timeout is None else timeout))
    finally:
        # First of all, so not in a context manager.
        try:  # noqa: SIM105
            turn.release()
        except RuntimeError:  # not acquired
            pass


class Driven:
    """What lives on a loop that is driven by whoever waits for it."""

    _loop_handle: Handle | None

    def _prepare_driving(self, wheel: Wheel | None = None) -> None:
        """:param wheel: of whoever else lives on the same loop."""
        self._wheel = wheel = wheel or Wheel()
        self._lock = wheel.lock

    def _is_inside_callback(self) -> bool:
        return self._wheel.is_driven_here

    def _until(
        self,
        is_ready: Callable[[], bool],
        timeout: float | None = None,
        *,
        deadline: float | None = None,
    ) -> bool:
        """Drives the connection, or waits for the thread that does; False when time is up.

        The lock must not be held.

        :param deadline: in the place of `timeout`, see ``deadline_after``.
        """
        if timeout is not None:
            deadline = deadline_after(timeout)
        while not is_ready():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._is_inside_callback():
                raise InvalidState(
                    rt_status.ERROR_REENTRANT, "a callback cannot wait for its own connection"
                )
            other = self._turn(left, is_ready)
            if other is not None:
                wait_for(other, None if left is None else min(left, threading.TIMEOUT_MAX))
            if left == 0 and not is_ready():
                return False
        return True

    def _turn(self, timeout: float | None, is_ready: Callable[[], bool]) -> Any:
        """One dispatch of the library's loop, unless `is_ready`.

        :returns: None; or the turn of another thread that is dispatching.
        """
        wheel = self._wheel
        turn = threading.RLock()
        turn.acquire()
        try:
            driving = wheel.claim(turn)
            if driving is not turn:
                return driving
            # Asked again, as the turn before may have ended since: now no other thread dispatches.
            if self._loop_handle is None or is_ready():
                return None
            wait_ms = -1 if timeout is None else min(math.ceil(timeout * 1000), _LONGEST_TURN_MS)
            # No name for it here: a traceback that is kept would keep the loop's descriptors.
            status = deferring(lambda: lib.rt_loop_dispatch(self._loop_handle, wait_ms))
            # Taken in our turn: those of the next one are not ours.
            errors, wheel.errors = wheel.errors, []
        finally:
            turn.release()
        if errors:
            _raise(errors)
        # Another thread may have closed, and let the loop go, before the call or inside it.
        if self._loop_handle is not None:
            check(status)
        return None

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


def _raise(errors: list[BaseException]) -> None:
    """Raises what a callback raised; further ones of the same turn are logged."""
    for error in errors[1:]:
        _logger.error("another callback of the same turn failed", exc_info=error)
    raise errors[0]


# Kept for ever, as C may call it at any time.
_NOTHING = abi.rt_loop_fn(lambda _: None)
_NOBODY = abi.rt_destroy_fn()
