"""What the fields of models are declared with."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..ejson import ObjectID

M = TypeVar("M")

_KEY = "librealtime"
_LETTERS = "23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz"


@dataclass(frozen=True)
class Reference(Generic[M]):
    """The id of an object, typed by its model. The object need not be there;
    ``DDPModels.follow`` reads it."""

    #: A str or an ``ObjectID``.
    id: Any


def reference(target: M) -> Reference[M]:
    """A reference to an object of a model."""
    return Reference(target.id)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Declaration:
    """What a field of a model says about itself.

    :ivar field: its name in documents; None for the usual one.
    """

    field: str | None = None
    inverse: str | None = None
    storage: bool = True
    is_relationship: bool = False


def to_one(*, field: str | None = None, inverse: str | None = None, storage: bool = True) -> Any:
    """Says more about a relationship to one object than its type, ``Optional[Reference[Other]]``.

    :param field: its name in documents. Default None: the name here with ``Id``.
    :param inverse: the name of the other side's field, which must name this one as its inverse.
    :param storage: whether documents of this side contain the reference. If not, those of the other
        side must.
    """
    metadata = {_KEY: Declaration(field, inverse, storage, is_relationship=True)}
    return dataclasses.field(default=None, metadata=metadata)


def to_many(*, field: str | None = None, inverse: str | None = None, storage: bool = True) -> Any:
    """Says more about a relationship to many objects than its type, ``list[Reference[Other]]``.

    :param field: its name in documents. Default None: the singular of the name here with ``Ids``.
    :param inverse: as for ``to_one``.
    :param storage: as for ``to_one``.
    """
    metadata = {_KEY: Declaration(field, inverse, storage, is_relationship=True)}
    return dataclasses.field(default_factory=list, metadata=metadata)


def stored(name: str, **options: Any) -> Any:
    """A field that has another name in documents.

    :param name: its name there.
    :param options: as for ``dataclasses.field``: ``default``, ``default_factory`` and so on.
    """
    return dataclasses.field(metadata={_KEY: Declaration(name)}, **options)


def declaration(field: dataclasses.Field[Any]) -> Declaration:
    found = field.metadata.get(_KEY)
    return found if isinstance(found, Declaration) else Declaration()


def random_id() -> str:
    """An id for a new document, which nobody can guess: 17 characters, as Meteor's own have."""
    return "".join(secrets.choice(_LETTERS) for _ in range(17))


def random_object_id() -> ObjectID:
    """The same as an ``ObjectID``."""
    return ObjectID(secrets.token_hex(12))
