"""Ctrl-C while the library calls back.

Python raises ``KeyboardInterrupt`` after any call in the main thread, so also in the functions that
C calls: before their first statement, where ctypes prints and drops it together with what C wanted
to report, or halfway through a change of state. So while a loop is dispatched on the main thread,
an interrupt that arrives in our code is raised when the dispatch returns. In a handler of the
user's it is raised at once, as everywhere else, and so is a second one. A handler may make another
loop dispatch: that dispatch raises what arrived during it, and leaves an earlier interrupt to the
outer one.
"""

from __future__ import annotations

# Not the module signal, which makes an enum of each number and handler: twenty times as slow.
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
    """Makes a call that calls back, and raises afterwards what Ctrl-C should have raised in it.

    The call takes no arguments, as a traceback that is kept would keep them.
    """
    previous = signal.getsignal(signal.SIGINT)
    # Any other handler is the program's own: it decides what an interrupt does.
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
    """The handler while `deferring`; an interrupt may leave it in place longer."""
    if not _deferred and _is_ours(frame):
        _deferred.append(number)
    else:
        _deferred.clear()
        signal.default_int_handler(number, frame)


def _is_ours(frame: FrameType | None) -> bool:
    """Whether no code of the user's runs in the call that is being made."""
    while frame is not None:
        if frame.f_code is deferring.__code__:
            return True
        name = frame.f_code.co_filename
        is_standard = name.startswith((_STANDARD, "<frozen ")) and not name.startswith(_INSTALLED)
        if not (name.startswith(_OURS) or is_standard):
            return False
        frame = frame.f_back
    return False
