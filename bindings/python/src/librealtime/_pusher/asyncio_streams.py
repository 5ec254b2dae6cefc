"""Iterations over events in asyncio."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .event import PusherEvent
from .streams import BaseEvents, Listening

if TYPE_CHECKING:
    from .._core.awaiting import Futures


class PusherEvents(BaseEvents):
    """``async for event in events`` yields each ``PusherEvent``."""

    _owner: Any

    def __init__(self, source: AsyncListening, event: str | None) -> None:
        self._waiters: Futures = {}
        super().__init__(source, event)
        source._streams.add(self)

    def __aiter__(self) -> PusherEvents:
        return self

    async def __anext__(self) -> PusherEvent:
        if not self._inbox.messages:
            await self._arrival()
            if not self._inbox.messages:
                if self._failure is not None:
                    raise self._failure
                raise StopAsyncIteration
        return self._take()

    async def recv(self) -> PusherEvent:
        """The next event, as in iteration. Cancelling the call loses none.

        :raises StreamEnded: at the end.
        :raises RealtimeError: the error that ended the connection.
        """
        if not self._inbox.messages:
            await self._arrival()
            if not self._inbox.messages:
                raise self._end()
        return self._take()

    async def _arrival(self) -> None:
        """Waits for an event, or for the end."""
        owner = self._owner
        owner._check_loop()
        while not self._inbox.messages and not self._is_over:
            await owner._wait(self._waiters)

    def _put(self, event: PusherEvent) -> None:
        super()._put(event)
        self._wake()

    def _wake(self) -> None:
        if self._waiters:
            self._owner._wake(self._waiters)

    def close(self) -> None:
        super().close()
        self._wake()

    close.__doc__ = BaseEvents.close.__doc__


class AsyncListening(Listening):
    """The asyncio side of an object with events."""

    @functools.cached_property
    def _streams(self) -> WeakSet[PusherEvents]:
        return WeakSet()

    def _wake_streams(self) -> None:
        """Called when no more events will come."""
        for stream in tuple(self._streams):
            stream._wake()

    def events(self, event: str | None = None) -> PusherEvents:
        """The events that arrive from now on, to iterate or ``recv``.

        :param event: only events of this name. Default None: all except the library's own, whose
            names begin with ``pusher:``.
        """
        return PusherEvents(self, event)

    def __aiter__(self) -> PusherEvents:
        return self.events()
