"""The asyncio Spreadbot connection."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from .._core.errors import check, timed_out
from .._core.handle import Handle
from .._core.naming import kind_of
from .._core.parameters import Given
from .._core.payload import payload
from .._core.reactor import Reactor
from .._rest.asyncio_client import Answer, Stream
from .._rest.response import RESTResponse
from .._sources.asyncio_source import AsyncSource
from . import sends
from .asyncio_rest import SpreadbotREST
from .callbacks import SPREADBOT
from .connection_base import BaseSpreadbot
from .options import SpreadbotMessage
from .rest_base import sharing
from .shared_rest import BaseSharedREST

Task = asyncio.Task[Any]


class Spreadbot(AsyncSource[SpreadbotMessage], BaseSpreadbot):
    """Receives the messages of a path exactly once and in order, by whichever transport works: a
    WebSocket, server-sent events or long polls. Sends in order and reports failures to the sender.

    ``async for message in bot`` yields each ``SpreadbotMessage``, ends after ``close_connection``
    and raises fatal errors. The object uses the running asyncio loop and belongs to that loop's
    thread. Handlers may be coroutine functions, which are awaited one after the other.
    """

    def _begin(self, url: str, given: Given) -> None:
        self._rest: SharedREST | None = None
        # Sends that are awaited: the number and the waiting task, by the future.
        self._senders: dict[asyncio.Future[RESTResponse | None], tuple[int, Task | None]] = {}
        # The task that took the last message.
        self._taker: weakref.ref[Task] | None = None
        self._is_closing = False
        super()._begin(url, given)

    @property
    def rest(self) -> SpreadbotREST:
        """Requests below the base URL that share the tokens; they end with this object."""
        if self._rest is None:
            self._require_handle()
            self._rest = SharedREST(self)
        return self._rest

    async def establish_connection(
        self, path: str, *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Connects to a path, replacing any current connection, and waits until it is connected.

        Cursor and tokens are kept, but a different path starts without a cursor. Without a network
        it waits for one. Cancelling the wait does not end the connection.

        :param path: below the base URL, optionally with a query; ``""`` for the base URL itself.
        :param wait: False returns at once; ``on_open`` is called when it is connected.
        :raises TimeoutError: if it is not connected within `timeout` seconds; it continues to try.
        :raises RealtimeError: a fatal error; ``StreamEnded`` if it was closed in the meantime.
        """
        self._may_wait(timeout)
        if self._is_closing:
            raise self._closed_in_order()
        self._begin_establishing(path)
        if not wait:
            return
        if not await self._until(lambda: self._is_open or self._is_over, timeout):
            raise timed_out(f"not connected within {timeout} s")
        if not self._is_open:
            raise self._end()

    async def send_message_string(
        self, message: str, timeout: float | None = None
    ) -> RESTResponse | None:
        """Sends a text after all earlier sends, and waits until the server has it. Uses the
        WebSocket or, if none is connected, a POST; without a network it waits. Cancelling the wait
        withdraws a message that has not been passed to a WebSocket.

        :returns: the response to the POST; None for the WebSocket.
        :raises TimeoutError: if the outcome is unknown after `timeout` seconds; a message that has
            not been passed to a WebSocket is withdrawn.
        :raises ConnectionLost: if the connection broke before the server confirmed the message; it
            may or may not have arrived.
        :raises ConnectionClosedError: if nothing is established, or it was closed before.
        :raises HTTPStatusError: if the server refused the POST.
        :raises QueueFull: if ``queue_capacity`` messages are waiting.
        :raises BufferFull: see ``max_queue``.
        :raises StoreError: if the message cannot be written to the outbox.
        """
        if not isinstance(message, str):
            raise TypeError(f"a text message is {kind_of(message)}; a str is expected")
        return await self._send(sends.message(True, payload(message)[1]), timeout)

    async def send_message_binary(
        self, message: bytes | bytearray | memoryview, timeout: float | None = None
    ) -> RESTResponse | None:
        """Sends bytes; otherwise like ``send_message_string``."""
        if isinstance(message, str):
            raise TypeError("a binary message is a str; bytes are expected")
        return await self._send(sends.message(False, payload(message)[1]), timeout)

    async def _send(self, send: sends.Send, timeout: float | None = None) -> RESTResponse | None:
        limit = self._may_wait(timeout)
        future: asyncio.Future[RESTResponse | None] = self._loop.create_future()
        number = self._submit(send, sends.ending(future))
        sender = self._worker if self._is_in_handler else asyncio.current_task()
        self._senders[future] = number, sender
        self._look_at_senders()
        try:
            if limit is None or (await asyncio.wait([future], timeout=limit))[0]:
                return await future
            future.cancel()
            self._sends.withdraw(number, self._handle)
            raise timed_out(f"the server did not confirm the send within {timeout} s")
        except asyncio.CancelledError:
            if not future.cancel() and not future.cancelled():
                # It has just ended: nobody asks for its outcome.
                future.exception()
            self._sends.withdraw(number, self._handle)
            raise
        finally:
            del self._senders[future]
            self._hold()

    async def close_connection(self) -> None:
        """Ends the connection, a WebSocket by its closing handshake, and waits until it has ended.

        Waiting sends raise ``ConnectionClosedError``; those in an outbox wait for the next
        ``establish_connection``, which is allowed. Messages already received can still be taken.
        """
        self._check_loop()
        handle = self._handle
        if handle is None or not self._is_established:
            return
        self._revive()
        check(SPREADBOT.close(handle))
        del handle
        epoch = self._epoch
        while self._is_established and self._epoch == epoch:
            await self._wait(self._waiters)

    async def aclose(self) -> None:
        """Calls ``close_connection`` and releases the object and ``rest``. Before that, it awaits
        what handlers returned, except those of messages."""
        await self._leave(in_order=True)

    def close(self) -> None:
        """Drops the connection without a closing handshake. No more handlers are called, queued
        messages are discarded, and running sends raise ``ConnectionClosedError``."""
        super().close()
        if self._rest is not None:
            self._rest._give_back()

    async def _leave(self, in_order: bool) -> None:
        self._is_closing = self._forgets_messages = True
        try:
            if asyncio.get_running_loop() is self._loop:
                await self.close_connection()
                if in_order:
                    await self._let_handlers_finish()
        finally:
            self.close()

    # Senders, and consumers of messages.

    def _begin_taking(self) -> None:
        task = asyncio.current_task()
        if task is None or (self._taker is not None and self._taker() is task):
            return
        self._taker = weakref.ref(task)
        me = weakref.ref(self)

        def stopped(_: Task) -> None:
            bot = me()
            if bot is not None:
                bot._look_at_senders()

        # Ends sends that wait for this task to continue.
        task.add_done_callback(stopped)

    def _another_takes(self, sender: object) -> bool:
        takers = (self._taker() if self._taker is not None else None, self._worker)
        return any(
            taker is not None and taker is not sender and not taker.done() for taker in takers
        )

    def _look_at_senders(self) -> None:
        for future, (number, task) in tuple(self._senders.items()):
            if not future.done() and self._is_stuck(task):
                self._sends.withdraw(number, self._handle)
                future.set_exception(self._stuck())

    # Overrides of the base class.

    def _changed(self) -> None:
        self._wake(self._waiters)
        self._hold()


class SharedREST(BaseSharedREST[Answer, Stream], SpreadbotREST):
    """``bot.rest``: ends with the connection whose tokens it shares."""

    def _find_reactor(self) -> Reactor:
        bot: Spreadbot = self._owning()
        bot._check_loop()
        return bot._reactor

    def _make(self, loop: Handle) -> Handle:
        return sharing(self._owning()._require_handle())

    async def _post_durably(self, send: sends.Send) -> RESTResponse:
        answer: RESTResponse = await self._owning()._send(send)
        return answer
