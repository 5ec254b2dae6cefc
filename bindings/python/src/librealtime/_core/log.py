"""The library's log, as Python's: its lines go to the logger ``librealtime``."""

from __future__ import annotations

import atexit
import logging

from . import abi
from .abi import rt_log_level
from .errors import check
from .loader import lib

_logger = logging.getLogger("librealtime")

#: Python's levels for the library's, the most talkative last.
_LEVELS = {
    int(rt_log_level.ERROR): logging.ERROR,
    int(rt_log_level.WARNING): logging.WARNING,
    int(rt_log_level.INFO): logging.INFO,
    int(rt_log_level.DEBUG): logging.DEBUG,
}


def set_log_level(level: int | str | None = "INFO") -> None:
    """Sends the library's log lines from this level of :mod:`logging` on to ``librealtime``.

    That is the name of the logger; what becomes of them is up to its handlers and its own level.
    Lines name hosts, codes and times, never payloads or credentials. ``"INFO"`` tells which
    connections were opened, lost and closed, how each request was answered, each retry with its
    cause and delay, and which way a Spreadbot connection tries. ``"DEBUG"`` tells each step.

    :param level: a number or name of :mod:`logging`; None, the library's default, turns it off.
    """
    if level is None:
        check(lib.rt_set_log(int(rt_log_level.OFF), abi.rt_log_fn(), None, _NOTHING))
        return
    number = logging.getLevelName(level.upper()) if isinstance(level, str) else level
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{level!r} is no level of logging")
    wanted = max((ours for ours, theirs in _LEVELS.items() if theirs >= number), default=1)
    check(lib.rt_set_log(wanted, _write, None, _NOTHING))


def _log(level: int, line: bytes, _: int | None) -> None:
    _logger.log(_LEVELS.get(level, logging.ERROR), "%s", line.decode("utf-8", "replace"))


# Kept for ever, as C keeps their addresses.
_write = abi.rt_log_fn(_log)
_NOTHING = abi.rt_destroy_fn()

# A loop on a thread of its own may outlive the interpreter.
atexit.register(set_log_level, None)
