"""The blocking side of objects that deliver items into a queue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from .._core.driven import DrivenEndpoint, deadline_after
from .._core.errors import StreamEnded, timed_out
from .._core.parameters import Given
from .source_base import BaseSource, T


class BlockingSource(DrivenEndpoint, BaseSource[T]):
    """Driven by any thread that waits for it."""

    def _begin(self, url: str, given: Given) -> None:
        begin = super()._begin
        self._construct(lambda: begin(url, given))

    def __iter__(self) -> Iterator[T]:
        try:
            while True:
                # A local variable would keep the item alive while waiting for the next.
                yield self.recv()
        except StreamEnded:
            return

    def recv(self, timeout: float | None = None) -> T:
        """The next item, as in iteration.

        :raises TimeoutError: if none arrived within `timeout` seconds.
        :raises StreamEnded: when it is closed and all items were taken.
        :raises RealtimeError: a fatal error.
        """
        inbox = self._inbox
        items = inbox.messages
        if self._confirms or not self._is_taken:
            self._begin_taking()
        deadline = deadline_after(timeout)
        while True:
            with self._lock:
                if items:
                    item = items.popleft()
                    if inbox.paused and len(items) <= inbox.resume_at:
                        self._took(inbox)
                    if self._confirms:
                        self._taken.took(self._asker(), item.id)
                    return item
                if self._is_over:
                    raise self._end()
            if not self._until(lambda: len(items) > 0 or self._is_over, deadline=deadline):
                raise timed_out(f"no {self._kind.item} within {timeout} s")

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until it is closed. For programs that only use handlers.

        :raises TimeoutError: if it is still open after `timeout` seconds.
        :raises RealtimeError: a fatal error.
        """
        if not self._until(lambda: self._is_over, timeout):
            raise timed_out(f"the {self._kind.noun} is still open after {timeout} s")
        if self._failure is not None:
            raise self._failure

    def _asker(self) -> Any:
        return threading.current_thread()

    @staticmethod
    def _is_gone(taker: Any, is_leaving: bool) -> bool:
        return not taker.is_alive()

    def _leave(self, in_order: bool) -> None:
        if in_order:
            # Otherwise the next run receives it again.
            self._confirm(is_leaving=True)
        self.close()

    @property
    def _is_wanted(self) -> bool:
        return self._calls_back

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        self._hold()

    # Called during a dispatch.

    def _queue(self, item: T, size: int) -> None:
        with self._lock:
            if self._inbox.add(item, size):
                self._pause()
