"""Documents as objects of dataclasses."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast, overload

from .._core.abi import rt_ddp_feed_parts
from .._core.naming import kind_of
from .._core.uncopied import Uncopied
from .._core.values import invalid
from .callbacks import DDP, Batch, documents
from .collection import find
from .errors import DDPModelError
from .feeds import Feed, QueryFeed, Source, place
from .model_fields import Reference, random_id, random_object_id
from .model_map import Fields_, Key, ModelMap, ModelType, Relationship, known, remember
from .model_saving import ObjectSave, Owners, SavePlan
from .model_tracking import Hub, Kinds, ObjectChanges
from .query import Document, Sort
from .stub import encoded

M = TypeVar("M")

_logger = logging.getLogger("librealtime")
#: For how many documents is remembered that they were logged.
_MOST_LOGGED = 1000


class DDPObject(NamedTuple):
    """An object that has changed."""

    #: Its class.
    model: Any
    id: Any


@dataclass(frozen=True)
class DDPObjectChanges:
    """Which objects have changed together; each is in one list at most. An object is updated if its
    document has changed, if a reference to it has come or gone in another document, and if an
    object to which it refers has come or gone."""

    inserted: list[DDPObject]
    updated: list[DDPObject]
    deleted: list[DDPObject]


@dataclass(frozen=True)
class DDPModelChanges(Generic[M]):
    """How the result of a query has changed; each object is in one list at most. Documents that do
    not fit the model are not part of the result."""

    #: Whether it is the result that the query began with: all of it is inserted, if there is any.
    is_initial: bool
    inserted: list[M]
    #: Also objects at the ends of references that have come or gone.
    updated: list[M]
    #: The ids of objects that have left the result.
    deleted: list[Any]
    #: The ids of the whole result, in its order.
    ids: list[Any]


class Documents:
    """The documents of a client, for models."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def document(self, key: Key) -> Fields_ | None:
        handle = self._client._require_handle()
        name, said = key[0].encode(), encoded(key[1])
        found = documents(lambda fn, user: int(DDP.get_document(handle, name, said, fn, user)))
        return None if not found else _without_id(found[0][1])

    def owners(self, relationship: Relationship, targets: Iterable[Any] | None) -> Owners:
        field = relationship.field
        wanted = {"$exists": True} if targets is None else {"$in": list(targets)}
        question = relationship.collection, {field: wanted}, {"fields": {field: 1}}
        owners: Owners = {}
        for document in find(self._client, *question):
            for target in relationship.references(document):
                owners.setdefault(target, []).append(document["_id"])
        return owners

    def all(self, collection: str) -> Iterable[tuple[Any, dict[str, Any]]]:
        for document in find(self._client, collection, None, {}):
            yield document["_id"], _without_id(document)


def _without_id(document: Document) -> Fields_:
    return {name: value for name, value in document.items() if name != "_id"}


def references(given: Any) -> list[Any]:
    """Checks a list of references; objects may stand for them."""
    found = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in found:
        if not hasattr(one, "id"):
            raise TypeError(f"follow takes a Reference or a list of them, not {one!r}")
    return found


