"""What the asyncio and the blocking event source share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import check
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.kind import Callback, read_text
from .._core.values import invalid, text
from .eventsource_callbacks import EVENTSOURCE, ON_COMMENT, ON_EVENT, ON_RETRY, ON_STORE
from .eventsource_options import (
    OPTIONS,
    EventHandler,
    EventListener,
    Keywords,
    OnComment,
    OnEvent,
)
from .http_source import HTTPSource
from .server_sent_event import ServerSentEvent

if TYPE_CHECKING:
    from typing_extensions import Unpack


@OPTIONS.shown_by("EventSource")
class BaseEventSource(HTTPSource[ServerSentEvent]):
    """It begins to connect when it is made; events wait for the first handler or iteration.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    """

    _kind = EVENTSOURCE
    _options = OPTIONS
    # Whose ids are kept when the event was taken and the next is asked for: those that wait in the
    # queue would be lost by a crash.
    _confirmed_handle: Handle | None = None
    # Whether C calls back for comments.
    _hears_comments = False
    # Handlers of an event are called; and one has its id forgotten.
    _is_telling = _is_forgotten = False

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        given = OPTIONS.complete(options)
        self._listeners: dict[str, list[EventListener]] = {}
        # What the stream has given since the last event.
        self._retry_ms: int | None = None
        # Origin and reconnection time at the end.
        self._last: tuple[str, float] = ("", 0)
        self._begin(url, given)
        handle = self._require_handle()
        if given["id_file"] is not None or given["on_store"] is not None:
            self._confirmed_handle = handle
            self._confirms = True

    @property
    def _hands_over(self) -> bool:
        takers = (self._handlers.on_any, self._handlers.on_comment)
        return super()._hands_over or any(handler is not None for handler in takers)

    def _callbacks(self) -> list[Callback]:
        callbacks = [*super()._callbacks(), ON_EVENT, ON_RETRY]
        if self._handlers.on_comment is not None:
            self._hears_comments = True
            callbacks.append(ON_COMMENT)
        if self._handlers.on_store is not None:
            callbacks.append(ON_STORE)
        return callbacks

    # What it is.

    @property
    def origin(self) -> str:
        """Where the events come from, after redirects: scheme, host and port."""
        handle = self._handle
        return self._last[0] if handle is None else read_text(EVENTSOURCE.get_origin, handle)

    @property
    def reconnection_time(self) -> float:
        """Seconds before a reconnect: what the server set last, at least
        `min_reconnection_time`, or the option."""
        handle = self._handle
        return self._last[1] if handle is None else _reconnection_time(handle)

    # Handlers, beside those of every source.

    on_any = Handler[OnEvent]()
    on_comment = Handler[OnComment]()

    def _set_handler(self, name: str, handler: object) -> None:
        handle = self._handle
        if name == "on_comment" and handle is not None and not self._hears_comments:
            self._hears_comments = True
            EVENTSOURCE.set_callback(self._registration, handle, ON_COMMENT)
        super()._set_handler(name, handler)

    def add_event_listener(self, event: str, handler: EventHandler) -> EventListener:
        """Has `handler` called with each event of this type, behind those there are.

        :param event: compared byte for byte; ``"message"`` for events without one.
        :returns: what ``remove_event_listener`` takes.
        """
        if not text(event, "the type of events"):
            raise invalid('the type of events is ""; those without one are "message"')
        if not callable(handler):
            raise TypeError(f"a listener is a {type(handler).__name__}; a function is expected")
        listener = EventListener(event, handler)
        self._listeners.setdefault(event, []).append(listener)
        self._handlers_changed()
        return listener

    def remove_event_listener(self, listener: str | EventListener) -> None:
        """Removes a listener, or all for events of a type. One that is gone changes nothing."""
        if isinstance(listener, EventListener):
            left = [
                other for other in self._listeners.pop(listener.event, []) if other is not listener
            ]
            if left:
                self._listeners[listener.event] = left
        elif isinstance(listener, str):
            self._listeners.pop(listener, None)
        else:
            kind = type(listener).__name__
            raise TypeError(f"a listener is a {kind}; an EventListener or a type is expected")
        self._handlers_changed()

    def event_names(self) -> list[str]:
        """The types that have a listener, sorted."""
        # By code points is bytewise by UTF-8.
        return sorted(self._listeners)

    # Use.

    def reset_stored_id(self) -> None:
        """Forgets the id that is kept in the id file for this event source, and that of the event
        whose handler calls this, or that was taken last; ids of later events are kept as ever."""
        check(EVENTSOURCE.reset_stored_id(self._require_handle()))
        self._taken.forget()

    def close(self) -> None:
        """Ends it for good: no handler is called any more, what waits to be taken is forgotten.

        The event that was taken last comes again in the next run, as its work may have failed; the
        end of a ``with`` in order says that it has not. Of several tasks or threads that take
        events each has its own.
        """
        self._confirms = False
        self._confirmed_handle = None
        super().close()

    # Called by the trampolines.

    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None:
        if self._handle is None:
            return
        retry, self._retry_ms = self._retry_ms, None
        told = ServerSentEvent(event, data, id_, retry, had_id)
        handlers = self._handlers
        self._is_telling, self._is_forgotten = True, False
        if event == "message" and handlers.on_message is not None:
            self._hand_to(handlers.on_message, told, size)
        if self._listeners:
            for listener in tuple(self._listeners.get(event, ())):
                # One that was removed meanwhile, by itself or another, is not called.
                if listener in self._listeners.get(event, ()):
                    self._hand_to(listener.handler, told, size)
        if handlers.on_any is not None:
            self._hand_to(handlers.on_any, told, size)
        self._is_telling = False
        # Handlers and an iteration are given the same events.
        if self._is_taken and not self._is_closed:
            self._queue(told, size)
        elif self._confirmed_handle is not None:
            self._was_told(id_)

    def _was_told(self, id_: str) -> None:
        """The handlers have returned, with what may still be to be awaited."""

    def _hand_over(self, handler: EventHandler) -> None:
        """What waits is for the iteration that it waits for, and no other."""

    def _hand_to(self, handler: EventHandler, event: ServerSentEvent, size: int) -> None:
        """One that fails does not keep the event from the others."""
        if self._is_closed:
            return
        try:
            self._call(handler, event, size=size + 1)
        except BaseException as error:
            self._keep(error)

    def _retried(self, time_ms: int) -> None:
        self._retry_ms = time_ms

    def _commented(self, comment: str) -> None:
        self._tell("on_comment", comment)

    def _stores(self, key: str, id_: str) -> None:
        self._tell("on_store", key, id_)

    # For the faces.

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        if self._listeners:
            self._flow()

    @property
    def _calls_back(self) -> bool:
        return bool(self._listeners) or super()._calls_back

    def _begin_taking(self) -> None:
        if not self._is_taken and self._confirmed_handle is not None:
            check(EVENTSOURCE.set_confirms_ids(self._confirmed_handle, True))
        super()._begin_taking()

    def _confirm(self, is_leaving: bool = False) -> None:
        handle = self._confirmed_handle
        if handle is not None:
            confirm = EVENTSOURCE.confirm_id
            self._taken.finished(
                self._asker(), lambda id_: check(confirm(handle, id_.encode())), is_leaving
            )

    def _remember(self, handle: Handle) -> None:
        super()._remember(handle)
        origin = read_text(EVENTSOURCE.get_origin, handle)
        self._last = (origin, _reconnection_time(handle))

    def _was_collected(self) -> None:
        super()._was_collected()
        self._confirmed_handle = None


def _reconnection_time(handle: Handle) -> float:
    milliseconds: int = EVENTSOURCE.get_reconnection_time_ms(handle)
    return milliseconds / 1000
