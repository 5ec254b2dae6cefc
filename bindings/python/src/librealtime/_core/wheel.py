"""Drives a loop in blocking programs: in a call that waits, or in a thread while no call does.

``KeyboardInterrupt`` may be raised after any call in the main thread. A lock is therefore either
held by a ``with`` statement on the lock itself, which the interpreter enters and leaves in one
step, or released by the first step of a ``finally``. ``threading.Condition`` does neither.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from typing import Any

from . import abi
from .handle import Handle
from .loader import lib
from .waiting import dispatch

_logger = logging.getLogger("librealtime")

#: The thread starts to drive a loop after no call has driven it for this time.
IDLE_S = 0.05

#: The longest turn of the thread. This matters only if an interrupt ended the function that should
#: have ended the turn.
_LONGEST_TURN_MS = 60_000

#: How long interpreter exit waits in total for callbacks that run in such threads.
_EXIT_S = 1.0


class Wheel:
    """Decides which thread drives a loop of the library; all objects on that loop share it.

    Each turn has its own lock, which the driving thread holds for the whole turn. The other threads
    wait for that lock and then check whether their condition is met. So the end of a turn wakes
    them all, even if the driver starts the next turn at once or is interrupted.
    """

    def __init__(self) -> None:
        #: Guards state that both a dispatch and other calls change. Never held during a turn.
        self.lock: Any = threading.RLock()
        #: The lock of the last turn.
        self.last: Any = threading.RLock()
        #: The number of turns so far.
        self.turns = 0
        #: What callbacks raised in this turn.
        self.errors: list[BaseException] = []
        #: What callbacks raised in the keeper's turns, for the next call that waits.
        self.late_errors: list[BaseException] = []
        self._keeper: Keeper | None = None
        _wheels.add(self)

    def __del__(self) -> None:
        for error in self.late_errors:
            _logger.error("a callback failed, and no later call could raise it", exc_info=error)

    @property
    def is_driven_here(self) -> bool:
        """Whether this thread is inside the library, that is, whether a callback asks."""
        return bool(self.last._is_owned())

    def claim(self, turn: Any) -> Any:
        """Makes `turn`, which the caller holds, the current one, unless another is running.

        :returns: `turn`, or the running turn of another thread.
        """
        with self.lock:
            if wait_for(self.last, 0):
                self.last = turn
                self.turns += 1
            return self.last

    def keep(self, loop: Handle, owner: object) -> Keeper:
        """Has a thread drive the loop while no call does, as long as the owner lives."""
        self._keeper = keeper = Keeper(self, loop, owner)
        return keeper

    def ask(self, turn: Any) -> None:
        """Called when a call waits to drive: makes the keeper leave if this turn is its own."""
        keeper = self._keeper
        if keeper is not None and keeper.turn is turn:
            keeper.leave()

    def forked(self) -> None:
        """Called in a child process, where no other thread exists to release a lock."""
        self.lock._at_fork_reinit()
        self.last = threading.RLock()
        self._keeper = None


class Keeper:
    """The thread that drives a loop while no call waits on an object of that loop.

    A call that waits drives the loop itself; otherwise each message would cost two thread switches.
    If no call has driven the loop for a moment, this thread takes over, so that pings are answered,
    messages received and callbacks called while the program does something else. It waits without
    the interpreter's lock, and leaves as soon as a call wants to drive.

    It keeps no object alive: it refers to the loop only during a turn, and to all else weakly.
    """

    def __init__(self, wheel: Wheel, loop: Handle, owner: object) -> None:
        self._wheel = weakref.ref(wheel)
        self._loop = weakref.ref(loop)
        self._owner = weakref.ref(owner, lambda _: self.end())
        #: The turn that it drives or last drove.
        self.turn: Any = threading.RLock()
        # Held until the thread has to end. Its release is one step, which nothing can interrupt.
        self._unended = threading.Lock()
        self._unended.acquire()
        self._must_leave = False
        # The loop that it is dispatching.
        self._dispatched: Handle | None = None
        _keepers.add(self)

    def start(self) -> None:
        threading.Thread(target=self._run, name="librealtime", daemon=True).start()

    def end(self) -> None:
        """Ends the thread. Callable from any thread, and more than once."""
        try:
            self._unended.release()
        except RuntimeError:
            return
        self.leave()

    def leave(self) -> None:
        """Ends the turn. Callable from any thread."""
        self._must_leave = True
        loop = self._dispatched
        if loop is not None:
            wake(loop)

    def _run(self) -> None:
        turns = -1
        while not self._unended.acquire(timeout=IDLE_S):
            wheel = self._wheel()
            if wheel is None or self._owner() is None:
                return
            last, was, turns = wheel.last, turns, wheel.turns
            del wheel
            if not wait_for(last, 0):
                wait_for(last, None)
            elif turns == was:
                self._drive()

    def _drive(self) -> None:
        """Drives the loop until a call wants to, or the thread has to end."""
        self.turn = turn = threading.RLock()
        with turn:
            self._must_leave = False
            if not self._claims(turn):
                return
            while not self._must_leave and self._unended.locked():
                # Set before the flags are checked again, so ``leave`` is either seen or wakes us.
                self._dispatched = self._loop()
                if self._dispatched is None:
                    return
                status = 0
                if not self._must_leave and self._unended.locked():
                    status = dispatch(lambda: self._dispatched, _LONGEST_TURN_MS)
                self._dispatched = None
                if not self._is_alive() or status < 0:
                    return

    def _claims(self, turn: Any) -> bool:
        wheel = self._wheel()
        return wheel is not None and wheel.claim(turn) is turn

    def _is_alive(self) -> bool:
        """Called after a turn: whether wheel and owner still exist. Saves errors for later."""
        wheel = self._wheel()
        if wheel is None or self._owner() is None:
            return False
        if wheel.errors:
            errors, wheel.errors = wheel.errors, []
            wheel.late_errors += errors
        return True


def wait_for(turn: Any, timeout: float | None) -> bool:
    """Waits until another thread's turn is over; False on timeout."""
    try:
        return bool(turn.acquire(timeout=-1 if timeout is None else timeout))
    finally:
        # The release must be the very first step, so this cannot be a context manager.
        try:  # noqa: SIM105
            turn.release()
        except RuntimeError:  # not acquired
            pass


def wake(loop: Handle) -> None:
    """Ends the current or next turn. Fails if the loop is gone: then nobody waits."""
    lib.rt_loop_post(loop, _NOTHING, None, _NOBODY)


# Kept forever, as C may call it at any time.
_NOTHING = abi.rt_loop_fn(lambda _: None)
_NOBODY = abi.rt_destroy_fn()

_wheels: weakref.WeakSet[Wheel] = weakref.WeakSet()
_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _forked() -> None:
    for wheel in list(_wheels):
        wheel.forked()


def _exit() -> None:
    """Ends the threads, since none may return from the library after the interpreter has gone."""
    keepers = list(_keepers)
    for keeper in keepers:
        keeper.end()
    deadline = time.monotonic() + _EXIT_S
    for keeper in keepers:
        wait_for(keeper.turn, max(0.0, deadline - time.monotonic()))


os.register_at_fork(after_in_child=_forked)
atexit.register(_exit)
