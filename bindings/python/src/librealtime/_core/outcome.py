"""What a call waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

#: True for success, the error of a failure, None while it is not known.
Result = Union[bool, Exception, None]


class Outcome:
    """The first result of a question. It stays: when the call that waits for it continues, another
    thread or a drop may have changed what was asked for.
    """

    def __init__(self, ask: Callable[[], Result]) -> None:
        self._ask = ask
        self._result: Result = None

    def is_known(self) -> bool:
        if self._result is None:
            self._result = self._ask()
        return self._result is not None

    def check(self) -> None:
        """Raises the error of a failure."""
        if isinstance(self._result, Exception):
            raise self._result
