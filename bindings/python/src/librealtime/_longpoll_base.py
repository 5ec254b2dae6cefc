"""What the asyncio and the blocking long poll share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from ._abi import rt_credentials, rt_status
from ._eventsource_base import caused
from ._eventsource_callbacks import read_text
from ._eventsource_options import Pairs, header_pairs, laid_over, without_userinfo
from ._eventsource_parameters import ErrorEvent, OnError, ReadyState
from ._inbox import Inbox
from ._loader import lib
from ._longpoll_callbacks import (
    ON_CREDENTIALS,
    ON_ERROR,
    ON_MESSAGE,
    ON_OPEN,
    ON_REQUEST,
    SETTERS,
    Callback,
    new_longpoll,
)
from ._longpoll_parameters import (
    Handlers,
    OnMessage,
    Options,
    Parameters,
    PollMessage,
    set_headers,
)
from ._reconnect import Attempt
from ._registry import Handle, Registration
from ._values import limit, text
from .exceptions import RealtimeError, StreamEnded, StreamRefused, check, from_status

_REFUSALS = (rt_status.ERROR_HTTP_STATUS, rt_status.ERROR_CONTENT_TYPE, rt_status.ERROR_GONE)


class BaseLongPoll(Parameters):
    """What both faces have."""

    # For an object whose making failed half-way.
    _handle: Handle | None = None
    _is_closed = True

    def _make(self, options: Options, handlers: Handlers) -> None:
        url = text(options.url, "the URL", rt_status.ERROR_INVALID_URL)
        self._handlers = handlers
        self._inbox: Inbox[PollMessage] = Inbox(
            limit(options.max_queue, "max_queue"),
            limit(options.max_queue_bytes, "max_queue_bytes"),
        )
        self._failure: RealtimeError | None = None
        self._untold: ErrorEvent | None = None
        # Messages come once there is somebody to take them.
        self._flows = handlers.on_message is not None
        # Those of every poll; credentials are laid over them when they come.
        self._headers: Pairs = options.headers
        self._last_id = ""
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = new_longpoll(loop, url)
        set_headers(handle, self._headers)
        options.apply(handle, loop)
        self._url = without_userinfo(options.url)
        self._set_callbacks(handle)
        if not self._flows:
            check(lib.rt_longpoll_pause(handle))
        check(lib.rt_longpoll_start(handle))
        self._handle = handle
        self._is_closed = False

    def _set_callbacks(self, handle: Handle) -> None:
        handlers = self._handlers
        callbacks: list[Callback] = [ON_OPEN, ON_MESSAGE, ON_ERROR]
        if handlers.on_request is not None or handlers.header_provider is not None:
            callbacks.append(ON_REQUEST)
        if handlers.credentials is not None:
            callbacks.append(ON_CREDENTIALS)
        self._registration = Registration(self)
        for setter, trampoline in callbacks:
            self._registration.set(setter, handle, trampoline)

    def __repr__(self) -> str:
        try:
            state = self.ready_state.name
        except RealtimeError as error:  # in a forked process
            state = error.name
        return f"<{type(self).__module__}.{type(self).__name__} {state} {self._url}>"

    # The default outlives the module at interpreter exit.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._is_closed:
            _warn(f"unclosed long poll {self!r}", ResourceWarning, source=self)
            self._was_collected()

    # What it is.

    @property
    def ready_state(self) -> ReadyState:
        """OPEN while the server answers; CONNECTING before, and after a failure."""
        handle = self._handle
        if handle is None:
            return ReadyState.CLOSED
        state = lib.rt_longpoll_get_state(handle)
        check(state)
        return ReadyState(state)

    @property
    def url(self) -> str:
        """As it was given, without user and password."""
        return self._url

    @property
    def last_event_id(self) -> str:
        """How far the messages have come, those that wait to be taken too; "" at the beginning."""
        handle = self._handle
        if handle is None:
            return self._last_id
        return read_text(lib.rt_longpoll_get_last_event_id, handle)

    @property
    def on_error(self) -> OnError:
        """One that came before the handler was set is kept, and told when it is."""
        return self._handlers.on_error

    @on_error.setter
    def on_error(self, handler: OnError) -> None:
        self._handlers.on_error = handler
        self._handlers_changed()
        untold = self._untold
        if handler is not None and untold is not None:
            self._untold = None
            handler(untold)

    @property
    def on_message(self) -> OnMessage:
        return self._handlers.on_message

    @on_message.setter
    def on_message(self, handler: OnMessage) -> None:
        self._handlers.on_message = handler
        self._handlers_changed()
        if handler is not None:
            self._begin_taking()

    # Use.

    def restart(self) -> None:
        """Drops the poll in flight and polls again at once.

        :raises StreamEnded: when it is closed.
        """
        check(lib.rt_longpoll_restart(self._require_handle()))

    def close(self) -> None:
        """Ends it for good and aborts the request in flight; messages that wait are forgotten."""
        handle = self._handle
        if handle is not None:
            check(lib.rt_longpoll_close(handle))
            self._ended()
        self._inbox.messages.clear()

    # Called by the trampolines.

    def _opened(self) -> None:
        if self._handlers.on_open is not None:
            self._handlers.on_open()

    def _came(self, data: bytes, content_type: str, id_: str, had_id: bool) -> None:
        if self._handle is None:
            return
        message = PollMessage(data, content_type, id_, had_id)
        if self._handlers.on_message is not None:
            self._handlers.on_message(message)
        else:
            self._queue(message, len(data) + len(id_))

    def _queue(self, message: PollMessage, size: int) -> None:
        handle = self._handle
        if handle is not None and self._inbox.put([message], size):
            check(lib.rt_longpoll_pause(handle))

    def _erred(
        self, status: int, message: str, http_status: int, fatal: bool, delay_ms: int, attempt: int
    ) -> None:
        if status in _REFUSALS:
            error: RealtimeError = StreamRefused(status, message, http_status)
        else:
            error = from_status(status, message)
        delay = None if delay_ms < 0 else delay_ms / 1000
        self._failed(ErrorEvent(error, http_status, fatal, delay, attempt))

    def _requests(self, attempt: int) -> bool:
        handle = self._handle
        if handle is None:
            return False
        try:
            if self._handlers.header_provider is not None:
                fresh = header_pairs(self._handlers.header_provider(attempt))
                set_headers(handle, laid_over(self._headers, fresh))
            on_request = self._handlers.on_request
            if on_request is not None and on_request(Attempt(handle, attempt, SETTERS)) is False:
                self.close()
        except Exception as error:
            self._give_up(caused("what was asked before a request failed", error))
        return not self._is_closed

    def _asks(self, http_status: int) -> int:
        if self._handlers.credentials is None:
            return rt_credentials.NONE
        try:
            answer = self._handlers.credentials(http_status)
            if hasattr(answer, "__await__"):
                return self._await_credentials(answer, http_status)
            return self._take_credentials(answer)
        except Exception as error:
            self._give_up(caused("the credentials could not be had", error))
            return rt_credentials.LATER

    def _take_credentials(self, answer: Any) -> int:
        handle = self._handle
        if answer is None or handle is None:
            return rt_credentials.NONE
        self._headers = laid_over(self._headers, header_pairs(answer))
        set_headers(handle, self._headers)
        return rt_credentials.READY

    # For the faces.

    def _join(self) -> Handle:
        """The library's loop that it is to live on."""
        raise NotImplementedError

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""
        raise NotImplementedError

    def _await_credentials(self, answer: Any, http_status: int) -> int:
        raise NotImplementedError

    def _handlers_changed(self) -> None:
        """Handlers were set or taken away."""

    @property
    def _calls_back(self) -> bool:
        """Whether what comes has somewhere to go, even when nobody refers to this object."""
        handlers = self._handlers
        return any((handlers.on_open, handlers.on_error, handlers.on_message))

    def _begin_taking(self) -> None:
        handle = self._handle
        if not self._flows and handle is not None:
            self._flows = True
            check(lib.rt_longpoll_resume(handle))

    def _took(self) -> None:
        """After taking as many messages from a full inbox as was waited for."""
        self._inbox.paused = False
        handle = self._handle
        if handle is not None:
            check(lib.rt_longpoll_resume(handle))

    def _ended(self) -> None:
        """No callback comes any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(RealtimeError):  # in a forked process
                self._last_id = read_text(lib.rt_longpoll_get_last_event_id, handle)
        self._loop_handle = None
        self._is_closed = True

    def _was_collected(self) -> None:
        """Nobody refers to it any more; runs on any thread."""
        self._is_closed = True
        self._loop_handle = None
        self._handle = None

    def _give_up(self, error: RealtimeError, http_status: int = 0) -> None:
        """It cannot go on without what the caller did not give."""
        handle = self._handle
        if handle is not None:
            check(lib.rt_longpoll_close(handle))
            self._failed(ErrorEvent(error, http_status, True, None, 0))

    def _failed(self, event: ErrorEvent) -> None:
        if event.fatal:
            self._failure = event.error
            self._ended()
        if self._handlers.on_error is None:
            self._untold = event
        else:
            self._handlers.on_error(event)

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._end()
        return handle

    def _end(self) -> RealtimeError:
        """For whoever wants more of one that is closed."""
        if self._failure is not None:
            return self._failure
        return StreamEnded(rt_status.ERROR_CLOSED, "the long poll is closed")
