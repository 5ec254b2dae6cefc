"""What the asyncio and the blocking event source share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import check
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.kind import Callback, read_text
from .._core.naming import kind_of
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
    """It connects as soon as it is created; events wait for the first handler or iteration.

    Durations are in seconds, sizes in bytes. Where an option accepts None, None switches it off.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    """

    _kind = EVENTSOURCE
    _options = OPTIONS
    # The handle whose ids are stored only when an event was taken and the next one requested: a
    # crash would lose events that are still queued.
    _confirmed_handle: Handle | None = None
    # Whether C calls back for comments.
    _hears_comments = False
    # Whether an event's handlers are being called, and whether one of them has reset its id.
    _is_telling = _is_forgotten = False

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        given = OPTIONS.complete(options)
        self._listeners: dict[str, list[EventListener]] = {}
        # The reconnection time that the stream has sent since the last event.
        self._retry_ms: int | None = None
        # Origin and reconnection time, saved when it ends.
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

    # State.

    @property
    def origin(self) -> str:
        """The origin of the events, after redirects: scheme, host and port."""
        handle = self._handle
        return self._last[0] if handle is None else read_text(EVENTSOURCE.get_origin, handle)

    @property
    def reconnection_time(self) -> float:
        """The delay before a reconnect in seconds: the server's last value, at least
        `min_reconnection_time`, or else the option."""
        handle = self._handle
        return self._last[1] if handle is None else _reconnection_time(handle)

    # Handlers, in addition to those of every source.

    on_any: Handler[OnEvent] = Handler()
    on_comment: Handler[OnComment] = Handler()

    def _set_handler(self, name: str, handler: object) -> None:
        handle = self._handle
        if name == "on_comment" and handle is not None and not self._hears_comments:
            self._hears_comments = True
            EVENTSOURCE.set_callback(self._registration, handle, ON_COMMENT)
        super()._set_handler(name, handler)

    def add_event_listener(self, event: str, handler: EventHandler) -> EventListener:
        """Calls `handler` with each event of this type, after existing listeners.

        :param event: compared byte for byte; ``"message"`` for events without a type.
        :returns: a listener to pass to ``remove_event_listener``.
        """
        if not text(event, "the type of events"):
            raise invalid('the type of events is ""; use "message" for events without a type')
        if not callable(handler):
            raise TypeError(f"a listener is {kind_of(handler)}; a function is expected")
        listener = EventListener(event, handler)
        self._listeners.setdefault(event, []).append(listener)
        self._handlers_changed()
        return listener

    def remove_event_listener(self, listener: str | EventListener) -> None:
        """Removes a listener, or all listeners of a type. Removing it again does nothing."""
        if isinstance(listener, EventListener):
            left = [
                other for other in self._listeners.pop(listener.event, []) if other is not listener
            ]
            if left:
                self._listeners[listener.event] = left
        elif isinstance(listener, str):
            self._listeners.pop(listener, None)
        else:
            kind = kind_of(listener)
            raise TypeError(f"a listener is {kind}; an EventListener or a type is expected")
        self._handlers_changed()

    def event_names(self) -> list[str]:
        """The types that have listeners, sorted."""
        # The order of code points is the order of UTF-8 bytes.
        return sorted(self._listeners)

    # Methods.

    def reset_stored_id(self) -> None:
        """Deletes the id stored in the id file for this event source. The id of the current event,
        whose handler calls this or which was taken last, is not stored either; later ids are."""
        check(EVENTSOURCE.reset_stored_id(self._require_handle()))
        self._taken.forget()

    def close(self) -> None:
        """Closes it for good. No more handlers are called, and queued events are discarded.

        The next run receives the last taken event again, because processing it may have failed.
        Leaving a ``with`` block normally confirms that event. If several tasks or threads take
        events, this applies to the last event of each.
        """
        self._confirms = False
        self._confirmed_handle = None
        super().close()

    # Called by the trampolines.

    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None:
        if self._handle is None:
            return
        retry, self._retry_ms = self._retry_ms, None
        sse = ServerSentEvent(event, data, id_, retry, had_id)
        handlers = self._handlers
        self._is_telling, self._is_forgotten = True, False
        if event == "message" and handlers.on_message is not None:
            self._hand_to(handlers.on_message, sse, size)
        if self._listeners:
            for listener in tuple(self._listeners.get(event, ())):
                # A listener removed in the meantime is not called.
                if listener in self._listeners.get(event, ()):
                    self._hand_to(listener.handler, sse, size)
        if handlers.on_any is not None:
            self._hand_to(handlers.on_any, sse, size)
        self._is_telling = False
        # Handlers and iteration receive the same events.
        if self._is_taken and not self._is_closed:
            self._queue(sse, size)
        elif self._confirmed_handle is not None:
            self._was_handled(id_)

    def _was_handled(self, id_: str) -> None:
        """Called after an event's handlers have returned; their results may still be awaited."""

    def _hand_over(self, handler: EventHandler) -> None:
        """Does nothing: queued events belong to the iteration that they wait for."""

    def _hand_to(self, handler: EventHandler, event: ServerSentEvent, size: int) -> None:
        """Calls a handler; an exception does not keep the event from the others."""
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

    # Overridden by the asyncio and the blocking class.

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
