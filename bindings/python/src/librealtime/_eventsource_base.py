"""What the asyncio and the blocking event source share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from ._abi import rt_credentials, rt_status
from ._events import ServerSentEvent
from ._eventsource_callbacks import (
    ON_COMMENT,
    SETTERS,
    callbacks,
    new_eventsource,
    read_text,
)
from ._eventsource_options import (
    Options,
    Pairs,
    header_pairs,
    laid_over,
    set_headers,
    without_userinfo,
)
from ._eventsource_parameters import (
    ErrorEvent,
    EventHandler,
    Handlers,
    OnComment,
    OnError,
    OnEvent,
    OnOpen,
    Parameters,
    ReadyState,
)
from ._inbox import Inbox
from ._loader import lib
from ._reconnect import Attempt
from ._registry import Handle, Registration
from ._values import invalid, limit, text
from .exceptions import RealtimeError, StreamEnded, StreamRefused, check, from_status

_REFUSALS = (rt_status.ERROR_HTTP_STATUS, rt_status.ERROR_CONTENT_TYPE, rt_status.ERROR_NO_CONTENT)


class BaseEventSource(Parameters):
    """What both faces have."""

    # For an object whose making failed half-way.
    _handle: Handle | None = None
    _is_closed = True

    def _make(self, options: Options, handlers: Handlers) -> None:
        url = text(options.url, "the URL", rt_status.ERROR_INVALID_URL)
        self._handlers = handlers
        self._listeners: dict[str, list[EventHandler]] = {}
        limits = options.limits
        self._inbox: Inbox[ServerSentEvent] = Inbox(
            limit(limits.max_queue, "max_queue"), limit(limits.max_queue_bytes, "max_queue_bytes")
        )
        self._failure: RealtimeError | None = None
        self._untold: ErrorEvent | None = None
        # Events come once there is somebody to take them; and iterating is one way.
        self._is_iterated = False
        self._flows = bool(handlers.on_message or handlers.on_any or handlers.on_comment)
        # Those of every attempt; credentials are laid over them when they come.
        self._headers: Pairs = options.request.pairs()
        # Whose ids are kept when the event was taken and the next is asked for: those that wait
        # in the inbox would be lost by a crash. And the id of the one that was taken.
        self._confirmed_handle: Handle | None = None
        self._taken_id: str | None = None
        # Id, origin and reconnection time at the end.
        self._last: tuple[str, str, float] = ("", "", 0)
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = new_eventsource(loop, url)
        set_headers(handle, self._headers)
        options.apply(handle, loop)
        self._url = without_userinfo(options.url)
        self._retry_ms = lib.rt_eventsource_get_reconnection_time_ms(handle)
        self._registration = Registration(self)
        for setter, trampoline in callbacks(handlers):
            self._registration.set(setter, handle, trampoline)
        if not self._flows:
            check(lib.rt_eventsource_pause(handle))
        check(lib.rt_eventsource_start(handle))
        self._handle = handle
        if options.ids.id_file is not None or handlers.on_store is not None:
            self._confirmed_handle = handle
        self._is_closed = False

    def __repr__(self) -> str:
        try:
            state = self.ready_state.name
        except RealtimeError as error:  # in a forked process
            state = error.name
        return f"<{type(self).__module__}.{type(self).__name__} {state} {self._url}>"

    # The default outlives the module at interpreter exit.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._is_closed:
            _warn(f"unclosed event source {self!r}", ResourceWarning, source=self)
            self._was_collected()

    # What it is.

    @property
    def ready_state(self) -> ReadyState:
        handle = self._handle
        if handle is None:
            return ReadyState.CLOSED
        state = lib.rt_eventsource_get_state(handle)
        check(state)
        return ReadyState(state)

    @property
    def url(self) -> str:
        """As it was given, without user and password."""
        return self._url

    @property
    def origin(self) -> str:
        """Where the events come from, after redirects: scheme, host and port."""
        handle = self._handle
        return self._last[1] if handle is None else read_text(lib.rt_eventsource_get_origin, handle)

    @property
    def last_event_id(self) -> str:
        """As the next attempt sends it; "" for none."""
        handle = self._handle
        if handle is None:
            return self._last[0]
        return read_text(lib.rt_eventsource_get_last_event_id, handle)

    @property
    def reconnection_time(self) -> float:
        """Seconds before a reconnect: what the server set last, or the option."""
        handle = self._handle
        if handle is None:
            return self._last[2]
        return lib.rt_eventsource_get_reconnection_time_ms(handle) / 1000

    # Handlers; the last one set counts.

    @property
    def on_open(self) -> OnOpen:
        return self._handlers.on_open

    @on_open.setter
    def on_open(self, handler: OnOpen) -> None:
        self._handlers.on_open = handler
        self._handlers_changed()

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
    def on_message(self) -> OnEvent:
        return self._handlers.on_message

    @on_message.setter
    def on_message(self, handler: OnEvent) -> None:
        self._handlers.on_message = handler
        self._handlers_changed(takes_events=handler is not None)

    @property
    def on_any(self) -> OnEvent:
        return self._handlers.on_any

    @on_any.setter
    def on_any(self, handler: OnEvent) -> None:
        self._handlers.on_any = handler
        self._handlers_changed(takes_events=handler is not None)

    @property
    def on_comment(self) -> OnComment:
        return self._handlers.on_comment

    @on_comment.setter
    def on_comment(self, handler: OnComment) -> None:
        handle, was = self._handle, self._handlers.on_comment
        self._handlers.on_comment = handler
        if handle is not None and was is None and handler is not None:
            setter, trampoline = ON_COMMENT
            self._registration.set(setter, handle, trampoline)
        self._handlers_changed(takes_events=handler is not None)

    def add_event_listener(self, event: str, listener: EventHandler) -> None:
        """Has `listener` called with each event of this type, beside those there are.

        :param event: compared byte for byte; ``"message"`` for events without one.
        """
        if not text(event, "the type of events"):
            raise invalid('the type of events is ""; those without one are "message"')
        self._listeners.setdefault(event, []).append(listener)
        self._handlers_changed(takes_events=True)

    def remove_event_listener(self, event: str, listener: EventHandler | None = None) -> None:
        """Removes a listener; without one, all for events of this type."""
        left = self._listeners.pop(event, [])
        left = [other for other in left if listener is not None and other != listener]
        if left:
            self._listeners[event] = left
        self._handlers_changed()

    def event_names(self) -> list[str]:
        """The types that have a listener, sorted."""
        # By code points is bytewise by UTF-8.
        return sorted(self._listeners)

    # Use.

    def restart(self) -> None:
        """Drops the connection and connects again at once, which counts as no attempt.

        :raises StreamEnded: when it is closed.
        """
        check(lib.rt_eventsource_restart(self._require_handle()))

    def reset_stored_id(self) -> None:
        """Forgets the id that is kept in the id file for this event source."""
        check(lib.rt_eventsource_reset_stored_id(self._require_handle()))

    def close(self) -> None:
        """Ends it for good: no handler is called any more, events that wait are forgotten."""
        self._confirm()
        self._inbox.messages.clear()
        self._confirmed_handle = None
        if self._handle is not None:
            check(lib.rt_eventsource_close(self._handle))
            self._ended()

    # Called by the trampolines.

    def _opened(self) -> None:
        if self._handlers.on_open is not None:
            self._handlers.on_open()

    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None:
        # No name for the handle here: a traceback that is kept would keep the loop's descriptors.
        if self._handle is None:
            return
        retry = lib.rt_eventsource_get_reconnection_time_ms(self._handle)
        changed = None if retry == self._retry_ms else retry
        self._retry_ms = retry
        told = ServerSentEvent(event, data, id_, changed, had_id)
        handlers = self._handlers
        if event == "message" and handlers.on_message is not None:
            self._tell(handlers.on_message, told)
        for listener in tuple(self._listeners.get(event, ())):
            # One that was removed meanwhile, by itself or another, is not called.
            if listener in self._listeners.get(event, ()):
                self._tell(listener, told)
        if handlers.on_any is not None:
            self._tell(handlers.on_any, told)
        if self._is_iterated:
            self._queue(told, size)

    def _tell(self, handler: EventHandler, event: ServerSentEvent) -> None:
        """One that fails does not keep the event from the others."""
        if self._is_closed:
            return
        try:
            handler(event)
        except BaseException as error:
            self._keep(error)

    def _queue(self, event: ServerSentEvent, size: int) -> None:
        handle = self._handle
        if handle is not None and self._inbox.put([event], size):
            check(lib.rt_eventsource_pause(handle))

    def _commented(self, comment: str) -> None:
        if self._handlers.on_comment is not None:
            self._handlers.on_comment(comment)

    def _erred(
        self, status: int, message: str, http_status: int, fatal: bool, delay_ms: int, attempt: int
    ) -> None:
        if status in _REFUSALS:
            error: RealtimeError = StreamRefused(status, message, http_status)
        elif status == rt_status.ERROR_CLOSED:
            error = StreamEnded(status, message)
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

    def _stores(self, key: str, id_: str) -> None:
        if self._handlers.on_store is not None:
            self._handlers.on_store(key, id_)

    # For the faces.

    def _join(self) -> Handle:
        """The library's loop that it is to live on."""
        raise NotImplementedError

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""
        raise NotImplementedError

    def _await_credentials(self, answer: Any, http_status: int) -> int:
        raise NotImplementedError

    def _handlers_changed(self, takes_events: bool = False) -> None:
        """Handlers were added or removed."""
        handle = self._handle
        if takes_events and not self._flows and handle is not None:
            self._flows = True
            check(lib.rt_eventsource_resume(handle))

    @property
    def _calls_back(self) -> bool:
        """Whether what comes has somewhere to go, even when nobody refers to this object."""
        handlers = self._handlers
        takers = (handlers.on_open, handlers.on_error, handlers.on_message, handlers.on_any)
        return bool(self._listeners or handlers.on_comment or any(takers))

    def _ended(self) -> None:
        """No callback comes any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(RealtimeError):  # in a forked process
                self._last = (
                    read_text(lib.rt_eventsource_get_last_event_id, handle),
                    read_text(lib.rt_eventsource_get_origin, handle),
                    lib.rt_eventsource_get_reconnection_time_ms(handle) / 1000,
                )
        self._loop_handle = None
        self._is_closed = True

    def _was_collected(self) -> None:
        """Nobody refers to it any more; runs on any thread."""
        self._is_closed = True
        self._loop_handle = self._handle = self._confirmed_handle = None

    def _give_up(self, error: RealtimeError, http_status: int = 0) -> None:
        """It cannot go on without what the caller did not give."""
        handle = self._handle
        if handle is not None:
            check(lib.rt_eventsource_close(handle))
            self._failed(ErrorEvent(error, http_status, True, None, 0))

    def _failed(self, event: ErrorEvent) -> None:
        if event.fatal:
            # The end of a stream that is not to come back is none.
            is_end = event.error.status == rt_status.ERROR_CLOSED
            self._failure = None if is_end else event.error
            self._ended()
        if self._handlers.on_error is None:
            self._untold = event
        else:
            self._handlers.on_error(event)

    def _begin_iterating(self) -> None:
        self._confirm()
        if not self._is_iterated:
            self._is_iterated = True
            if self._confirmed_handle is not None:
                check(lib.rt_eventsource_set_confirms_ids(self._confirmed_handle, True))
            self._handlers_changed(takes_events=True)

    def _confirm(self) -> None:
        """The event that was taken last is done with: its id may be kept."""
        id_, self._taken_id = self._taken_id, None
        if id_ is not None and self._confirmed_handle is not None:
            check(lib.rt_eventsource_confirm_id(self._confirmed_handle, id_.encode()))

    def _took(self) -> None:
        """After taking as many events from a full inbox as was waited for."""
        self._inbox.paused = False
        handle = self._handle
        if handle is not None:
            check(lib.rt_eventsource_resume(handle))

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._end()
        return handle

    def _end(self) -> RealtimeError:
        """For whoever wants more of one that is closed."""
        if self._failure is not None:
            return self._failure
        return StreamEnded(rt_status.ERROR_CLOSED, "the event source is closed")


def caused(what: str, cause: Exception) -> RealtimeError:
    """For a function of the caller's that failed."""
    error = from_status(rt_status.ERROR_CANCELLED, f"{what}: {cause}")
    error.__cause__ = cause
    return error
