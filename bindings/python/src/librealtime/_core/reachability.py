"""Whether there is a network to come back by."""

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
from .values import choice, names_of

Mode = Literal["auto", "manual", "always"]

_MODES = names_of(rt_reachability_mode)


class Reachability:
    """Whether there is a network; any number of connections may be given the same.

    What comes back by itself after a loss asks it before an attempt: while it is offline none is
    made and none is counted, and when it is online again one follows within a second.

    ``for online in reachability`` and ``async for online in reachability`` give each change from
    then on. Any thread may use it.

    :param mode: ``"auto"`` (the default) goes by what the kernel tells of links, addresses and
        routes: a peer counts as reachable when it is this machine or a Unix socket; when an
        interface other than the loopback is up and running and has a default route; when such an
        interface has a route to its address; and, for a name, when such an interface has any route
        that is not link-local, or, for a name in ``.local``, any route. In doubt it is reachable: a
        wrong yes costs an attempt, a wrong no would never connect. Behind a proxy, the proxy is the
        peer. Where the system does not show its network it is as ``"always"``. ``"manual"`` goes by
        ``set_online``, and is online at first; with ``"always"`` everything is reachable.
    """

    def __init__(self, mode: Mode = "auto") -> None:
        self._lock = threading.Lock()
        self._mode = mode
        self._number = choice(mode, _MODES, "mode")
        self._online = True
        # One for each of the library's loops, as long as that is there.
        self._handles: weakref.WeakKeyDictionary[Handle, Handle] = weakref.WeakKeyDictionary()
        self._own: _Watch | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mode!r})"

    @property
    def mode(self) -> Mode:
        """As the parameter; may be changed at any time."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        number = choice(mode, _MODES, "mode")
        with self._lock:
            self._mode, self._number = mode, number
            for handle in self._handles.values():
                check(lib.rt_reachability_set_mode(handle, number))

    def set_online(self, online: bool) -> None:
        """Says whether there is a network, for ``"manual"``; else it is kept for that mode."""
        with self._lock:
            self._online = bool(online)
            for handle in self._handles.values():
                check(lib.rt_reachability_set_online(handle, self._online))

    @property
    def is_online(self) -> bool:
        """Whether a host that is known by name counts as reachable."""
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
        """The C interface's, on a loop of the library's."""
        with self._lock:
            handle = self._handles.get(loop)
            if handle is None:
                handle = new(lib.rt_reachability_new, lib.rt_reachability_free, loop, self._number)
                check(lib.rt_reachability_set_online(handle, self._online))
                self._handles[loop] = handle
            return handle


def on_loop(reachability: Reachability, loop: Handle) -> Handle:
    """The C interface's, of what a caller gave as ``reachability=``."""
    if not isinstance(reachability, Reachability):
        given = type(reachability).__name__
        raise TypeError(f"reachability is a {given}; a Reachability is expected")
    return reachability.on(loop)


class _Watch:
    """A loop for one who looks, which runs while he does."""

    def __init__(self, reachability: Reachability) -> None:
        self._loop = new_loop()
        self._handle = reachability.on(self._loop)
        self._turns = threading.Lock()
        self.fd = lib.rt_loop_fd(self._loop)
        check(self.fd)

    def look(self, timeout_ms: int) -> bool:
        """Whether it is online, after a turn of the loop."""
        with self._turns:
            check(lib.rt_loop_dispatch(self._loop, timeout_ms))
        out = ctypes.c_bool()
        check(lib.rt_reachability_is_online(self._handle, ctypes.byref(out)))
        return out.value
