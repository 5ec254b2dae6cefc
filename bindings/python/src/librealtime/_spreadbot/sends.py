"""Running sends of a Spreadbot connection."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from typing import Any, Callable, Optional

from .._core.errors import RealtimeError, check
from .._core.handle import Handle
from .._core.values import text
from .._rest.response import RESTResponse
from .callbacks import SPREADBOT

#: Called at the end of a send: with an error if the server does not, or may not, have it.
Ended = Callable[[Optional[RealtimeError], Optional[RESTResponse]], None]
#: A function of the C interface with all its arguments except the place for the number.
Send = Callable[[Handle, Any], int]


class Sends:
    """Running sends by number."""

    def __init__(self, is_durable: bool) -> None:
        self._is_durable = is_durable
        self._endings: dict[int, Ended] = {}
        # Ensures that a number is known before another thread reports its end. Reentrant, since a
        # handler of log lines may send inside a send.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._endings)

    def submit(self, handle: Handle, send: Send, ended: Ended) -> int:
        """Sends, and has `ended` called once at the end of the send."""
        number = ctypes.c_uint64()
        with self._lock:
            try:
                check(send(handle, ctypes.byref(number)))
                self._endings[number.value] = ended
            except BaseException:
                # An interrupt may arrive after it was sent.
                if number.value:
                    self.withdraw(number.value, handle)
                raise
        return number.value

    def ended(
        self, number: int, error: RealtimeError | None, response: RESTResponse | None
    ) -> None:
        with self._lock:
            ended = self._endings.pop(number, None)
        if ended is not None:
            ended(error, response)

    def withdraw(self, number: int, handle: Handle | None) -> None:
        """Called when nobody waits for a send any more. Prevents it from being sent if possible,
        unless it is in an outbox: a caller interrupted while waiting still wants it sent."""
        self._endings.pop(number, None)
        if handle is not None and not self._is_durable:
            check(SPREADBOT.cancel(handle, number))

    def end_all(self, error: RealtimeError) -> None:
        while self._endings:
            try:
                _, ended = self._endings.popitem()
            except KeyError:  # another thread took the last one
                break
            ended(error, None)


class Waiting:
    """A send whose caller waits."""

    is_over = False
    error: RealtimeError | None = None
    response: RESTResponse | None = None

    def ended(self, error: RealtimeError | None, response: RESTResponse | None) -> None:
        self.error, self.response = error, response
        self.is_over = True

    def result(self) -> RESTResponse | None:
        """The result, once it is over."""
        if self.error is not None:
            raise self.error
        return self.response


def ending(future: asyncio.Future[RESTResponse | None]) -> Ended:
    """Completes a future at the end of the send."""

    def ended(error: RealtimeError | None, response: RESTResponse | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(response)
        else:
            future.set_exception(error)

    return ended


def message(is_text: bool, data: bytes) -> Send:
    send = SPREADBOT.send_text if is_text else SPREADBOT.send_binary
    return lambda handle, number: send(handle, data, len(data), number)


def posting(path: str, content_type: str, data: bytes) -> Send:
    where, kind = text(path, "the path"), text(content_type, "content_type")
    return lambda handle, number: SPREADBOT.post(handle, where, kind, data, len(data), number)
