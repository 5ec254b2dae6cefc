"""The states of a connection, and its handlers of messages."""

from __future__ import annotations

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
