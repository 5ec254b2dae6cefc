"""Values of a model's fields, and the EJSON values that stand for them in documents."""

from __future__ import annotations

import dataclasses
import enum
import re
import reprlib
import sys
import typing
from collections.abc import Callable, Container, Mapping, Sequence, ValuesView
from decimal import Decimal
from typing import Any, Union

from .. import ejson
from .._core.abi import rt_status
from .._core.naming import article, kind_of
from .._core.values import invalid
from .errors import DDPModelError
from .model_fields import Reference, declaration

#: Makes a field's value of an EJSON value.
Decoder = Callable[[Any], Any]

UNIONS: tuple[Any, ...] = (Union,)
if sys.version_info >= (3, 10):
    import types

    UNIONS = (Union, types.UnionType)

_LISTS = (list, Sequence)
_DICTS = (dict, Mapping)

#: Values of these types are read as they were written.
_UNCHANGED = (str, bool, type(None))

#: Shortens the values that error messages show.
_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = 60


class Mismatch(Exception):
    """A value is of another kind than a field."""

    def __init__(self, text: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.text = text
        self.path = path

    def inside(self, name: str) -> Mismatch:
        return Mismatch(self.text, (name, *self.path))

    def error(self, *path: str) -> DDPModelError:
        """The error for a document."""
        place = ".".join((*path, *self.path))
        return DDPModelError(rt_status.ERROR_PROTOCOL, f"{place}: {self.text}")

    def error_of(self, cls: type, field: dataclasses.Field[Any], value: Any) -> DDPModelError:
        """The error for a field of an object that is saved."""
        place = ".".join((cls.__name__, *self.path))
        declared = f"{field.name} is declared as {_annotation(field)}"
        text = f"{place}: {self.text}; {declared}, and its value is {_shorten.repr(value)}"
        return DDPModelError(rt_status.ERROR_INVALID_ARGUMENT, text)


def _annotation(field: dataclasses.Field[Any]) -> str:
    """The type of a field, as the program has written it."""
    declared: Any = field.type
    if isinstance(declared, type) and not typing.get_args(declared):
        return declared.__name__
    # Without the names of modules.
    return re.sub(
        r"[\w.]+\.(?=\w)", "", re.sub(r"ForwardRef\('([^']*)'.*?\)", r"\1", str(declared))
    )


def encode(value: Any, models: Container[type] = ()) -> Any:
    """The EJSON value of a field's value. Containers are copied.

    :param models: classes whose objects become their ids.
    """
    if type(value) in models:
        return value.id
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if isinstance(value, Reference):
        return value.id
    if isinstance(value, Mapping):
        return {key: encode(one, models) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(one, models) for one in value]
    if ejson.has_form(type(value)) or not dataclasses.is_dataclass(value):
        return value
    return Fields.of(type(value)).encode(value, models)


def parameter(models: Container[type], value: Any) -> Any:
    """What a parameter of a method or subscription becomes, if EJSON has no form for it.

    :param models: classes whose objects become their ids.
    """
    encoded = encode(value, models)
    if encoded is value:
        raise TypeError(f"EJSON has no form for {kind_of(value)}; add_type registers one")
    return encoded


def as_read(encoded: Any) -> Any:
    """What is read from a document that contains this value.

    :raises Mismatch: if a document cannot contain it.
    """
    if type(encoded) in _UNCHANGED or (type(encoded) is int and abs(encoded) <= 2**53):
        return encoded
    _check_storable(encoded)
    try:
        return ejson.loads(ejson.dumps(encoded))
    except (TypeError, ValueError) as error:
        raise Mismatch(str(error)) from None


def _check_storable(encoded: Any) -> None:
    """Numbers in documents are those of JavaScript: not all whole ones beyond 2**53. Names of
    fields are those that MongoDB stores."""
    if isinstance(encoded, int) and abs(encoded) > 2**53 and not _is_javascript(encoded):
        raise Mismatch("the number is beyond 2**53, and would lose digits")
    if isinstance(encoded, Mapping):
        for key in encoded:
            if isinstance(key, str) and not _is_storable(key):
                raise Mismatch(f"the key {key!r} begins with $, or contains . or NUL")
    parts = encoded.values() if isinstance(encoded, Mapping) else encoded
    for one in parts if isinstance(parts, (list, tuple, ValuesView)) else ():
        _check_storable(one)


def _is_storable(name: str) -> bool:
    """Whether MongoDB stores fields of this name."""
    return not name.startswith("$") and "." not in name and "\0" not in name


def check_name(cls: type, field: str, name: str) -> None:
    """Refuses the name that a field shall have in documents, if MongoDB does not store it."""
    if not _is_storable(name):
        place = f"{cls.__name__}.{field}"
        raise invalid(f"{place}: the name {name!r} begins with $, or contains . or NUL")


def _is_javascript(number: int) -> bool:
    try:
        nearest = float(number)
    except OverflowError:
        return False
    # JavaScript writes 2**60 with zeros at the end.
    return number in (int(nearest), int(Decimal(repr(nearest))))


def construct(cls: Any, values: Mapping[str, Any]) -> Any:
    """An object of a dataclass.

    :raises Mismatch: if the class raises an exception, for example in ``__post_init__``.
    """
    try:
        return cls(**values)
    except Exception as error:
        raise Mismatch(f"{cls.__name__} refuses it: {error!r}") from None


class Fields:
    """How the fields of a dataclass are stored in an object of a document."""

    _known: typing.ClassVar[dict[type, Fields]] = {}

    def __init__(self, cls: type, hints: Mapping[str, Any], skipped: tuple[str, ...] = ()) -> None:
        """
        :param hints: the types of its fields.
        :param skipped: fields that are stored in another way.
        """
        self.cls = cls
        #: The fields that take part, with their names in documents.
        self.names: dict[str, str] = {}
        self._fields: dict[str, dataclasses.Field[Any]] = {}
        self._decoders: dict[str, Decoder] = {}
        self._defaults: dict[str, Callable[[], Any]] = {}
        #: Those where None is a value like others, because a missing field means the default.
        self._nullable: set[str] = set()
        for field in dataclasses.fields(cls):
            if field.name in skipped or not field.init:
                continue
            name = declaration(field).field or field.name
            check_name(cls, field.name, name)
            self.names[field.name] = name
            self._fields[field.name] = field
            try:
                self._decoders[field.name] = decoder(hints[field.name])
            except TypeError as error:
                raise invalid(f"{cls.__name__}.{field.name}: {error}") from None
            self._set_default(field, hints[field.name])
        if len(set(self.names.values())) < len(self.names):
            raise invalid(f"two fields of {cls.__name__} have the same name in documents")

    @classmethod
    def of(cls, of: type) -> Fields:
        """Those of a dataclass that is not a model."""
        found = cls._known.get(of)
        if found is None:
            found = cls._known[of] = cls(of, resolve(of, {}))
        return found

    def _set_default(self, field: dataclasses.Field[Any], hint: Any) -> None:
        if field.default is not dataclasses.MISSING:
            default = field.default
            self._defaults[field.name] = lambda: default
            if default is not None:
                self._nullable.add(field.name)
        elif field.default_factory is not dataclasses.MISSING:
            self._defaults[field.name] = field.default_factory
            self._nullable.add(field.name)
        elif _allows_none(hint):
            self._defaults[field.name] = lambda: None

    def encode(self, value: Any, models: Container[type] = ()) -> dict[str, Any]:
        """The fields of an object. None is a missing field, unless that means something else."""
        encoded = {}
        for name in self.names:
            encoded.update(self._encode_field(name, getattr(value, name), models))
        return encoded

    def encode_checked(self, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Like ``encode``, for an object that the program has changed.

        :returns: its fields, and what ``decode`` will read from them.
        :raises DDPModelError: if ``decode`` will refuse them.
        """
        encoded, read = {}, {}
        for name in self.names:
            given = getattr(value, name)
            try:
                part = self._encode_field(name, given)
                stored = {key: as_read(one) for key, one in part.items()}
                read[name] = self._decode_field(name, stored)
            except RecursionError:
                error = Mismatch("it contains itself, or is too deep", (name,))
                raise error.error_of(self.cls, self._fields[name], given) from None
            except Mismatch as error:
                error.path = error.path or (name,)
                raise error.error_of(self.cls, self._fields[name], given) from None
            encoded.update(part)
        return encoded, read

    def _encode_field(self, name: str, value: Any, models: Container[type] = ()) -> dict[str, Any]:
        if value is None and name not in self._nullable:
            return {}
        return {self.names[name]: encode(value, models)}

    def decode(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """What the class is called with.

        :raises Mismatch: if a value is of another kind, or missing.
        """
        return {name: self._decode_field(name, document) for name in self.names}

    def _decode_field(self, name: str, document: Mapping[str, Any]) -> Any:
        stored = self.names[name]
        if stored not in document:
            if name not in self._defaults:
                raise Mismatch("it is missing, and has no default", (name,))
            return self._defaults[name]()
        try:
            return self._decoders[name](document[stored])
        except Mismatch as error:
            raise error.inside(name) from None


def resolve(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """The types of a class's fields.

    :param names: what annotations may name besides what their module has.
    """
    try:
        # Without the class's own names: a field may be called `list`.
        return typing.get_type_hints(cls, localns={})
    except (NameError, TypeError):
        pass
    try:
        return typing.get_type_hints(cls, localns={"Reference": Reference, **names})
    except NameError as error:
        advice = f"{error}; pass the models that they name to client.models, too"
    except TypeError as error:  # X | None before Python 3.10
        advice = str(error)
    raise invalid(f"the annotations of {cls.__name__} cannot be resolved: {advice}")


def _allows_none(hint: Any) -> bool:
    return hint is Any or hint is type(None) or type(None) in typing.get_args(hint)


def _plain(*classes: type) -> Decoder:
    def decode(value: Any) -> Any:
        if isinstance(value, classes) and (not isinstance(value, bool) or bool in classes):
            return value
        names = " or ".join(one.__name__ for one in classes)
        raise Mismatch(f"{stored_kind(value)} is not {article(names)}")

    return decode


def stored_kind(value: Any) -> str:
    """What messages call a value of a document."""
    return "null" if value is None else kind_of(value)


def _int(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _plain(int)(value)


def _float(value: Any) -> Any:
    return float(_plain(int, float)(value))


def _bool(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise Mismatch(f"{stored_kind(value)} is not a bool")


def _any(value: Any) -> Any:
    return value


def decoder(hint: Any) -> Decoder:
    """What makes values of a type.

    :raises TypeError: for a type whose values documents cannot contain.
    """
    if hint is Any or hint is object:
        return _any
    simple = {int: _int, float: _float, bool: _bool, None: _plain(type(None))}.get(hint)
    if simple is not None:
        return simple
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return _union([decoder(one) for one in arguments])
    if origin is typing.Literal:
        return _literal(arguments)
    if origin is Reference or hint is Reference:
        return _reference
    if hint in _LISTS or hint is tuple or origin in _LISTS or origin is tuple:
        return _sequence(origin or hint, arguments)
    if hint in _DICTS or origin in _DICTS:
        return _mapping(arguments)
    if hasattr(hint, "__supertype__"):
        return decoder(hint.__supertype__)
    if isinstance(hint, type):
        return _class(hint)
    raise TypeError(f"EJSON has no form for {hint!r}")


def _class(cls: type) -> Decoder:
    if issubclass(cls, enum.Enum):
        return _enumeration(cls)
    if ejson.has_form(cls):
        return _plain(cls)
    if not dataclasses.is_dataclass(cls):
        raise TypeError(
            f"EJSON has no form for {article(cls.__name__)}; ejson.add_type registers one"
        )
    # Later: a class may contain itself.
    return lambda value: construct(cls, Fields.of(cls).decode(_mapping(())(value)))


def _enumeration(cls: Any) -> Decoder:
    def decode(value: Any) -> Any:
        try:
            return cls(value)
        except (TypeError, ValueError):
            raise Mismatch(f"{value!r} is not {article(cls.__name__)}") from None

    return decode


def _literal(values: tuple[Any, ...]) -> Decoder:
    def decode(value: Any) -> Any:
        for one in values:
            if type(one) is type(value) and one == value:
                return one
        raise Mismatch(f"{value!r} is none of {', '.join(map(repr, values))}")

    return decode


def _union(decoders: list[Decoder]) -> Decoder:
    def decode(value: Any) -> Any:
        texts = []
        for one in decoders:
            try:
                return one(value)
            except Mismatch as error:
                texts.append(error)
        # Not what None expects.
        raise texts[0]

    return decode


def _reference(value: Any) -> Any:
    if isinstance(value, (str, ejson.ObjectID)):
        return Reference(value)
    raise Mismatch(f"{stored_kind(value)} is not an id")


def _sequence(origin: Any, arguments: tuple[Any, ...]) -> Decoder:
    is_tuple = origin is tuple
    if is_tuple and arguments and arguments[-1] is not Ellipsis:
        parts = [decoder(one) for one in arguments if one != ()]
    else:
        parts = None
        each = decoder(arguments[0]) if arguments else _any

    def decode(value: Any) -> Any:
        values = _plain(list)(value)
        if parts is not None and len(parts) != len(values):
            raise Mismatch(f"it has {len(values)} elements, and not {len(parts)}")
        made = []
        for index, one in enumerate(values):
            try:
                made.append((each if parts is None else parts[index])(one))
            except Mismatch as error:
                raise error.inside(str(index)) from None
        return tuple(made) if is_tuple else made

    return decode


def _mapping(arguments: tuple[Any, ...]) -> Decoder:
    if arguments and arguments[0] not in (str, Any):
        raise TypeError("the keys of EJSON objects are str")
    each = decoder(arguments[1]) if arguments else _any

    def decode(value: Any) -> Any:
        made = {}
        for name, one in _plain(dict)(value).items():
            try:
                made[name] = each(one)
            except Mismatch as error:
                raise error.inside(name) from None
        return made

    return decode
