"""Options that are plain values: checks them and converts them for C."""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import OPTION_NAMES, check
from .handle import Handle
from .loader import lib
from .naming import kind_of, written
from .values import StrPath, choice, invalid, milliseconds, number, path, text, time_limit

#: The maximum of a number in C.
_MOST = 2**32 - 1


@dataclass(frozen=True)
class Option:
    """An option with its name here and the name of its setter in C.

    :ivar differs: whether the default differs from C's.
    """

    name: str
    c_name: str
    default: Any
    doc: str
    differs: bool = False

    def encode(self, value: Any) -> Any:
        """Converts a value for C."""
        raise NotImplementedError

    @property
    def parameter(self) -> inspect.Parameter:
        """How a signature shows it."""
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default)


class Flag(Option):
    def encode(self, value: Any) -> bool:
        return bool(value)


class Delay(Option):
    """Seconds, 0 or more."""

    def encode(self, value: Any) -> int:
        return milliseconds(value, self.name, least=0)


class Limit(Option):
    """Seconds; None means no limit."""

    def encode(self, value: Any) -> int:
        return time_limit(value, self.name)


class Real(Option):
    """A number that may have a fraction."""

    def encode(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{self.name} is {kind_of(value)}; a number is expected")
        try:
            return float(value)
        except OverflowError:
            raise invalid(
                f"{self.name} is {written(value)}; a smaller number is expected"
            ) from None


class Path(Option):
    """A file name, or None."""

    def encode(self, value: StrPath | None) -> bytes | None:
        return None if value is None else path(value, self.name)


class Text(Option):
    """A text, or None."""

    def encode(self, value: Any) -> bytes | None:
        return None if value is None else text(value, self.name)


@dataclass(frozen=True)
class Choice(Option):
    """One of several values."""

    values: Mapping[Any, int] = field(default_factory=dict)

    def encode(self, value: Any) -> int:
        return choice(value, self.values, self.name)


@dataclass(frozen=True)
class Bytes(Option):
    """A size in bytes. Without `least`, None means no limit."""

    least: int | None = None
    most: int = 2**62

    def encode(self, value: Any) -> int:
        if self.least is None:
            return 0 if value is None else number(value, self.name, 1, self.most)
        return number(value, self.name, self.least, self.most)


@dataclass(frozen=True)
class Count(Option):
    """A number. Without `least`, None means no limit."""

    least: int | None = None
    most: int = _MOST

    def encode(self, value: Any) -> int:
        if self.least is None:
            return 0 if value is None else number(value, self.name, 1, self.most)
        return number(value, self.name, self.least, self.most)


def describe(kind: type, table: Table) -> None:
    """Adds the options to the docstring of a class."""
    kind.__doc__ = f"{(kind.__doc__ or '').rstrip()}\n{table.doc}\n    "


class Table:
    """The options of an object, by name."""

    def __init__(self, chapter: str, *options: Option) -> None:
        self._prefix = f"rt_{chapter}_set_"
        self._options = {option.name: option for option in options}
        for option in options:
            OPTION_NAMES[self._prefix + option.c_name] = option.name

    def only(self, *names: str) -> Table:
        """A table with only these options."""
        part = copy.copy(self)
        part._options = {name: self._options[name] for name in names}
        return part

    def __iter__(self) -> Iterator[Option]:
        return iter(self._options.values())

    def __contains__(self, name: str) -> bool:
        return name in self._options

    def __getitem__(self, name: str) -> Option:
        return self._options[name]

    def get(self, name: str, given: Mapping[str, Any]) -> Any:
        """The given value, or the default."""
        return given.get(name, self._options[name].default)

    def apply(self, handle: Handle, given: Mapping[str, Any]) -> None:
        """Sets the given options, and those whose default differs from C's."""
        for name, option in self._options.items():
            if name in given or option.differs:
                setter: Callable[..., int] = getattr(lib, self._prefix + option.c_name)
                check(setter(handle, option.encode(given.get(name, option.default))))

    @property
    def doc(self) -> str:
        """A ``:param:`` for each option, for a docstring that is indented by four."""
        return "\n".join(
            textwrap.fill(
                f":param {option.name}: {option.doc}",
                width=100,
                initial_indent="    ",
                subsequent_indent="        ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for option in self
        )
