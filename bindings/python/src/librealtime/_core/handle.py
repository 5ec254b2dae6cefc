"""Handles of the C interface: owned from their creation on, freed when nothing uses them."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from .errors import check
from .loader import lib


class _Ownership:
    """Frees one handle, once."""

    __slots__ = ("_free", "_unfreed", "address")

    def __init__(self, address: ctypes.c_void_p, free: Callable[[Any], None]) -> None:
        #: Shares its memory with the handle object.
        self.address = address
        self._free = free
        # Holds the address until it is freed.
        self._unfreed = [address]

    def end(
        self,
        # The defaults outlive the module at interpreter exit, when the system frees everything.
        _is_finalizing: Callable[[], bool] = sys.is_finalizing,
        _consume: Callable[[Any, int], Any] = collections.deque,
    ) -> None:
        """Frees the handle unless it is already freed."""
        if self._unfreed and not _is_finalizing():
            with contextlib.suppress(IndexError):  # another thread has taken the address
                # The interpreter runs this as one call, so that no signal handler can raise
                # after the address was taken out of the list and before it is freed.
                _consume(map(self._free, map(self._unfreed.pop, (0,))), 0)
            self.address.value = None


class _Guard:
    """Frees a handle when it is itself deallocated."""

    __slots__ = ("_ownership",)

    def __init__(self, ownership: _Ownership) -> None:
        self._ownership = ownership

    def __del__(self) -> None:
        self._ownership.end()


class Handle(ctypes.c_void_p):
    """Owns a handle of the C interface, and frees it when nothing refers to it any more.

    ``new`` makes one. It is passed to C as it is, so that a call on another thread keeps it alive.
    The library may free a handle on any thread.

    The collector finalizes the objects of a garbage cycle in any order, so the owner's ``__del__``
    may still call C after ours has run. Ours therefore frees nothing. It attaches a guard, which is
    deallocated with the memory of the cycle, after all of its finalizers have run (PEP 442). The
    guard frees the handle and sets the address to NULL, which C refuses.
    """

    # Hash by identity; ctypes defines no hash.
    __hash__ = object.__hash__

    _ownership: _Ownership | None = None
    _guard: _Guard

    # The default outlives the module at interpreter exit.
    def __del__(self, _guard: type[_Guard] = _Guard) -> None:
        if self._ownership is not None:
            self._guard = _guard(self._ownership)


class _Watch(weakref.ref[Handle]):
    """Appends itself to `_gone` when its handle is collected."""

    __slots__ = ("ownership",)

    ownership: _Ownership


_watches: set[_Watch] = set()
# An interrupt that arrives as a finalizer begins ends it before it has done anything. Appending to
# this list runs no Python code, so nothing interrupts it.
_gone: list[_Watch] = []


def _references(watch: Any) -> int:
    """The interpreter's reference count for the ownership of a watch."""
    ownership = watch.ownership
    return sys.getrefcount(ownership)


#: The count for an ownership whose handle and guard are gone. Some versions of Python do not count
#: the name and the argument in `_references`.
_FEWEST_REFERENCES = _references(types.SimpleNamespace(ownership=object()))


def _free_missed() -> None:
    """Frees the handles whose finalizers were interrupted."""
    for watch in _gone.copy():
        # A higher count means that the collector has not yet deallocated the handle: its owner
        # may still be using it.
        if _references(watch) <= _FEWEST_REFERENCES:
            watch.ownership.end()
            _watches.discard(watch)
            with contextlib.suppress(ValueError):  # another thread has removed it
                _gone.remove(watch)


def new(make: Callable[..., int], free: Callable[[Any], None], *arguments: Any) -> Handle:
    """Makes a handle with a function of the C interface.

    Its owner exists before the call, so an interrupt after the call cannot leak the handle.
    """
    _free_missed()
    address = ctypes.c_void_p()
    handle = Handle.from_buffer(address)
    handle._ownership = ownership = _Ownership(address, free)
    watch = _Watch(handle, _gone.append)
    watch.ownership = ownership
    _watches.add(watch)
    check(make(*arguments, ctypes.byref(handle)))
    return handle


def adopt(address: int, free: Callable[[Any], None]) -> Handle:
    """Takes over a handle that the C interface passed to a callback."""
    place = ctypes.c_void_p(address)
    handle = Handle.from_buffer(place)
    handle._ownership = _Ownership(place, free)
    return handle


def new_loop() -> Handle:
    return new(lib.rt_loop_new, lib.rt_loop_free)
