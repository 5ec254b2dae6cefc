"""The asyncio face."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Generator, Iterable
from types import TracebackType
from typing import Any

from ._abi import rt_status
from ._base import BaseConnection, OnMessage, payload
from ._batch import Message
from ._options import Deflate, Headers, Options
from ._reactor import Reactor
from .exceptions import (
    ConcurrencyError,
    ConnectionClosedOK,
    InvalidState,
    RealtimeError,
    from_status,
)


class Connection(BaseConnection):
    """A WebSocket on the running asyncio loop; belongs to that loop's thread.

    ``async for message in connection`` ends when the connection is closed in order, and raises
    ConnectionClosedError when it is not.
    """

    def __init__(self, reactor: Reactor, options: Options, on_message: OnMessage) -> None:
        self._reactor = reactor
        self._loop = reactor.loop
        self._receivers: set[asyncio.Future[None]] = set()
        self._waiters: set[asyncio.Future[None]] = set()
        self._waits = 0
        # At least what waits to be sent, looked up when it reaches the limit.
        self._unsent = 0
        self._is_draining = False
        handle = reactor.handle
        if handle is None:
            raise RuntimeError("the reactor was given back")
        super().__init__(handle, options, on_message)
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
        if self._on_message is not None and not self._is_closed:
            # Its messages have somewhere to go even when nobody refers to it.
            self._waits += 1
            self._reactor.hold(self)
        return self

    async def recv(self) -> Message:
        """The next message; str for text, bytes for binary. Cancelling it loses none.

        :raises ConnectionClosed: when the connection is closed and all messages were taken.
        """
        messages = self._inbox.messages
        while not messages:
            await self._more()
        message = messages.popleft()
        if self._inbox.paused and len(messages) <= self._inbox.resume_at:
            self._took()
        return message

    async def __aiter__(self) -> AsyncIterator[Message]:
        inbox = self._inbox
        messages = inbox.messages
        try:
            while True:
                while messages:
                    message = messages.popleft()
                    if inbox.paused and len(messages) <= inbox.resume_at:
                        self._took()
                    yield message
                await self._more()
        except ConnectionClosedOK:
            return

    async def send(self, message: Message | bytearray | memoryview) -> None:
        """Sends a message. Waits while more than ``write_limit`` bytes wait to be sent.

        Cancelled in that wait after the message was queued, it is sent all the same.
        """
        is_text, data = payload(message)
        await self._drain()
        size = len(data)
        will_drain = False
        if self._unsent + size > self._write_limit:
            # The library's own condition for the drained callback, before the same message.
            self._unsent = self._buffered()
            will_drain = self._unsent + size > self._write_limit
        if not self._put(is_text, data):
            await self.wait_closed()
            raise self._closed_error()
        self._unsent += size
        if will_drain:
            self._is_draining = True
            await self._drain()

    def send_nowait(self, message: Message | bytearray | memoryview) -> None:
        """Sends a message without waiting, for callbacks.

        :raises BufferFull: when more than ``write_limit`` bytes wait already.
        """
        is_text, data = payload(message)
        if self._unsent > self._write_limit:
            self._refuse_when_full()
        if not self._put(is_text, data):
            raise from_status(rt_status.ERROR_CLOSED, "the connection is closing")
        self._unsent += len(data)

    async def ping(self) -> float:
        """Sends a ping and waits for its pong: the round trip in seconds."""
        ping = self._begin_ping()
        while ping.latency is None:
            if self._is_closed:
                raise self._closed_error()
            await self._wait(self._waiters)
        return ping.latency

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes in order and waits for the end, ``close_timeout`` at most.

        Messages that were received before can still be taken.
        """
        self._begin_close(code, reason)
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Waits until the connection is closed, by whichever side."""
        while not self._is_closed:
            await self._wait(self._waiters)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(1000 if kind is None else 1011)

    def fail(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        self._failure = self._failure or error
        self._abandon()

    async def _more(self) -> None:
        """Waits until a message has come."""
        if self._on_message is not None:
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

    async def _wait(self, waiters: set[asyncio.Future[None]]) -> None:
        """Waits for something to change; meanwhile the reactor keeps the connection alive."""
        future = self._loop.create_future()
        waiters.add(future)
        self._waits += 1
        self._reactor.hold(self)
        try:
            await future
        finally:
            waiters.discard(future)
            self._waits -= 1
            if self._waits == 0:
                self._reactor.let_go(self)

    # Inside a dispatch.

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        super()._received(messages, lengths)
        _wake(self._receivers)

    def _drained(self) -> None:
        self._unsent = 0
        self._is_draining = False
        super()._drained()

    def _changed(self) -> None:
        _wake(self._waiters)

    def _ended(self) -> None:
        super()._ended()
        _wake(self._receivers)
        self._reactor.remove(self)

    def _keep(self, error: BaseException) -> None:
        self._reactor.errors.append((self, error))

    def _was_collected(self) -> None:
        super()._was_collected()
        self._reactor.connection_was_collected()


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for future in waiters:
        if not future.done():
            future.set_result(None)


class connect:  # noqa: N801
    """Connects to a WebSocket server: ``async with connect(url) as ws`` or ``await connect(url)``.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param url: ``ws://`` or ``wss://``.
    :param on_message: called with each message inside the loop's dispatch, instead of ``recv``:
        the fastest way. What it raises goes to the loop's exception handler.
    :param subprotocols: offered in this order.
    :param additional_headers: a mapping or pairs, for the handshake.
    :param ca_file: a PEM file of certificates to trust instead of the system's.
    :param open_timeout: for everything until the connection is open.
    :param close_timeout: for the closing handshake.
    :param ping_interval: how often a ping is sent.
    :param ping_timeout: how long a ping may stay unanswered.
    :param max_size: the largest message accepted, after decompression.
    :param max_header_size: the largest handshake answer accepted.
    :param max_frame_size: splits messages sent into frames of at most this size.
    :param max_queue: how many messages may wait to be taken before receiving pauses; one read's
        messages may come on top.
    :param max_queue_bytes: the same by their size.
    :param write_limit: how many bytes may wait to be sent before ``send`` waits.
    :param compression: ``"deflate"``, a ``Deflate`` with its settings, or None.
    """

    def __init__(
        self,
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
    ) -> None:
        self._on_message = on_message
        self._options = Options(
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
        self._connection: Connection | None = None

    async def _connect(self) -> Connection:
        reactor = Reactor.current()
        try:
            connection = Connection(reactor, self._options, self._on_message)
        except BaseException:
            reactor.release_when_idle()
            raise
        return await connection._open()

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._connect().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            await self._connection.__aexit__(kind, error, trace)
