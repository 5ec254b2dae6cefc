"""The asyncio face of whatever delivers items into a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .._core.awaiting import Awaiting, current_task
from .._core.errors import RealtimeError
from .._core.handle import Handle
from .._core.parameters import Given
from .._core.reactor import Reactor, elsewhere
from .._core.shared_options import queue_limits
from .source_base import BaseSource, T, check_flow
from .source_options import ErrorEvent
from .taken import TaskTaker

Self = TypeVar("Self", bound="AsyncSource[Any]")


class AsyncSource(BaseSource[T], Awaiting):
    """Lives on the running asyncio loop, and belongs to that loop's thread."""

    _reactor: Reactor

    def _begin(self, url: str, given: Given) -> None:
        self._reactor = Reactor.current()
        self._loop = self._reactor.loop
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._takers: WeakKeyDictionary[asyncio.Task[Any], TaskTaker] = WeakKeyDictionary()
        self._task: asyncio.Task[None] | None = None
        self._prepare_awaiting(*queue_limits(given))
        try:
            super()._begin(url, given)
        except BaseException:
            self._reactor.release_when_idle()
            raise
        self._reactor.add(self)
        self._hold()

    def _join(self) -> Handle:
        handle = self._reactor.handle
        if handle is None:
            raise RuntimeError("the reactor was given back")
        return handle

    async def __aiter__(self) -> AsyncIterator[T]:
        self._check_loop()
        inbox = self._inbox
        items = inbox.messages
        self._begin_taking()
        while True:
            while items:
                # A name would keep it while the next one comes.
                taken = [items.popleft()]
                if inbox.paused and len(items) <= inbox.resume_at:
                    self._took()
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
            await self._wait()

    async def recv(self) -> T:
        """The next one, as iteration gives them. Cancelling it loses none.

        :raises StreamEnded: when it is closed and all were taken; or what was fatal.
        """
        self._check_loop()
        inbox = self._inbox
        items = inbox.messages
        if self._confirms or not self._is_taken:
            self._begin_taking()
        while not items:
            if self._is_over:
                raise self._end()
            await self._wait()
        item = items.popleft()
        if inbox.paused and len(items) <= inbox.resume_at:
            self._took()
        if self._confirms:
            self._taken.took(self._asker(), item.id)
        return item

    async def wait_closed(self) -> None:
        """Waits until it is closed and its handlers are done; with handlers alone, what a program
        can wait for.

        :raises RealtimeError: what was fatal.
        """
        self._check_loop()
        while not self._is_over or self._is_awaiting:
            await self._wait()
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            # Else it comes again in the next run.
            self._confirm(is_leaving=True)
        super().close()
        try:
            if kind is None and asyncio.get_running_loop() is self._loop:
                await self._let_handlers_finish()
        finally:
            self.close()

    def close(self) -> None:
        super().close()
        self._stop_awaiting()

    close.__doc__ = BaseSource.close.__doc__

    def fail(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        self._failed(ErrorEvent(error, 0, True, None, 0))

    def _check_loop(self) -> None:
        """On another loop nothing would come: ``asyncio.run`` makes one each time."""
        if asyncio.get_running_loop() is not self._loop:
            raise elsewhere(self._kind.noun)

    async def _wait(self) -> None:
        """Waits for something to change; meanwhile the reactor keeps this object alive."""
        future = self._loop.create_future()
        self._waiters[future] = None
        self._reactor.hold(self)
        try:
            await future
        finally:
            self._waiters.pop(future, None)
            self._hold()

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

    def _hold(self) -> None:
        is_wanted = not self._is_closed and (self._waiters or self._calls_back)
        if is_wanted or self._worker is not None:
            self._reactor.hold(self)
        else:
            self._reactor.let_go(self)

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        self._hold()

    def _later(self, awaitable: Awaitable[Any], then: Callable[[Any], None]) -> None:
        # The loop refers to tasks weakly.
        self._task = self._loop.create_task(self._fetch(awaitable, then))

    async def _fetch(self, awaitable: Awaitable[Any], then: Callable[[Any], None]) -> None:
        try:
            then(await awaitable)
        except Exception as error:
            self._give_up("the credentials could not be had", error)

    # Inside a dispatch.

    def _queue(self, item: T, size: int) -> None:
        if self._inbox.add(item, size):
            self._pause()
        if self._waiters:
            self._wake()

    def _ended(self) -> None:
        super()._ended()
        self._wake()
        task, self._task = self._task, None
        if task is not None and task is not current_task():
            task.cancel()
        self._reactor.remove(self)
        self._hold()

    @property
    def _is_paused(self) -> bool:
        return self._inbox.paused or self._awaited.paused

    def _took(self) -> None:
        self._inbox.paused = False
        self._go_on()

    def _go_on(self) -> None:
        handle = self._handle
        if handle is not None and not self._is_paused:
            check_flow(self._kind.resume(handle))

    def _worked_off(self) -> None:
        self._wake()
        self._hold()

    def _wake(self) -> None:
        for future in self._waiters:
            if not future.done():
                future.set_result(None)
        # What comes until they run need not look at them.
        self._waiters.clear()

    def _keep(self, error: BaseException) -> None:
        self._reactor.errors.append((self, error))

    def _was_collected(self) -> None:
        super()._was_collected()
        self._reactor.was_collected()
