"""Tests with time limits, on machines that may be busy."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import pytest


class _Attempt:
    """One run of the body; a failure is ignored unless it is the last."""

    def __init__(self, limit: float, is_last: bool) -> None:
        self.has_passed = False
        self._limit = limit
        self._is_last = is_last

    def __enter__(self) -> float:
        return self._limit

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.has_passed = error is None
        # "DID NOT RAISE" is not an Exception.
        return not self._is_last and isinstance(error, (Exception, pytest.fail.Exception))


def patiently(first: float = 0.25, last: float = 60) -> Iterator[_Attempt]:
    """Runs the body of a loop with growing time limits in seconds. It must pass with one of them.

    For a limit that is meant to pass, but only after something else has happened; or for one that
    must not pass, although it is short. Either can fail because the machine is busy, so each limit
    is four times the one before. Failures with the last one are raised.

        for attempt in patiently():
            with attempt as limit:
                ...
    """
    limit = first
    while True:
        attempt = _Attempt(limit, is_last=4 * limit > last)
        yield attempt
        if attempt.has_passed:
            return
        limit *= 4
