"""What the asyncio and the blocking connection share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Optional

from .._core.abi import (
    rt_compression,
    rt_status,
    rt_websocket_statistics,
)
from .._core.awaiting import handlers_of
from .._core.errors import (
    OK_CLOSE_CODES,
    BufferFull,
    ConcurrencyError,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    RealtimeError,
    check,
    from_status,
)
from .._core.failure import Failure
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.inbox import Inbox
from .._core.loader import lib
from .._core.naming import kind_of, written
from .._core.option_tables import WEBSOCKET_OPTIONS
from .._core.parameters import Given, Setup
from .._core.reconnect import Lost, OnLost, OnReconnect
from .._core.response import Opened, visible
from .._core.shared_options import queue_limits
from .._core.statistics import (
    LoopStatistics,
    Statistics,
    loop_statistics,
    read_statistics,
    websocket_statistics,
)
from .._core.values import invalid, limit, text
from .answers import Answers
from .batch import Message, message_kind
from .callbacks import WEBSOCKET, callbacks
from .options import OPTIONS
from .pings import Pings
from .state import OnMessage, OnMessages, State

#: A piece and whether it ends its message; None if the connection was lost during the message.
Piece = tuple[Message, Optional[bool]]

_COMPRESSIONS = {True: rt_compression.ALWAYS, False: rt_compression.NEVER}


class BaseConnection(Answers):
    """A WebSocket connection; made by ``connect``.

    :ivar subprotocol: the one that the server selected, or None.
    :ivar latency: the round-trip time of the last answered ping in seconds; 0 before the first.
    :ivar close_code: None until closed; 1005 without a code, 1006 without a close frame.
    :ivar close_reason: None until closed.
    """

    _kind = WEBSOCKET

    def __init__(self, loop: Handle, url: str, given: Given) -> None:
        self.subprotocol: str | None = None
        self.latency = 0.0
        self.close_code: int | None = None
        self.close_reason: str | None = None
        self._check_answers(given, ("on_reconnect", "credentials"))
        self._handlers = handlers_of(given, (*OPTIONS.handlers, "credentials"))
        count, size = queue_limits(given)
        self._inbox: Inbox[Message] = Inbox(count, size)
        # Pieces of messages, each with whether it ends its message; None for whole messages.
        self._pieces: Inbox[Piece] | None = None
        in_pieces = bool(given["streaming"])
        if in_pieces:
            self._pieces = Inbox(count, size)
        # Whether the last piece received, and the last piece taken, did not end its message.
        self._comes_midway = self._is_midway = False
        self._reader: object = None
        self._max_size = limit(WEBSOCKET_OPTIONS.get("max_size", given), "max_size")
        self._write_limit: int = given["write_limit"]
        self._pings = Pings()
        # Messages being passed to on_message: all, the remaining ones, those for a new handler.
        self._batch: list[Message] = []
        self._rest = iter(self._batch)
        self._left: list[Message] = []
        self._failure: RealtimeError | None = None
        # Was open at least once; is open now; how often it was lost.
        self._is_open = self._is_up = False
        self._losses = 0
        address = text(url, "the URL", rt_status.ERROR_INVALID_URL)
        self._url = url
        self._loop_handle: Handle | None = loop
        # Code and reason of our own close.
        self._own_close = (1000, "")
        # Saved when the connection ends.
        self._statistics: rt_websocket_statistics | None = None
        handle = WEBSOCKET.make(loop, address)
        self._reconnects = given["reconnect"] is not None
        asks = given["credentials"] is not None
        needed = callbacks(in_pieces=in_pieces, reconnects=self._reconnects, asks=asks)
        self._registration = WEBSOCKET.attach(self, handle, needed)
        OPTIONS.apply(Setup(WEBSOCKET, handle, loop), given)
        self._handle = handle
        self._is_closed = False
        self._is_closing = False

    def _describe(self) -> str:
        return f"{self.state.name} {self.close_code or ''}".rstrip()

    @property
    def state(self) -> State:
        handle = self._handle
        if handle is None:
            return State.CLOSED
        state = lib.rt_websocket_get_state(handle)
        check(state)
        return State(state)

    @property
    def statistics(self) -> Statistics:
        """Counters of the connection."""
        handle = self._handle
        raw = self._statistics if handle is None else read_statistics(handle)
        if raw is None:
            raise self._closed_error()
        return websocket_statistics(raw)

    @property
    def loop_statistics(self) -> LoopStatistics:
        """Counters of the library's loop that the connection uses."""
        loop = self._loop_handle
        if loop is None:
            raise self._closed_error()
        return loop_statistics(loop)

    # Handlers, which may be set at any time.

    on_message: Handler[OnMessage] = Handler(
        "Receives each new message, instead of ``on_messages`` or ``recv``."
    )
    on_messages: Handler[OnMessages] = Handler(
        "Receives the new messages of each read, instead of ``on_message`` or ``recv``."
    )
    on_lost: Handler[OnLost] = Handler("With ``reconnect``: called with a ``Lost`` after a loss.")
    on_reconnect: Handler[OnReconnect] = Handler(
        "With ``reconnect``: called with each new ``Attempt``."
    )

    @property
    def _calls_back(self) -> bool:
        """Whether messages go to a handler."""
        handlers = self._handlers
        return handlers.on_message is not None or handlers.on_messages is not None

    @property
    def _is_heard(self) -> bool:
        """Whether it lives even if nobody refers to it, because it has handlers."""
        handlers = vars(self._handlers).values()
        return self._is_open and any(handler is not None for handler in handlers)

    def _set_handler(self, name: str, handler: Any) -> None:
        if name in ("on_lost", "on_reconnect"):
            if handler is not None and not self._reconnects:
                raise invalid(f"{name} needs reconnect")
            if name == "on_reconnect":
                self._check_answer(handler, name)
            super()._set_handler(name, handler)
            return
        if handler is not None and self._pieces is not None:
            raise invalid("on_message, on_messages and streaming exclude each other; give one")
        taker = {"on_message": None, "on_messages": None, name: handler}
        self._handlers = SimpleNamespace(**{**vars(self._handlers), **taker})
        # The rest of the current batch goes to the new handler.
        self._left += self._rest
        # A queue full of messages for recv must not hold up a handler.
        if handler is not None and self._inbox.paused:
            self._took(self._inbox)

    # Called by the trampolines.

    def _was_opened(self, opened: Opened) -> None:
        self._opened = opened
        self.subprotocol = opened.subprotocol or None
        self._failure = None
        self._is_up = True
        if self._calls_back and not self._is_open:
            self._pause()
        self._is_open = True
        self._changed()

    def _received(self, messages: list[Message], lengths: list[int]) -> None:
        handlers = self._handlers
        on_message, on_messages = handlers.on_message, handlers.on_messages
        if on_message is None and on_messages is None:
            self._put_in(messages, lengths)
        elif not self._is_closing:
            if on_message is None:
                self._call(on_messages, messages, size=sum(lengths) + 1)
            else:
                self._hand_out(on_message, messages, lengths)

    def _put_in(self, messages: list[Message], lengths: list[int]) -> None:
        """Queues messages for recv."""
        if self._inbox.put(messages, sum(lengths)):
            self._pause()

    def _hand_out(
        self, on_message: Callable[[Message], Any], messages: list[Message], lengths: list[int]
    ) -> None:
        # A close inside the callback empties this list and so ends the iteration.
        self._batch = messages
        self._rest = rest = iter(messages)
        while True:
            try:
                for message in rest:
                    returned = on_message(message)
                    if returned is not None and hasattr(returned, "__await__"):
                        self._await(returned, len(message) + 1)
                break
            except BaseException as error:
                self._keep(error)
        self._batch = []
        if self._left:
            left, self._left = self._left, []
            self._received(left, lengths[-len(left) :])

    def _came(self, piece: Message, length: int, is_last: bool) -> None:
        """Queues a piece of a message."""
        self._comes_midway = not is_last
        if self._pieces is not None and self._pieces.put([(piece, is_last)], length):
            self._pause()

    def _failed(self, failure: Failure, code: int, reason: str) -> None:
        # A normal end before a reconnect is not a failure.
        is_end = failure.status == rt_status.ERROR_CLOSED
        self._failure = None if is_end else self._denial or failure.connection_error()
        if failure.fatal:
            return
        self._went_down()
        lost = Lost(code, reason, failure.retry_in, failure.attempt, self._failure)
        self._tell("on_lost", lost)

    def _closed(self, code: int, reason: str, clean: bool) -> None:
        if self._is_closing and not self._is_up:
            # The program closed it while the next connection was awaited: nothing failed.
            self._failure = None
            code, reason = self._own_close
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
        self._pings.answer(round_trip_us)
        self._changed()

    # Overridden by the asyncio and the blocking class.

    def _changed(self) -> None:
        """Called after a change that someone may wait for."""
        raise NotImplementedError

    def _went_down(self) -> None:
        """Called when the connection was lost and will be made again."""
        self._is_up = False
        self._losses += 1
        self._pings.lose(self._lost_error)
        if self._comes_midway and self._pieces is not None:
            self._comes_midway = False
            self._pieces.put([("", None)], 0)
        self._changed()

    def _remember(self, handle: Handle) -> None:
        self._statistics = read_statistics(handle)

    def _ended(self) -> None:
        super()._ended()
        self._is_up = False
        self._pings.lose(self._closed_error)
        self._changed()

    def _abandon(self) -> None:
        """Drops the connection without waiting."""
        if not self._is_closed:
            self.close_code = 1006
            self.close_reason = ""
            self._ended()

    def _start(self) -> None:
        check(lib.rt_websocket_start(self._handle))

    @property
    def _is_paused(self) -> bool:
        return super()._is_paused or (self._pieces is not None and self._pieces.paused)

    def _let_messages_come(self) -> None:
        """Resumes after open, so that no callback runs before the caller has the connection."""
        if self._calls_back:
            self._go_on()

    def _open_error(self) -> RealtimeError:
        """The exception that says why it did not open."""
        return self._failure or from_status(
            rt_status.ERROR_CANCELLED, "the connection was closed before it was open"
        )

    def _closed_error(self) -> ConnectionClosed:
        """The exception for using a closed connection."""
        code = 1006 if self.close_code is None else self.close_code
        reason = self.close_reason or ""
        if self._failure is not None:
            cause = self._failure
            error = ConnectionClosedError(cause.status, cause.message, code, reason)
            error.__cause__ = cause.__cause__ or cause
            return error
        how = f"the connection was closed with {code}" + (f" ({visible(reason)})" if reason else "")
        kind = ConnectionClosedOK if code in OK_CLOSE_CODES else ConnectionClosedError
        return kind(rt_status.ERROR_CLOSED, how, code, reason)

    def _end(self) -> RealtimeError:
        return self._closed_error()

    def _missed(self, handle: Handle) -> None:
        if lib.rt_websocket_get_state(handle) == State.CLOSED:
            self._abandon()

    def _own_end(self) -> ConnectionClosed | None:
        """The exception if it ended without our close, else None."""
        return self._closed_error() if self._is_closed and not self._is_closing else None

    def _lost_error(self) -> ConnectionClosed:
        """The exception for an operation during which the connection was lost."""
        how = "the connection was lost during the operation"
        return ConnectionClosedError(rt_status.ERROR_CONNECTION_LOST, how)

    def _put(self, is_text: bool, data: bytes, compress: bool | None = None) -> bool:
        """Queues a message; False if the closing handshake has begun."""
        handle = self._handle
        if handle is None:
            raise self._closed_error()
        if compress is None:
            send = lib.rt_websocket_send_text if is_text else lib.rt_websocket_send_binary
            status = send(handle, data, len(data))
        else:
            choice = _COMPRESSIONS[compress]
            status = lib.rt_websocket_send(handle, message_kind(is_text), data, len(data), choice)
        if status == rt_status.ERROR_CLOSED:
            return False
        check(status)
        return True

    def _begin_pieces(self, is_text: bool, compress: bool | None) -> None:
        automatic = rt_compression.AUTOMATIC
        choice = automatic if compress is None else _COMPRESSIONS[compress]
        handle = self._require_handle()
        check(lib.rt_websocket_begin_message(handle, message_kind(is_text), choice))

    def _put_piece(self, data: bytes, losses: int) -> None:
        """Queues a piece, unless the connection was lost again after the first `losses` losses."""
        if self._losses != losses:
            raise self._lost_error()
        check(lib.rt_websocket_continue_message(self._require_handle(), data, len(data)))

    def _end_pieces(self, losses: int) -> None:
        if self._losses != losses:
            raise self._lost_error()
        check(lib.rt_websocket_end_message(self._require_handle()))

    def _break_pieces(self, losses: int) -> None:
        """Closes the connection: a message cannot be completed, so nothing more can be sent."""
        if self._losses == losses and not self._is_closed:
            self._begin_close(1011, "error in fragmented message")

    def _begin_reading(self) -> object:
        """Makes the caller the current reader of pieces."""
        self._reader = object()
        return self._reader

    def _check_reader(self, reader: object) -> None:
        if reader is not self._reader:
            raise ConcurrencyError(rt_status.ERROR_STATE, "another caller now receives the pieces")

    def _take(self, inbox: Inbox[Piece]) -> Message:
        """Takes a received piece."""
        pieces = inbox.messages
        piece, is_last = pieces.popleft()
        if inbox.paused and len(pieces) <= inbox.resume_at:
            self._took(inbox)
        self._is_midway = is_last is False
        if is_last is None:
            raise self._lost_error()
        return piece

    def _buffered(self) -> int:
        handle = self._handle
        return 0 if handle is None else lib.rt_websocket_buffered_bytes(handle)

    def _refuse_when_full(self) -> None:
        buffered = self._buffered()
        if buffered > self._write_limit:
            raise BufferFull(
                rt_status.ERROR_BUFFER_FULL,
                f"{buffered} bytes are unsent, more than write_limit = {self._write_limit}",
            )

    def _begin_close(self, code: int, reason: str) -> None:
        if not isinstance(code, int):
            raise TypeError(f"a close code is {kind_of(code)}; an int is expected")
        if not 0 <= code <= 0xFFFF:
            raise from_status(
                rt_status.ERROR_INVALID_CLOSE_CODE,
                f"close code {written(code)} does not fit 16 bits",
            )
        status = rt_status.ERROR_INVALID_ARGUMENT
        content = text(reason, "the close reason", status) or None
        handle = self._handle
        if handle is None:
            return
        self._revive()
        # Set before the call: another thread may report the end at once.
        before = self._is_closing, self._own_close
        if not self._is_closing:
            self._is_closing, self._own_close = True, (code, reason)
        try:
            check(lib.rt_websocket_close(handle, code, content))
        except BaseException:
            self._is_closing, self._own_close = before
            raise
        self._batch.clear()
        if self._is_paused:
            # Continue reading for the peer's close frame; earlier messages are dropped.
            check(lib.rt_websocket_resume(handle))
