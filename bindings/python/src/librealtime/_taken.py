"""How far what was taken is done with, when several take it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Taken:
    """Whoever takes an item is done with it when it asks for the next one, or is gone.

    :param is_gone: whether a thread, or a task, takes no more.
    """

    def __init__(self, is_gone: Callable[[Any], bool]) -> None:
        self._is_gone = is_gone
        # Each taker's item, by the id of the one before it; in the order they were taken.
        self._before: dict[Any, str | None] = {}
        self._last: str | None = None
        self._told: str | None = None
        self._lock = threading.Lock()

    def took(self, taker: Any, id_: str) -> None:
        """To be called in the order of the items."""
        with self._lock:
            self._before[taker] = self._last
            self._last = id_

    def finished(self, taker: Any, tell: Callable[[str], None]) -> None:
        """Tells the id up to which all are done with, when it is another than before."""
        with self._lock:
            self._before.pop(taker, None)
            for other in [other for other in self._before if self._is_gone(other)]:
                del self._before[other]
            id_ = next(iter(self._before.values()), self._last)
            if id_ is not None and id_ != self._told:
                self._told = id_
                # Inside the lock, as the ids must be told in their order.
                tell(id_)
