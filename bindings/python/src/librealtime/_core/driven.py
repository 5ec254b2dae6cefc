"""Blocking use: a call that waits drives the library's loop; otherwise see ``wheel``."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .abi import rt_status
from .endpoint import Endpoint
from .errors import InvalidState, check
from .handle import Handle, new_loop
from .interrupts import deferring
from .values import wait_limit
from .waiting import dispatch
from .wheel import Keeper, Wheel, wait_for, wake

Self = TypeVar("Self", bound="Driven")

_logger = logging.getLogger("librealtime")

# Objects that have handlers, until they are closed.
_held: set[Driven] = set()

#: The longest wait in one call of the library, which takes milliseconds in 32 bits.
_LONGEST_TURN_MS = 2**31 - 1


def deadline_after(timeout: float | None) -> float | None:
    """The deadline for a wait in several rounds: another thread may take the awaited item first."""
    limit = wait_limit(timeout)
    return None if limit is None else time.monotonic() + limit


class Driven:
    """An object on a loop that is driven by calls that wait, or else by its keeper thread.

    It lives as long as the program refers to it and, unless it is closed, as long as it has
    handlers.
    """

    _loop_handle: Handle | None
    _is_closed: bool
    _keeper: Keeper | None = None

    def _prepare_driving(self, wheel: Wheel | None = None) -> None:
        """:param wheel: shared with other objects on the same loop."""
        self._wheel = wheel = wheel or Wheel()
        self._lock = wheel.lock

    def _live_by_itself(self) -> None:
        """Starts the keeper thread, which drives the loop while no call waits."""
        if self._loop_handle is not None:
            self._keeper = self._wheel.keep(self._loop_handle, self)
            self._keeper.start()
        self._hold()

    @property
    def _is_wanted(self) -> bool:
        """Whether it lives even if nobody refers to it, because it has handlers."""
        return False

    def _hold(self) -> None:
        """Updates whether it lives by itself; call when a reason changes."""
        if self._is_wanted:
            _held.add(self)
        if self._is_closed or not self._is_wanted:  # perhaps since then, on another thread
            _held.discard(self)

    def _end_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.end()

    def _is_inside_callback(self) -> bool:
        """Whether this thread must not wait: inside a callback, or in a finalizer that the
        collector runs in the middle of another method of this object."""
        return self._wheel.is_driven_here or bool(self._lock._is_owned())

    def _revive(self) -> None:
        """See ``Endpoint``."""
        super()._revive()  # type: ignore[misc]

    def _until(
        self,
        is_ready: Callable[[], bool],
        timeout: float | None = None,
        *,
        deadline: float | None = None,
    ) -> bool:
        """Drives the loop, or waits for the thread that does, until `is_ready`; False on timeout.

        The lock must not be held.

        :param deadline: replaces `timeout`, see ``deadline_after``.
        """
        if timeout is not None:
            deadline = deadline_after(timeout)
        self._revive()
        if self._wheel.late_errors and not self._is_inside_callback():
            self._raise_late()
        while not is_ready():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._is_inside_callback():
                raise InvalidState(
                    rt_status.ERROR_REENTRANT, "a callback cannot wait for its own connection"
                )
            other = self._turn(left, is_ready)
            if other is not None:
                _wait_for(other, left)
            if left == 0 and not is_ready():
                return False
        return True

    def _raise_late(self) -> None:
        """Raises what callbacks raised while no call waited."""
        errors, self._wheel.late_errors = self._wheel.late_errors, []
        if errors:  # else another thread was faster
            _raise(errors)

    def _turn(self, timeout: float | None, is_ready: Callable[[], bool]) -> Any:
        """Dispatches the library's loop once, unless `is_ready`.

        :returns: None, or the turn of another thread that is already dispatching.
        """
        wheel = self._wheel
        turn = threading.RLock()
        turn.acquire()
        try:
            driving = wheel.claim(turn)
            if driving is not turn:
                wheel.ask(driving)
                return driving
            if wheel.late_errors:
                self._raise_late()
            # Check again: an earlier turn may have made it ready. Now no other thread dispatches.
            if self._loop_handle is None or is_ready():
                return None
            wait_ms = -1 if timeout is None else min(math.ceil(timeout * 1000), _LONGEST_TURN_MS)
            # No local variable: a traceback that is kept would keep the loop's descriptors open.
            status = deferring(lambda: dispatch(lambda: self._loop_handle, wait_ms))
            # Taken before our turn ends: later errors belong to the next turn.
            errors, wheel.errors = wheel.errors, []
        finally:
            turn.release()
        if errors:
            _raise(errors)
        # Another thread may have closed this object and released the loop in the meantime.
        if self._loop_handle is not None:
            check(status)
        return None

    def _await(self, awaitable: Awaitable[Any], size: int) -> None:
        """Blocking objects cannot run coroutines."""
        if hasattr(awaitable, "close"):
            awaitable.close()
        raise TypeError("a handler of a blocking object returned a coroutine; use a plain function")

    def _keep(self, error: BaseException) -> None:
        self._wheel.errors.append(error)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._leave(kind is None)

    def _leave(self, in_order: bool) -> None:
        """Runs at the end of a ``with``; `in_order` is False after an exception."""
        raise NotImplementedError

    def _ended(self) -> None:
        """Also wakes threads that wait, as a call may have closed this object."""
        loop = self._loop_handle
        super()._ended()  # type: ignore[misc]
        self._end_keeper()
        self._hold()
        self._rouse(loop)

    def _rouse(self, loop: Handle | None) -> None:
        """Ends the current or next turn, so that waiting threads check their conditions."""
        if loop is not None and not self._wheel.is_driven_here:
            wake(loop)


class DrivenEndpoint(Driven, Endpoint):
    """A connection that waits for the server on a loop of its own."""

    def _construct(self, make: Callable[[], None]) -> None:
        """Makes the object in C by `make`, and its thread; for constructors."""
        self._prepare_driving()
        try:
            make()
            self._live_by_itself()
        except BaseException as error:
            self._not_made(error)
            raise

    def _join(self) -> Handle:
        return new_loop()


def _wait_for(turn: Any, left: float | None) -> None:
    """Waits until another thread's turn is over, or `left` seconds have passed."""
    if sys.is_finalizing() and not wait_for(turn, 0):
        message = "the interpreter exits, and the thread that received does not run any more"
        raise InvalidState(rt_status.ERROR_STATE, message)
    wait_for(turn, None if left is None else min(left, threading.TIMEOUT_MAX))


def _raise(errors: list[BaseException]) -> None:
    """Raises the first exception of the callbacks and logs the others."""
    for error in errors[1:]:
        _logger.error("another callback of the same turn failed", exc_info=error)
    raise errors[0]
