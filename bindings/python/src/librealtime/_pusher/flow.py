"""When a Pusher connection stops receiving, because a queue is full."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._core.abi import rt_status
from .._core.endpoint import Endpoint
from .._core.errors import BufferFull
from .._core.inbox import Inbox
from .bindings import Binding

#: How much fuller than its limits a queue may become while a call waits for the server.
_FACTOR = 16


class Flow(Endpoint):
    """Pauses the connection while a queue is full, except while a call waits for the server: its
    answer comes after the events, and nobody may take these before the call has returned."""

    # The iterations whose queues are full.
    _full: set[Binding]
    # Guards what several threads change.
    _guard: Any
    # How many calls wait for the server, and whether a queue has overflowed meanwhile.
    _expecting = 0
    _has_overflowed = False

    def _filled(self, binding: Binding) -> None:
        """Called when the queue of an iteration has become full."""
        self._full.add(binding)
        self._pause()

    def _emptied(self, binding: Binding) -> None:
        """Called when enough of the queue was taken."""
        if binding in self._full:
            self._full.discard(binding)
            self._go_on()

    @property
    def _is_full(self) -> bool:
        """Whether a queue is full."""
        return bool(self._full)

    @property
    def _must_pause(self) -> bool:
        return self._is_full and (not self._expecting or self._has_overflowed)

    @property
    def _is_paused(self) -> bool:
        return self._must_pause

    def _pause(self) -> None:
        if self._is_paused:
            super()._pause()

    def _look_at(self, inbox: Inbox[Any]) -> None:
        """Called after something was added to a queue that was full already."""
        if self._expecting and not self._has_overflowed and inbox.is_beyond(_FACTOR):
            self._has_overflowed = True
            self._pause()
            self._overflowed()

    @contextlib.contextmanager
    def _expects(self) -> Iterator[None]:
        """Receives while a call waits for the server."""
        with self._guard:
            self._expecting += 1
        try:
            if self._is_full:
                self._go_on()
            yield
        finally:
            with self._guard:
                self._expecting -= 1
                if not self._expecting:
                    self._has_overflowed = False
            if self._is_full:
                self._pause()

    def _check_overflow(self) -> None:
        """
        :raises BufferFull: if no answer of the server will come.
        """
        if self._has_overflowed:
            message = (
                f"while this call waits for the server, {_FACTOR} times max_queue events have"
                " come that are not taken: take them in another task or thread"
            )
            raise BufferFull(rt_status.ERROR_BUFFER_FULL, message)

    def _overflowed(self) -> None:
        """Called to wake the calls that wait for the server."""
        raise NotImplementedError
