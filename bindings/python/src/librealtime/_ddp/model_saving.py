"""Finds out which documents must be written to save objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .. import ejson
from .._core.abi import rt_status
from .._core.errors import from_status
from .._core.values import invalid
from .model_map import Fields_, Key, ModelMap, ModelType, Relationship


class Store(Protocol):
    """The documents as they are."""

    def document(self, key: Key) -> Fields_ | None:
        """A document without its id; None if it is not there."""

    def owners(self, relationship: Relationship, targets: Iterable[Any] | None) -> Owners:
        """The documents that contain references, by those to which they lead.

        :param targets: None for all.
        """


#: Ids by ids.
Owners = dict[Any, list[Any]]


@dataclass
class Link:
    """How an object's references change."""

    relationship: Relationship
    removed: list[Any]
    added: list[Any]
    #: All that are wanted, in their order.
    wanted: list[Any]


@dataclass
class ObjectSave:
    """A change of one object, in terms of its document.

    :ivar kind: ``"insert"``, ``"update"`` or ``"delete"``.
    :ivar fields: those that are set, without references.
    """

    key: Key
    kind: str
    fields: Fields_ = field(default_factory=dict)
    cleared: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @classmethod
    def between(cls, model: ModelType, id_: Any, old: Fields_ | None, new: Fields_) -> ObjectSave:
        """The difference between two versions of an object.

        :param old: None for an insertion.
        """
        fields, cleared = changes(model.attributes(old or {}), model.attributes(new))
        links = []
        for relationship in model.relationships:
            before, wanted = relationship.references(old), relationship.references(new)
            if before != wanted:
                removed = [one for one in before if one not in wanted]
                added = [one for one in wanted if one not in before]
                links.append(Link(relationship, removed, added, wanted))
        kind = "insert" if old is None else "update"
        return cls((model.collection, id_), kind, fields, cleared, links)


def changes(old: Fields_, new: Fields_) -> tuple[Fields_, list[str]]:
    """The fields that are new or differ, and the names of those that are gone."""
    fields = {
        name: value
        for name, value in new.items()
        if name not in old or not ejson.equals(old[name], value)
    }
    return fields, [name for name in old if name not in new]


