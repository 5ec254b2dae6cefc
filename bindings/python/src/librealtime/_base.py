"""What the asyncio and the blocking connection share."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Optional

from ._abi import rt_status, rt_websocket_state
from ._batch import Message
from ._callbacks import Handle, attach, new_websocket
from ._inbox import Inbox
from ._loader import lib
from ._options import Options, encode, limit, text
from .exceptions import (
    OK_CLOSE_CODES,
    BufferFull,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    RealtimeError,
    check,
    from_status,
)

OnMessage = Optional[Callable[[Message], object]]


class State(IntEnum):
    """Where a connection stands."""

    NEW = rt_websocket_state.NEW
    CONNECTING = rt_websocket_state.CONNECTING
    OPEN = rt_websocket_state.OPEN
    CLOSING = rt_websocket_state.CLOSING
    CLOSED = rt_websocket_state.CLOSED


class Ping:
    """A ping under way."""

    __slots__ = ("called_at_ns", "latency")

    def __init__(self) -> None:
        self.called_at_ns = time.monotonic_ns()
        self.latency: float | None = None


class BaseConnection:
    """A WebSocket connection; made by ``connect``.

    :ivar subprotocol: what the server selected, or None.
    :ivar latency: the round trip of the last answered ping in seconds; 0 before the first.
    :ivar close_code: None until closed; 1005 without a code, 1006 without a close frame.
    :ivar close_reason: None until closed.
    """

    # For an object whose making failed half-way.
    _handle: Handle | None = None
    _is_closed = True

    def __init__(self, loop: Handle, options: Options, on_message: OnMessage) -> None:
        self.subprotocol: str | None = None
        self.latency = 0.0
        self.close_code: int | None = None
        self.close_reason: str | None = None
        self._on_message = on_message
        self._inbox = Inbox(
            limit(options.max_queue, "max_queue"),
            limit(options.max_queue_bytes, "max_queue_bytes"),
        )
        self._write_limit = options.write_limit
        self._pings: list[Ping] = []
        # What is being handed to on_message.
        self._batch: list[Message] = []
        self._failure: RealtimeError | None = None
        self._is_open = False
        url = text(options.url, "the URL", rt_status.ERROR_INVALID_URL)
        self._url = options.url
        handle = new_websocket(loop, url)
        attach(handle, self)
        options.apply(handle)
        self._handle = handle
        self._is_closed = False
        self._is_closing = False

    def __repr__(self) -> str:
        try:
            state = f"{self.state.name} {self.close_code or ''}".rstrip()
        except RealtimeError as error:  # in a forked process
            state = error.name
        return f"<{type(self).__module__}.{type(self).__name__} {state}>"

    # The default outlives the module at interpreter exit.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._is_closed:
            _warn(f"unclosed connection {self!r}", ResourceWarning, source=self)
            self._was_collected()

    @property
    def state(self) -> State:
        handle = self._handle
        if handle is None:
            return State.CLOSED
        state = lib.rt_websocket_get_state(handle)
        check(state)
        return State(state)

    # Called by the trampolines.

    def _opened(self, subprotocol: str) -> None:
        self._is_open = True
        self.subprotocol = subprotocol or None
        if self._on_message is not None:
            check(lib.rt_websocket_pause(self._handle))
        self._changed()

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        if self._on_message is None:
            handle = self._handle
            if self._inbox.put(messages, sum(lengths)) and handle is not None:
                check(lib.rt_websocket_pause(handle))
            return
        if self._is_closing:
            return
        # Emptied by a close inside the callback, which ends the iteration.
        self._batch = messages
        rest = iter(messages)
        on_message = self._on_message
        while True:
            try:
                for message in rest:
                    on_message(message)
                break
            except BaseException as error:
                self._keep(error)
        self._batch = []

    def _erred(self, status: int, message: str) -> None:
        self._failure = from_status(status, message)

    def _closed(self, code: int, reason: str, clean: bool) -> None:
        self.close_code = code
        self.close_reason = reason
        if not clean and self._failure is None and not self._is_closing:
            self._failure = from_status(
                rt_status.ERROR_CONNECTION_LOST, "the connection ended without a closing handshake"
            )
        self._ended()

    def _drained(self) -> None:
        self._changed()

    def _ponged(self, round_trip_us: int) -> None:
        self.latency = round_trip_us / 1e6
        # It answers the pings that were sent before the one it names, too (RFC 6455 §5.5.3), and
        # maybe one of the interval: what counts is when the answered one was sent.
        sent_at_ns = time.monotonic_ns() - round_trip_us * 1000
        for ping in self._pings:
            if ping.called_at_ns <= sent_at_ns:
                ping.latency = self.latency
        self._pings = [ping for ping in self._pings if ping.latency is None]
        self._changed()

    # For the faces.

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""
        raise NotImplementedError

    def _changed(self) -> None:
        """Something that somebody may wait for has happened."""
        raise NotImplementedError

    def _ended(self) -> None:
        """No callback comes any more."""
        self._handle = None
        self._is_closed = True
        self._pings.clear()
        self._changed()

    def _was_collected(self) -> None:
        """Nobody refers to it any more; runs on any thread."""
        self._is_closed = True
        self._handle = None

    def _abandon(self) -> None:
        """Drops the connection without waiting for anything."""
        if not self._is_closed:
            self.close_code = 1006
            self.close_reason = ""
            self._ended()

    def _start(self) -> None:
        check(lib.rt_websocket_start(self._handle))

    def _let_messages_come(self) -> None:
        """Held since open, so that the first call comes when the caller has the connection."""
        handle = self._handle
        if self._on_message is not None and handle is not None:
            check(lib.rt_websocket_resume(handle))

    def _open_error(self) -> RealtimeError:
        """Why it did not open."""
        return self._failure or from_status(
            rt_status.ERROR_CANCELLED, "the connection was closed before it was open"
        )

    def _closed_error(self) -> ConnectionClosed:
        """For whoever uses a connection that is closed."""
        code = 1006 if self.close_code is None else self.close_code
        reason = self.close_reason or ""
        if self._failure is not None:
            cause = self._failure
            return ConnectionClosedError(cause.status, cause.message, code, reason)
        how = f"the connection was closed with {code}" + (f" ({reason})" if reason else "")
        kind = ConnectionClosedOK if code in OK_CLOSE_CODES else ConnectionClosedError
        return kind(rt_status.ERROR_CLOSED, how, code, reason)

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._closed_error()
        return handle

    def _put(self, is_text: bool, data: bytes) -> bool:
        """Queues a message; False when the closing handshake has begun."""
        send = lib.rt_websocket_send_text if is_text else lib.rt_websocket_send_binary
        status = send(self._require_handle(), data, len(data))
        if status == rt_status.ERROR_CLOSED:
            return False
        check(status)
        return True

    def _buffered(self) -> int:
        handle = self._handle
        return 0 if handle is None else lib.rt_websocket_buffered_bytes(handle)

    def _refuse_when_full(self) -> None:
        buffered = self._buffered()
        if buffered > self._write_limit:
            raise BufferFull(
                rt_status.ERROR_BUFFER_FULL,
                f"{buffered} bytes wait to be sent, more than write_limit = {self._write_limit}",
            )

    def _begin_ping(self) -> Ping:
        handle = self._require_handle()
        ping = Ping()
        check(lib.rt_websocket_ping(handle, None, 0))
        self._pings.append(ping)
        return ping

    def _begin_close(self, code: int, reason: str) -> None:
        if not isinstance(code, int):
            raise TypeError(f"a close code is a {type(code).__name__}; an int is expected")
        if not 0 <= code <= 0xFFFF:
            raise from_status(
                rt_status.ERROR_INVALID_CLOSE_CODE, f"close code {code} does not fit 16 bits"
            )
        status = rt_status.ERROR_INVALID_ARGUMENT
        content = text(reason, "the close reason", status) or None
        handle = self._handle
        if handle is None:
            return
        check(lib.rt_websocket_close(handle, code, content))
        self._is_closing = True
        self._batch.clear()
        if self._inbox.paused:
            # The peer's close frame must be read; messages before it are not delivered any more.
            check(lib.rt_websocket_resume(handle))

    def _took(self) -> None:
        """After taking as many messages from a full inbox as was waited for."""
        self._inbox.paused = False
        handle = self._handle
        if handle is not None:
            check(lib.rt_websocket_resume(handle))


def payload(message: Message | bytearray | memoryview) -> tuple[bool, bytes]:
    """Whether it is text, and its bytes. C copies them before the call returns."""
    if isinstance(message, str):
        return True, encode(message, "the message")
    if isinstance(message, bytes):
        return False, message
    if isinstance(message, (bytearray, memoryview)):
        # ctypes passes bytes alone without a look at their type.
        return False, bytes(message)
    raise TypeError(f"a message is a {type(message).__name__}; str or bytes are expected")
