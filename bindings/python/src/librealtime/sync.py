"""The blocking face: ``librealtime.sync.connect``, with the names of the asyncio one.

The thread that waits drives the connection, without holding the interpreter's lock; there is no
thread behind it. So pings are answered and messages taken in while a call of the connection runs,
and only then.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from ._abi import rt_status
from ._base import BaseConnection, OnMessage, payload
from ._batch import Message
from ._callbacks import Handle, new_loop
from ._loader import lib
from ._options import Deflate, Headers, Options
from .exceptions import ConnectionClosedOK, InvalidState, check, from_status

__all__ = ["Connection", "connect"]

_logger = logging.getLogger("librealtime")

#: The longest wait in one call of the library, whose clock counts in 32 bits.
_LONGEST_TURN_MS = 2**31 - 1


class Connection(BaseConnection):
    """A blocking WebSocket connection. Any thread may use it, several at once.

    ``for message in connection`` ends when the connection is closed in order, and raises
    ConnectionClosedError when it is not.
    """

    def __init__(self, options: Options, on_message: OnMessage) -> None:
        # A lock that cannot be nested: a turn gives it back wholly while the library waits.
        self._condition = threading.Condition(threading.Lock())
        # The thread inside the library; the others wait for the condition.
        self._driver: int | None = None
        self._errors: list[BaseException] = []
        self._loop: Handle | None = new_loop()
        super().__init__(self._loop, options, on_message)

    def _open(self) -> Connection:
        """Connects; whatever ends the wait early closes what it opened."""
        try:
            self._start()
            self._until(lambda: self._is_open or self._is_closed)
        except BaseException:
            self._abandon()
            raise
        if not self._is_open:
            raise self._open_error()
        self._let_messages_come()
        return self

    def recv(self, timeout: float | None = None) -> Message:
        """The next message; str for text, bytes for binary.

        :raises TimeoutError: when none came in `timeout` seconds.
        :raises ConnectionClosed: when the connection is closed and all messages were taken.
        """
        messages = self._inbox.messages
        with self._condition:
            while not messages:
                self._more(timeout)
            message = messages.popleft()
            if self._inbox.paused and len(messages) <= self._inbox.resume_at:
                self._took()
        return message

    def __iter__(self) -> Iterator[Message]:
        try:
            while True:
                yield self.recv()
        except ConnectionClosedOK:
            return

    def send(self, message: Message | bytearray | memoryview) -> None:
        """Sends a message. Waits while more than ``write_limit`` bytes wait to be sent.

        Inside ``on_message`` it does not wait: see ``send_nowait``.
        """
        if self._is_inside_callback():
            self.send_nowait(message)
            return
        is_text, data = payload(message)
        if not self._put(is_text, data):
            self.wait_closed()
            raise self._closed_error()
        with self._condition:
            if self._driver is None and not self._is_closed:
                self._turn(0)
        self._until(lambda: self._is_closed or self._buffered() <= self._write_limit)
        if self._is_closed and not self._is_closing:
            raise self._closed_error()

    def send_nowait(self, message: Message | bytearray | memoryview) -> None:
        """Queues a message without waiting; it is sent by the next turn of any thread's call.

        :raises BufferFull: when more than ``write_limit`` bytes wait already.
        """
        is_text, data = payload(message)
        self._refuse_when_full()
        if not self._put(is_text, data):
            raise from_status(rt_status.ERROR_CLOSED, "the connection is closing")

    def ping(self, timeout: float | None = None) -> float:
        """Sends a ping and waits for its pong: the round trip in seconds."""
        with self._condition:
            ping = self._begin_ping()
        if not self._until(lambda: ping.latency is not None or self._is_closed, timeout):
            raise TimeoutError(f"no pong within {timeout} s")
        if ping.latency is None:
            raise self._closed_error()
        return ping.latency

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes in order and waits for the end, ``close_timeout`` at most.

        Inside ``on_message`` it begins to close and does not wait.
        """
        self._begin_close(code, reason)
        if not self._is_inside_callback():
            self._until(lambda: self._is_closed)

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until the connection is closed, by whichever side.

        With ``on_message`` this is the call that runs the connection.

        :raises TimeoutError: when it is still open after `timeout` seconds.
        """
        if not self._until(lambda: self._is_closed, timeout):
            raise TimeoutError(f"the connection is still open after {timeout} s")

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(1000 if kind is None else 1011)

    def _is_inside_callback(self) -> bool:
        return self._driver == threading.get_ident()

    def _more(self, timeout: float | None) -> None:
        """Waits until a message has come; the lock is held."""
        if self._on_message is not None:
            raise InvalidState(
                rt_status.ERROR_STATE, "the messages of this connection go to on_message"
            )
        if self._is_closed:
            raise self._closed_error()
        messages = self._inbox.messages
        if not self._drive(lambda: bool(messages) or self._is_closed, timeout):
            raise TimeoutError(f"no message within {timeout} s")

    def _until(self, is_ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Drives the connection, or waits for the thread that does; False when time is up."""
        with self._condition:
            return self._drive(is_ready, timeout)

    def _drive(self, is_ready: Callable[[], bool], timeout: float | None) -> bool:
        """The same with the lock held."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_ready():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._is_inside_callback():
                raise InvalidState(
                    rt_status.ERROR_REENTRANT, "a callback cannot wait for its own connection"
                )
            if self._driver is not None:
                self._condition.wait(left)
            elif left is None:
                self._turn(-1)
            else:
                self._turn(min(math.ceil(left * 1000), _LONGEST_TURN_MS))
            if left == 0 and not is_ready():
                return False
        return True

    def _turn(self, timeout_ms: int) -> None:
        """One dispatch of the library's loop, with our lock given back meanwhile."""
        if self._loop is None:
            return
        self._driver = threading.get_ident()
        self._condition.release()
        try:
            # No name for it here: a traceback that is kept would keep the loop's descriptors.
            status = lib.rt_loop_dispatch(self._loop, timeout_ms)
        finally:
            self._condition.acquire()
            self._driver = None
            self._condition.notify_all()
        check(status)
        if self._errors:
            self._raise_errors()

    def _raise_errors(self) -> None:
        """Raises what a callback raised; further ones of the same turn are logged."""
        errors, self._errors = self._errors, []
        for error in errors[1:]:
            _logger.error("another callback of the same turn failed", exc_info=error)
        raise errors[0]

    # Inside a dispatch.

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        if self._on_message is None:
            with self._condition:
                super()._received(messages, lengths)
        else:
            super()._received(messages, lengths)

    def _ponged(self, round_trip_us: int) -> None:
        with self._condition:
            super()._ponged(round_trip_us)

    def _changed(self) -> None:
        """Whoever waits looks again after the turn."""

    def _ended(self) -> None:
        super()._ended()
        # Given back with its descriptors when the dispatch that we are in returns.
        self._loop = None

    def _keep(self, error: BaseException) -> None:
        self._errors.append(error)


