"""Changes of a live query that an iteration has not taken yet.

An iteration that is slow misses nothing, and what waits for it is limited: when more changes wait
than are worth keeping apart, they are replaced by the difference between the result that the
iteration knows and the present one. So they never take more memory than these two results.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from .. import ejson
from .objects import DDPChange, DDPIndexChanges

T = TypeVar("T")

#: As many changes are always kept apart.
_KEPT_APART = 1024


class Feed(Generic[T]):
    """What an iteration takes from. C's callbacks fill it, on any thread."""

    def put(self, change: Any) -> None:
        raise NotImplementedError

    def take(self) -> T | None:
        """The next item; None if there is none yet."""
        raise NotImplementedError

    @property
    def is_filled(self) -> bool:
        """Whether ``take`` is worth a try."""
        raise NotImplementedError


class Result:
    """The result of a query, as changes have made it."""

    def __init__(self) -> None:
        self.documents: dict[Any, dict[str, Any]] = {}
        self.order: list[Any] = []

    def copy(self) -> Result:
        other = Result()
        other.documents, other.order = dict(self.documents), list(self.order)
        return other

    def apply(self, change: DDPChange) -> None:
        key = change.id
        if change.kind == "added":
            self.documents[key] = change.fields
            self._place(key, change.before)
        elif change.kind == "removed":
            del self.documents[key]
            self.order.remove(key)
        elif change.kind == "moved":
            self.order.remove(key)
            self._place(key, change.before)
        else:
            # Not changed in place: copies of the result share it.
            changed = {**self.documents[key], **change.fields}
            for name in change.cleared:
                changed.pop(name, None)
            self.documents[key] = changed

    def _place(self, key: Any, before: Any) -> None:
        if before is None:
            self.order.append(key)
        else:
            self.order.insert(self.order.index(before), key)


class DocumentFeed(Feed[DDPChange]):
    """Changes document by document."""

    def __init__(self, collection: str) -> None:
        self._collection = collection
        self._lock = threading.Lock()
        self._queue: deque[DDPChange] = deque()
        #: The result that the taken changes lead to.
        self._known = Result()
        #: The result now, if it is not the one to which the queue leads.
        self._latest: Result | None = None
        self._initial_count = 0
        self._has_taken = False

    def put(self, change: DDPChange) -> None:
        with self._lock:
            if self._latest is not None:
                self._latest.apply(change)
                return
            self._queue.append(change)
            self._initial_count += change.is_initial
            limit = max(_KEPT_APART, 4 * max(len(self._known.order), self._initial_count))
            if len(self._queue) > limit:
                self._latest = self._known.copy()
                for one in self._queue:
                    self._latest.apply(one)
                self._queue.clear()

    def take(self) -> DDPChange | None:
        with self._lock:
            if not self._queue and self._latest is not None:
                is_initial = not self._has_taken
                made = differences(self._known, self._latest, self._collection, is_initial)
                self._queue.extend(made)
                self._latest = None
            if not self._queue:
                return None
            self._has_taken = True
            change = self._queue.popleft()
            self._known.apply(change)
            return change

    @property
    def is_filled(self) -> bool:
        return bool(self._queue) or self._latest is not None


class IndexFeed(Feed[DDPIndexChanges]):
    """Changes by positions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The ids of the result that the taken changes lead to.
        self._known: tuple[Any, ...] = ()
        #: A change that follows it.
        self._next: DDPIndexChanges | None = None
        #: The documents that changed in several changes, which ``_next`` is the last of.
        self._touched: set[Any] | None = None
        self._is_initial = True

    def put(self, change: DDPIndexChanges) -> None:
        with self._lock:
            before, self._next = self._next, change
            if before is None:
                return
            touched = self._touched
            if touched is None:
                touched = self._touched = _touched(before, self._known)
            touched |= _touched(change, before.ids)
            if len(touched) > len(self._known) + len(change.ids):
                touched.intersection_update({*self._known, *change.ids})

    def take(self) -> DDPIndexChanges | None:
        with self._lock:
            change, touched, known = self._next, self._touched, self._known
            if change is None:
                return None
            self._next, self._touched, self._known = None, None, change.ids
            is_initial, self._is_initial = self._is_initial, False
            if touched is None:
                return change
            merged = index_changes(known, change.ids, touched, is_initial)
            is_empty = not (merged.deleted or merged.inserted or merged.moved or merged.updated)
            return None if is_empty and not is_initial else merged

    @property
    def is_filled(self) -> bool:
        return self._next is not None


class LatestFeed(Feed[T]):
    """Whether something has changed, for iterations that read the present state."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._is_new = True

    def put(self, change: DDPChange) -> None:
        if not change.is_initial:
            self._is_new = True

    def take(self) -> T | None:
        if not self._is_new:
            return None
        self._is_new = False
        return self._read()

    @property
    def is_filled(self) -> bool:
        return self._is_new


