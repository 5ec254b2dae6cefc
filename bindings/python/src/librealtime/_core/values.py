"""What a caller gives, checked as far as C could not see what was meant, and as C spells it."""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Union
from urllib.parse import urlsplit

from .abi import rt_status
from .errors import from_status

StrPath = Union[str, "os.PathLike[str]"]

#: A hundred years, in milliseconds.
LONGEST_MS = 100 * 365 * 86400 * 1000
_LARGEST = 2**62


def text(value: str, what: str, status: int = rt_status.ERROR_INVALID_ARGUMENT) -> bytes:
    """Encodes what C takes as text up to its first NUL: one inside would cut it silently."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}; a str is expected")
    if "\0" in value:
        raise from_status(status, f"{what} holds a NUL character")
    return encode(value, what)


def encode(value: str, what: str) -> bytes:
    """UTF-8; a str may hold lone surrogates, which have none."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        message = f"{what} has no UTF-8 form: a lone surrogate at index {error.start}"
        raise from_status(rt_status.ERROR_INVALID_UTF8, message) from error


def without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def shown(url: str) -> str:
    """For texts that others read: queries carry tokens."""
    base, mark, _ = without_userinfo(url).partition("?")
    return base + mark + ("…" if mark else "")


def path(value: StrPath, what: str) -> bytes:
    name = os.fsencode(value)
    if b"\0" in name:
        raise invalid(f"{what} holds a NUL character")
    return name


def limit(value: int | None, name: str) -> int:
    """A limit as C spells it: 0 for none."""
    return 0 if value is None else number(value, name, 1)


def time_limit(seconds: float | None, name: str) -> int:
    """A time limit as C spells it: 0 for none."""
    return 0 if seconds is None else milliseconds(seconds, name)


def milliseconds(seconds: float, name: str, *, least: float | None = None) -> int:
    """A duration as C spells it, rounded up, so that none becomes 0.

    :param least: the shortest that is allowed; anything above 0 without it.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        kind = "None" if seconds is None else f"a {type(seconds).__name__}"
        raise TypeError(f"{name} is {kind}; seconds are expected")
    is_enough = seconds > 0 if least is None else seconds >= least
    if not (is_enough and seconds * 1000 <= LONGEST_MS):
        wanted = "above 0" if least is None else f"from {least:g} on"
        raise invalid(f"{name} is {seconds}; seconds {wanted}, up to a hundred years, are expected")
    return math.ceil(seconds * 1000)


def number(value: int, name: str, least: int, most: int = _LARGEST) -> int:
    """ctypes would wrap a number that does not fit."""
    try:
        result = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} is a {kind}; a whole number is expected") from None
    if not least <= result <= most:
        range_ = f"{least} or more" if most == _LARGEST else f"{least} to {most}"
        raise invalid(f"{name} is {result}; {range_} is expected")
    return result


def names_of(enum: type[IntEnum]) -> dict[Any, int]:
    """Values of C by what they are called here."""
    return {one.name.lower(): one for one in enum}


def choice(value: Any, names: Mapping[Any, int], what: str) -> int:
    """One of C's values, by the name that it has here."""
    try:
        return names[value]
    except (KeyError, TypeError):
        known = ", ".join(repr(name) for name in names)
        raise invalid(f"{what} is {value!r}; one of {known} is expected") from None


def strings(values: object, what: str) -> list[str]:
    """A str would be taken for its characters."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what} is a {type(values).__name__}; a list of str is expected")
    return list(values)  # type: ignore[call-overload, no-any-return]


def pairs(given: Any, what: str) -> list[tuple[Any, Any]]:
    """Of a mapping, or of pairs; a str is none, not of two characters either."""
    if given is None:
        return []
    items = given.items() if isinstance(given, Mapping) else given or ()
    with contextlib.suppress(TypeError, ValueError):
        if not isinstance(items, (str, bytes)):
            found = list(items)
            if not any(isinstance(item, (str, bytes)) for item in found):
                return [(name, value) for name, value in found]
    kind = type(given).__name__
    raise TypeError(f"{what} is a {kind} that is neither a mapping nor pairs")


def user_and_password(auth: Any, what: str = "auth") -> tuple[bytes, bytes]:
    if not isinstance(auth, (tuple, list)) or len(auth) != 2:
        raise TypeError(f"{what} is a {type(auth).__name__}; (user, password) is expected")
    return text(auth[0], f"the user of {what}"), text(auth[1], f"the password of {what}")


def invalid(message: str) -> Exception:
    return from_status(rt_status.ERROR_INVALID_ARGUMENT, message)
