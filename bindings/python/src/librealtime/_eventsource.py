"""The asyncio face of event sources."""

from __future__ import annotations

from ._events import ServerSentEvent
from ._eventsource_base import BaseEventSource
from ._source import AsyncSource


class EventSource(AsyncSource[ServerSentEvent], BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that comes back by itself.

    ``async for event in EventSource(url)`` gives events of every type; it ends after ``close``, and
    with ``reconnect=False`` when the stream does, and raises what is fatal. It lives on the running
    asyncio loop, and belongs to that loop's thread.
    """
