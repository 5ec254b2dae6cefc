"""How far what was taken is done with, when several take it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any


class TaskTaker:
    """A task that takes items; it is not kept by that."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = weakref.ref(task)
        self._is_cancelled = True  # as far as is known
        me = weakref.ref(self)

        def ended(task: asyncio.Task[Any]) -> None:
            taker = me()
            if taker is not None:
                taker._is_cancelled = task.cancelled()

        task.add_done_callback(ended)

    def is_gone(self, is_leaving: bool) -> bool:
        task = self._task()
        if task is not None and not task.done():
            return False
        is_cancelled = self._is_cancelled if task is None else task.cancelled()
        return not (is_leaving and is_cancelled)


class Taken:
    """Whoever takes an item is done with it when it asks for the next one, or is gone.

    :param is_gone: whether a thread, or a task, takes no more; for one that leaves, and asks for
        no other, one that was cancelled is not gone.
    """

    def __init__(self, is_gone: Callable[[Any, bool], bool]) -> None:
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

    def forget(self) -> None:
        """Of those that were taken none is told any more."""
        with self._lock:
            # Neither by an item that brings no id of its own.
            self._told = self._last
            self._before = dict.fromkeys(self._before)
            self._last = None

    def finished(self, taker: Any, tell: Callable[[str], None], is_leaving: bool = False) -> None:
        """Tells the id up to which all are done with, when it is another than before."""
        with self._lock:
            self._before.pop(taker, None)
            for other in [other for other in self._before if self._is_gone(other, is_leaving)]:
                del self._before[other]
            id_ = next(iter(self._before.values()), self._last)
            if id_ is not None and id_ != self._told:
                self._told = id_
                # Inside the lock, as the ids must be told in their order.
                tell(id_)
