"""EJSON: JSON with dates, bytes, ObjectIDs and types of applications, as Meteor uses it."""

from __future__ import annotations

import base64
import binascii
import json
import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

from ._core.naming import kind_of, written
from ._core.values import invalid

__all__ = [
    "CustomValue",
    "FarDate",
    "ObjectID",
    "Regexp",
    "add_type",
    "dumps",
    "equals",
    "loads",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_HEX = re.compile("[0-9a-f]{24}")
#: The flags of JavaScript's expressions that EJSON keeps.
_FLAGS = "gimuy"
_MARKS = ({"$date"}, {"$binary"}, {"$InfNaN"}, {"$regexp", "$flags"}, {"$type", "$value"})
_INFINITIES = {1: math.inf, -1: -math.inf, 0: math.nan}


class ObjectID:
    """The id of a MongoDB document.

    :param text: 24 hexadecimal digits.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"an ObjectID is made of a str, not of {kind_of(text)}")
        if not _HEX.fullmatch(text.lower()):
            raise invalid(f"{text!r} is not an ObjectID: 24 hexadecimal digits are expected")
        self._text = text.lower()

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"ObjectID({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectID) and self._text == other._text

    def __hash__(self) -> int:
        return hash((ObjectID, self._text))


@dataclass(frozen=True)
class Regexp:
    """A regular expression of JavaScript, which Python may read differently."""

    source: str
    #: Of ``gimuy``, in alphabetical order.
    flags: str = ""


@dataclass(frozen=True)
class FarDate:
    """A date that ``datetime`` cannot represent."""

    #: Since 1970, possibly negative.
    milliseconds: int


@dataclass(frozen=True)
class CustomValue:
    """A value of a type that is not registered (``add_type``)."""

    type: str
    #: JSON: None, bool, int, float, str, list or dict.
    value: Any


_logger = logging.getLogger("librealtime")
#: Types whose values are never of a registered type.
_PLAIN = frozenset({type(None), bool, int, float, str, list, tuple, dict})
_FORMS = (
    type(None),
    bool,
    int,
    float,
    str,
    Mapping,
    list,
    tuple,
    datetime,
    FarDate,
    bytes,
    bytearray,
    memoryview,
    ObjectID,
    Decimal,
    Regexp,
    CustomValue,
)
_types_lock = threading.Lock()
_decoders: dict[str, Callable[[Any], Any]] = {}
_encoders: dict[type, tuple[str, Callable[[Any], Any]]] = {}


def add_type(
    name: str, cls: type, *, encode: Callable[[Any], Any], decode: Callable[[Any], Any]
) -> None:
    """Registers a type of the application, for the whole program. Values of subclasses are encoded
    like those of the class.

    :param name: its name at the server, as it was given to ``EJSON.addType`` there.
    :param cls: the class of its values.
    :param encode: returns a value as JSON.
    :param decode: returns the value of a JSON. If it raises, the exception is logged, and the value
        is a ``CustomValue``.
    """
    if name in ("oid", "Decimal"):
        raise invalid(f"the type {name!r} is built in")
    with _types_lock:
        _decoders[name] = decode
        _encoders[cls] = (name, encode)


def loads(text: str | bytes) -> Any:
    """The value of an EJSON text. Dates are aware ``datetime`` objects in UTC, binary data is
    ``bytes``, decimal numbers are ``Decimal``.

    :raises InvalidArgument: for what is not EJSON.
    """
    try:
        return _decode(_JSON.decode(text if isinstance(text, str) else str(text, "utf-8")))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(f"this is not EJSON: {error}") from None


def dumps(
    value: Any, *, sort_keys: bool = False, default: Callable[[Any], Any] | None = None
) -> str:
    """A value as compact EJSON text.

    :param sort_keys: whether the keys of all objects are sorted by UTF-16 code units, so that equal
        values have equal texts.
    :param default: called with each value of another type; returns what stands for it.
    :raises TypeError: for a value of another type.
    :raises InvalidArgument: for a ``datetime`` without a time zone, and for an endless value.
    """
    parts: list[str] = []
    try:
        _write(_encode(value, default), parts, sort_keys)
    except RecursionError:
        raise invalid("the value contains itself, or is too deep") from None
    return "".join(parts)


def equals(left: Any, right: Any) -> bool:
    """Whether two values have the same EJSON, whatever the order of keys. Unlike ``==``, True is
    not 1, and NaN equals itself."""
    return dumps(left, sort_keys=True) == dumps(right, sort_keys=True)


def _no_constant(name: str) -> Any:
    raise invalid(f"{name} is not JSON")


#: Made once, because `json.loads` would make one for each text.
_JSON = json.JSONDecoder(parse_constant=_no_constant)


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if 1 <= len(value) <= 2 and all(key.startswith("$") for key in value):
        keys = value.keys()
        if keys == {"$escape"} and isinstance(value["$escape"], dict):
            return {key: _decode(one) for key, one in value["$escape"].items()}
        if any(keys == mark for mark in _MARKS):
            return _decode_special(value)
    return {key: _decode(one) for key, one in value.items()}


def _decode_special(value: dict[str, Any]) -> Any:
    if "$date" in value:
        return _date(value["$date"])
    if "$binary" in value:
        try:
            return base64.b64decode(value["$binary"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise invalid("$binary is not base64") from None
    if "$InfNaN" in value:
        return _INFINITIES.get(value["$InfNaN"], math.nan)
    if "$regexp" in value:
        flags = "".join(sorted(set(str(value["$flags"])[:50]) & set(_FLAGS)))
        return Regexp(str(value["$regexp"]), flags)
    name, inner = value["$type"], value["$value"]
    if name == "oid":
        return ObjectID(inner)
    if name == "Decimal":
        try:
            return Decimal(inner)
        except (InvalidOperation, TypeError, ValueError):
            return CustomValue(name, inner)
    with _types_lock:
        decode = _decoders.get(name)
    if decode is not None:
        try:
            return decode(inner)
        except Exception:
            # A document with such a value must not be lost.
            _logger.exception("decoding a %s failed", name)
    return CustomValue(name, inner)


def _date(milliseconds: Any) -> datetime | FarDate:
    if milliseconds is None:
        milliseconds = 0
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        raise invalid("$date is not a number")
    whole = int(milliseconds)
    try:
        return _EPOCH + timedelta(milliseconds=whole)
    except OverflowError:
        return FarDate(whole)


def _registered(cls: type) -> tuple[str, Callable[[Any], Any]] | None:
    with _types_lock:
        return next((_encoders[one] for one in cls.__mro__ if one in _encoders), None)


def has_form(cls: type) -> bool:
    """Whether EJSON has a form for the values of a class."""
    return issubclass(cls, _FORMS) or _registered(cls) is not None


def _encode(value: Any, default: Callable[[Any], Any] | None) -> Any:
    """The value as JSON."""
    if type(value) not in _PLAIN:
        registered = _registered(type(value))
        if registered is not None:
            name, encode = registered
            return {"$type": name, "$value": encode(value)}
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {"$InfNaN": 0 if math.isnan(value) else 1 if value > 0 else -1}
    if isinstance(value, Mapping):
        encoded = {_key(key): _encode(one, default) for key, one in value.items()}
        keys = encoded.keys()
        is_special = keys == {"$escape"} or any(keys == mark for mark in _MARKS)
        return {"$escape": encoded} if is_special else encoded
    if isinstance(value, (list, tuple)):
        return [_encode(one, default) for one in value]
    return _encode_special(value, default)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is {kind_of(key)}; a str is expected")
    return key


def _encode_special(value: Any, default: Callable[[Any], Any] | None) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise invalid("a datetime has no time zone: datetime.now(timezone.utc) has one")
        return {"$date": (value - _EPOCH) // _MILLISECOND}
    if isinstance(value, FarDate):
        return {"$date": value.milliseconds}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$binary": base64.b64encode(value).decode()}
    if isinstance(value, ObjectID):
        return {"$type": "oid", "$value": str(value)}
    if isinstance(value, Decimal):
        return {"$type": "Decimal", "$value": str(value)}
    if isinstance(value, Regexp):
        return {"$regexp": value.source, "$flags": value.flags}
    if isinstance(value, CustomValue):
        return {"$type": value.type, "$value": value.value}
    if isinstance(value, re.Pattern):
        raise TypeError("EJSON has no form for a Pattern of Python; use ejson.Regexp")
    if default is not None:
        return _encode(default(value), default)
    raise TypeError(f"EJSON has no form for {kind_of(value)}; add_type registers one")


def _write(value: Any, parts: list[str], sort_keys: bool) -> None:
    """Appends JSON. Numbers have JavaScript's form."""
    if isinstance(value, dict):
        items = sorted(value.items(), key=_utf16) if sort_keys else value.items()
        before = "{"
        for key, one in items:
            parts += before, json.dumps(key, ensure_ascii=False), ":"
            _write(one, parts, sort_keys)
            before = ","
        parts.append("{}" if before == "{" else "}")
    elif isinstance(value, (list, tuple)):
        before = "["
        for one in value:
            parts.append(before)
            _write(one, parts, sort_keys)
            before = ","
        parts.append("[]" if before == "[" else "]")
    elif isinstance(value, float):
        parts.append(_number(value))
    else:
        try:
            parts.append(json.dumps(value, ensure_ascii=False, allow_nan=False))
        except ValueError:  # Python refuses to write numbers of thousands of digits
            raise invalid(f"EJSON has no form for {written(value)}") from None


def _utf16(item: tuple[str, Any]) -> bytes:
    return item[0].encode("utf-16-be", "surrogatepass")


def _number(value: float) -> str:
    """A finite number as JavaScript writes it (ECMA-262, Number::toString)."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f")
    return re.sub(r"e([+-])0*", r"e\1", repr(value))
