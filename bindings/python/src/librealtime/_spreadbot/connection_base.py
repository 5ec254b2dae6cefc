"""What the asyncio and the blocking Spreadbot connection share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.abi import rt_status
from .._core.errors import (
    BufferFull,
    InvalidState,
    RealtimeError,
    check,
    checked,
    final,
    from_status,
)
from .._core.failure import Failure
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.kind import ON_ERROR, Callback
from .._core.payload import Data, payload
from .._core.response import Opened
from .._core.values import text
from .._rest.response import RESTResponse
from .._sources.source_base import BaseSource
from . import sends
from .callbacks import (
    ON_DISCONNECTED,
    ON_MESSAGE,
    ON_OPEN,
    ON_SENT,
    ON_TOKENS,
    ON_TRANSPORT,
    SPREADBOT,
    read_tokens,
)
from .options import (
    OPTIONS,
    PHASES,
    STATES,
    TRANSPORTS,
    Account,
    Keywords,
    OnDisconnected,
    OnError,
    OnOpen,
    OnSent,
    OnTokens,
    OnTransport,
    Phase,
    SpreadbotError,
    SpreadbotMessage,
    State,
    Transport,
    encoded_tokens,
    transport_name,
)
from .sends import Sends

if TYPE_CHECKING:
    from typing_extensions import Unpack


@OPTIONS.shown_by("Spreadbot")
class BaseSpreadbot(BaseSource[SpreadbotMessage], Account):
    """Nothing is sent before ``establish_connection``. One transport is in use at a time. It tries
    the WebSocket first, then server-sent events, then long polls: a transport that fails is tried
    again; one that does not work here is replaced by the next. While a later one is in use, the
    WebSocket is tried again from time to time. Each transport continues after the last message of
    the previous one.

    The server confirms a WebSocket send after the messages it sent earlier. While receiving pauses
    because ``max_queue`` messages are queued, a send therefore raises ``BufferFull`` if the sending
    task is the one that takes messages, or if none does. A program that needs no messages can pass
    an ``on_message`` that ignores them.

    Durations are in seconds, sizes in bytes. Where an option accepts None, None switches it off.

    :param base_url: ``http://`` or ``https://`` without a query; paths are appended to it.
    """

    _kind = SPREADBOT
    _options = OPTIONS
    # Access and refresh token, saved when the connection ends.
    _last_tokens = ("", "")

    def __init__(self, base_url: str, **options: Unpack[Keywords]) -> None:
        given = OPTIONS.complete(options)
        self._is_established = False
        self._is_open = False
        # Counts calls of establish_connection: each call waits only for its own end.
        self._epoch = 0
        self._fatal: RealtimeError | None = None
        self._is_durable = given["outbox"] is not None
        self._sends = Sends(self._is_durable)
        self._begin(base_url, given)
        message = "establish_connection was not called"
        self._failure = self._unused = InvalidState(rt_status.ERROR_STATE, message)

    def _callbacks(self) -> list[Callback]:
        return [
            ON_OPEN, ON_TRANSPORT, ON_MESSAGE, ON_ERROR, ON_TOKENS, ON_SENT, ON_DISCONNECTED
        ]  # fmt: skip

    def _start(self, handle: Handle) -> None:
        """Does nothing: ``establish_connection`` starts it."""

    # State.

    @property
    def state(self) -> State:
        handle = self._handle
        return "disconnected" if handle is None else STATES[checked(SPREADBOT.get_state(handle))]

    @property
    def phase(self) -> Phase:
        """The current step while it is connecting; ``"none"`` otherwise."""
        handle = self._handle
        return "none" if handle is None else PHASES[checked(SPREADBOT.get_phase(handle))]

    @property
    def transport(self) -> Transport | None:
        """The transport in use, or the last one tried while it is connecting."""
        handle = self._handle
        return None if handle is None else transport_name(checked(SPREADBOT.get_transport(handle)))

    def _tokens(self) -> tuple[str, str]:
        handle = self._handle
        return self._last_tokens if handle is None else read_tokens(handle)

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        """Replaces the tokens, from the next attempt and request on."""
        tokens = encoded_tokens(access_token, refresh_token)
        check(SPREADBOT.set_tokens(self._require_handle(), *tokens))

    # Handlers, in addition to those of every source; these receive other arguments.

    on_open: Handler[OnOpen] = Handler()  # type: ignore[assignment]
    on_error: Handler[OnError] = Handler()  # type: ignore[assignment]
    on_transport: Handler[OnTransport] = Handler()
    on_tokens: Handler[OnTokens] = Handler()
    on_disconnected: Handler[OnDisconnected] = Handler()

    # Methods.

    def send_nowait(self, message: Data, on_sent: OnSent = None) -> None:
        """Sends a str or bytes after all earlier sends, without waiting.

        :param on_sent: called once at the end of the send: with None, or the exception that a
            waiting send would raise.
        """
        is_text, data = payload(message)

        def ended(error: RealtimeError | None, response: RESTResponse | None) -> None:
            if on_sent is not None:
                self._call(on_sent, error)

        self._submit(sends.message(is_text, data), ended)

    def _begin_establishing(self, path: str) -> None:
        handle = self._require_handle()
        where = text(path, "the path", rt_status.ERROR_INVALID_URL)
        # Set before the call: another thread may report its outcome at once.
        before = self._is_established, self._is_open, self._failure
        self._is_established, self._is_open, self._failure = True, False, None
        try:
            check(SPREADBOT.start(handle, where))
        except BaseException:
            self._is_established, self._is_open, self._failure = before
            raise
        self._epoch += 1
        self._changed()

    def _submit(self, send: sends.Send, ended: sends.Ended) -> int:
        handle = self._handle
        if handle is None:
            raise self._closed()
        self._revive()
        number = self._sends.submit(handle, send, ended)
        if self._handle is None:  # another thread closed it before this send was registered
            self._sends.end_all(self._closed())
        self._changed()
        return number

    # Called by the trampolines.

    def _connected(self, transport: int, resumed: bool, opened: Opened) -> None:
        self._opened = opened
        self._is_established = self._is_open = True
        self._failure = None
        self._changed()
        name = transport_name(transport)
        if name is not None:
            self._tell("on_open", name, resumed)

    def _uses(self, transport: int) -> None:
        self._look_at_senders()
        self._tell("on_transport", transport_name(transport))

    def _came(self, id_: str, event: str, data: bytes, had_id: bool) -> None:
        message = SpreadbotMessage(id_, event, data, had_id)
        self._deliver(message, len(data) + len(id_) + len(event))

    def _erred(self, failure: Failure) -> None:
        event = SpreadbotError._of(failure, transport_name(failure.transport))
        if event.fatal:
            self._fatal = event.error
        self._tell_error(event)

    def _refreshed(self, access_token: str, refresh_token: str) -> None:
        self._tell("on_tokens", access_token, refresh_token)

    def _sent(
        self, number: int, error: RealtimeError | None, response: RESTResponse | None
    ) -> None:
        self._sends.ended(number, error, response)
        self._changed()

    def _disconnected(self, error: RealtimeError | None) -> None:
        fatal, self._fatal = self._fatal, None
        if error is not None:
            error = fatal or error
        # A handler of the fatal error may have established it again.
        handle = self._handle
        if handle is not None and STATES.get(SPREADBOT.get_state(handle)) == "disconnected":
            self._failure = None if error is None else final(error)
            self._is_established = self._is_open = False
            self._changed()
        self._tell("on_disconnected", error)

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        self._failure = error
        self._ended()
        self._tell_error(SpreadbotError(error, 0, True, None, 0, None))

    # Overridden by the asyncio and the blocking class.

    def _changed(self) -> None:
        """Called when state or sends changed, so that waiters check their conditions."""

    def _look_at_senders(self) -> None:
        """Ends sends that would wait forever: see `_is_stuck`."""

    def _another_takes(self, sender: object) -> bool:
        """Whether another task or thread takes messages."""
        raise NotImplementedError

    def _is_stuck(self, sender: object) -> bool:
        """Whether a send is confirmed only after messages that nobody will take before it ends."""
        if not self._is_paused or self._another_takes(sender):
            return False
        handle = self._handle
        leg = TRANSPORTS["websocket"]
        return handle is not None and SPREADBOT.get_transport(handle) == leg

    def _stuck(self) -> RealtimeError:
        message = (
            "receiving pauses because max_queue messages are queued, and the WebSocket confirms a"
            " send only after them: take messages in another task or thread, or raise max_queue;"
            " the message may or may not have arrived"
        )
        return BufferFull(rt_status.ERROR_BUFFER_FULL, message)

    def _pause(self) -> None:
        super()._pause()
        self._look_at_senders()

    @property
    def _is_over(self) -> bool:
        return self._is_closed or not self._is_established

    @property
    def _calls_back(self) -> bool:
        has_handlers = any(handler is not None for handler in vars(self._handlers).values())
        return len(self._sends) > 0 or (self._is_established and has_handlers)

    @property
    def _hands_over(self) -> bool:
        # Messages are queued from the beginning: the server's confirmations of sends come on the
        # same WebSocket, which therefore must be read.
        return True

    def _ended(self) -> None:
        self._is_established = self._is_open = False
        if self._failure is self._unused:
            self._failure = None
        super()._ended()
        self._sends.end_all(self._closed())

    def _missed(self, handle: Handle) -> None:
        if STATES.get(SPREADBOT.get_state(handle)) == "disconnected":
            self._is_established = self._is_open = False

    def _remember(self, handle: Handle) -> None:
        super()._remember(handle)
        self._last_tokens = read_tokens(handle)

    def _describe(self) -> str:
        leg = self.transport
        return f"{self.state}{f' by {leg}' if leg else ''} {self._url}"

    def _closed(self) -> RealtimeError:
        """The exception for sending after it is closed."""
        message = f"the {self._kind.noun} is closed"
        return self._failure or from_status(rt_status.ERROR_CLOSED, message)
