"""Sends the library's log lines to the Python logger ``librealtime``."""

from __future__ import annotations

import atexit
import logging

from . import abi
from .abi import rt_log_level
from .errors import check, with_python_names
from .loader import lib
from .values import invalid

_logger = logging.getLogger("librealtime")

#: Python's level for each of the library's, the most verbose last.
_LEVELS = {
    int(rt_log_level.ERROR): logging.ERROR,
    int(rt_log_level.WARNING): logging.WARNING,
    int(rt_log_level.INFO): logging.INFO,
    int(rt_log_level.DEBUG): logging.DEBUG,
}


def set_log_level(level: int | str | None = "INFO") -> None:
    """Sends the library's log lines at this level and above to the logger ``librealtime``.

    That logger's handlers and level decide what happens to them. Lines name hosts, codes and times,
    never payloads or credentials. ``"INFO"`` logs connections opened, lost and closed, the response
    to each request, each retry with its cause and delay, and the transport that a Spreadbot
    connection tries. ``"DEBUG"`` logs each step.

    :param level: a number or name of :mod:`logging`; None, the library's default, turns it off.
    """
    if level is None:
        check(lib.rt_set_log(int(rt_log_level.OFF), abi.rt_log_fn(), None, _NOTHING))
        return
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    if isinstance(number, bool) or not isinstance(number, int):
        raise invalid(f"{level!r} is not a level of logging")
    wanted = max((ours for ours, theirs in _LEVELS.items() if theirs >= number), default=1)
    check(lib.rt_set_log(wanted, _write, None, _NOTHING))


def _log(level: int, line: bytes, _: int | None) -> None:
    text = with_python_names(line.decode("utf-8", "replace"))
    _logger.log(_LEVELS.get(level, logging.ERROR), "%s", text)


# Kept forever, as C keeps their addresses.
_write = abi.rt_log_fn(_log)
_NOTHING = abi.rt_destroy_fn()

# A loop on its own thread may outlive the interpreter.
atexit.register(set_log_level, None)
