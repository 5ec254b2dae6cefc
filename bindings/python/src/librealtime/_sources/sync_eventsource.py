"""The blocking event source."""

from __future__ import annotations

from .eventsource_base import BaseEventSource
from .server_sent_event import ServerSentEvent
from .sync_source import BlockingSource


class EventSource(BlockingSource[ServerSentEvent], BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that reconnects by itself; blocking.

    ``for event in EventSource(url)`` yields events of every type. It ends after ``close`` or, with
    ``reconnect=False``, at the end of the stream; fatal errors are raised. Several threads may use
    it at once. Events are received and handlers called whatever the program does: in the call that
    waits, or in a thread of the object while no call does. The call that waits, or the next one,
    raises what handlers raise.
    """
