"""Finds and loads the shared library."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from . import abi

SONAME = "librealtime.so.0"
PACKAGED = Path(__file__).parent.parent / "_lib" / "librealtime.so"


def _candidates() -> list[str]:
    """Where to look, in order. If LIBREALTIME_PATH is set, nothing else is tried."""
    chosen = os.environ.get("LIBREALTIME_PATH")
    if chosen:
        return [chosen]
    return ([str(PACKAGED)] if PACKAGED.exists() else []) + [SONAME]


def _check_version(library: abi.Library) -> None:
    """A soname only gains functions, so just a library older than our table is unusable."""
    wanted = tuple(int(part) for part in abi.VERSION.split("."))
    number = library.rt_version_number()
    found = (number // 10000, number // 100 % 100, number % 100)
    if found[0] != wanted[0] or found < wanted:
        raise ImportError(
            f"found version {library.rt_version().decode()}; {abi.VERSION} or later is needed"
        )


def load() -> abi.Library:
    """Loads the library; an ImportError names each path that was tried and why it failed."""
    failures = []
    for candidate in _candidates():
        try:
            # CDLL releases the interpreter's lock during each call.
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
