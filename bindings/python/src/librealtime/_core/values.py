"""Checks the caller's values where C could not see a mistake, and converts them for C."""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections.abc import Iterable, Mapping
from enum import IntEnum
from numbers import Real
from typing import Any, Union
from urllib.parse import urlsplit

from .abi import rt_status
from .errors import from_status
from .naming import kind_of, written

StrPath = Union[str, "os.PathLike[str]"]

#: A hundred years, in milliseconds.
LONGEST_MS = 100 * 365 * 86400 * 1000
_LARGEST = 2**62


def text(value: str, what: str, status: int = rt_status.ERROR_INVALID_ARGUMENT) -> bytes:
    """Encodes text for C, which ends it at the first NUL: one inside would cut it silently."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {kind_of(value)}; a str is expected")
    if "\0" in value:
        raise from_status(status, f"{what} contains a NUL character")
    return encode(value, what)


def encode(value: str, what: str) -> bytes:
    """Encodes as UTF-8, which lone surrogates in a str do not allow."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        message = f"{what} cannot be encoded as UTF-8: lone surrogate at index {error.start}"
        raise from_status(rt_status.ERROR_INVALID_UTF8, message) from error


def without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def shown(url: str) -> str:
    """A URL for messages and logs: without the query, which may carry tokens."""
    base, mark, _ = without_userinfo(url).partition("?")
    return base + mark + ("…" if mark else "")


def path(value: StrPath, what: str) -> bytes:
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} is {kind_of(value)}; a str or a path is expected")
    try:
        name = os.fsencode(value)
        name.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        is_lone = isinstance(error, UnicodeEncodeError)
        why = f"lone surrogate at index {error.start}" if is_lone else "it is not UTF-8"
        message = f"{what} is not a file name: {why}"
        raise from_status(rt_status.ERROR_INVALID_UTF8, message) from error
    if b"\0" in name:
        raise invalid(f"{what} contains a NUL character")
    refuse_pem(name, what)
    return name


def refuse_pem(name: bytes, what: str) -> None:
    """Refuses PEM text given as a file's name; not quoted, because it may be a private key."""
    if b"-----BEGIN " in name:
        raise invalid(f"{what} is PEM text; the name of a file with it is expected")


def limit(value: int | None, name: str) -> int:
    """Converts a limit for C: None becomes 0."""
    return 0 if value is None else number(value, name, 1)


def time_limit(seconds: float | None, name: str) -> int:
    """Converts a time limit for C: None becomes 0."""
    return 0 if seconds is None else milliseconds(seconds, name)


def wait_limit(seconds: float | None, name: str = "timeout") -> float | None:
    """Checks how long a call may wait, in seconds. None, which infinity also means: no limit. With
    0 or less the call does not wait."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, Real)):
        raise TypeError(f"{name} is {kind_of(seconds)}; seconds are expected")
    if seconds != seconds:
        raise invalid(f"{name} is {seconds}; seconds, or None for no limit, are expected")
    if seconds > LONGEST_MS / 1000:
        return None
    return max(0.0, float(seconds)) if seconds > -LONGEST_MS else 0.0


def milliseconds(seconds: float, name: str, *, least: float | None = None) -> int:
    """Converts a duration for C, rounded up, so that a short one does not become 0.

    :param least: the shortest that is allowed; without it, anything above 0.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name} is {kind_of(seconds)}; seconds are expected")
    is_enough = seconds > 0 if least is None else seconds >= least
    if not (is_enough and seconds * 1000 <= LONGEST_MS):
        wanted = "above 0" if least is None else f"from {least:g} on"
        given = f"{name} is {written(seconds)}"
        raise invalid(f"{given}; seconds {wanted}, up to a hundred years, are expected")
    return math.ceil(seconds * 1000)


def number(value: int, name: str, least: int, most: int = _LARGEST) -> int:
    """Checks a number's range, as ctypes would wrap one that does not fit."""
    try:
        result = operator.index(value)
    except TypeError:
        kind = kind_of(value)
        raise TypeError(f"{name} is {kind}; a whole number is expected") from None
    if not least <= result <= most:
        range_ = f"{least} or more" if most == _LARGEST else f"{least} to {most}"
        raise invalid(f"{name} is {written(result)}; {range_} is expected")
    return result


def names_of(enum: type[IntEnum]) -> dict[Any, int]:
    """Maps the names used here to the values of a C enum."""
    return {one.name.lower(): one for one in enum}


def choice(value: Any, names: Mapping[Any, int], what: str) -> int:
    """The value of a C enum for its name here."""
    try:
        return names[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(name) for name in names)
        raise invalid(f"{what} is {written(value)}; one of {known} is expected") from None


def strings(values: object, what: str) -> list[str]:
    """Checks for a list; a str would be treated as a list of its characters."""
    return _listed(values, what, "str")


def texts(values: object, what: str, status: int = rt_status.ERROR_INVALID_ARGUMENT) -> list[bytes]:
    """Encodes a list of texts for C."""
    return [text(value, f"an entry of {what}", status) for value in strings(values, what)]


def numbers(values: object, what: str, least: int, most: int) -> list[int]:
    """Checks a list of numbers and their range."""
    found = _listed(values, what, "whole numbers")
    return [number(value, f"an entry of {what}", least, most) for value in found]


def _listed(values: object, what: str, wanted: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} is {kind_of(values)}; a list of {wanted} is expected")
    return list(values)


def pairs(given: Any, what: str) -> list[tuple[Any, Any]]:
    """The pairs of a mapping or of an iterable of pairs; a str of two characters is not a pair."""
    if given is None:
        return []
    items = given.items() if isinstance(given, Mapping) else given or ()
    with contextlib.suppress(TypeError, ValueError):
        if not isinstance(items, (str, bytes)):
            found = list(items)
            if not any(isinstance(item, (str, bytes)) for item in found):
                return [(name, value) for name, value in found]
    kind = kind_of(given)
    raise TypeError(f"{what} is {kind}, not a mapping or (name, value) pairs")


def user_and_password(auth: Any, what: str = "auth") -> tuple[bytes, bytes]:
    if not isinstance(auth, (tuple, list)) or len(auth) != 2:
        raise TypeError(f"{what} is {kind_of(auth)}; (user, password) is expected")
    return text(auth[0], f"the user of {what}"), text(auth[1], f"the password of {what}")


def invalid(message: str) -> Exception:
    return from_status(rt_status.ERROR_INVALID_ARGUMENT, message)
