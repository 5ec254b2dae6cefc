"""The asyncio side of objects that deliver items into a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from .._core.awaiting import Awaiting
from .._core.parameters import Given
from .._core.shared_options import queue_limits
from .source_base import BaseSource, T
from .taken import TaskTaker


class AsyncSource(Awaiting, BaseSource[T]):
    """Uses the running asyncio loop and belongs to that loop's thread."""

    def _begin(self, url: str, given: Given) -> None:
        self._takers: WeakKeyDictionary[asyncio.Task[Any], TaskTaker] = WeakKeyDictionary()
        begin = super()._begin
        self._construct(lambda: begin(url, given), *queue_limits(given))

    async def __aiter__(self) -> AsyncIterator[T]:
        self._check_loop()
        inbox = self._inbox
        items = inbox.messages
        self._begin_taking()
        while True:
            while items:
                # A local variable would keep the item alive while waiting for the next.
                taken = [items.popleft()]
                if inbox.paused and len(items) <= inbox.resume_at:
                    self._took(inbox)
                confirms = self._confirms
                if confirms:
                    self._taken.took(self._asker(), taken[0].id)
                yield taken.pop()
                if confirms:
                    self._confirm()
            if self._is_over:
                if self._failure is not None:
                    raise self._failure
                return
            await self._wait(self._waiters)

    async def recv(self) -> T:
        """The next item, as in iteration. Cancelling the call loses none.

        :raises StreamEnded: when it is closed and all items were taken.
        :raises RealtimeError: a fatal error.
        """
        self._check_loop()
        inbox = self._inbox
        items = inbox.messages
        if self._confirms or not self._is_taken:
            self._begin_taking()
        while not items:
            if self._is_over:
                raise self._end()
            await self._wait(self._waiters)
        item = items.popleft()
        if inbox.paused and len(items) <= inbox.resume_at:
            self._took(inbox)
        if self._confirms:
            self._taken.took(self._asker(), item.id)
        return item

    async def wait_closed(self) -> None:
        """Waits until it is closed and its handlers have finished. For programs that only use
        handlers.

        :raises RealtimeError: a fatal error.
        """
        self._check_loop()
        while not self._is_over or self._is_awaiting:
            await self._wait(self._waiters)
        if self._failure is not None:
            raise self._failure

    async def _leave(self, in_order: bool) -> None:
        if in_order:
            # Otherwise the next run receives it again.
            self._confirm(is_leaving=True)
        super().close()
        try:
            if in_order and asyncio.get_running_loop() is self._loop:
                await self._let_handlers_finish()
        finally:
            self.close()

    def close(self) -> None:
        super().close()
        self._stop_awaiting()

    close.__doc__ = BaseSource.close.__doc__

    def _asker(self) -> Any:
        task = asyncio.current_task()
        if task is None:
            return None
        taker = self._takers.get(task)
        if taker is None:
            taker = self._takers[task] = TaskTaker(task)
        return taker

    @staticmethod
    def _is_gone(taker: Any, is_leaving: bool) -> bool:
        return taker is None or bool(taker.is_gone(is_leaving))

    @property
    def _is_wanted(self) -> bool:
        return bool(self._waiters) or self._calls_back

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        self._hold()

    # Called during a dispatch.

    def _queue(self, item: T, size: int) -> None:
        if self._inbox.add(item, size):
            self._pause()
        if self._waiters:
            self._wake(self._waiters)
