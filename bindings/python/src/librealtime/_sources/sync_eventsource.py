"""The blocking face of event sources."""

from __future__ import annotations

from .eventsource_base import BaseEventSource
from .server_sent_event import ServerSentEvent
from .sync_source import BlockingSource


class EventSource(BlockingSource[ServerSentEvent], BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that comes back by itself; blocking.

    ``for event in EventSource(url)`` gives events of every type; it ends after ``close``, and with
    ``reconnect=False`` when the stream does, and raises what is fatal. Any thread may use it,
    several at once. Events come and handlers are called whatever the program does: in the call that
    waits, or in a thread of its own while none does. What handlers raise is raised by that call, or
    by the next that waits.
    """
