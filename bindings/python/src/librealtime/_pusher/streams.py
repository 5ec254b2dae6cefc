"""Queues of events that are iterated."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from typing import Any

from .._core.abi import rt_status
from .._core.errors import RealtimeError, StreamEnded
from .._core.inbox import Inbox
from .._core.uncopied import Uncopied
from .bindings import Bindable
from .event import PusherEvent

#: How many events, and how many characters, a channel keeps for its first iteration.
_BACKLOG = 100
_BACKLOG_SIZE = 1 << 20
#: Events of the library; only an iteration of that very name has them.
_OWN = "pusher:"


class Listening(Bindable):
    """An object with events: a connection, a channel, a user."""

    _backlog: Backlog | None = None

    def _owning(self) -> Any:
        """The connection."""
        raise NotImplementedError

    @property
    def _is_gone(self) -> bool:
        """Whether it gets no more events, although the connection may continue."""
        return False

    def _begin_binding(self) -> None:
        # A program that binds handlers needs no backlog.
        self._begin_taking()

    def _begin_taking(self) -> deque[PusherEvent]:
        """Ends the backlog, and returns it."""
        backlog, self._backlog = self._backlog, None
        if backlog is None:
            return deque()
        self._bindings.remove(lambda one: one.handler == backlog.put)
        return backlog.events


class Backlog:
    """The events of a channel before its first iteration or handler: a server may send some in the
    same packet as the confirmation for which the program waits."""

    def __init__(self) -> None:
        self.events: deque[PusherEvent] = deque()
        self._size = 0

    def put(self, event: PusherEvent) -> None:
        events = self.events
        events.append(event)
        self._size += _size_of(event)
        while len(events) > _BACKLOG or self._size > _BACKLOG_SIZE:
            self._size -= _size_of(events.popleft())


def _size_of(event: PusherEvent) -> int:
    return len(event.event) + len(event.raw or "")


class BaseEvents(Uncopied):
    """Events in the order of their arrival, in a queue of its own, from its creation to ``close``,
    or until nothing refers to it. While the queue is full, the connection stops receiving.

    Iteration ends after ``close``, when the channel is unsubscribed, and when the connection is
    closed or disconnected. It raises the error that ended the connection.
    """

    # Defaults for an object whose constructor failed.
    _is_closed = True

    def __init__(self, source: Listening, event: str | None) -> None:
        owner = source._owning()
        self._owner = owner
        self._source = source
        self._event = event
        self._inbox: Inbox[PusherEvent] = Inbox(*owner._limits)
        # In a list, so that the function that is bound can be given another one.
        self._me = me = [weakref.ref(self)]

        def came(event: PusherEvent) -> None:
            stream = me[0]()
            if stream is not None:
                stream._put(event)

        source._check_open()
        earlier = source._begin_taking()
        self._binding = source._bindings.add(event, came)
        self._is_closed = False
        for one in earlier:
            if event is None or one.event == event:
                self._put(one)

    # The default outlives the module at interpreter exit.
    def __del__(self, _suppress: Any = contextlib.suppress, _errors: Any = Exception) -> None:
        if not self._is_closed:
            self._is_closed = True
            with _suppress(_errors):
                self._owner._was_dropped(self._source._bindings, self._binding)

    def __repr__(self) -> str:
        what = "all" if self._event is None else repr(self._event)
        kind = type(self)
        return f"<{kind.__module__}.{kind.__name__} {what} of {self._source!r}>"

    def close(self) -> None:
        """Receives no more events, and discards those that are queued."""
        if not self._is_closed:
            self._is_closed = True
            self._source._bindings.remove(lambda one: one is self._binding)
            self._inbox.messages.clear()
            self._owner._emptied(self._binding)

    def _put(self, event: PusherEvent) -> None:
        """Queues an event; called during a dispatch."""
        name, raw, inbox = event.event, event.raw, self._inbox
        if self._event is None and name.startswith(_OWN):
            return
        if inbox.add(event, len(name) + len(raw) if raw else len(name)):
            self._owner._filled(self._binding)
        elif inbox.paused:
            self._owner._look_at(inbox)

    def _revive(self) -> None:
        """Called before it waits: a finalizer may do that, see ``Registration.revive``."""
        if self._me[0]() is None:
            self._me[0] = weakref.ref(self)

    def _take(self) -> PusherEvent:
        """The next event; there must be one."""
        inbox = self._inbox
        event = inbox.messages.popleft()
        if inbox.paused and len(inbox.messages) <= inbox.resume_at:
            inbox.paused = False
            self._owner._emptied(self._binding)
        return event

    @property
    def _is_over(self) -> bool:
        """Whether no more events will come."""
        return self._is_closed or self._source._is_gone or self._owner._is_over

    @property
    def _failure(self) -> RealtimeError | None:
        """Why it ended; None if it ended in order."""
        is_own = self._is_closed or self._source._is_gone
        return None if is_own else self._owner._failure

    def _end(self) -> RealtimeError:
        return self._failure or StreamEnded(rt_status.ERROR_CLOSED, "no more events will come")
