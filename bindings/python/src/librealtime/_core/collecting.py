"""Collects what a function of the C interface passes to a callback, one call for each value."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

# What the functions that are running collect.
_lists: dict[int, list[Any]] = {}
_keys = itertools.count(1)


def collect(callback: Any, call: Callable[[Any, int], int]) -> tuple[int, list[Any]]:
    """Calls a function with a callback and a key, under which that calls ``add``.

    :returns: the status, and what was added.
    """
    key = next(_keys)
    _lists[key] = []
    try:
        status = call(callback, key)
    finally:
        found = _lists.pop(key)
    return status, found


def add(key: int, value: Any) -> None:
    _lists[key].append(value)
