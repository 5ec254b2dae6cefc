"""What an exception that the program keeps, as a ``Future`` does, may keep alive."""

from __future__ import annotations

import contextlib
import inspect
from types import FrameType

_PACKAGE = __name__.partition(".")[0] + "."
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def forget(error: BaseException | None) -> None:
    """Clears the variables of the library's functions through which an exception has come.

    Otherwise, after a constructor has failed, the traceback would keep what it had made: handles,
    and with them the descriptors of a loop. The program's own functions are left as they are.
    """
    done: set[int] = set()
    while error is not None and id(error) not in done:
        done.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            _clear(trace.tb_frame)
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _clear(frame: FrameType) -> None:
    is_ours = str(frame.f_globals.get("__name__")).startswith(_PACKAGE)
    # One that can be resumed may only be suspended.
    if is_ours and not frame.f_code.co_flags & _RESUMED:
        with contextlib.suppress(RuntimeError):  # it is still running
            frame.clear()
