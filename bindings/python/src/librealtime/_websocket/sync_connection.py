"""The blocking WebSocket connection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from .._core.abi import rt_status
from .._core.driven import Driven, deadline_after
from .._core.errors import BufferFull, ConnectionClosedOK, InvalidState, from_status, timed_out
from .._core.handle import Handle
from .._core.parameters import Given
from .._core.payload import Data, is_data, payload
from .._core.wheel import Wheel
from .batch import Message
from .connection_base import BaseConnection
from .pieces import Joined, PieceEncoder, iterable
from .pings import Pong
from .state import State


class Connection(Driven, BaseConnection):
    """A blocking WebSocket connection. Several threads may use it at once.

    ``for message in connection`` ends when the connection is closed normally, else it raises
    ConnectionClosedError.
    """

    def __init__(
        self,
        loop: Handle,
        url: str,
        given: Given,
        wheel: Wheel | None = None,
    ) -> None:
        self._prepare_driving(wheel)
        # Sending in pieces takes several calls; only one thread at a time may do so.
        self._sending = threading.RLock()
        super().__init__(loop, url, given)

    def _open(self) -> Connection:
        """Connects; if the wait ends early, closes what it opened."""
        try:
            self._start()
            self._until(lambda: self._is_open or self._is_closed)
        except BaseException:
            self._abandon()
            raise
        if not self._is_open:
            raise self._open_error()
        self._live_by_itself()
        self._let_messages_come()
        return self

    def recv(self, timeout: float | None = None) -> Message:
        """The next message; str for text, bytes for binary.

        :raises TimeoutError: if no message arrived within `timeout` seconds or, with
            ``streaming=True``, no piece of it.
        :raises ConnectionClosed: when the connection is closed and all messages were taken.
        """
        if self._pieces is not None:
            return self._recv_joined(timeout)
        inbox = self._inbox
        messages = inbox.messages
        deadline = deadline_after(timeout)
        while True:
            with self._lock:
                if messages:
                    message = messages.popleft()
                    if inbox.paused and len(messages) <= inbox.resume_at:
                        self._took(inbox)
                    return message
            self._more(messages, timeout, deadline)

    def __iter__(self) -> Iterator[Message]:
        try:
            while True:
                yield self.recv()
        except ConnectionClosedOK:
            return

    def recv_streaming(self, timeout: float | None = None) -> Iterator[Message]:
        """The next message in pieces: ``for piece in ws.recv_streaming()``.

        With ``streaming=True`` pieces are yielded as they arrive, without the limit ``max_size``;
        otherwise all at once. If the iteration ends early, the next one skips the rest of the
        message.

        :raises TimeoutError: if no piece arrived within `timeout` seconds.
        :raises ConnectionClosed: also when the connection is lost during the message.
        """
        if self._pieces is None:
            yield self.recv(timeout)
            return
        reader = self._begin_reading()
        while self._is_midway:
            self._next_piece(reader, timeout)
        is_first = True
        while is_first or self._is_midway:
            piece = self._next_piece(reader, timeout)
            # Skip empty pieces, except that of an empty message.
            if piece or (is_first and not self._is_midway):
                yield piece
                self._check_reader(reader)
            is_first = False

    def _next_piece(self, reader: object, timeout: float | None) -> Message:
        inbox = self._pieces
        assert inbox is not None
        deadline = deadline_after(timeout)
        while True:
            with self._lock:
                self._check_reader(reader)
                if inbox.messages:
                    return self._take(inbox)
            self._more(inbox.messages, timeout, deadline)

    def _recv_joined(self, timeout: float | None) -> Message:
        joined = Joined(self._max_size)
        for piece in self.recv_streaming(timeout):
            if not joined.add(piece):
                self._begin_close(1009, "")
                raise joined.error()
        return joined.message()

    def send(
        self,
        message: Data | Iterable[Data],
        *,
        text: bool | None = None,
        compress: bool | None = None,
    ) -> None:
        """Sends a message. Waits while more than ``write_limit`` bytes are unsent, or while there
        is no connection and ``offline_queue`` messages wait for one.

        Inside ``on_message`` it does not wait: see ``send_nowait``.

        :param message: str is sent as text, bytes as binary. The items of an iterable are the
            pieces of one message and are sent one by one. If it fails in the middle, the connection
            is closed with 1011.
        :param text: True sends bytes as text, False sends str as binary.
        :param compress: whether to compress the message, if compression was negotiated. None: if it
            has at least ``Deflate.min_size`` bytes.
        """
        if not is_data(message):
            self._send_pieces(message, text, compress)  # type: ignore[arg-type]
            return
        if self._is_inside_callback():
            self.send_nowait(message, text=text, compress=compress)  # type: ignore[arg-type]
            return
        is_text, data = payload(message, text)  # type: ignore[arg-type]
        while True:
            try:
                with self._sending:
                    is_queued = self._put(is_text, data, compress)
                break
            except BufferFull:
                # The offline queue is full: there is room as soon as there is a connection.
                self._until(lambda: self.state not in (State.WAITING, State.CONNECTING))
        if not is_queued:
            self.wait_closed()
            raise self._closed_error()
        self._drain()

    def send_nowait(
        self, message: Data, *, text: bool | None = None, compress: bool | None = None
    ) -> None:
        """Queues a message without waiting; the next turn of the loop, in any thread, sends it.

        :raises BufferFull: if more than ``write_limit`` bytes, or ``offline_queue`` messages
            without a connection, are already waiting.
        """
        is_text, data = payload(message, text)
        self._refuse_when_full()
        if not self._put(is_text, data, compress):
            raise from_status(rt_status.ERROR_CLOSED, "the connection is closing")

    def _send_pieces(
        self, pieces: Iterable[Data], text: bool | None, compress: bool | None
    ) -> None:
        encoder = PieceEncoder(text)
        source = iter(iterable(pieces))
        for first in source:
            data = encoder.encode(first)
            break
        else:
            return
        with self._sending:
            self._begin_pieces(encoder.is_text, compress)
            losses = self._losses
            try:
                self._put_piece(data, losses)
                self._drain()
                for piece in source:
                    self._put_piece(encoder.encode(piece), losses)
                    self._drain()
                self._end_pieces(losses)
            except BaseException:
                self._break_pieces(losses)
                raise
        self._drain()

    def _drain(self) -> None:
        """Sends, and waits while too many bytes are unsent."""
        if self._is_inside_callback():
            return
        self._turn(0, lambda: self._is_closed)
        limit = self._write_limit
        self._until(lambda: self._is_closed or self._buffered() <= limit)
        if self._is_closed and not self._is_closing:
            raise self._closed_error()

    def ping(self, data: Data | None = None) -> Pong:
        """Sends a ping.

            if not ws.ping().wait(5):
                print("no pong within 5 s")

        :param data: its payload, at most 125 bytes. Default None: one that the library chooses.
        :returns: the pong to wait for, which may be ignored. A pong also answers all earlier pings.
        :raises ConcurrencyError: if an earlier ping with the same payload waits for its pong.
        """
        pong = Pong(None if data is None else payload(data)[1], self)
        with self._lock:
            self._pings.send(self._require_handle(), pong)
        self._drain()
        return pong

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Performs the closing handshake and waits up to ``close_timeout`` for the end.

        Inside ``on_message`` it starts to close and does not wait.
        """
        self._begin_close(code, reason)
        if not self._is_inside_callback():
            self._until(lambda: self._is_closed)

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until the connection is closed, by either side.

        :raises TimeoutError: if it is still open after `timeout` seconds.
        """
        if not self._until(lambda: self._is_closed, timeout):
            raise timed_out(f"the connection is still open after {timeout} s")

    def _leave(self, in_order: bool) -> None:
        self.close(1000 if in_order else 1011)

    def _more(self, messages: Sized, timeout: float | None, deadline: float | None) -> None:
        """Waits until a message has arrived; another thread may take it."""
        if self._calls_back:
            raise InvalidState(
                rt_status.ERROR_STATE, "this connection passes its messages to on_message"
            )
        with self._lock:
            # The last messages arrive before it is closed.
            if self._is_closed and not messages:
                raise self._closed_error()

        def is_over() -> bool:
            return len(messages) > 0 or self._is_closed or self._calls_back

        if not self._until(is_over, deadline=deadline):
            raise timed_out(f"no message within {timeout} s")

    @property
    def _is_wanted(self) -> bool:
        return self._is_heard

    def _set_handler(self, name: str, handler: Any) -> None:
        with self._lock:
            super()._set_handler(name, handler)
        self._hold()
        # Wake threads in recv, so that they check whether a message can still arrive.
        self._rouse(self._loop_handle)

    # Called during a dispatch.

    def _put_in(self, messages: list[Message], lengths: list[int]) -> None:
        with self._lock:
            if not self._calls_back:
                super()._put_in(messages, lengths)
                return
        # Another thread has set a handler in the meantime.
        self._received(messages, lengths)

    def _came(self, piece: Message, length: int, is_last: bool) -> None:
        with self._lock:
            super()._came(piece, length, is_last)

    def _went_down(self) -> None:
        with self._lock:
            super()._went_down()

    def _ponged(self, round_trip_us: int) -> None:
        with self._lock:
            super()._ponged(round_trip_us)

    def _changed(self) -> None:
        """Threads that wait check their conditions after the turn."""
