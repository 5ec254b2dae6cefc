"""Queries of local documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from .. import ejson
from .._core.values import invalid, text

Document = Mapping[str, Any]
#: Such as ``{"name": 1}`` or ``["name"]``.
Sort = Union[Document, Sequence[Any]]

_OPTIONS = ("sort", "skip", "limit", "fields", "projection")


def query(selector: Any, options: Mapping[str, Any]) -> tuple[bytes | None, bytes | None]:
    """A selector and the options of a query, for C."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"a query has no option {name!r}; there are {', '.join(_OPTIONS)}")
    if "projection" in given:
        if "fields" in given:
            raise TypeError("fields and projection are the same option; give one of them")
        given["fields"] = given.pop("projection")
    if isinstance(given.get("sort"), str):
        raise invalid("sort is a str; a dict such as {'name': 1} is expected")
    return (
        None if selector is None else text(ejson.dumps(selector), "the selector"),
        text(ejson.dumps(given), "the options") if given else None,
    )
