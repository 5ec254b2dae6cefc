"""How the objects of models are stored in documents, and their relationships."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.abi import rt_status
from .._core.values import invalid
from ..ejson import ObjectID
from .errors import DDPModelError
from .model_coding import (
    UNIONS,
    Fields,
    Mismatch,
    as_read,
    check_name,
    construct,
    decoder,
    resolve,
    stored_kind,
)
from .model_fields import Reference, declaration

Fields_ = dict[str, Any]

#: The attribute of an object that contains its fields as they were read or saved.
_KNOWN = "_librealtime_known"


@dataclass(frozen=True)
class Relationship:
    """A relationship, as one of its ends sees it.

    :ivar name: the field of the class.
    :ivar field: the field of documents that contains the id of the other end's object, or a list
        of ids.
    """

    name: str
    is_to_many: bool
    field: str

    def references(self, fields: Mapping[str, Any]) -> list[Any]:
        """The ids that a document contains. A field that is empty, missing or null has none."""
        found = fields.get(self.field)
        if isinstance(found, list):
            return [one for one in found if _is_id(one)] if self.is_to_many else []
        return [found] if _is_id(found) else []

    def value(self, ids: list[Any]) -> Any:
        """The field's value for these ids."""
        return ids if self.is_to_many else ids[0]


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, ObjectID))


