"""The states of a connection, and pings that wait for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import Optional

from .._core.abi import rt_websocket_state
from .batch import Message

OnMessage = Optional[Callable[[Message], object]]
OnMessages = Optional[Callable[["list[Message]"], object]]


class State(IntEnum):
    """The state of a connection."""

    NEW = rt_websocket_state.NEW
    CONNECTING = rt_websocket_state.CONNECTING
    OPEN = rt_websocket_state.OPEN
    CLOSING = rt_websocket_state.CLOSING
    CLOSED = rt_websocket_state.CLOSED
    #: Lost, waiting for the next attempt.
    WAITING = rt_websocket_state.WAITING


class Ping:
    """A ping that waits for its pong."""

    __slots__ = ("called_at_ns", "is_lost", "latency")

    def __init__(self) -> None:
        self.called_at_ns = time.monotonic_ns()
        self.latency: float | None = None
        # The connection was lost, so there will be no pong.
        self.is_lost = False