class SavePlan:
    """The documents as they will be. A changed reference is changed at both ends, as far as they
    have storage:

    - To add an object to a relationship to one object replaces the old one.
    - An object that can belong to only one other leaves the one to which it belonged.
    - A deleted object is removed from the objects that know it by two-way storage. Other references
      to it stay, and lead nowhere.

    Insertions come first and deletions last, whatever the order: so new objects may refer to each
    other.
    """

    def __init__(self, map_: ModelMap, store: Store, saves: list[ObjectSave]) -> None:
        """
        :raises InvalidArgument: if only an object that is not there could contain a reference.
        :raises RealtimeError: if an updated object is not there.
        """
        self._map = map_
        self._store = store
        #: The documents that differ from the store, in the order in which they were first changed;
        #: None for those that are gone.
        self._documents: dict[Key, Fields_ | None] = {}
        self._read: dict[Key, Fields_ | None] = {}
        #: For the relationships that were searched.
        self._owners: dict[tuple[str, str], Owners] = {}
        for save in saves:
            self._set_attributes(save)
        for save in saves:
            for link in save.links:
                self._set_link(link, save.key)
        for save in saves:
            if save.kind == "delete":
                self._delete(save.key)

    def write(self, batch: Any) -> None:
        """Adds the writes to a batch."""
        updates, removals = [], []
        for key, new in self._documents.items():
            old = self._original(key)
            if old is None and new is not None:
                batch.insert(key[0], {"_id": key[1], **new})
            elif old is not None and new is None:
                removals.append(key)
            elif old is not None and new is not None:
                fields, cleared = changes(old, new)
                modifier = {"$set": fields, "$unset": dict.fromkeys(cleared, "")}
                updates.append((*key, {name: one for name, one in modifier.items() if one}))
        for collection, id_, modifier in updates:
            if modifier:
                batch.update(collection, id_, modifier)
        for key in removals:
            batch.remove(*key)

    # The documents.

    def _original(self, key: Key) -> Fields_ | None:
        if key not in self._read:
            self._read[key] = self._store.document(key)
        return self._read[key]

    def _document(self, key: Key) -> Fields_ | None:
        return self._documents[key] if key in self._documents else self._original(key)

    def _set(self, key: Key, fields: Fields_ | None) -> None:
        for relationship in self._map.by_collection[key[0]].stored:
            owners = self._owners.get(relationship.key)
            if owners is not None:
                self._move(owners, relationship, key[1], self._document(key), fields)
        self._documents[key] = fields

    @staticmethod
    def _move(
        owners: Owners,
        relationship: Relationship,
        owner: Any,
        old: Fields_ | None,
        new: Fields_ | None,
    ) -> None:
        """Lets the result of a search follow a document."""
        for target in relationship.references(old):
            if owner in owners.get(target, ()):
                owners[target].remove(owner)
        for target in relationship.references(new):
            owners.setdefault(target, []).append(owner)

    def _references(self, relationship: Relationship, owner: Any) -> list[Any]:
        if relationship.storage:
            return relationship.references(self._document((relationship.collection, owner)))
        inverse = self._map.inverse(relationship)
        if inverse is None:
            return []
        # Only the inverse knows: its documents are searched, once for all.
        found = self._owners.get(inverse.key)
        if found is None:
            found = self._owners[inverse.key] = self._store.owners(inverse, None)
            for key, fields in self._documents.items():
                if key[0] == inverse.collection:
                    self._move(found, inverse, key[1], self._original(key), fields)
        return list(found.get(owner, ()))

    # The objects.

    def _set_attributes(self, save: ObjectSave) -> None:
        if save.kind == "delete":
            return
        old = self._document(save.key)
        if save.kind == "insert":
            if old is not None:
                raise invalid(f"{self._name(save.key)} is there already")
            self._set(save.key, save.fields)
            return
        if old is None:
            raise from_status(rt_status.ERROR_NOT_FOUND, f"{self._name(save.key)} is not there")
        document = {**old, **save.fields}
        for name in save.cleared:
            document.pop(name, None)
        self._set(save.key, document)

    def _set_link(self, link: Link, key: Key) -> None:
        relationship, owner = link.relationship, key[1]
        for target in link.removed:
            self._unlink(relationship, owner, target)
        for target in link.added:
            self._link(relationship, owner, target)
        # The order of a stored list is the caller's.
        if relationship.storage and relationship.is_to_many:
            present = self._references(relationship, owner)
            if present != link.wanted and set(present) == set(link.wanted):
                self._set_references(relationship, owner, lambda _: list(link.wanted))

    def _delete(self, key: Key) -> None:
        document = self._document(key)
        if document is None:
            return
        for relationship in self._map.by_collection[key[0]].stored:
            inverse = self._map.inverse(relationship)
            if inverse is not None and inverse.storage:
                for target in relationship.references(document):
                    self._unlink(relationship, key[1], target)
        self._set(key, None)

    # References.

    def _link(self, relationship: Relationship, owner: Any, target: Any) -> None:
        inverse = self._map.inverse(relationship)
        if not relationship.is_to_many:
            for old in self._references(relationship, owner):
                if old != target:
                    self._unlink(relationship, owner, old)
        if inverse is not None and not inverse.is_to_many:
            for old in self._references(inverse, target):
                if old != owner:
                    self._unlink(relationship, old, target)
        key = relationship.destination, target
        if not relationship.storage and self._document(key) is None:
            raise invalid(f"{self._name(key)} is not there, and only it could contain a reference")
        self._set_references(relationship, owner, _with(target))
        if inverse is not None:
            self._set_references(inverse, target, _with(owner))

    def _unlink(self, relationship: Relationship, owner: Any, target: Any) -> None:
        self._set_references(relationship, owner, _without(target))
        inverse = self._map.inverse(relationship)
        if inverse is not None:
            self._set_references(inverse, target, _without(owner))

    def _set_references(
        self, relationship: Relationship, owner: Any, change: Callable[[list[Any]], list[Any]]
    ) -> None:
        """Changes the references that a document contains, if it is there and contains any."""
        key = relationship.collection, owner
        document = self._document(key)
        if not relationship.storage or document is None:
            return
        old = relationship.references(document)
        new = change(old)
        if new == old:
            return
        document = {name: one for name, one in document.items() if name != relationship.field}
        if new:
            document[relationship.field] = relationship.value(new)
        self._set(key, document)

    def _name(self, key: Key) -> str:
        return f"{self._map.by_collection[key[0]].cls.__name__} {key[1]}"


def _with(id_: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda ids: ids if id_ in ids else [*ids, id_]


def _without(id_: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda ids: [one for one in ids if one != id_]
