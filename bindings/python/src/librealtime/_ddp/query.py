"""Queries of local documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.values import invalid, text
from . import ejson

Document = Mapping[str, Any]

_OPTIONS = ("sort", "skip", "limit", "fields")


def query(selector: Any, options: Mapping[str, Any]) -> tuple[bytes | None, bytes | None]:
    """A selector and the options of a query, for C."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"a query has no option {name!r}; there are {', '.join(_OPTIONS)}")
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("sort"), str):
        raise invalid("sort is a str; a dict such as {'name': 1} is expected")
    return (
        None if selector is None else text(ejson.dumps(selector), "the selector"),
        text(ejson.dumps(given), "the options") if given else None,
    )
