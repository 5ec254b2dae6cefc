"""Tracks, for several concurrent consumers, up to which item all have finished."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any


class TaskTaker:
    """A task that takes items; holds only a weak reference to it."""

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
    """A consumer has finished an item when it asks for the next one, or has ended.

    :param is_gone: whether a consuming thread or task has ended; when the source is being left,
        a cancelled task does not count as ended.
    """

    def __init__(self, is_gone: Callable[[Any, bool], bool]) -> None:
        self._is_gone = is_gone
        # Each consumer's item, as the id of the item before it; in the order of the items.
        self._before: dict[Any, str | None] = {}
        self._last: str | None = None
        self._reported: str | None = None
        # Reentrant: `tell` may call a function of the caller that resets the id.
        self._lock = threading.RLock()

    def took(self, taker: Any, id_: str) -> None:
        """Must be called in the order of the items."""
        with self._lock:
            self._before[taker] = self._last
            self._last = id_

    def forget(self) -> None:
        """Drops the ids of all items taken so far."""
        with self._lock:
            # A later item without its own id must not restore one, either.
            self._reported = self._last
            self._before = dict.fromkeys(self._before)
            self._last = None

    def finished(self, taker: Any, tell: Callable[[str], None], is_leaving: bool = False) -> None:
        """Calls `tell` with the id up to which all have finished, if it has changed."""
        with self._lock:
            self._before.pop(taker, None)
            for other in [other for other in self._before if self._is_gone(other, is_leaving)]:
                del self._before[other]
            id_ = next(iter(self._before.values()), self._last)
            if id_ is not None and id_ != self._reported:
                self._reported = id_
                # Inside the lock, so that ids are reported in order.
                tell(id_)