def _touched(change: DDPIndexChanges, old: Sequence[Any]) -> set[Any]:
    """The documents that are not as they were, apart from their positions."""
    return {
        *(old[index] for index in change.deleted),
        *(change.ids[index] for index in change.inserted),
        *(change.ids[new] for _, new in change.updated),
    }


def differences(
    old: Result, new: Result, collection: str, is_initial: bool = False
) -> list[DDPChange]:
    """The changes that turn a result into another one, in the order of Meteor's ``observe``."""
    made: list[dict[str, Any]] = [
        {"kind": "removed", "id": key} for key in old.order if key not in new.documents
    ]
    fixed = _unmoved(old.order, new.order)
    pending: list[Any] = []

    def change(key: Any) -> None:
        fields, cleared = _changes(old.documents[key], new.documents[key])
        if fields or cleared:
            made.append({"kind": "changed", "id": key, "fields": fields, "cleared": cleared})

    def place(before: Any) -> None:
        for key in pending:
            if key not in old.documents:
                fields = new.documents[key]
                made.append({"kind": "added", "id": key, "fields": fields, "before": before})
            else:
                change(key)
                made.append({"kind": "moved", "id": key, "before": before})
        pending.clear()

    for key in new.order:
        if key in fixed:
            place(key)
            change(key)
        else:
            pending.append(key)
    place(None)
    empty: dict[str, Any] = {"fields": {}, "cleared": [], "before": None}
    return [
        DDPChange(
            collection=collection,
            is_initial=is_initial,
            is_last=index == len(made),
            **{**empty, **one},
        )
        for index, one in enumerate(made, 1)
    ]


def index_changes(
    old: Sequence[Any], new: Sequence[Any], touched: Iterable[Any], is_initial: bool = False
) -> DDPIndexChanges:
    """How a list of ids became another one."""
    positions = {key: index for index, key in enumerate(old)}
    present, fixed, changed = set(new), _unmoved(old, new), set(touched)
    kept = [(positions[key], index, key) for index, key in enumerate(new) if key in positions]
    return DDPIndexChanges(
        is_initial,
        tuple(index for index, key in enumerate(old) if key not in present),
        tuple(index for index, key in enumerate(new) if key not in positions),
        tuple((before, after) for before, after, key in kept if key not in fixed),
        tuple((before, after) for before, after, key in kept if key in changed),
        tuple(new),
    )


def _changes(old: dict[str, Any], new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields that are new or differ, and the names of those that are gone."""
    fields = {
        name: value
        for name, value in new.items()
        if name not in old or not (old[name] is value or ejson.equals(old[name], value))
    }
    return fields, [name for name in old if name not in new]


def _unmoved(old: Sequence[Any], new: Sequence[Any]) -> set[Any]:
    """A longest set of entries that are in the same order in both lists."""
    positions = {key: index for index, key in enumerate(old)}
    kept = [key for key in new if key in positions]
    # The end of the best chain of each length, by position in the old list.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, key in enumerate(kept):
        place = bisect_left(ends, positions[key])
        before.append(last[place - 1] if place else -1)
        if place == len(ends):
            ends.append(positions[key])
            last.append(index)
        else:
            ends[place], last[place] = positions[key], index
    found = set()
    index = last[-1] if last else -1
    while index >= 0:
        found.add(kept[index])
        index = before[index]
    return found
