"""What delivers items into a bounded queue, for asyncio and for blocking programs.

A source connects when it is made and comes back by itself; it pauses its peer while its queue is
full, and ends by ``close`` or with one fatal error.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from .._core.abi import rt_status
from .._core.awaiting import Calling
from .._core.errors import RealtimeError, StreamEnded, check, from_status
from .._core.failure import Failure
from .._core.handle import Handle
from .._core.headers import Pairs, header_pairs
from .._core.inbox import Inbox
from .._core.kind import Callback, Kind, read_text
from .._core.parameters import Configured, Given, Options, Setup
from .._core.registry import Registration
from .._core.response import Opened
from .._core.shared_options import queue_limits
from .._core.values import text, without_userinfo
from .source_options import ErrorEvent, OnError, OnOpen, SourceHandlers
from .taken import Taken


class Item(Protocol):
    """What a source delivers."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Item)


class BaseSource(Calling, Configured, Generic[T]):
    """What all kinds have in both faces.

    A kind is a class with `_kind`; it makes itself by `_begin`, names its callbacks in
    `_callbacks`, and hands each item to its handler or to `_queue`. What its chapter of the C
    interface does otherwise it overrides. Mixed with ``AsyncSource`` or ``BlockingSource``, which
    go first, it is a face.
    """

    _kind: ClassVar[Kind]
    _options: ClassVar[Options]
    _handler_type: ClassVar[type[SourceHandlers[Any]]]
    _handlers: SourceHandlers[T]

    # For an object whose making failed half-way.
    _handle: Handle | None = None
    _is_closed = True
    _opened: Opened | None = None

    def _begin(self, url: str, given: Given) -> None:
        """Makes the C interface's and starts it."""
        kind = self._kind
        address = text(url, "the URL", rt_status.ERROR_INVALID_URL)
        self._handlers = self._handler_type.of(given)
        self._inbox: Inbox[T] = Inbox(*queue_limits(given))
        self._failure: RealtimeError | None = None
        self._untold: ErrorEvent | None = None
        # Items come once there is somebody to take them.
        self._flows = self._handlers.take_items
        # Whether somebody has asked for the next item.
        self._is_taken = False
        # Whether `_confirm` is wanted behind each item taken.
        self._confirms = False
        self._taken = Taken(self._is_gone)
        # Those of every attempt.
        self._headers = self._pairs(given)
        self._last_id = ""
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = kind.make(loop, address)
        kind.add_headers(handle, self._headers)
        self._options.apply(Setup(kind, handle, loop), given)
        self._url = without_userinfo(url)
        self._registration = Registration(self)
        for callback in self._callbacks():
            kind.set_callback(self._registration, handle, callback)
        if not self._flows:
            check(kind.pause(handle))
        self._start(handle)
        self._handle = handle
        self._is_closed = False

    def _pairs(self, given: Given) -> Pairs:
        """The headers of its requests."""
        return header_pairs(given["headers"])

    def _callbacks(self) -> list[Callback]:
        """The callbacks it needs."""
        raise NotImplementedError

    def _start(self, handle: Handle) -> None:
        check(self._kind.start(handle))

    def __repr__(self) -> str:
        try:
            what = self._describe()
        except RealtimeError as error:  # in a forked process
            what = error.name
        return f"<{type(self).__module__}.{type(self).__name__} {what}>"

    # The default outlives the module at interpreter exit.
    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._is_closed:
            try:
                _warn(f"unclosed {self._kind.noun} {self!r}", ResourceWarning, source=self)
            finally:
                self._was_collected()

    # What it is.

    @property
    def last_event_id(self) -> str:
        """How far what came has come, with what waits to be taken; "" at the beginning."""
        handle = self._handle
        if handle is None:
            return self._last_id
        return read_text(self._kind.get_last_event_id, handle)

    @property
    def opened(self) -> Opened | None:
        """What the server answered when it opened last, and by which connection; None before."""
        return self._opened

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
            self._call(handler, untold)

    @property
    def on_message(self) -> Callable[[T], object] | None:
        return self._handlers.on_message

    @on_message.setter
    def on_message(self, handler: Callable[[T], object] | None) -> None:
        """What waits to be taken is handed to it."""
        self._handlers.on_message = handler
        self._handlers_changed()
        if handler is not None:
            self._hand_over(handler)

    def _hand_over(self, handler: Callable[[T], object]) -> None:
        items = self._inbox.messages
        # Another thread may take some meanwhile.
        with contextlib.suppress(IndexError):
            while True:
                item = items.popleft()
                try:
                    self._call(handler, item, size=1)
                except BaseException as error:
                    self._keep(error)
        if self._inbox.paused:
            self._took()

    # Use.

    def close(self) -> None:
        """Ends it for good: no handler is called any more, what waits to be taken is forgotten."""
        handle = self._handle
        if handle is not None:
            check(self._kind.close(handle))
            self._ended()
        self._inbox.messages.clear()

    # Called by the trampolines.

    def _was_opened(self, opened: Opened) -> None:
        self._opened = opened
        if self._handlers.on_open is not None:
            self._call(self._handlers.on_open)

    def _erred(self, failure: Failure) -> None:
        self._failed(
            ErrorEvent(
                failure.stream_error(),
                failure.http_status,
                failure.fatal,
                failure.retry_in,
                failure.attempt,
            )
        )

    def _failed(self, event: ErrorEvent) -> None:
        if event.fatal:
            # The end of a stream that is not to come back is none.
            is_end = event.error.status == rt_status.ERROR_CLOSED
            self._failure = None if is_end else event.error
            self._ended()
        if self._handlers.on_error is None:
            self._untold = event
        else:
            self._call(self._handlers.on_error, event)

    def _give_up(self, what: str, cause: Exception) -> None:
        """A function of the caller's failed, and it cannot go on without."""
        handle = self._handle
        if handle is not None:
            check(self._kind.close(handle))
            error = from_status(rt_status.ERROR_CANCELLED, f"{what}: {cause}")
            error.__cause__ = cause
            self._failed(ErrorEvent(error, 0, True, None, 0))

    # For the faces.

    @property
    def _is_over(self) -> bool:
        """Whether nothing comes any more."""
        return self._is_closed

    def _join(self) -> Handle:
        """The library's loop that it is to live on."""
        raise NotImplementedError

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""
        raise NotImplementedError

    def _later(self, awaitable: Awaitable[Any], then: Callable[[Any], None]) -> None:
        """Has a coroutine of the caller's run, and `then` be called with what it gives."""
        raise NotImplementedError

    def _describe(self) -> str:
        """State and URL."""
        raise NotImplementedError

    def _queue(self, item: T, size: int) -> None:
        """Adds what came to the queue; inside a dispatch."""
        raise NotImplementedError

    def _pause(self) -> None:
        """The queue is full."""
        handle = self._handle
        if handle is not None:
            check_flow(self._kind.pause(handle))

    def _took(self) -> None:
        """After taking as many items from a full queue as was waited for."""
        self._inbox.paused = False
        handle = self._handle
        if handle is not None:
            check_flow(self._kind.resume(handle))

    def _begin_taking(self) -> None:
        """Somebody wants the next item: those that were taken are done with."""
        self._is_taken = True
        self._confirm()
        self._flow()

    def _confirm(self, is_leaving: bool = False) -> None:
        """The item that was taken last, by the task or thread that calls, is done with."""

    def _asker(self) -> Any:
        """The task or thread that calls."""
        raise NotImplementedError

    @staticmethod
    def _is_gone(taker: Any, is_leaving: bool) -> bool:
        """Whether it has ended, so that nothing is in work there."""
        raise NotImplementedError

    @property
    def _calls_back(self) -> bool:
        """Whether what comes has somewhere to go, even when nobody refers to this object."""
        return self._handlers.call_back

    def _handlers_changed(self) -> None:
        """Handlers were set or taken away."""
        if self._handlers.take_items:
            self._flow()

    def _flow(self) -> None:
        """Has items come from now on."""
        handle = self._handle
        if not self._flows and handle is not None:
            self._flows = True
            check_flow(self._kind.resume(handle))

    def _ended(self) -> None:
        """No callback comes any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(RealtimeError):  # in a forked process
                self._remember(handle)
        self._loop_handle = None
        self._is_closed = True

    def _remember(self, handle: Handle) -> None:
        """What is asked for after the end, too."""
        self._last_id = read_text(self._kind.get_last_event_id, handle)

    def _was_collected(self) -> None:
        """Nobody refers to it any more; runs on any thread."""
        self._is_closed = True
        self._loop_handle = self._handle = None

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._end()
        return handle

    def _end(self) -> RealtimeError:
        """For whoever wants more of one that is closed."""
        return self._closed_in_order() if self._failure is None else self._failure

    def _closed_in_order(self) -> RealtimeError:
        return StreamEnded(rt_status.ERROR_CLOSED, f"the {self._kind.noun} is closed")


def check_flow(status: int) -> None:
    """One that another thread has closed meanwhile neither pauses nor goes on."""
    if status != rt_status.ERROR_CLOSED:
        check(status)
