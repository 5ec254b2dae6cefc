"""How messages name the kind of a value."""

from __future__ import annotations

import re

#: Names that begin with the sound of a vowel. Those like "UUID", "URL" and "User" do not.
_VOWEL = re.compile("[aeio]|u(?!ni|rl|s|uid)", re.IGNORECASE)


def article(name: str) -> str:
    """The name of a type with its article, such as ``an int``."""
    return f"an {name}" if _VOWEL.match(name) else f"a {name}"


def written(value: object) -> str:
    """A value for a message; Python refuses to write numbers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"{article(type(value).__name__)} with thousands of digits"


def said_by(error: BaseException) -> str:
    """The text of an exception for a message; its type if it has none."""
    try:
        return str(error) or repr(error)
    except Exception:  # a program's class whose text cannot be built
        return type(error).__name__


def kind_of(value: object) -> str:
    """The type of a value with its article; ``None`` for None."""
    return "None" if value is None else article(type(value).__name__)
