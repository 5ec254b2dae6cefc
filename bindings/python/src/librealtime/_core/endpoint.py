"""What connections, event sources and the like share: a handle, a queue, and how they end."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, ClassVar

from .abi import rt_status
from .errors import RealtimeError, check
from .forgetting import forget
from .handle import Handle
from .inbox import Inbox
from .kind import Kind
from .registry import Registration
from .response import Opened
from .uncopied import Uncopied


class Calling(Uncopied):
    """Calls the user's handlers."""

    def _call(self, handler: Callable[..., Any], *arguments: object, size: int = 0) -> None:
        """
        :param size: the size of a message, above 0; 0 if this is not a message.
        """
        result = handler(*arguments)
        if result is not None and hasattr(result, "__await__"):
            self._await(result, size)

    def _await(self, awaitable: Awaitable[Any], size: int) -> None:
        """Queues what a handler returned, to be awaited after earlier results."""
        raise NotImplementedError


class Endpoint(Calling):
    """What the asyncio and the blocking class of an object share; it uses a loop of the library."""

    _kind: ClassVar[Kind]
    #: Whether results of handlers can be awaited.
    _awaits: ClassVar[bool] = False

    # Defaults for an object whose constructor failed.
    _handle: Handle | None = None
    _loop_handle: Handle | None = None
    _is_closed = True
    _opened: Opened | None = None

    # Received, not yet taken.
    _inbox: Inbox[Any]

    # The user's functions by name.
    _handlers: SimpleNamespace

    # C's reference to this object.
    _registration: Registration

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

    def _not_made(self, error: BaseException) -> None:
        """Called when the constructor has failed: releases what it has made."""
        self._is_closed = True
        self._loop_handle = self._handle = None
        forget(error)

    @property
    def opened(self) -> Opened | None:
        """The server's last response that opened it, and its connection; None before the first."""
        return self._opened

    def retry_now(self) -> None:
        """Reports that the network is back, whatever `reachability` observes: an attempt that
        waits, for its time or for a network, is made at once. A WebSocket that is open is checked
        by a ping, also that of a Pusher connection, a Meteor client or Spreadbot.

        :raises RealtimeError: if it is closed.
        """
        check(self._kind.retry_now(self._require_handle()))

    def _set_handler(self, name: str, handler: object) -> None:
        """Sets one handler. Replaces the whole namespace, as other code may be reading several."""
        self._handlers = SimpleNamespace(**{**vars(self._handlers), name: handler})

    def _tell(self, name: str, *arguments: object) -> None:
        """Calls a handler, if there is one."""
        handler = getattr(self._handlers, name)
        if handler is not None:
            self._call(handler, *arguments)

    def _describe(self) -> str:
        """The state, and what distinguishes this object from others; for ``repr``."""
        raise NotImplementedError

    def _end(self) -> RealtimeError:
        """The exception for calls after it is closed."""
        raise NotImplementedError

    def _require_handle(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise self._end()
        self._revive()
        return handle

    def _revive(self) -> None:
        """Called before something is begun or awaited whose outcome C reports: a finalizer may do
        that, after the collector has cleared C's reference to this object."""
        handle = self._handle
        if handle is not None and self._registration.revive(self):
            self._missed(handle)

    def _missed(self, handle: Handle) -> None:
        """Called if C has called back in vain: asks C whether this object has ended."""
        raise NotImplementedError

    def _keep(self, error: BaseException) -> None:
        """Keeps an exception of a callback until the dispatch has returned."""
        raise NotImplementedError

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        raise NotImplementedError

    @property
    def _calls_back(self) -> bool:
        """Whether events have somewhere to go even if nobody refers to this object."""
        raise NotImplementedError

    # Pauses.

    @property
    def _is_paused(self) -> bool:
        """Whether the queue is full."""
        return self._inbox.paused

    def _pause(self) -> None:
        """Pauses receiving, because the queue is full."""
        handle = self._handle
        if handle is not None:
            check_flow(self._kind.pause(handle))

    def _took(self, inbox: Inbox[Any]) -> None:
        """Called when enough messages were taken from a full inbox."""
        inbox.paused = False
        self._go_on()

    def _go_on(self) -> None:
        """Resumes receiving, unless another queue is full."""
        handle = self._handle
        if handle is not None and not self._is_paused:
            check_flow(self._kind.resume(handle))

    # The end.

    def _ended(self) -> None:
        """Called when no more callbacks will come."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(RealtimeError):  # in a forked process
                self._remember(handle)
        self._is_closed = True
        # With asyncio, others may share the loop. In a blocking object the loop and its descriptors
        # are released when the current dispatch returns.
        self._loop_handle = None

    def _remember(self, handle: Handle) -> None:
        """Saves what users may ask for after the end."""

    def _was_collected(self) -> None:
        """Called when nothing refers to this object any more, on any thread."""
        self._is_closed = True
        self._loop_handle = self._handle = None


def check_flow(status: int) -> None:
    """Checks a pause or resume; ignores an object that another thread has since closed."""
    if status != rt_status.ERROR_CLOSED:
        check(status)
