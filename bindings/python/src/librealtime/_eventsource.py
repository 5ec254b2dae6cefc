"""The asyncio face of event sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

from ._abi import rt_credentials, rt_status
from ._events import ServerSentEvent
from ._eventsource_base import BaseEventSource, caused
from ._eventsource_options import Options
from ._eventsource_parameters import ErrorEvent, Handlers
from ._reactor import Reactor
from ._registry import Handle
from .exceptions import RealtimeError, StreamEnded, StreamRefused


class EventSource(BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that comes back by itself.

    ``async for event in EventSource(url)`` gives events of every type; it ends after ``close``, and
    with ``reconnect=False`` when the stream does, and raises what is fatal. It lives on the running
    asyncio loop, and belongs to that loop's thread.
    """

    _reactor: Reactor

    def _make(self, options: Options, handlers: Handlers) -> None:
        self._reactor = Reactor.current()
        self._loop = self._reactor.loop
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._task: asyncio.Task[None] | None = None
        try:
            super()._make(options, handlers)
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

    async def __aiter__(self) -> AsyncIterator[ServerSentEvent]:
        inbox = self._inbox
        events = inbox.messages
        self._begin_iterating()
        while True:
            while events:
                event = events.popleft()
                if inbox.paused and len(events) <= inbox.resume_at:
                    self._took()
                self._taken_id = event.id
                yield event
                if self._confirmed_handle is not None:
                    self._confirm()
            if self._is_closed:
                if self._failure is not None:
                    raise self._failure
                return
            await self._wait()

    async def recv(self) -> ServerSentEvent:
        """The next event. Cancelling it loses none.

        :raises StreamEnded: when it is closed and all events were taken; or what was fatal.
        """
        inbox = self._inbox
        events = inbox.messages
        self._begin_iterating()
        while not events:
            if self._is_closed:
                raise self._end()
            await self._wait()
        event = events.popleft()
        if inbox.paused and len(events) <= inbox.resume_at:
            self._took()
        self._taken_id = event.id
        return event

    async def wait_closed(self) -> None:
        """Waits until it is closed; with handlers alone, what a program can wait for.

        :raises RealtimeError: what was fatal.
        """
        while not self._is_closed:
            await self._wait()
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self) -> EventSource:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            # It comes again in the next run.
            self._taken_id = None
        self.close()

    def fail(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        self._failed(ErrorEvent(error, 0, True, None, 0))

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

    def _hold(self) -> None:
        if not self._is_closed and (self._waiters or self._calls_back):
            self._reactor.hold(self)
        else:
            self._reactor.let_go(self)

    def _handlers_changed(self, takes_events: bool = False) -> None:
        super()._handlers_changed(takes_events)
        self._hold()

    # Credentials that have to be fetched.

    def _await_credentials(self, answer: Any, http_status: int) -> int:
        # The loop refers to tasks weakly.
        self._task = self._loop.create_task(self._fetch(answer, http_status))
        return rt_credentials.LATER

    async def _fetch(self, answer: Any, http_status: int) -> None:
        try:
            given = self._take_credentials(await answer)
            if given == rt_credentials.READY:
                self.restart()
            elif self._handle is not None:
                status = rt_status.ERROR_HTTP_STATUS
                message = f"{self._url} answered {http_status}, and there are no credentials"
                self._give_up(StreamRefused(status, message, http_status), http_status)
        except StreamEnded:
            pass
        except Exception as error:
            self._give_up(caused("the credentials could not be had", error))

    # Inside a dispatch.

    def _queue(self, event: ServerSentEvent, size: int) -> None:
        super()._queue(event, size)
        self._wake()

    def _ended(self) -> None:
        super()._ended()
        self._wake()
        task, self._task = self._task, None
        if task is not None and task is not _current_task():
            task.cancel()
        self._reactor.remove(self)

    def _wake(self) -> None:
        for future in self._waiters:
            if not future.done():
                future.set_result(None)

    def _keep(self, error: BaseException) -> None:
        self._reactor.errors.append((self, error))

    def _was_collected(self) -> None:
        super()._was_collected()
        self._reactor.was_collected()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs on this thread
        return None
