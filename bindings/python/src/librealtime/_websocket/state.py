"""Where a connection stands, and who is told."""

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
    """Where a connection stands."""

    NEW = rt_websocket_state.NEW
    CONNECTING = rt_websocket_state.CONNECTING
    OPEN = rt_websocket_state.OPEN
    CLOSING = rt_websocket_state.CLOSING
    CLOSED = rt_websocket_state.CLOSED
    #: Lost, and the time of the next attempt has not come.
    WAITING = rt_websocket_state.WAITING


class Ping:
    """A ping under way."""

    __slots__ = ("called_at_ns", "is_lost", "latency")

    def __init__(self) -> None:
        self.called_at_ns = time.monotonic_ns()
        self.latency: float | None = None
        # With its connection, so that there will be no pong.
        self.is_lost = False
