"""The blocking face of event sources."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ._driven import Driven
from ._events import ServerSentEvent
from ._eventsource_base import BaseEventSource
from ._eventsource_options import Options
from ._eventsource_parameters import Handlers
from ._registry import Handle, new_loop
from .exceptions import StreamEnded


class EventSource(Driven, BaseEventSource):
    """A stream of Server-Sent Events (HTML §9.2) that comes back by itself; blocking.

    ``for event in EventSource(url)`` gives events of every type; it ends after ``close``, and with
    ``reconnect=False`` when the stream does, and raises what is fatal. Any thread may use it,
    several at once; the one that waits drives it, so events come and handlers are called while
    a call waits, and only then. What handlers raise is raised by that call.
    """

    def _make(self, options: Options, handlers: Handlers) -> None:
        self._prepare_driving()
        super()._make(options, handlers)

    def _join(self) -> Handle:
        return new_loop()

    def __iter__(self) -> Iterator[ServerSentEvent]:
        while True:
            try:
                event = self.recv()
            except StreamEnded:
                return
            yield event

    def recv(self, timeout: float | None = None) -> ServerSentEvent:
        """The next event.

        :raises TimeoutError: when none came in `timeout` seconds.
        :raises StreamEnded: when it is closed and all events were taken; or what was fatal.
        """
        inbox = self._inbox
        events = inbox.messages
        self._begin_iterating()
        with self._condition:
            while not events:
                if self._is_closed:
                    raise self._end()
                if not self._drive(lambda: len(events) > 0 or self._is_closed, timeout):
                    raise TimeoutError(f"no event within {timeout} s")
            event = events.popleft()
            if inbox.paused and len(events) <= inbox.resume_at:
                self._took()
            self._taken_id = event.id
        return event

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until it is closed; with handlers alone this is the call that runs it.

        :raises TimeoutError: when it is still open after `timeout` seconds.
        :raises RealtimeError: what was fatal.
        """
        if not self._until(lambda: self._is_closed, timeout):
            raise TimeoutError(f"the event source is still open after {timeout} s")
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> EventSource:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            # It comes again in the next run.
            self._taken_id = None
        self.close()

    def _await_credentials(self, answer: Any, http_status: int) -> int:
        if hasattr(answer, "close"):
            answer.close()
        raise TypeError("credentials of a blocking event source are given by a plain function")

    # Inside a dispatch.

    def _queue(self, event: ServerSentEvent, size: int) -> None:
        with self._condition:
            super()._queue(event, size)
