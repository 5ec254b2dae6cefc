"""Pings of the program, which wait for their pongs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from .._core.abi import rt_status
from .._core.errors import ConcurrencyError, RealtimeError, check
from .._core.handle import Handle
from .._core.loader import lib
from .._core.uncopied import Uncopied


class Ping(Uncopied):
    """A ping that was sent; it ends once, by its pong or with the connection."""

    __slots__ = ("called_at_ns", "data")

    def __init__(self, data: bytes | None) -> None:
        """:param data: its payload; None for one that the library chooses."""
        self.data = data
        self.called_at_ns = time.monotonic_ns()

    def answered(self, latency: float) -> None:
        raise NotImplementedError

    def lost(self, error: RealtimeError) -> None:
        """Called when there will be no pong."""
        raise NotImplementedError


class AwaitedPing(Ping):
    """A ping whose pong is a future."""

    __slots__ = ("pong",)

    def __init__(self, data: bytes | None, pong: asyncio.Future[float]) -> None:
        super().__init__(data)
        self.pong = pong

    def answered(self, latency: float) -> None:
        if not self.pong.done():
            self.pong.set_result(latency)

    def lost(self, error: RealtimeError) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if not self.pong.done():
                self.pong.set_exception(error)
                # asyncio logs exceptions that nobody looks at, but a pong may be ignored.
                self.pong.exception()


class Pong(Ping):
    """The pong that a ping waits for, from ``ping``; like the ``threading.Event`` that websockets
    returns. It may be ignored.

    :ivar latency: the round-trip time in seconds; None before the pong.
    """

    __slots__ = ("_connection", "_error", "latency")

    def __init__(self, data: bytes | None, connection: Any) -> None:
        """:param connection: the blocking one that has sent it."""
        super().__init__(data)
        self._connection = connection
        self._error: RealtimeError | None = None
        self.latency: float | None = None

    def is_set(self) -> bool:
        """Whether the pong has come."""
        return self.latency is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the pong.

        :returns: whether it has come within `timeout` seconds.
        :raises ConnectionClosed: if the connection was closed or lost before.
        """
        self._connection._until(lambda: self.is_set() or self._error is not None, timeout)
        if self._error is not None:
            raise self._error
        return self.is_set()

    def answered(self, latency: float) -> None:
        self.latency = latency

    def lost(self, error: RealtimeError) -> None:
        self._error = error


class Pings:
    """The pings that wait for their pongs."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []

    @property
    def are_awaited(self) -> bool:
        """Whether a pong may still be awaited, in asyncio."""
        return any(not ping.pong.done() for ping in self._waiting)

    def send(self, handle: Handle, ping: Ping) -> None:
        """
        :raises ConcurrencyError: if an earlier one with the same payload waits.
        """
        data = ping.data
        if data is not None and any(other.data == data for other in self._waiting):
            message = f"an earlier ping with the payload {data!r} waits for its pong"
            raise ConcurrencyError(rt_status.ERROR_STATE, message)
        check(lib.rt_websocket_ping(handle, data, 0 if data is None else len(data)))
        self._waiting.append(ping)

    def answer(self, round_trip_us: int) -> None:
        # A pong also answers earlier pings (RFC 6455 §5.5.3), and may belong to a ping of the
        # interval: what counts is when the answered ping was sent.
        sent_at_ns = time.monotonic_ns() - round_trip_us * 1000
        waiting = self._waiting
        self._waiting = [ping for ping in waiting if ping.called_at_ns > sent_at_ns]
        for ping in waiting:
            if ping.called_at_ns <= sent_at_ns:
                ping.answered(round_trip_us / 1e6)

    def lose(self, why: Callable[[], RealtimeError]) -> None:
        """Ends them all; the connection is lost or closed."""
        waiting, self._waiting = self._waiting, []
        for ping in waiting:
            ping.lost(why())
