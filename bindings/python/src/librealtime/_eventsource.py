"""The asyncio face of event sources."""

from __future__ import annotations

from ._events import ServerSentEvent
from ._eventsource_base import BaseEventSource
from ._eventsource_callbacks import EVENTSOURCE
from ._registry import Handle
from ._source import AsyncSource
from .exceptions import check


class EventSource(AsyncSource[ServerSentEvent], BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that comes back by itself.

    ``async for event in EventSource(url)`` gives events of every type; it ends after ``close``, and
    with ``reconnect=False`` when the stream does, and raises what is fatal. It lives on the running
    asyncio loop, and belongs to that loop's thread. Handlers may be coroutine functions, which are
    awaited one after the other.
    """

    # Whether handlers confirm ids.
    _are_awaited = False

    def _was_told(self, id_: str) -> None:
        handle = self._confirmed_handle
        if handle is None or (self._worker is None and not self._are_awaited):
            return
        if not self._are_awaited:
            self._are_awaited = True
            check(EVENTSOURCE.set_confirms_ids(handle, True))
        self._await(_handled(handle, id_), 1, is_end=True)


async def _handled(handle: Handle, id_: str) -> None:
    """Behind what an event's handlers returned; of a source that was closed meanwhile, too."""
    check(EVENTSOURCE.confirm_id(handle, id_.encode()))
