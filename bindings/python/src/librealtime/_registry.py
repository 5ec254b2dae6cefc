"""What C holds of Python's objects, and Python of C's.

An object's user data is an integer, the key of a weak reference to it: memory that C holds is never
an address of Python's. The library calls ``destroy`` once for each callback that was set; with the
last one the key goes.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from . import _abi
from ._loader import lib
from .exceptions import check


class Handle(ctypes.c_void_p):
    """Owns a handle of the C interface; given back when nobody refers to it any more.

    Passed to C as it is, so that a call on another thread keeps it alive. The library may free
    a handle on any thread.
    """

    __slots__ = ("_free",)

    # By identity; ctypes has none.
    __hash__ = object.__hash__

    def __init__(self, address: int | None, free: Callable[[Any], None]) -> None:
        super().__init__(address)
        self._free = free

    # The default outlives the module at interpreter exit, when memory is given back anyway.
    def __del__(self, _is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_finalizing():
            self._free(self)


def new_loop() -> Handle:
    out = ctypes.c_void_p()
    check(lib.rt_loop_new(ctypes.byref(out)))
    return Handle(out.value, lib.rt_loop_free)


class _Entry:
    __slots__ = ("reference", "uses")

    def __init__(self, target: Any) -> None:
        self.reference = weakref.ref(target)
        # One for each callback that is set. A list, since destroy may run on any thread, and taking
        # one out of a list needs no lock.
        self.uses: list[None] = []


_entries: dict[int, _Entry] = {}
_keys = itertools.count(1)


def find(key: int) -> Any:
    """Who is called back; None when it is gone."""
    entry = _entries.get(key)
    return None if entry is None else entry.reference()


def _destroy(key: int) -> None:
    uses = _entries[key].uses
    uses.pop()
    if not uses:
        _entries.pop(key, None)


# Kept as long as the process lives: C may call it at any time.
_DESTROY = _abi.rt_destroy_fn(_destroy)


class Registration:
    """Sets the callbacks of one object of C's; `target` is referred to weakly."""

    __slots__ = ("_entry", "_key")

    def __init__(self, target: Any) -> None:
        self._key = next(_keys)
        self._entry = _Entry(target)

    def set(self, setter: Callable[..., int], handle: Handle, trampoline: Any) -> None:
        # A setter that fails destroys its user data, too.
        self._entry.uses.append(None)
        _entries[self._key] = self._entry
        check(setter(handle, trampoline, self._key, _DESTROY))
