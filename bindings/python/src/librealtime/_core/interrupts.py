"""Ctrl-C while the library runs callbacks.

Python may raise ``KeyboardInterrupt`` after any call in the main thread, so also in the functions
that C calls. Before their first statement ctypes would print and drop it, together with what C
reports; later it could interrupt a change of state halfway. So while the main thread dispatches a
loop, an interrupt that arrives in our code is raised when the dispatch returns. In a user's handler
it is raised at once, as everywhere else, and so is a second one. A handler may dispatch another
loop: that dispatch raises what arrived during it, and leaves earlier interrupts to the outer one.
"""

from __future__ import annotations

# Not the module signal, which makes an enum of each number and handler: twenty times slower.
import _signal as signal  # type: ignore[import-not-found]
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

R = TypeVar("R")

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Our callbacks use parts of the standard library that are written in Python.
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (_STANDARD + "site-packages" + os.sep, _STANDARD + "dist-packages" + os.sep)

_deferred: list[int] = []


def deferring(call: Callable[[], R]) -> R:
    """Makes a call that runs callbacks, and raises afterwards an interrupt that arrived in them.

    The call takes no arguments, because a traceback that is kept would keep them alive.
    """
    previous = signal.getsignal(signal.SIGINT)
    # Any other handler belongs to the program and decides what an interrupt does.
    is_default = previous is signal.default_int_handler or previous is _interrupted
    if not is_default or threading.get_ident() != threading.main_thread().ident:
        return call()
    if previous is not _interrupted:
        _deferred.clear()
    is_pending = bool(_deferred)
    try:
        signal.signal(signal.SIGINT, _interrupted)
        result = call()
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, previous)
    if _deferred and not is_pending:
        _deferred.clear()
        raise KeyboardInterrupt
    return result


def _interrupted(number: int, frame: FrameType | None) -> None:
    """The signal handler during `deferring`; an interrupt may leave it installed longer."""
    if not _deferred and _is_ours(frame):
        _deferred.append(number)
    else:
        _deferred.clear()
        signal.default_int_handler(number, frame)


def _is_ours(frame: FrameType | None) -> bool:
    """Whether no user code runs inside the current `deferring` call."""
    while frame is not None:
        if frame.f_code is deferring.__code__:
            return True
        name = frame.f_code.co_filename
        is_standard = name.startswith((_STANDARD, "<frozen ")) and not name.startswith(_INSTALLED)
        if not (name.startswith(_OURS) or is_standard):
            return False
        frame = frame.f_back
    return False
