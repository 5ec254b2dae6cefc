"""Finds and loads the shared library."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from . import abi

SONAME = "librealtime.so.0"
PACKAGED = Path(__file__).parent.parent / "_lib" / "librealtime.so"


def _candidates() -> list[str]:
    """Where to look, in order. A path in the environment is meant: nothing else is tried."""
    chosen = os.environ.get("LIBREALTIME_PATH")
    if chosen:
        return [chosen]
    return ([str(PACKAGED)] if PACKAGED.exists() else []) + [SONAME]


def _check_version(library: abi.Library) -> None:
    """Within one soname functions are only added: older than the table is the one wrong way."""
    wanted = tuple(int(part) for part in abi.VERSION.split("."))
    number = library.rt_version_number()
    found = (number // 10000, number // 100 % 100, number % 100)
    if found[0] != wanted[0] or found < wanted:
        raise ImportError(
            f"version {library.rt_version().decode()} was found, {abi.VERSION} or later is needed"
        )


def load() -> abi.Library:
    """Loads the library; an ImportError names every place that was tried, and why it failed."""
    failures = []
    for candidate in _candidates():
        try:
            # CDLL gives the interpreter's lock back during each call.
            library = abi.Library(ctypes.CDLL(candidate))
            _check_version(library)
        except (OSError, AttributeError, ImportError) as error:
            failures.append(f"{candidate}: {error}")
        else:
            return library
    packaged = "" if PACKAGED.exists() else f"; this installation has no {PACKAGED}"
    raise ImportError(
        "librealtime.so cannot be loaded ("
        + "; ".join(failures)
        + packaged
        + "). Set LIBREALTIME_PATH to its path, or install a wheel that contains it."
    )


lib = load()
