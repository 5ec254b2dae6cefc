"""The blocking Spreadbot connection."""

from __future__ import annotations

import threading

from .._core.abi import rt_status
from .._core.errors import InvalidState, check, timed_out
from .._core.handle import Handle
from .._core.naming import kind_of
from .._core.parameters import Given
from .._core.payload import payload
from .._core.wheel import Wheel
from .._rest.response import RESTResponse
from .._rest.sync_client import Stream
from .._sources.sync_source import BlockingSource
from . import sends
from .callbacks import SPREADBOT
from .connection_base import BaseSpreadbot
from .options import SpreadbotMessage
from .rest_base import sharing
from .shared_rest import BaseSharedREST
from .sync_rest import SpreadbotREST


class Spreadbot(BlockingSource[SpreadbotMessage], BaseSpreadbot):
    """Receives the messages of a path exactly once and in order, by whichever transport works: a
    WebSocket, server-sent events or long polls. Sends in order and reports failures to the sender.
    Blocking.

    ``for message in bot`` yields each ``SpreadbotMessage``, ends after ``close_connection`` and
    raises fatal errors. Several threads may use it at once. Messages are received, pings answered
    and handlers called whatever the program does: in the call that waits, or in a thread of the
    object while no call does. The call that waits, or the next one, raises what handlers raise.
    """

    def _begin(self, url: str, given: Given) -> None:
        self._rest: SharedREST | None = None
        # The thread that took the last message.
        self._taker: threading.Thread | None = None
        super()._begin(url, given)

    @property
    def rest(self) -> SpreadbotREST:
        """Requests below the base URL that share the tokens; they end with this object."""
        with self._lock:
            if self._rest is None:
                self._require_handle()
                self._rest = SharedREST(self)
            return self._rest

    def establish_connection(
        self, path: str, *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Connects to a path, replacing any current connection, and waits until it is connected.

        Cursor and tokens are kept, but a different path starts without a cursor. Without a network
        it waits for one.

        :param path: below the base URL, optionally with a query; ``""`` for the base URL itself.
        :param wait: False returns at once, as in a handler; ``on_open`` is called when connected.
        :raises TimeoutError: if it is not connected within `timeout` seconds; it continues to try.
        :raises RealtimeError: a fatal error; ``StreamEnded`` if it was closed in the meantime.
        """
        self._check_waiting(wait)
        self._begin_establishing(path)
        if not wait:
            return
        if not self._until(lambda: self._is_open or self._is_over, timeout):
            raise timed_out(f"not connected within {timeout} s")
        if not self._is_open:
            raise self._end()

    def send_message_string(
        self, message: str, timeout: float | None = None
    ) -> RESTResponse | None:
        """Sends a text after all earlier sends, and waits until the server has it. Uses the
        WebSocket or, if none is connected, a POST; without a network it waits.

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
        return self._send(sends.message(True, payload(message)[1]), timeout)

    def send_message_binary(
        self, message: bytes | bytearray | memoryview, timeout: float | None = None
    ) -> RESTResponse | None:
        """Sends bytes; otherwise like ``send_message_string``."""
        if isinstance(message, str):
            raise TypeError("a binary message is a str; bytes are expected")
        return self._send(sends.message(False, payload(message)[1]), timeout)

    def _send(self, what: sends.Send, timeout: float | None) -> RESTResponse | None:
        self._check_waiting(True)
        me, send = threading.current_thread(), sends.Waiting()
        number = self._submit(what, send.ended)
        try:
            done = self._until(lambda: send.is_over or self._is_stuck(me), timeout)
        finally:
            if not send.is_over:
                self._sends.withdraw(number, self._handle)
                self._hold()
        if send.error is not None:
            raise send.error
        if not done:
            raise timed_out(f"the server did not confirm the send within {timeout} s")
        if not send.is_over:
            raise self._stuck()
        return send.response

    def _check_waiting(self, waits: bool) -> None:
        """Checks, before anything is sent, that this call may wait."""
        if waits and self._is_inside_callback():
            message = "a callback cannot wait for its own connection"
            raise InvalidState(rt_status.ERROR_REENTRANT, message)

    def close_connection(self, timeout: float | None = None) -> None:
        """Ends the connection, a WebSocket by its closing handshake, and waits until it has ended;
        in a handler it does not wait.

        Waiting sends raise ``ConnectionClosedError``; those in an outbox wait for the next
        ``establish_connection``, which is allowed. Messages already received can still be taken.

        :raises TimeoutError: if it has not ended after `timeout` seconds.
        """
        handle = self._handle
        if handle is None or not self._is_established:
            return
        self._revive()
        check(SPREADBOT.close(handle))
        del handle
        if self._is_inside_callback():
            return
        epoch = self._epoch
        if not self._until(lambda: not self._is_established or self._epoch != epoch, timeout):
            raise timed_out(f"the connection is not closed after {timeout} s")

    def close(self) -> None:
        """Calls ``close_connection`` and releases the object and ``rest``. No more handlers are
        called, and queued messages are discarded."""
        try:
            self.close_connection()
        finally:
            super().close()
            if self._rest is not None:
                self._rest.close()

    def _leave(self, in_order: bool) -> None:
        self.close()

    # Overrides of the base class.

    def _begin_taking(self) -> None:
        self._taker = threading.current_thread()

    def _another_takes(self, sender: object) -> bool:
        taker = self._taker
        return taker is not None and taker is not sender and taker.is_alive()

    def _changed(self) -> None:
        """Threads that wait check their conditions after this turn or the next."""
        self._hold()


class SharedREST(BaseSharedREST[RESTResponse, Stream], SpreadbotREST):
    """``bot.rest``: ends with the connection whose tokens and loop it shares."""

    def _prepare_driving(self, wheel: Wheel | None = None) -> None:
        super()._prepare_driving(self._owning()._wheel)

    def _join(self) -> Handle:
        bot = self._owning()
        made = sharing(bot._require_handle())
        self._loop_handle = bot._loop_handle
        return made

    def _post_durably(self, send: sends.Send) -> RESTResponse:
        answer: RESTResponse = self._owning()._send(send, None)
        return answer
