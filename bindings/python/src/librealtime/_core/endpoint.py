"""What a connection, an event source and the like share: a handle, its end, and what waits."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, ClassVar

from .abi import rt_status
from .errors import RealtimeError, check
from .handle import Handle
from .inbox import Inbox
from .kind import Kind
from .response import Opened


class Calling:
    """Who calls handlers of the caller's."""

    def _call(self, handler: Callable[..., Any], *arguments: object, size: int = 0) -> None:
        """
        :param size: of a message, above 0; 0 for what is none.
        """
        result = handler(*arguments)
        if result is not None and hasattr(result, "__await__"):
            self._await(result, size)

    def _await(self, awaitable: Awaitable[Any], size: int) -> None:
        """Has what a handler returned be awaited, behind what those before it returned."""
        raise NotImplementedError


class Endpoint(Calling):
    """What both faces of an object have that lives on a loop of the library's."""

    _kind: ClassVar[Kind]

    # For an object whose making failed half-way.
    _handle: Handle | None = None
    _loop_handle: Handle | None = None
    _is_closed = True
    _opened: Opened | None = None

    # What has come and was not taken.
    _inbox: Inbox[Any]

    # The caller's functions, by their names.
    _handlers: SimpleNamespace

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

    @property
    def opened(self) -> Opened | None:
        """What the server answered when it opened last, and by which connection; None before."""
        return self._opened

    def _set_handler(self, name: str, handler: object) -> None:
        """One of them is another now; replaced as a whole, for those who look at several."""
        self._handlers = SimpleNamespace(**{**vars(self._handlers), name: handler})

    def _tell(self, name: str, *arguments: object) -> None:
        """Calls a handler, if there is one."""
        handler = getattr(self._handlers, name)
        if handler is not None:
            self._call(handler, *arguments)

    def _describe(self) -> str:
        """State, and what else tells it from others."""
        raise NotImplementedError

    def _end(self) -> RealtimeError:
        """For whoever uses one that is closed."""
        raise NotImplementedError

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._end()
        return handle

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""
        raise NotImplementedError

    def fail(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        raise NotImplementedError

    # Pauses.

    @property
    def _is_paused(self) -> bool:
        """Whether too much waits."""
        return self._inbox.paused

    def _pause(self) -> None:
        """Too much waits: no more is to come."""
        handle = self._handle
        if handle is not None:
            check_flow(self._kind.pause(handle))

    def _took(self, inbox: Inbox[Any]) -> None:
        """After taking as many from a full inbox as was waited for."""
        inbox.paused = False
        self._go_on()

    def _go_on(self) -> None:
        """More may come, unless something else is full."""
        handle = self._handle
        if handle is not None and not self._is_paused:
            check_flow(self._kind.resume(handle))

    # The end.

    def _ended(self) -> None:
        """No callback comes any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(RealtimeError):  # in a forked process
                self._remember(handle)
        # In asyncio's face others may have it; in the blocking one it goes, with its descriptors,
        # when the dispatch that we are in returns.
        self._loop_handle = None
        self._is_closed = True

    def _remember(self, handle: Handle) -> None:
        """What is asked for after the end, too."""

    def _was_collected(self) -> None:
        """Nobody refers to it any more; runs on any thread."""
        self._is_closed = True
        self._loop_handle = self._handle = None


def check_flow(status: int) -> None:
    """One that another thread has closed meanwhile neither pauses nor goes on."""
    if status != rt_status.ERROR_CLOSED:
        check(status)
