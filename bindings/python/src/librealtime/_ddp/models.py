"""Documents as objects of dataclasses."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast, overload

from .. import ejson
from .._core.abi import rt_ddp_feed_parts
from .._core.handle import Handle, new
from .._core.naming import kind_of
from .._core.uncopied import Uncopied
from .._core.values import invalid
from .callbacks import DDP, LIVE, Batch, documents
from .calls import Awaited
from .checking import as_closed, check
from .collection import find
from .errors import DDPModelError
from .feeds import Feed, QueryFeed, Source, place
from .model_fields import Reference, random_id, random_object_id
from .model_map import Fields_, ModelMap, ModelType, known, remember
from .objects import DDPChange
from .query import Document, Sort, query
from .stub import encoded

#: A document: its collection and its id.
Key = tuple[str, Any]
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
        # Why documents do not fit, as far as that was logged.
        self._logged: dict[Key, str] = {}
        schema = ejson.dumps(self._map.schema).encode()
        owner = client._require_handle()
        self._own = as_closed(lambda: new(DDP.models_new, DDP.models_free, owner, schema))
        self._map.complete(ejson.loads(DDP.models_schema(self._own)))
        client._declared.update(self._map.by_collection)
        client._add_models(self._map.types)

    @property
    def _handle(self) -> Handle:
        self._client._require_handle()  # raises if the client is closed
        return self._own

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
        found = self._find(known_model, selector, options)
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
        ids = [one.id for one in wanted]
        found = {one["_id"]: one for one in self._find(known_model, {"_id": {"$in": ids}}, {})}
        present = [found[id_] for id_ in ids if id_ in found]
        return [one for _, one in self._fitting(known_model, present)]

    def _find(self, model: ModelType, selector: Any, options: Any) -> list[Document]:
        """Documents with fields for all relationships."""
        arguments = (model.encoded_label, *query(selector, options))
        handle = self._handle
        found = documents(lambda fn, key: int(DDP.models_find(handle, *arguments, fn, key)))
        return [document for _, document in found]

    def _document(self, model: ModelType, id_: Any) -> Document | None:
        arguments = model.encoded_label, encoded(id_)
        handle = self._handle
        found = documents(lambda fn, key: int(DDP.models_get(handle, *arguments, fn, key)))
        return found[0][1] if found else None

    def _get(self, model: ModelType, id_: Any) -> Any:
        document = self._document(model, id_)
        return None if document is None else model.decode(document)

    def _fitting(self, model: ModelType, found: Iterable[Document]) -> Iterator[tuple[Any, Any]]:
        """The objects of documents, with their ids. Logs which documents do not fit."""
        for document in found:
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

    # Saving.

    def _save(self, objects: tuple[Any, ...], removed: Iterable[Any], options: Any) -> Any:
        changes, kept = [], []
        for one in objects:
            change, fields = self._saving(one)
            changes.append(change)
            kept.append((one, fields))
        for one in removed:
            changes.append({"delete": self._map.type_of(type(one)).label, "id": one.id})
        batch = self._client.batch(**options)
        batch._write_planned(DDP.models_save, self._handle, encoded(changes))
        for one, fields in kept:
            remember(one, fields)
        return batch

    def _saving(self, one: Any) -> tuple[dict[str, Any], Fields_]:
        """What to save of an object, for C, and its fields then."""
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
        if old is None:
            return {"insert": model.label, "id": one.id, "object": new}, new
        return {"update": model.label, "id": one.id, "from": old, "to": new}, new

    def _present(self, model: ModelType, id_: Any) -> Fields_ | None:
        """The fields of an object as it is in the documents; None if it is not there."""
        document = self._document(model, id_)
        if document is None:
            return None
        try:
            return model.encode(model.decode(document))
        except DDPModelError:  # saving may mend it
            return model.only(document)

    # Observing.

    def _observe(self, model: type, selector: Any, options: Any) -> tuple[Any, ...]:
        """The arguments for an iteration over the changes of a query's result."""
        known_model = self._map.type_of(model)
        feed: ModelFeed[Any] = ModelFeed(known_model, self._fitting)

        def make() -> Source:
            question = known_model.label, selector, options
            feed.source = Source(self._client, question, feed.parts, self._handle)
            return feed.source

        return self._client, feed, make

    def _changes(self) -> tuple[Any, ...]:
        """The arguments for an iteration over the changes of all objects."""
        feed = ObjectFeed(self._map)
        return self._client, feed, lambda: ObjectObservation(self._client, self._handle, feed)


