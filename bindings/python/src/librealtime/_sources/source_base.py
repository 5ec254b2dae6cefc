"""Delivers items into a bounded queue, for asyncio and for blocking programs.

A source connects as soon as it is created, and reconnects by itself. It pauses its peer while its
queue is full, and ends by ``close`` or with one fatal error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from .._core.abi import rt_state, rt_status
from .._core.awaiting import handlers_of
from .._core.endpoint import Endpoint, check_flow
from .._core.errors import RealtimeError, StreamEnded, check, final, from_status
from .._core.failure import Failure
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.headers import Pairs, header_pairs
from .._core.inbox import Inbox
from .._core.kind import Callback, read_text
from .._core.naming import said_by
from .._core.parameters import Configured, Given, Options, Setup
from .._core.response import Opened
from .._core.shared_options import queue_limits
from .._core.values import text, without_userinfo
from .source_options import ErrorEvent, OnError, OnOpen
from .taken import Taken


class Item(Protocol):
    """An item that a source delivers."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Item)


class BaseSource(Endpoint, Configured, Generic[T]):
    """What all kinds of sources share, in asyncio and in blocking programs.

    A kind is a class with `_kind`. Its constructor calls `_begin`; its `_callbacks` lists its
    callbacks; it passes each item to its handler or to `_queue`, and overrides what its chapter of
    the C interface does differently. A usable class derives from ``AsyncSource`` or
    ``BlockingSource`` first and then from the kind.
    """

    _options: ClassVar[Options]

    def _begin(self, url: str, given: Given) -> None:
        """Creates the object in C and starts it."""
        kind = self._kind
        address = text(url, "the URL", rt_status.ERROR_INVALID_URL)
        self._handlers = self._handlers_of(given)
        self._inbox: Inbox[T] = Inbox(*queue_limits(given))
        self._failure: RealtimeError | None = None
        self._untold: ErrorEvent | None = None
        # Items are delivered once there is a consumer.
        self._flows = self._hands_over
        # Whether anyone has asked for the next item.
        self._is_taken = False
        # Whether to call `_confirm` after each item taken.
        self._confirms = False
        self._taken = Taken(self._is_gone)
        # The headers of every attempt.
        self._headers = self._pairs(given)
        self._last_id = ""
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = kind.make(loop, address)
        kind.add_headers(handle, self._headers)
        self._options.apply(Setup(kind, handle, loop), given)
        self._url = without_userinfo(url)
        self._registration = kind.attach(self, handle, self._callbacks())
        if not self._flows:
            check(kind.pause(handle))
        self._start(handle)
        self._handle = handle
        self._is_closed = False

    def _handlers_of(self, given: Given) -> SimpleNamespace:
        return handlers_of(given, self._options.handlers)

    @property
    def _hands_over(self) -> bool:
        """Whether there is a handler that receives items."""
        return self._handlers.on_message is not None

    def _pairs(self, given: Given) -> Pairs:
        """The headers of its requests."""
        return header_pairs(given["headers"])

    def _callbacks(self) -> list[Callback]:
        """The callbacks that it needs."""
        raise NotImplementedError

    def _start(self, handle: Handle) -> None:
        check(self._kind.start(handle))

    # State.

    @property
    def last_event_id(self) -> str:
        """The id of the last item received, queued items included; "" at the beginning."""
        handle = self._handle
        if handle is None:
            return self._last_id
        return read_text(self._kind.get_last_event_id, handle)

    on_open: Handler[OnOpen] = Handler()
    on_error: Handler[OnError] = Handler("Set later, it is also called with an earlier error.")
    on_message: Handler[Callable[[T], object] | None] = Handler("It also receives queued items.")

    def _set_handler(self, name: str, handler: object) -> None:
        super()._set_handler(name, handler)
        self._handlers_changed()
        if name == "on_error" and self._untold is not None:
            untold, self._untold = self._untold, None
            self._tell_error(untold)
        elif name == "on_message" and self._handlers.on_message is not None:
            self._hand_over(self._handlers.on_message)

    def _hand_over(self, handler: Callable[[T], object]) -> None:
        items = self._inbox.messages
        # Another thread may take some in the meantime.
        with contextlib.suppress(IndexError):
            while True:
                item = items.popleft()
                try:
                    self._call(handler, item, size=1)
                except BaseException as error:
                    self._keep(error)
        if self._inbox.paused:
            self._took(self._inbox)

    # Methods.

    def close(self) -> None:
        """Closes it for good. No more handlers are called, and queued items are discarded."""
        handle = self._handle
        if handle is not None:
            check(self._kind.close(handle))
            self._ended()
        self._inbox.messages.clear()

    # Called by the trampolines.

    def _was_opened(self, opened: Opened) -> None:
        self._opened = opened
        self._tell("on_open")

    def _erred(self, failure: Failure) -> None:
        self._failed(ErrorEvent._of(failure))

    def _failed(self, event: ErrorEvent) -> None:
        if event.fatal:
            # The end of a stream that does not reconnect is not an error.
            is_end = event.error.status == rt_status.ERROR_CLOSED
            self._failure = None if is_end else final(event.error)
            self._ended()
        self._tell_error(event)

    def _tell_error(self, event: ErrorEvent) -> None:
        if self._handlers.on_error is None:
            self._untold = event
        else:
            self._call(self._handlers.on_error, event)

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        self._failed(ErrorEvent(error, 0, True, None, 0))

    def _give_up(self, what: str, cause: Exception) -> None:
        """Ends the source: a function of the caller failed that it cannot continue without."""
        handle = self._handle
        if handle is not None:
            check(self._kind.close(handle))
            error = from_status(rt_status.ERROR_CANCELLED, f"{what}: {said_by(cause)}")
            error.__cause__ = cause
            self._failed(ErrorEvent(error, 0, True, None, 0))

    # Overridden by the asyncio and the blocking class.

    @property
    def _is_over(self) -> bool:
        """Whether no more items will come."""
        return self._is_closed

    def _join(self) -> Handle:
        """The library's loop to use."""
        raise NotImplementedError

    def _deliver(self, item: T, size: int) -> None:
        """Passes an item to the handler, or queues it; called during a dispatch."""
        if self._handle is None:
            return
        if self._handlers.on_message is not None:
            # size + 1, since even an empty message counts.
            self._call(self._handlers.on_message, item, size=size + 1)
        else:
            self._queue(item, size)

    def _queue(self, item: T, size: int) -> None:
        """Adds an item to the queue; called during a dispatch."""
        raise NotImplementedError

    def _begin_taking(self) -> None:
        """Called when a consumer asks for the next item: the items it took before are finished."""
        self._is_taken = True
        self._confirm()
        self._flow()

    def _confirm(self, is_leaving: bool = False) -> None:
        """Confirms the item that the calling task or thread took last."""

    def _asker(self) -> Any:
        """The calling task or thread."""
        raise NotImplementedError

    @staticmethod
    def _is_gone(taker: Any, is_leaving: bool) -> bool:
        """Whether a task or thread has ended, so that it is not processing an item."""
        raise NotImplementedError

    @property
    def _calls_back(self) -> bool:
        """Whether items have somewhere to go even if nobody refers to this object."""
        tellers = (self._handlers.on_open, self._handlers.on_error)
        return self._hands_over or any(handler is not None for handler in tellers)

    def _handlers_changed(self) -> None:
        """Called after handlers were set or removed."""
        if self._hands_over:
            self._flow()

    def _flow(self) -> None:
        """Lets items arrive from now on."""
        handle = self._handle
        if not self._flows and handle is not None:
            self._flows = True
            check_flow(self._kind.resume(handle))

    def _remember(self, handle: Handle) -> None:
        self._last_id = read_text(self._kind.get_last_event_id, handle)

    def _missed(self, handle: Handle) -> None:
        if self._kind.get_state(handle) == rt_state.CLOSED:
            self._ended()

    def _end(self) -> RealtimeError:
        return self._closed_in_order() if self._failure is None else self._failure

    def _closed_in_order(self) -> RealtimeError:
        return StreamEnded(rt_status.ERROR_CLOSED, f"the {self._kind.noun} is closed")
