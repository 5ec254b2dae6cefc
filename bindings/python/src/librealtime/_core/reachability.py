"""Whether there is a network, for reconnecting."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Literal

from .abi import rt_reachability_mode
from .errors import check
from .handle import Handle, new, new_loop
from .loader import lib
from .naming import kind_of
from .uncopied import Uncopied
from .values import choice, names_of
from .waiting import dispatch

Mode = Literal["auto", "manual", "always"]

_MODES = names_of(rt_reachability_mode)


class Reachability(Uncopied):
    """Whether there is a network. Any number of connections may share one.

    Objects that repeat failed attempts consult it before each attempt, also the first: while their
    server cannot be reached, they make and count none, report the wait once, and continue within a
    second once the network returns. Other objects make their only attempt in any case.

    ``for online in reachability`` and ``async for online in reachability`` yield each change from
    then on. It may be used from any thread.

    :param mode: ``"auto"`` (the default) uses the kernel's links, addresses and routes. A peer
        counts as reachable if it is this machine or a Unix socket. Otherwise, an interface other
        than the loopback must be up and running and have a default route, a route to the peer's
        address or, for a name, any route that is not link-local (for a name in ``.local``, any
        route). In doubt the peer is reachable: a wrong yes costs an attempt, a wrong no would
        prevent every connection. Behind a proxy, the proxy is the peer. If the system does not show
        its network, this is like ``"always"``. ``"manual"`` uses ``set_online`` and is online at
        first; with ``"always"`` everything is reachable.
    """

    def __init__(self, mode: Mode = "auto") -> None:
        # Reentrant: a finalizer that the collector runs meanwhile may use this object, too.
        self._lock = threading.RLock()
        self._mode = mode
        self._number = choice(mode, _MODES, "mode")
        self._online = True
        # One handle for each of the library's loops, as long as that loop exists.
        self._handles: weakref.WeakKeyDictionary[Handle, Handle] = weakref.WeakKeyDictionary()
        self._own: _Watch | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mode!r})"

    @property
    def mode(self) -> Mode:
        """See the parameter; may be changed at any time."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        number = choice(mode, _MODES, "mode")
        with self._lock:
            self._mode, self._number = mode, number
            for handle in self._handles.values():
                check(lib.rt_reachability_set_mode(handle, number))

    def set_online(self, online: bool) -> None:
        """Sets whether there is a network in the mode ``"manual"``; other modes remember it."""
        with self._lock:
            self._online = bool(online)
            for handle in self._handles.values():
                check(lib.rt_reachability_set_online(handle, self._online))

    @property
    def is_online(self) -> bool:
        """Whether a host known by name counts as reachable."""
        if self._own is None:
            self._own = _Watch(self)
        return self._own.look(0)

    def __iter__(self) -> Iterator[bool]:
        watch = _Watch(self)
        return self._changes(watch, watch.look(0))

    def __aiter__(self) -> AsyncIterator[bool]:
        watch = _Watch(self)
        return self._changes_awaited(watch, watch.look(0))

    @staticmethod
    def _changes(watch: _Watch, last: bool) -> Iterator[bool]:
        while True:
            now = watch.look(-1)
            if now != last:
                last = now
                yield now

    @staticmethod
    async def _changes_awaited(watch: _Watch, last: bool) -> AsyncIterator[bool]:
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        loop.add_reader(watch.fd, news.set)
        try:
            while True:
                await news.wait()
                now = watch.look(0)
                news.clear()
                if now != last:
                    last = now
                    yield now
        finally:
            loop.remove_reader(watch.fd)

    def on(self, loop: Handle) -> Handle:
        """The handle of the C interface for this loop."""
        with self._lock:
            handle = self._handles.get(loop)
            if handle is None:
                handle = new(lib.rt_reachability_new, lib.rt_reachability_free, loop, self._number)
                check(lib.rt_reachability_set_online(handle, self._online))
                self._handles[loop] = handle
            return handle


def on_loop(reachability: Reachability, loop: Handle) -> Handle:
    """The handle of the C interface for an argument ``reachability=``."""
    if not isinstance(reachability, Reachability):
        given = kind_of(reachability)
        raise TypeError(f"reachability is {given}; a Reachability is expected")
    return reachability.on(loop)


class _Watch:
    """A loop for one observer, which runs only while that looks."""

    def __init__(self, reachability: Reachability) -> None:
        self._loop = new_loop()
        self._handle = reachability.on(self._loop)
        self._turns = threading.RLock()
        self.fd = lib.rt_loop_fd(self._loop)
        check(self.fd)

    def look(self, timeout_ms: int) -> bool:
        """Runs one turn of the loop and returns whether it is online."""
        with self._turns:
            check(dispatch(lambda: self._loop, timeout_ms))
        out = ctypes.c_bool()
        check(lib.rt_reachability_is_online(self._handle, ctypes.byref(out)))
        return out.value