class ObjectObservation(Awaited):
    """Fills a feed with the objects that change."""

    _number: int | None = None

    def __init__(self, client: Any, models: Handle, feed: ObjectFeed) -> None:
        super().__init__(client)
        self._models = models
        self._feed = feed
        self._number = self._begin(DDP.models_observe, models, (), LIVE)

    def stop(self) -> None:
        self._finish()
        if self._number is not None:
            check(DDP.models_stop_observing(self._models, self._number))

    def _changed(self, change: DDPChange) -> None:
        self._feed.put(change)
        self._client._changed()

    def _missed(self) -> None:
        # The changes that follow do not fit what is known.
        self.stop()


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
        # The ids of the result that was taken.
        self._order: list[Any] = []
        #: The objects that were taken, and are in the result.
        self._known: set[Any] = set()

    def _made(self, batch: Batch) -> DDPModelChanges[M] | None:
        place(batch.steps, self._order)
        gone = [step.id for step in batch.steps if step.new < 0]
        found = [step.document for step in batch.steps if step.document is not None]
        objects: dict[Any, M] = dict(self._fitting(self._model, found))
        inserted = [one for id_, one in objects.items() if id_ not in self._known]
        updated = [one for id_, one in objects.items() if id_ in self._known]
        gone += [one["_id"] for one in found if one["_id"] not in objects]
        deleted = [id_ for id_ in gone if id_ in self._known]
        if not (inserted or updated or deleted or batch.is_initial):
            return None
        self._known.difference_update(deleted)
        self._known.update(objects)
        ids = [id_ for id_ in self._order if id_ in self._known]
        return DDPModelChanges(batch.is_initial, inserted, updated, deleted, ids)


class Kinds:
    """Consecutive changes of things, as one change."""

    def __init__(self) -> None:
        self._kinds: dict[Key, str] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, key: Key, kind: str) -> None:
        """
        :param kind: ``"added"``, ``"changed"`` or ``"removed"``.
        """
        before = self._kinds.get(key)
        if before == "added" and kind == "removed":
            del self._kinds[key]  # gone before anybody saw it
        elif before == "removed" and kind == "added":
            self._kinds[key] = "changed"
        elif before != "added":
            self._kinds[key] = kind

    def of(self, kind: str) -> list[Key]:
        return [key for key, one in self._kinds.items() if one == kind]


class ObjectFeed(Feed[DDPObjectChanges]):
    """Changes of all objects. They are merged until they are taken."""

    def __init__(self, map_: ModelMap) -> None:
        self._map = map_
        self._lock = threading.Lock()
        self._kinds = Kinds()
        #: The changes of a notification that is not complete.
        self._group: list[DDPChange] = []

    def put(self, change: DDPChange) -> None:
        """Adds the change of an object. Those that are made together become visible together."""
        with self._lock:
            self._group.append(change)
            if not change.is_last:
                return
            for one in self._group:
                self._kinds.add((one.collection, one.id), one.kind)
            self._group = []

    def take(self) -> DDPObjectChanges | None:
        with self._lock:
            if not self._kinds:
                return None
            kinds, self._kinds = self._kinds, Kinds()
        kind_lists = (self._objects(kinds.of(one)) for one in ("added", "changed", "removed"))
        return DDPObjectChanges(*kind_lists)

    def _objects(self, keys: list[Key]) -> list[DDPObject]:
        return [DDPObject(self._map.by_collection[name].cls, id_) for name, id_ in keys]

    @property
    def is_filled(self) -> bool:
        return bool(self._kinds)
