"""Which objects change: those whose documents change, and those at the ends of references."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .model_map import Key, ModelMap, Relationship
from .objects import DDPChange

#: The documents of a collection with their ids.
Read = Callable[[str], Iterable[tuple[Any, dict[str, Any]]]]


@dataclass
class ObjectChanges:
    """Which objects were inserted, updated and deleted together; each is in one list at most."""

    inserted: list[Key] = field(default_factory=list)
    updated: list[Key] = field(default_factory=list)
    deleted: list[Key] = field(default_factory=list)
    #: Those of ``updated`` whose own documents have not changed.
    related: list[Key] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.deleted)


class Kinds:
    """Consecutive changes of things, as one change."""

    def __init__(self) -> None:
        self._kinds: dict[Any, str] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, key: Any, kind: str) -> None:
        """
        :param kind: ``"inserted"``, ``"updated"`` or ``"deleted"``.
        """
        before = self._kinds.get(key)
        if before == "inserted" and kind == "deleted":
            del self._kinds[key]  # gone before anybody saw it
        elif before == "deleted" and kind == "inserted":
            self._kinds[key] = "updated"
        elif before != "inserted":
            self._kinds[key] = kind

    def of(self, kind: str) -> list[Any]:
        return [key for key, one in self._kinds.items() if one == kind]


class Tracker:
    """Turns changes of documents into changes of objects (M18):

    - An object is updated if its document has changed; if a reference to it has come or gone in
      another document; and if an object to which it refers has come or gone.
    - Documents of collections without a model are left out.

    It remembers which document refers to which, so that a change costs no search.
    """

    def __init__(self, map_: ModelMap, read: Read) -> None:
        self._map = map_
        #: The documents that are there.
        self._present: set[Key] = set()
        #: For relationships with storage: what a document refers to, and the reverse.
        self._targets: dict[tuple[Relationship, Any], list[Any]] = {}
        self._owners: dict[tuple[Relationship, Any], dict[Any, None]] = {}
        for collection, model in map_.by_collection.items():
            for id_, fields in read(collection):
                self._present.add((collection, id_))
                for relationship in model.stored:
                    self._refer(relationship, id_, relationship.references(fields))

    def track(self, group: Iterable[DDPChange]) -> ObjectChanges:
        """
        :param group: the changes of one notification. Some may be known already, because this
            object began with documents that were newer.
        """
        result = ObjectChanges()
        touched: list[Key] = []
        related: list[Key] = []
        for change in group:
            model = self._map.by_collection.get(change.collection)
            if model is None:
                continue
            key = change.collection, change.id
            ends = [end for one in model.stored for end in self._follow(one, change)]
            if change.kind == "added" and key not in self._present:
                self._present.add(key)
                result.inserted.append(key)
            elif change.kind == "removed" and key in self._present:
                self._present.discard(key)
                result.deleted.append(key)
            elif change.kind == "changed":
                touched.append(key)
            else:
                continue
            related += ends
        moved = [*result.inserted, *result.deleted]
        for key in moved:
            related += self._referring_to(key)
        reported = {*moved, *touched}
        fresh = (key for key in dict.fromkeys(related) if key not in reported)
        result.related = [key for key in fresh if key in self._present]
        own = (key for key in dict.fromkeys(touched) if key not in moved)
        result.updated = [key for key in own if key in self._present] + result.related
        return result

    def _follow(self, relationship: Relationship, change: DDPChange) -> list[Key]:
        """Takes over the references of a document.

        :returns: the objects to which they lead or led, if they differ.
        """
        old = self._targets.get((relationship, change.id), [])
        if change.kind == "removed":
            new = []
        elif change.kind == "added" or relationship.field in change.fields:
            new = relationship.references(change.fields)
        elif relationship.field in change.cleared:
            new = []
        else:
            return []
        self._refer(relationship, change.id, new)
        differ = [one for one in old if one not in new] + [one for one in new if one not in old]
        return [(relationship.destination, one) for one in differ]

    def _refer(self, relationship: Relationship, owner: Any, targets: list[Any]) -> None:
        for target in self._targets.pop((relationship, owner), ()):
            owners = self._owners[relationship, target]
            owners.pop(owner, None)
            if not owners:
                del self._owners[relationship, target]
        if targets:
            self._targets[relationship, owner] = targets = list(dict.fromkeys(targets))
        for target in targets:
            self._owners.setdefault((relationship, target), {})[owner] = None

    def _referring_to(self, key: Key) -> list[Key]:
        """The objects whose documents contain a reference."""
        return [
            (relationship.collection, owner)
            for relationship in self._map.incoming.get(key[0], ())
            for owner in self._owners.get((relationship, key[1]), ())
        ]


Observer = Callable[[ObjectChanges], None]


class Hub:
    """Tells observers which objects of a client have changed. It follows the documents from the
    first observer on."""

    def __init__(self, map_: ModelMap, read: Read) -> None:
        self._map = map_
        self._read = read
        self._lock = threading.Lock()
        self._tracker: Tracker | None = None
        #: The changes of a notification that is not complete.
        self._group: list[DDPChange] = []
        #: The notifications that have come since the tracker was begun, until it is ready.
        self._backlog: list[list[DDPChange]] = []
        self._is_beginning = False
        self._observers: dict[Any, Observer] = {}

    def add(self, key: Any, observer: Observer) -> None:
        """
        :param key: names the observer for ``remove``.
        """
        if self._tracker is None:
            self._is_beginning = True
            try:
                # Without the lock: a stub, which keeps other threads from the documents, may
                # observe.
                tracker = Tracker(self._map, self._read)
                with self._lock:
                    self._tracker = self._tracker or tracker
            finally:
                self._is_beginning = False
        self._observers = {**self._observers, key: observer}

    def remove(self, key: Any) -> None:
        self._observers = {one: two for one, two in self._observers.items() if one != key}

    def document_changed(self, change: DDPChange) -> None:
        """Called with each change of the documents, on the loop's thread."""
        self._group.append(change)
        if not change.is_last:
            return
        with self._lock:
            self._backlog.append(self._group)
            self._group = []
            if self._tracker is None:
                if not self._is_beginning:
                    self._backlog.clear()
                return
            backlog, self._backlog = self._backlog, []
            reports = [self._tracker.track(group) for group in backlog]
        for report in reports:
            for observer in list(self._observers.values()) if report else ():
                observer(report)