def connect(
    url: str,
    *,
    on_message: OnMessage = None,
    subprotocols: Iterable[str] | None = None,
    additional_headers: Headers | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    open_timeout: float | None = 10,
    close_timeout: float | None = 10,
    ping_interval: float | None = 20,
    ping_timeout: float | None = 20,
    max_size: int | None = 2**26,
    max_header_size: int = 2**16,
    max_frame_size: int | None = None,
    max_queue: int | None = 256,
    max_queue_bytes: int | None = 2**20,
    write_limit: int = 2**20,
    compression: str | Deflate | None = "deflate",
) -> Connection:
    """Connects to a WebSocket server: ``with connect(url) as ws``.

    The parameters are those of ``librealtime.connect``; ``on_message`` is called inside whichever
    call drives the connection, which raises what it raised.
    """
    options = Options(
        url=url,
        subprotocols=subprotocols,
        additional_headers=additional_headers,
        ca_file=ca_file,
        open_timeout=open_timeout,
        close_timeout=close_timeout,
        ping_interval=ping_interval,
        ping_timeout=ping_timeout,
        max_size=max_size,
        max_header_size=max_header_size,
        max_frame_size=max_frame_size,
        max_queue=max_queue,
        max_queue_bytes=max_queue_bytes,
        write_limit=write_limit,
        compression=compression,
    )
    return Connection(options, on_message)._open()
