"""The asyncio WebSocket connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from .._core.abi import rt_status
from .._core.awaiting import Awaiting
from .._core.errors import (
    BufferFull,
    ConcurrencyError,
    ConnectionClosedOK,
    InvalidState,
    RealtimeError,
    from_status,
)
from .._core.parameters import Given
from .._core.payload import Data, is_data, payload
from .._core.reactor import Reactor
from .._core.shared_options import queue_limits
from .batch import Message
from .connection_base import BaseConnection
from .pieces import Joined, PieceEncoder, each_of
from .pings import AwaitedPing

if TYPE_CHECKING:
    from .._core.awaiting import Futures


class Connection(Awaiting, BaseConnection):
    """A WebSocket on the running asyncio loop; belongs to that loop's thread.

    ``async for message in connection`` ends when the connection is closed normally, else it raises
    ConnectionClosedError.
    """

    def __init__(self, reactor: Reactor, url: str, given: Given) -> None:
        self._prepare_awaiting(reactor, *queue_limits(given))
        self._receivers: Futures = {}
        # A lower bound of the unsent bytes; the exact number is read when this reaches the limit.
        self._unsent = 0
        self._is_draining = False
        self._is_sending_pieces = False
        super().__init__(reactor.require(), url, given)
        reactor.add(self)

    async def _open(self) -> Connection:
        """Connects; if the wait ends early, closes what it opened."""
        try:
            self._start()
            while not self._is_open and not self._is_closed:
                await self._wait(self._waiters)
        except BaseException:
            self._abandon()
            raise
        if not self._is_open:
            raise self._open_error()
        self._let_messages_come()
        self._hold()
        return self

    async def recv(self) -> Message:
        """The next message; str for text, bytes for binary. Cancelling the call loses no message.

        :raises ConnectionClosed: when the connection is closed and all messages were taken.
        """
        if self._pieces is not None:
            return await self._recv_joined()
        inbox = self._inbox
        messages = inbox.messages
        while not messages:
            await self._more()
        message = messages.popleft()
        if inbox.paused and len(messages) <= inbox.resume_at:
            self._took(inbox)
        return message

    async def __aiter__(self) -> AsyncIterator[Message]:
        inbox = self._inbox
        messages = inbox.messages
        try:
            while self._pieces is not None:
                yield await self._recv_joined()
            while True:
                while messages:
                    # A local variable would keep the message alive while waiting for the next.
                    taken = [messages.popleft()]
                    if inbox.paused and len(messages) <= inbox.resume_at:
                        self._took(inbox)
                    yield taken.pop()
                await self._more()
        except ConnectionClosedOK:
            return

    async def recv_streaming(self) -> AsyncIterator[Message]:
        """The next message in pieces: ``async for piece in ws.recv_streaming()``.

        With ``streaming=True`` pieces are yielded as they arrive, without the limit ``max_size``;
        otherwise all at once. If the iteration ends early, the next one skips the rest of the
        message.

        :raises ConnectionClosed: also when the connection is lost during the message.
        """
        if self._pieces is None:
            yield await self.recv()
            return
        reader = self._begin_reading()
        while self._is_midway:
            await self._next_piece(reader)
        is_first = True
        while is_first or self._is_midway:
            piece = await self._next_piece(reader)
            # Skip empty pieces, except that of an empty message.
            if piece or (is_first and not self._is_midway):
                yield piece
                self._check_reader(reader)
            is_first = False

    async def _next_piece(self, reader: object) -> Message:
        inbox = self._pieces
        assert inbox is not None
        self._check_reader(reader)
        while not inbox.messages:
            await self._more()
            self._check_reader(reader)
        return self._take(inbox)

    async def _recv_joined(self) -> Message:
        joined = Joined(self._max_size)
        async for piece in self.recv_streaming():
            if not joined.add(piece):
                self._begin_close(1009, "")
                raise joined.error()
        return joined.message()

    async def send(
        self,
        message: Data | Iterable[Data] | AsyncIterable[Data],
        *,
        text: bool | None = None,
        compress: bool | None = None,
    ) -> None:
        """Sends a message. Waits while more than ``write_limit`` bytes are unsent, or while there
        is no connection and ``offline_queue`` messages wait for one.

        If it is cancelled while it waits after queueing the message, the message is still sent.

        :param message: str is sent as text, bytes as binary. The items of an iterable, or of an
            asynchronous iterable, are the pieces of one message and are sent one by one. If it
            fails or is cancelled in the middle, the connection is closed with 1011.
        :param text: True sends bytes as text, False sends str as binary.
        :param compress: whether to compress the message, if compression was negotiated. None: if it
            has at least ``Deflate.min_size`` bytes.
        """
        if not is_data(message):
            await self._send_pieces(message, text, compress)  # type: ignore[arg-type]
            return
        is_text, data = payload(message, text)  # type: ignore[arg-type]
        if self._is_draining or self._is_sending_pieces:
            await self._turn_to_send()
        size = len(data)
        while True:
            will_drain = self._unsent + size > self._write_limit and self._will_drain(size)
            try:
                is_queued = self._put(is_text, data, compress)
                break
            except BufferFull:
                # The offline queue is full: the library will call the drained callback.
                self._is_draining = True
                await self._turn_to_send()
        if not is_queued:
            await self._until_closed()
            raise self._closed_error()
        self._unsent += size
        if will_drain:
            self._is_draining = True
            await self._drain()

    def send_nowait(
        self, message: Data, *, text: bool | None = None, compress: bool | None = None
    ) -> None:
        """Sends a message without waiting, for use in callbacks.

        :raises BufferFull: if more than ``write_limit`` bytes, or ``offline_queue`` messages
            without a connection, are already waiting.
        """
        is_text, data = payload(message, text)
        if self._unsent > self._write_limit:
            self._refuse_when_full()
        if not self._put(is_text, data, compress):
            raise from_status(rt_status.ERROR_CLOSED, "the connection is closing")
        self._unsent += len(data)

    async def _send_pieces(
        self,
        pieces: Iterable[Data] | AsyncIterable[Data],
        text: bool | None,
        compress: bool | None,
    ) -> None:
        encoder = PieceEncoder(text)
        source = each_of(pieces)
        try:
            data = encoder.encode(await source.__anext__())
        except StopAsyncIteration:
            return
        while self._is_draining or self._is_sending_pieces:
            await self._turn_to_send()
        self._begin_pieces(encoder.is_text, compress)
        self._is_sending_pieces = True
        losses = self._losses
        try:
            await self._send_piece(data, losses)
            async for piece in source:
                await self._send_piece(encoder.encode(piece), losses)
            self._end_pieces(losses)
        except BaseException:
            self._break_pieces(losses)
            raise
        finally:
            self._is_sending_pieces = False
            self._wake(self._waiters)

    async def _send_piece(self, data: bytes, losses: int) -> None:
        will_drain = self._will_drain(len(data))
        self._put_piece(data, losses)
        self._unsent += len(data)
        if will_drain:
            self._is_draining = True
            await self._drain()

    async def _turn_to_send(self) -> None:
        """Waits until earlier messages are sent."""
        while self._is_draining or self._is_sending_pieces:
            if self._is_closed:
                raise self._closed_error()
            await self._wait(self._waiters)

    def _will_drain(self, size: int) -> bool:
        """Whether a message arms the drained callback, by the library's own condition."""
        self._unsent = self._buffered()
        return self._unsent + size > self._write_limit

    async def ping(self, data: Data | None = None) -> asyncio.Future[float]:
        """Sends a ping.

            pong = await ws.ping()
            latency = await pong

        :param data: its payload, at most 125 bytes. Default None: one that the library chooses.
        :returns: a future with the round-trip time in seconds, which may be ignored. It raises
            ConnectionClosed if the connection is closed or lost before the pong. A pong also
            answers all earlier pings.
        :raises ConcurrencyError: if an earlier ping with the same payload waits for its pong.
        """
        pong: asyncio.Future[float] = self._loop.create_future()
        ping = AwaitedPing(None if data is None else payload(data)[1], pong)
        self._pings.send(self._require_handle(), ping)
        pong.add_done_callback(lambda _: self._hold())
        self._hold()
        return pong

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Performs the closing handshake and waits up to ``close_timeout`` for the end.

        Messages received earlier can still be taken.
        """
        self._begin_close(code, reason)
        await self._until_closed()

    async def _until_closed(self) -> None:
        while not self._is_closed:
            await self._wait(self._waiters)

    async def wait_closed(self) -> None:
        """Waits until the connection is closed, by either side, and its handlers have finished."""
        while not self._is_closed or self._is_awaiting:
            await self._wait(self._waiters)

    async def _leave(self, in_order: bool) -> None:
        try:
            await self.close(1000 if in_order else 1011)
            if in_order:
                await self._let_handlers_finish()
        finally:
            self._stop_awaiting()

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        self._failure = self._failure or error
        self._abandon()

    async def _more(self) -> None:
        """Waits until a message has arrived."""
        if self._calls_back:
            raise InvalidState(
                rt_status.ERROR_STATE, "this connection passes its messages to on_message"
            )
        if self._is_closed:
            raise self._closed_error()
        if self._receivers:
            raise ConcurrencyError(
                rt_status.ERROR_STATE, "another task is receiving from this connection"
            )
        await self._wait(self._receivers)

    async def _drain(self) -> None:
        while self._is_draining:
            if self._is_closed:
                raise self._closed_error()
            await self._wait(self._waiters)

    @property
    def _is_wanted(self) -> bool:
        is_awaited = bool(self._waiters or self._receivers) or self._pings.are_awaited
        return is_awaited or self._is_heard

    def _set_handler(self, name: str, handler: Any) -> None:
        super()._set_handler(name, handler)
        self._hold()
        # Wake tasks in recv, so that they check whether a message can still arrive.
        self._wake(self._receivers)

    # Called during a dispatch.

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        super()._received(messages, lengths)
        self._wake(self._receivers)

    def _came(self, piece: Message, length: int, is_last: bool) -> None:
        super()._came(piece, length, is_last)
        self._wake(self._receivers)

    def _went_down(self) -> None:
        # Unsent messages are dropped; only messages that wait for a connection are kept.
        self._is_draining = self._is_draining and self._buffered() > 0
        super()._went_down()
        self._wake(self._receivers)

    def _drained(self) -> None:
        self._unsent = 0
        self._is_draining = False
        super()._drained()

    def _changed(self) -> None:
        self._wake(self._waiters)

    def _begin_close(self, code: int, reason: str) -> None:
        super()._begin_close(code, reason)
        # As for messages not yet passed to on_message.
        self._forgets_messages = True
        self._forget_awaited(messages=True)

    def _abandon(self) -> None:
        super()._abandon()
        self._stop_awaiting()

    def _ended(self) -> None:
        super()._ended()
        self._wake(self._receivers)
