"""The library's loop inside asyncio's: a descriptor to watch, no thread, no polling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from typing import TYPE_CHECKING

from ._callbacks import Handle, new_loop
from ._loader import lib
from .exceptions import RealtimeError, check, from_status

if TYPE_CHECKING:
    from ._asyncio import Connection

_ATTRIBUTE = "_librealtime_reactor"

#: How long a loop without connections is kept for the next: a new one has to read the system's
#: certificates again, which takes twenty times as long as to connect.
LINGER_S = 60.0


class Reactor:
    """One for each asyncio loop that has connections; given back a while after the last of them.

    The asyncio loop refers to it, by the reader and by an attribute, and nothing else does: what
    is forgotten together with its loop is collected together with it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.handle: Handle | None = new_loop()
        self._fd = lib.rt_loop_fd(self.handle)
        check(self._fd)
        self._process = os.getpid()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._held: set[Connection] = set()
        self._is_dispatching = False
        self._is_broken = False
        self._linger: asyncio.TimerHandle | None = None
        self.errors: list[tuple[Connection, BaseException]] = []
        loop.add_reader(self._fd, self._dispatch)
        setattr(loop, _ATTRIBUTE, self)

    @staticmethod
    def current() -> Reactor:
        loop = asyncio.get_running_loop()
        reactor = getattr(loop, _ATTRIBUTE, None)
        if isinstance(reactor, Reactor) and not reactor._is_broken:
            return reactor
        return Reactor(loop)

    def add(self, connection: Connection) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._connections.add(connection)

    def remove(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._held.discard(connection)
        self.release_when_idle()

    def hold(self, connection: Connection) -> None:
        """Keeps alive a connection that a task waits for: asyncio refers to tasks weakly."""
        self._held.add(connection)

    def let_go(self, connection: Connection) -> None:
        self._held.discard(connection)

    def release_when_idle(self) -> None:
        """Gives the loop back when no connection came for a while; never inside a dispatch."""
        if self._connections or self._is_dispatching or self.handle is None:
            return
        if self._is_broken or self.loop.is_closed():
            self._give_back()
        elif self._linger is None:
            self._linger = self.loop.call_later(LINGER_S, self._give_back)

    def _give_back(self) -> None:
        self._linger = None
        if not self._connections and self.handle is not None:
            self._unwatch()
            if getattr(self.loop, _ATTRIBUTE, None) is self:
                delattr(self.loop, _ATTRIBUTE)
            self.handle = None

    def connection_was_collected(self) -> None:
        """On any thread: the collector runs where it likes."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.release_when_idle)

    def _unwatch(self) -> None:
        """Not in a forked process: what asyncio watches with is the parent's, too."""
        if not self.loop.is_closed() and os.getpid() == self._process:
            self.loop.remove_reader(self._fd)

    def _dispatch(self) -> None:
        self._is_dispatching = True
        try:
            status = lib.rt_loop_dispatch(self.handle, 0)
        finally:
            self._is_dispatching = False
        if status < 0:
            self._fail(from_status(status, lib.rt_last_error().decode()))
        try:
            self._report_errors()
        finally:
            self.release_when_idle()

    def _fail(self, error: RealtimeError) -> None:
        """Nothing works any more, in a forked process for example: tell everyone."""
        self._is_broken = True
        self._unwatch()
        for connection in list(self._connections):
            connection.fail(error)

    def _report_errors(self) -> None:
        """What callbacks raised; only what must end the program is raised on, as asyncio does."""
        fatal: BaseException | None = None
        errors, self.errors = self.errors, []
        for connection, error in errors:
            if not isinstance(error, Exception):
                fatal = fatal or error
                continue
            self.loop.call_exception_handler(
                {
                    "message": "a callback of a connection failed",
                    "exception": error,
                    "connection": connection,
                }
            )
        if fatal is not None:
            raise fatal
