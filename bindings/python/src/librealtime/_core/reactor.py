"""The library's loop inside asyncio's: asyncio watches a descriptor; no thread, no polling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from typing import Protocol

from .abi import rt_status
from .errors import RealtimeError, check, from_status
from .handle import Handle, new_loop
from .interrupts import deferring
from .loader import lib

_ATTRIBUTE = "_librealtime_reactor"

#: How long a loop without connections is kept for the next one: a new loop has to read the system's
#: certificates again, which takes twenty times as long as connecting.
LINGER_S = 60.0


def elsewhere(noun: str) -> RealtimeError:
    """The exception for using an object on another asyncio loop, where nothing would arrive."""
    message = (
        f"the {noun} lives on another asyncio loop than the one that runs;"
        " make one inside each asyncio.run"
    )
    return from_status(rt_status.ERROR_STATE, message)


class Member(Protocol):
    """An object that uses a reactor: a connection, an event source."""

    def fail(self, error: RealtimeError) -> None:
        """Called when the library's loop itself failed and nothing works any more."""


class Reactor:
    """One for each asyncio loop that uses the library; released some time after its last member.

    Only the asyncio loop refers to it, by the reader and by an attribute, so the collector takes
    both together.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.handle: Handle | None = new_loop()
        self._fd = lib.rt_loop_fd(self.handle)
        check(self._fd)
        self._process = os.getpid()
        self._members: weakref.WeakSet[Member] = weakref.WeakSet()
        self._held: set[Member] = set()
        self._is_dispatching = False
        self._is_broken = False
        self._linger: asyncio.TimerHandle | None = None
        self.errors: list[tuple[Member, BaseException]] = []
        loop.add_reader(self._fd, self._dispatch)
        setattr(loop, _ATTRIBUTE, self)

    @staticmethod
    def current() -> Reactor:
        loop = asyncio.get_running_loop()
        reactor = getattr(loop, _ATTRIBUTE, None)
        if isinstance(reactor, Reactor) and not reactor._is_broken:
            return reactor
        return Reactor(loop)

    def require(self) -> Handle:
        handle = self.handle
        if handle is None:
            raise RuntimeError("the reactor was released")
        return handle

    def add(self, member: Member) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._members.add(member)

    def remove(self, member: Member) -> None:
        self._members.discard(member)
        self._held.discard(member)
        self.release_when_idle()

    def hold(self, member: Member) -> None:
        """Keeps alive an object that a task waits for: asyncio refers to tasks weakly."""
        self._held.add(member)

    def let_go(self, member: Member) -> None:
        self._held.discard(member)

    def release_when_idle(self) -> None:
        """Releases the loop after it was idle for a while; never during a dispatch."""
        if self._members or self._is_dispatching or self.handle is None:
            return
        if self._is_broken or self.loop.is_closed():
            self._give_back()
        elif self._linger is None:
            self._linger = self.loop.call_later(LINGER_S, self._give_back)

    def _give_back(self) -> None:
        self._linger = None
        if not self._members and self.handle is not None:
            self._unwatch()
            if getattr(self.loop, _ATTRIBUTE, None) is self:
                delattr(self.loop, _ATTRIBUTE)
            self.handle = None

    def was_collected(self) -> None:
        """Called on any thread, as the collector may run on any."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.release_when_idle)

    def _unwatch(self) -> None:
        """Stops watching. Not in a forked process, which shares the selector with its parent."""
        if not self.loop.is_closed() and os.getpid() == self._process:
            self.loop.remove_reader(self._fd)

    def _dispatch(self) -> None:
        self._is_dispatching = True
        try:
            status = deferring(lambda: lib.rt_loop_dispatch(self.handle, 0))
        finally:
            self._is_dispatching = False
        if status < 0:
            self._fail(from_status(status, lib.rt_last_error().decode()))
        try:
            self._report_errors()
        finally:
            self.release_when_idle()

    def _fail(self, error: RealtimeError) -> None:
        """Reports to all members that nothing works any more, for example in a forked process."""
        self._is_broken = True
        self._unwatch()
        for member in list(self._members):
            member.fail(error)

    def _report_errors(self) -> None:
        """Reports what callbacks raised. Like asyncio, re-raises only what must end the program."""
        fatal: BaseException | None = None
        errors, self.errors = self.errors, []
        for member, error in errors:
            if not isinstance(error, Exception):
                fatal = fatal or error
                continue
            self.loop.call_exception_handler(
                {
                    "message": "a callback of a connection failed",
                    "exception": error,
                    "connection": member,
                }
            )
        if fatal is not None:
            raise fatal