class BaseDDPModels(Uncopied):
    """Reads, saves and observes the documents of a client as objects of dataclasses, from
    ``DDPClient.models``. Selectors name fields of documents. Objects are copies: a change of one
    reaches the documents when it is saved.

    A document that does not fit its model is left out where several are read, and a warning of the
    logger ``librealtime`` says so, once until the document changes. Where one is read, it raises
    ``DDPModelError``."""

    def __init__(self, client: Any, classes: tuple[type, ...]) -> None:
        self._client = client
        self._map = ModelMap(classes)
        self._store = Documents(client)
        self._hub = Hub(self._map, self._store.all)
        # Why documents do not fit, as far as that was logged.
        self._logged: dict[Key, str] = {}
        for model in self._map.types.values():
            client._declare(model.collection, model.has_object_ids)
        client._add_models(self._map.types)

    # Reading.

    def all(
        self,
        model: type[M],
        selector: Any = None,
        *,
        sort: Sort | None = None,
        skip: int | None = None,
        limit: int | None = None,
    ) -> list[M]:
        """The objects that a query finds, in its order. A relationship without storage costs a
        search of its destination's collection, once for all of them. Documents that do not fit the
        model are left out.

        :param selector: as for ``DDPCollection.find``.
        :raises InvalidArgument: for a query with a fault.
        """
        known_model = self._map.type_of(model)
        options = {"sort": sort, "skip": skip, "limit": limit}
        found = find(self._client, known_model.collection, selector, options)
        return [one for _, one in self._fitting(known_model, found)]

    def get(self, model: type[M], id: Any) -> M | None:  # noqa: A002
        """The object with an id; None if it is not there.

        :raises DDPModelError: if its document does not fit the model.
        """
        return cast("M | None", self._get(self._map.type_of(model), id))

    def count(self, model: type, selector: Any = None) -> int:
        """How many documents a query finds."""
        collection = self._map.type_of(model).collection
        return len(find(self._client, collection, selector, {"fields": {"_id": 1}}))

    @overload
    def follow(self, model: type[M], target: Reference[M] | None) -> M | None: ...
    @overload
    def follow(self, model: type[M], target: Sequence[Reference[M]]) -> list[M]: ...
    def follow(self, model: type[M], target: Any) -> Any:
        """The objects to which a relationship leads: for one reference the object, or None if there
        is none or it is not there; for several those that are there and fit the model.

        :raises DDPModelError: if the document of one reference does not fit the model.
        """
        known_model = self._map.type_of(model)
        if target is None:
            return None
        wanted = references(target)
        if not isinstance(target, (list, tuple)):
            return self._get(known_model, target.id)
        found = [self._document(known_model, one.id) for one in wanted]
        present = [document for document in found if document is not None]
        return [one for _, one in self._fitting(known_model, present)]

    def _document(self, model: ModelType, id_: Any) -> Document | None:
        fields = self._store.document((model.collection, id_))
        return None if fields is None else {**fields, "_id": id_}

    def _get(self, model: ModelType, id_: Any) -> Any:
        document = self._document(model, id_)
        if document is None:
            return None
        return model.decode(self._complete(model, [document])[0])

    def _fitting(self, model: ModelType, found: Sequence[Document]) -> Iterator[tuple[Any, Any]]:
        """The objects of documents, with their ids. Logs which documents do not fit."""
        for document in self._complete(model, found):
            key = model.collection, document["_id"]
            try:
                made = model.decode(document)
            except DDPModelError as error:
                self._log_once(key, str(error))
            else:
                self._logged.pop(key, None)
                yield key[1], made

    def _log_once(self, key: Key, why: str) -> None:
        if self._logged.get(key) != why:
            if len(self._logged) >= _MOST_LOGGED:
                self._logged.clear()
            self._logged[key] = why
            _logger.warning("a document does not fit its model, and is left out: %s", why)

    def _complete(self, model: ModelType, found: Sequence[Document]) -> Sequence[Document]:
        """Documents with fields for the relationships that the other ends store."""
        for relationship in model.relationships if found else ():
            inverse = self._map.inverse(relationship)
            if relationship.storage or inverse is None:
                continue
            owners = self._store.owners(inverse, [one["_id"] for one in found])
            field = relationship.field
            found = [
                {**one, field: relationship.value(owners.get(one["_id"], []))} for one in found
            ]
        return found

    # Saving.

    def _save(self, objects: tuple[Any, ...], removed: Iterable[Any], options: Any) -> Any:
        saves, kept = [], []
        for one in objects:
            save, fields = self._saving(one)
            saves.append(save)
            kept.append((one, fields))
        for one in removed:
            saves.append(ObjectSave((self._map.type_of(type(one)).collection, one.id), "delete"))
        plan = SavePlan(self._map, self._store, saves)
        with self._client.batch(**options) as batch:
            plan.write(batch)
        for one, fields in kept:
            remember(one, fields)
        return batch

    def _saving(self, one: Any) -> tuple[ObjectSave, Fields_]:
        """What to save of an object, and its fields then."""
        model = self._map.type_of(type(one))
        if one.id is None:
            made = random_object_id() if model.has_object_ids else random_id()
            object.__setattr__(one, "id", made)
        before = known(one)
        if before is not None and before[0] != one.id:
            raise invalid(f"the id of {kind_of(one)} cannot be changed")
        new = model.encode_checked(one)
        # Without `before`, it may be a copy, or a frozen object's successor.
        old = self._present(model, one.id) if before is None else before[1]
        return ObjectSave.between(model, one.id, old, new), new

    def _present(self, model: ModelType, id_: Any) -> Fields_ | None:
        """The fields of an object as it is in the documents; None if it is not there."""
        document = self._document(model, id_)
        if document is None:
            return None
        [document] = self._complete(model, [document])
        try:
            return model.encode(model.decode(document))
        except DDPModelError:  # saving may mend it
            return model.only(document)

    # Observing.

    def _observe(self, model: type, selector: Any, options: Any) -> tuple[Any, ...]:
        """The arguments for an iteration over the changes of a query's result."""
        known_model = self._map.type_of(model)
        feed: ModelFeed[Any] = ModelFeed(known_model, self._fitting)

        def touch(changes: ObjectChanges) -> None:
            ids = [key[1] for key in changes.related if key[0] == known_model.collection]
            if ids:
                feed.touch(ids)
                self._client._changed()

        def make() -> ModelObservation:
            # Before the query, so that its first result misses nothing.
            observation = ModelObservation(self._client, self._hub, touch)
            try:
                question = known_model.collection, selector, options
                observation.source = feed.source = Source(self._client, question, feed.parts)
            except BaseException:
                observation.stop()
                raise
            return observation

        return self._client, feed, make

    def _changes(self) -> tuple[Any, ...]:
        """The arguments for an iteration over the changes of all objects."""
        feed = ObjectFeed(self._map)

        def put(changes: ObjectChanges) -> None:
            feed.put(changes)
            self._client._changed()

        return self._client, feed, lambda: ModelObservation(self._client, self._hub, put)


