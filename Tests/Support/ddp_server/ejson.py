"""EJSON: dates, bytes and other values in JSON, and the form of document ids in messages."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from typing import Any


@dataclasses.dataclass(frozen=True)
class Date:
    """Milliseconds since 1970."""

    ms: int


@dataclasses.dataclass(frozen=True)
class RegExp:
    source: str
    flags: str


@dataclasses.dataclass(frozen=True)
class ObjectID:
    """24 hexadecimal digits."""

    hex: str


@dataclasses.dataclass(frozen=True)
class Custom:
    """A value of a type that the server does not know. It goes back as it came."""

    type: str
    text: str  # its value as JSON


UNDEFINED = Custom("undefined", "")


# Values


def decode(value: Any) -> Any:
    """The value that a JSON value stands for."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    keys = set(value)
    if keys == {"$date"} and isinstance(value["$date"], (int, float, type(None))):
        return Date(int(value["$date"] or 0))
    if keys == {"$binary"} and isinstance(value["$binary"], str):
        return base64.b64decode(value["$binary"], validate=True)
    if keys == {"$InfNaN"}:
        sign = value["$InfNaN"]
        return math.nan if sign == 0 else math.inf * sign
    if keys == {"$regexp", "$flags"}:
        flags = value["$flags"][:50]
        return RegExp(value["$regexp"], "".join(sorted(set(flags) & set("gimuy"))))
    if keys == {"$type", "$value"}:
        return _decode_custom(value["$type"], value["$value"])
    if keys == {"$escape"} and isinstance(value["$escape"], dict):
        return {key: decode(one) for key, one in value["$escape"].items()}
    return {key: decode(one) for key, one in value.items()}


def _decode_custom(kind: str, value: Any) -> Any:
    if kind == "oid":
        if not re.fullmatch("[0-9a-fA-F]{24}", value):
            raise ValueError(f"ObjectID is {value}, 24 hexadecimal digits are expected")
        return ObjectID(value.lower())
    return Custom(kind, json.dumps(value))


def encode(value: Any) -> Any:
    """The JSON value that stands for a value."""
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if isinstance(value, dict):
        encoded = {key: encode(one) for key, one in value.items()}
        return {"$escape": encoded} if _looks_special(value) else encoded
    if isinstance(value, Date):
        return {"$date": value.ms}
    if isinstance(value, bytes):
        return {"$binary": base64.b64encode(value).decode()}
    if isinstance(value, RegExp):
        return {"$regexp": value.source, "$flags": value.flags}
    if isinstance(value, ObjectID):
        return {"$type": "oid", "$value": value.hex}
    if isinstance(value, Custom):
        return {"$type": value.type, "$value": json.loads(value.text)}
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"$InfNaN": 0 if math.isnan(value) else int(math.copysign(1, value))}
        # As JavaScript writes it.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return value


def _looks_special(value: dict[str, Any]) -> bool:
    """Whether an ordinary object would be read as something else."""
    keys = set(value)
    return len(keys) in (1, 2) and keys in (
        {"$date"},
        {"$binary"},
        {"$InfNaN"},
        {"$escape"},
        {"$regexp", "$flags"},
        {"$type", "$value"},
    )


def equal(a: Any, b: Any) -> bool:
    """Whether two values are equal. The order of keys does not matter."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return bool(a == b)


def parse(text: str) -> Any:
    """JSON text as JavaScript reads it: integers become doubles where these are not exact."""
    return json.loads(text, parse_int=_integer, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _integer(digits: str) -> int | float:
    value = int(digits)
    return value if abs(value) <= 2**53 else float(value)


def text_of(message: Any) -> str:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


# Ids of documents


def id_to_wire(id: Any) -> str:
    if isinstance(id, ObjectID):
        return id.hex
    if isinstance(id, str):
        is_special = id[:1] in ("-", "~", "{") and id != ""
        return f"-{id}" if is_special or re.fullmatch("[0-9a-f]{24}", id) else id
    return "-" if id is UNDEFINED else "~" + text_of(encode(id))


def id_from_wire(text: str) -> Any:
    if text == "-":
        return UNDEFINED
    if text.startswith("-"):
        return text[1:]
    if text.startswith("~"):
        return decode(parse(text[1:]))
    return ObjectID(text) if re.fullmatch("[0-9a-f]{24}", text) else text
