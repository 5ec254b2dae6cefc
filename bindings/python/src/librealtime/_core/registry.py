"""Maps user data that C holds to Python objects.

The user data of an object is an integer, the key of a weak reference to it, so C never holds the
address of a Python object. The library calls ``destroy`` once for each callback that was set; the
last call removes the key.

The collector clears the weak references to the objects of a garbage cycle before it runs their
finalizers. A finalizer may still use such an object and wait for what C reports, so the object must
be revived before that: see ``Registration.revive``.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from . import abi
from .errors import check
from .handle import Handle


class _Entry:
    __slots__ = ("reference", "uses")

    def __init__(self, key: int, target: Any) -> None:
        self.refer(key, target)
        # One item for each callback that is set. A list, since destroy may run on any thread and
        # removing an item needs no lock.
        self.uses: list[None] = []

    def refer(self, key: int, target: Any) -> None:
        # An interrupt may prevent the count of uses from reaching zero, so the entry is also
        # removed together with its target.
        self.reference = weakref.ref(target, lambda _: _forget(key))


_entries: dict[int, _Entry] = {}
# The last keys for which C has called or destroyed a callback in vain. A few suffice: it matters
# only from the moment when the collector clears a reference until the finalizer runs.
_missed: collections.deque[int] = collections.deque(maxlen=1000)
_keys = itertools.count(1)


# The default outlives the module at interpreter exit.
def _forget(key: int, _pop: Callable[..., object] = _entries.pop) -> None:
    _pop(key, None)


def find(key: int) -> Any:
    """The object to call back; None if it is gone."""
    entry = _entries.get(key)
    target = None if entry is None else entry.reference()
    if target is None:
        _missed.append(key)
        # Another thread may have revived it before it could see that.
        entry = _entries.get(key)
        target = None if entry is None else entry.reference()
    return target


def _destroy(key: int) -> None:
    entry = _entries.get(key)
    if entry is None:
        _missed.append(key)
    else:
        entry.uses.pop()
        if not entry.uses:
            _entries.pop(key, None)


# Kept as long as the process lives, because C may call it at any time.
_DESTROY = abi.rt_destroy_fn(_destroy)


class Registration:
    """Sets the callbacks of one object in C; `target` is referenced weakly."""

    __slots__ = ("_entry", "_key")

    def __init__(self, target: Any) -> None:
        self._key = next(_keys)
        self._entry = _Entry(self._key, target)

    def set(self, setter: Callable[..., int], handle: Handle, trampoline: Any) -> None:
        # A setter that fails also calls destroy.
        self._entry.uses.append(None)
        _entries[self._key] = self._entry
        check(setter(handle, trampoline, self._key, _DESTROY))

    def revive(self, target: Any) -> bool:
        """Lets C call back the target again, which a finalizer of a garbage cycle uses.

        :returns: whether C has called or destroyed a callback in vain in the meantime.
        """
        entry = self._entry
        if entry.reference() is not None:
            return False
        entry.refer(self._key, target)
        _entries[self._key] = entry
        return self._key in _missed