class ModelType:
    """A dataclass whose objects are documents of a collection.

    :ivar label: its name in the schema.
    """

    label: str
    encoded_label: bytes
    collection: str
    relationships: list[Relationship]

    def __init__(self, cls: type, models: Mapping[str, type]) -> None:
        """
        :param models: those that annotations may name.
        :raises InvalidArgument: for a class that cannot be a model.
        """
        self.cls = cls
        hints = resolve(cls, models)
        #: The models that relationships lead to, by the name of the field.
        self.destinations: dict[str, tuple[type, bool]] = {}
        names = [field.name for field in dataclasses.fields(cls)]
        if "id" not in names:
            raise invalid(f"{cls.__name__} has no field id")
        for name in names:
            found = _destination(hints[name])
            if found is not None:
                self.destinations[name] = found
            elif declaration(field_of_class(cls, name)).is_relationship:
                raise invalid(
                    f"{cls.__name__}.{name} is declared as a relationship; its type must be"
                    " Optional[Reference[…]] or list[Reference[…]]"
                )
        self._decode_id = decoder(hints["id"])
        #: Whether new documents get ObjectIDs.
        self.has_object_ids = ObjectID in (hints["id"], *typing.get_args(hints["id"]))
        self._fields = Fields(cls, hints, ("id", *self.destinations))

    def entry(self, labels: Mapping[type, str]) -> dict[str, Any]:
        """What the schema says of it. C completes the names that it leaves out."""
        relationships = []
        for name, (destination, is_to_many) in self.destinations.items():
            declared = declaration(field_of_class(self.cls, name))
            one = {
                "name": name,
                "to": labels[destination],
                "many": is_to_many,
                "field": declared.field,
                "inverse": declared.inverse,
                "storage": declared.storage,
            }
            relationships.append(one)
        return {
            "name": self.label,
            "collection": given_collection(self.cls),
            "ids": "objectIDs" if self.has_object_ids else "strings",
            "relationships": relationships,
        }

    def complete(self, entry: Mapping[str, Any]) -> None:
        """
        :param entry: what the completed schema says of it.
        :raises InvalidArgument: for names that documents cannot have.
        """
        self.encoded_label = self.label.encode()
        self.collection = entry["collection"]
        self.relationships = [
            Relationship(one["name"], one["many"], one["field"]) for one in entry["relationships"]
        ]
        for one in self.relationships:
            check_name(self.cls, one.name, one.field)
        self._check_names()

    def _check_names(self) -> None:
        owners = {"_id": "id"}
        known = {**self._fields.names, **{one.name: one.field for one in self.relationships}}
        for name, field in known.items():
            other = owners.setdefault(field, name)
            if other != name:
                both = f"{self.cls.__name__}.{other} and {self.cls.__name__}.{name}"
                raise invalid(f"{both} have the same field, {field}")

    def decode(self, document: Mapping[str, Any]) -> Any:
        """The object of a document, in which relationships without storage have their fields, too.

        :raises DDPModelError: if the document does not fit the model.
        """
        place = self.collection, str(document["_id"])
        try:
            id_ = self._decode_id(document["_id"])
        except Mismatch as error:
            raise error.inside("id").error(*place) from None
        try:
            values = self._fields.decode(document)
        except Mismatch as error:
            raise error.error(*place) from None
        values.update(self._decode_relationships(document))
        try:
            made = construct(self.cls, {"id": id_, **values})
        except Mismatch as error:
            raise error.error(*place) from None
        remember(made, self.encode(made))
        return made

    def encode(self, value: Any) -> Fields_:
        """All fields of an object without its id; relationships without storage have theirs, too.

        :raises DDPModelError: for what is not a reference.
        """
        return {**self._fields.encode(value), **self._encode_relationships(value)}

    def encode_checked(self, value: Any) -> Fields_:
        """Like ``encode``, for an object that the program has changed.

        :raises DDPModelError: if ``decode`` would refuse the document.
        """
        id_ = self._checked_id(value)
        encoded, read = self._fields.encode_checked(value)
        references = self._encode_relationships(value)
        try:
            construct(self.cls, {"id": id_, **read, **self._decode_relationships(references)})
        except Mismatch as error:
            message = f"{self.cls.__name__} {id_}: {error.text}"
            raise DDPModelError(rt_status.ERROR_INVALID_ARGUMENT, message) from None
        return {**encoded, **references}

    def _checked_id(self, value: Any) -> Any:
        try:
            id_ = self._decode_id(as_read(value.id))
            if id_ == "":
                raise Mismatch("it is empty")
            return id_
        except Mismatch as error:
            field = field_of_class(self.cls, "id")
            raise error.inside("id").error_of(self.cls, field, value.id) from None

    def only(self, document: Mapping[str, Any]) -> Fields_:
        """The fields of a document that the model has."""
        names = {*self._fields.names.values(), *(one.field for one in self.relationships)}
        return {name: value for name, value in document.items() if name in names}

    def _decode_relationships(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for one in self.relationships:
            found: list[Any] = [Reference(id_) for id_ in one.references(fields)]
            values[one.name] = found if one.is_to_many else found[0] if found else None
        return values

    def _encode_relationships(self, value: Any) -> Fields_:
        encoded = {}
        for relationship in self.relationships:
            given = getattr(value, relationship.name)
            try:
                ids = _ids(given, relationship.is_to_many)
            except Mismatch as error:
                field = field_of_class(self.cls, relationship.name)
                raise error.inside(field.name).error_of(self.cls, field, given) from None
            if ids:
                encoded[relationship.field] = relationship.value(list(dict.fromkeys(ids)))
        return encoded


def _ids(given: Any, is_to_many: bool) -> list[Any]:
    """The ids of the references in a field.

    :raises Mismatch: for what is not a reference.
    """
    if given is None:
        return []
    if not is_to_many:
        given = [given]
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise Mismatch(f"{stored_kind(given)} is not a list of references")
    # Objects may stand for references to them.
    ids = []
    for one in given:
        id_ = getattr(one, "id", None)
        if not _is_id(id_):
            which = f" with the id {id_!r}" if hasattr(one, "id") else ""
            raise Mismatch(f"{stored_kind(one)}{which} is not a reference")
        ids.append(id_)
    return ids


def remember(value: Any, fields: Fields_) -> None:
    """Keeps what is known of an object's document."""
    try:
        object.__setattr__(value, _KNOWN, (value.id, fields))
    except AttributeError:  # it has slots
        return


def known(value: Any) -> tuple[Any, Fields_] | None:
    """The id and the fields of an object when it was read or saved; None if it is new."""
    found: tuple[Any, Fields_] | None = getattr(value, _KNOWN, None)
    return found


def field_of_class(cls: type, name: str) -> dataclasses.Field[Any]:
    return next(one for one in dataclasses.fields(cls) if one.name == name)


def given_collection(cls: type) -> str | None:
    """The collection that a class names itself; None for that of its name."""
    name = getattr(cls, "__collection__", None)
    return name if isinstance(name, str) else None


def _destination(hint: Any) -> tuple[type, bool] | None:
    """The model that a relationship leads to, and whether it leads to many; None for other
    fields."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Reference and isinstance(arguments[0], type):
        return arguments[0], False
    if origin in UNIONS:
        others = [one for one in arguments if one is not type(None)]
        found = _destination(others[0]) if len(others) == 1 else None
        return found if found is not None and not found[1] else None
    if origin in (list, tuple) and arguments:
        found = _destination(arguments[0])
        return (found[0], True) if found is not None and not found[1] else None
    return None


class ModelMap:
    """The models of a client."""

    def __init__(self, classes: Iterable[Any]) -> None:
        """
        :param classes: those to which their relationships lead belong to them, too.
        :raises InvalidArgument: for a class that cannot be a model.
        """
        waiting = list(classes)
        names = {one.__name__: one for one in waiting if isinstance(one, type)}
        self.types: dict[type, ModelType] = {}
        #: Known once the schema is complete.
        self.by_collection: dict[str, ModelType] = {}
        while waiting:
            cls = waiting.pop(0)
            if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
                shown = cls.__name__ if isinstance(cls, type) else repr(cls)
                raise TypeError(f"{shown} is not a dataclass")
            if cls in self.types:
                continue
            made = self.types[cls] = ModelType(cls, names)
            waiting += [destination for destination, _ in made.destinations.values()]

    @property
    def schema(self) -> list[dict[str, Any]]:
        """The schema for C, which may lack names."""
        labels: dict[type, str] = {}
        for cls, model in self.types.items():
            model.label = cls.__name__
            # Classes of different modules may have the same name, if their collections differ.
            if given_collection(cls) is not None and model.label in labels.values():
                model.label = f"{cls.__module__}.{cls.__qualname__}"
            labels[cls] = model.label
        return [model.entry(labels) for model in self.types.values()]

    def complete(self, schema: Iterable[Mapping[str, Any]]) -> None:
        """
        :param schema: the same with all names.
        :raises InvalidArgument: for names that documents cannot have.
        """
        for model, entry in zip(self.types.values(), schema):
            model.complete(entry)
            self.by_collection[model.collection] = model

    def type_of(self, cls: Any) -> ModelType:
        found = self.types.get(cls)
        if found is None:
            shown = cls.__name__ if isinstance(cls, type) else repr(cls)
            raise invalid(f"{shown} is not one of the models: pass it to client.models")
        return found
