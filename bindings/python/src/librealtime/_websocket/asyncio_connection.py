"""The asyncio face."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from .._core.awaiting import Futures


class Connection(Awaiting, BaseConnection):
    """A WebSocket on the running asyncio loop; belongs to that loop's thread.

    ``async for message in connection`` ends when the connection is closed in order, and raises
    ConnectionClosedError when it is not.
    """

    def __init__(self, reactor: Reactor, url: str, given: Given) -> None:
        self._prepare_awaiting(reactor, *queue_limits(given))
        self._receivers: Futures = {}
        # At least what waits to be sent, looked up when it reaches the limit.
        self._unsent = 0
        self._is_draining = False
        self._is_sending_pieces = False
        super().__init__(reactor.require(), url, given)
        reactor.add(self)

    async def _open(self) -> Connection:
        """Connects; whatever ends the wait early closes what it opened."""
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
        """The next message; str for text, bytes for binary. Cancelling it loses none.

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
                    # A name would keep it while the next one comes.
                    taken = [messages.popleft()]
                    if inbox.paused and len(messages) <= inbox.resume_at:
                        self._took(inbox)
                    yield taken.pop()
                await self._more()
        except ConnectionClosedOK:
            return

    async def recv_streaming(self) -> AsyncIterator[Message]:
        """The next message in pieces: ``async for piece in ws.recv_streaming()``.

        With ``streaming=True`` as they come, and then ``max_size`` does not count; else all at
        once. What is left of a message when the iteration ends early is passed over by the next.

        :raises ConnectionClosed: also when it is lost inside the message.
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
            # Only a message that has nothing else has an empty piece.
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
        """Sends a message. Waits while more than ``write_limit`` bytes wait to be sent, or while
        there is no connection and ``offline_queue`` messages wait for one.

        Cancelled in that wait after the message was queued, it is sent all the same.

        :param message: str is sent as text, bytes as binary. The items of an iterable, or of an
            asynchronous one, are the pieces of one message, sent one by one; when it fails in the
            middle, or is cancelled there, the connection is closed with 1011.
        :param text: sends bytes as text, or str as binary.
        :param compress: whether the message is compressed, where that was agreed; None: if it has
            ``Deflate.min_size`` or more.
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
                # The offline queue: the library owes us the drained callback.
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
        """Sends a message without waiting, for callbacks.

        :raises BufferFull: when more than ``write_limit`` bytes wait already, or ``offline_queue``
            messages for a connection.
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
        """Waits until what goes first has gone."""
        while self._is_draining or self._is_sending_pieces:
            if self._is_closed:
                raise self._closed_error()
            await self._wait(self._waiters)

    def _will_drain(self, size: int) -> bool:
        """Whether a message arms the drained callback: the library's own condition for that."""
        self._unsent = self._buffered()
        return self._unsent + size > self._write_limit

    async def ping(self) -> float:
        """Sends a ping and waits for its pong: the round trip in seconds."""
        ping = self._begin_ping()
        while ping.latency is None:
            if self._is_closed:
                raise self._closed_error()
            if ping.is_lost:
                raise self._lost_error()
            await self._wait(self._waiters)
        return ping.latency

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes in order and waits for the end, ``close_timeout`` at most.

        Messages that were received before can still be taken.
        """
        self._begin_close(code, reason)
        await self._until_closed()

    async def _until_closed(self) -> None:
        while not self._is_closed:
            await self._wait(self._waiters)

    async def wait_closed(self) -> None:
        """Waits until the connection is closed, by whichever side, and its handlers are done."""
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
        """The loop itself failed."""
        self._failure = self._failure or error
        self._abandon()

    async def _more(self) -> None:
        """Waits until a message has come."""
        if self._calls_back:
            raise InvalidState(
                rt_status.ERROR_STATE, "the messages of this connection go to on_message"
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
        return bool(self._waiters or self._receivers) or (self._calls_back and self._is_open)

    def _set_handler(self, name: str, handler: Any) -> None:
        super()._set_handler(name, handler)
        self._hold()
        # Who waits for a message looks whether one is still to come.
        self._wake(self._receivers)

    # Inside a dispatch.

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        super()._received(messages, lengths)
        self._wake(self._receivers)

    def _came(self, piece: Message, length: int, is_last: bool) -> None:
        super()._came(piece, length, is_last)
        self._wake(self._receivers)

    def _went_down(self) -> None:
        # What waited to be sent is gone; what waits for a connection is not.
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
        # As those that were not handed to on_message.
        self._forgets_messages = True
        self._forget_awaited(messages=True)

    def _abandon(self) -> None:
        super()._abandon()
        self._stop_awaiting()

    def _ended(self) -> None:
        super()._ended()
        self._wake(self._receivers)