class ModelObservation:
    """What an iteration observes. The client refers to it until it is stopped."""

    source: Source | None = None

    def __init__(self, client: Any, hub: Hub, observer: Any) -> None:
        self._client = client
        self._hub = hub
        client._observe_documents(hub)
        hub.add(id(self), observer)
        client._pending.add(self)

    def _revive(self) -> None:
        """Called before a change is awaited, see ``BaseLiveChanges``."""
        self._client._hubs.add(self._hub)
        if self.source is not None:
            self.source._revive()

    def stop(self) -> None:
        self._client._pending.discard(self)
        self._hub.remove(id(self))
        if self.source is not None:
            self.source.stop()


class ModelFeed(QueryFeed[DDPModelChanges[M]]):
    """Changes of a query's result, as objects."""

    parts = rt_ddp_feed_parts.DOCUMENTS

    def __init__(
        self,
        model: ModelType,
        fitting: Callable[[ModelType, Sequence[Document]], Iterable[tuple[Any, Any]]],
    ) -> None:
        """
        :param fitting: makes objects of those documents that fit the model.
        """
        super().__init__()
        self._model = model
        self._fitting = fitting
        # The result that was taken.
        self._documents: dict[Any, Document] = {}
        self._order: list[Any] = []
        self._touched: deque[Any] = deque()
        #: The objects that were taken, and are in the result.
        self._known: set[Any] = set()

    def touch(self, ids: list[Any]) -> None:
        """Objects count as updated, because what belongs to them has changed."""
        self._touched.extend(ids)

    def take(self) -> DDPModelChanges[M] | None:
        with self._lock:
            touched = [self._touched.popleft() for _ in range(len(self._touched))]
            batch = self.source.take() or Batch(False, [])
            place(batch.steps, self._order)
            changed: dict[Any, None] = {}
            deleted = []
            for step in batch.steps:
                if step.new < 0:
                    del self._documents[step.id]
                    deleted.append(step.id)
                elif step.document is not None:
                    self._documents[step.id] = step.document
                    changed[step.id] = None
            changed.update((id_, None) for id_ in touched if id_ in self._documents)
            return self._changes(batch.is_initial, list(changed), deleted)

    def _changes(
        self, is_initial: bool, changed: list[Any], gone: list[Any]
    ) -> DDPModelChanges[M] | None:
        found = [self._documents[id_] for id_ in changed]
        objects: dict[Any, M] = dict(self._fitting(self._model, found))
        inserted = [one for id_, one in objects.items() if id_ not in self._known]
        updated = [one for id_, one in objects.items() if id_ in self._known]
        gone += [id_ for id_ in changed if id_ not in objects]
        deleted = [id_ for id_ in gone if id_ in self._known]
        if not (inserted or updated or deleted or is_initial):
            return None
        self._known.difference_update(deleted)
        self._known.update(objects)
        ids = [id_ for id_ in self._order if id_ in self._known]
        return DDPModelChanges(is_initial, inserted, updated, deleted, ids)

    @property
    def is_filled(self) -> bool:
        return bool(self._touched) or super().is_filled


class ObjectFeed(Feed[DDPObjectChanges]):
    """Changes of all objects. They are merged until they are taken."""

    def __init__(self, map_: ModelMap) -> None:
        self._map = map_
        self._lock = threading.Lock()
        self._kinds = Kinds()

    def put(self, changes: ObjectChanges) -> None:
        with self._lock:
            for kind in ("inserted", "updated", "deleted"):
                for key in getattr(changes, kind):
                    self._kinds.add(key, kind)

    def take(self) -> DDPObjectChanges | None:
        with self._lock:
            if not self._kinds:
                return None
            kinds, self._kinds = self._kinds, Kinds()
        kind_lists = (self._objects(kinds.of(one)) for one in ("inserted", "updated", "deleted"))
        return DDPObjectChanges(*kind_lists)

    def _objects(self, keys: list[Key]) -> list[DDPObject]:
        return [DDPObject(self._map.by_collection[name].cls, id_) for name, id_ in keys]

    @property
    def is_filled(self) -> bool:
        return bool(self._kinds)
