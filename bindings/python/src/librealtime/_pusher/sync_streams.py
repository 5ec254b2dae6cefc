"""Iterations over events in blocking programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core.driven import deadline_after
from .._core.errors import StreamEnded, timed_out
from .event import PusherEvent
from .streams import BaseEvents, Listening


class PusherEvents(BaseEvents):
    """``for event in events`` yields each ``PusherEvent``. Several threads may use it at once."""

    _owner: Any

    def __iter__(self) -> Iterator[PusherEvent]:
        try:
            while True:
                # A local variable would keep the event alive while waiting for the next.
                yield self.recv()
        except StreamEnded:
            return

    def recv(self, timeout: float | None = None) -> PusherEvent:
        """The next event, as in iteration.

        :raises TimeoutError: if none arrived within `timeout` seconds.
        :raises StreamEnded: at the end.
        :raises RealtimeError: the error that ended the connection.
        """
        events, owner = self._inbox.messages, self._owner
        deadline = deadline_after(timeout)
        self._revive()
        while True:
            with owner._guard:
                if events:
                    return self._take()
                if self._is_over:
                    raise self._end()
            if not owner._until(lambda: len(events) > 0 or self._is_over, deadline=deadline):
                raise timed_out(f"no event within {timeout} s")

    def _put(self, event: PusherEvent) -> None:
        with self._owner._guard:
            super()._put(event)

    def close(self) -> None:
        super().close()
        self._owner._rouse(self._owner._loop_handle)

    close.__doc__ = BaseEvents.close.__doc__


class BlockingListening(Listening):
    """The blocking side of an object with events."""

    def events(self, event: str | None = None) -> PusherEvents:
        """The events that arrive from now on, to iterate or ``recv``.

        :param event: only events of this name. Default None: all except the library's own, whose
            names begin with ``pusher:``.
        """
        return PusherEvents(self, event)

    def __iter__(self) -> Iterator[PusherEvent]:
        return iter(self.events())
