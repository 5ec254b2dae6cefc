"""The asyncio event source."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .._core.errors import check
from .._core.handle import Handle
from .asyncio_source import AsyncSource
from .eventsource_base import BaseEventSource
from .eventsource_callbacks import EVENTSOURCE
from .server_sent_event import ServerSentEvent


class EventSource(AsyncSource[ServerSentEvent], BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that reconnects by itself.

    ``async for event in EventSource(url)`` yields events of every type. It ends after ``close`` or,
    with ``reconnect=False``, at the end of the stream; fatal errors are raised. The object uses the
    running asyncio loop and belongs to that loop's thread. Handlers may be coroutine functions,
    which are awaited one after the other.
    """

    # Whether ids are confirmed after awaiting the handlers.
    _are_awaited = False
    _reported_id: str | None = None

    def reset_stored_id(self) -> None:
        super().reset_stored_id()
        self._is_forgotten = True
        for awaitable, _, _ in self._awaited.messages:
            if isinstance(awaitable, _Handled):
                awaitable.is_forgotten = True
                # The event whose handlers are being awaited.
                if not self._is_telling:
                    break

    reset_stored_id.__doc__ = BaseEventSource.reset_stored_id.__doc__

    def _was_handled(self, id_: str) -> None:
        # An event without its own id must not restore an id that was reset.
        is_forgotten = self._is_forgotten or id_ == self._reported_id
        self._reported_id = id_
        handle = self._confirmed_handle
        if handle is None or (self._worker is None and not self._are_awaited):
            return
        if not self._are_awaited:
            self._are_awaited = True
            check(EVENTSOURCE.set_confirms_ids(handle, True))
        self._await(_Handled(handle, id_, is_forgotten), 1, is_end=True)


class _Handled:
    """Confirms an event's id after its handlers' results, even if the source was closed since."""

    def __init__(self, handle: Handle, id_: str, is_forgotten: bool) -> None:
        self._handle, self._id = handle, id_
        self.is_forgotten = is_forgotten

    def __await__(self) -> Generator[Any, None, None]:
        if not self.is_forgotten:
            check(EVENTSOURCE.confirm_id(self._handle, self._id.encode()))
        yield from ()
