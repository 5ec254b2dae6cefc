"""The states of a connection, and its handlers of messages."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Optional

from .._core.abi import rt_state
from .batch import Message

OnMessage = Optional[Callable[[Message], object]]
OnMessages = Optional[Callable[["list[Message]"], object]]


class State(IntEnum):
    """The state of a connection."""

    NEW = rt_state.IDLE
    CONNECTING = rt_state.CONNECTING
    OPEN = rt_state.OPEN
    CLOSING = rt_state.CLOSING
    CLOSED = rt_state.CLOSED
    #: Lost, waiting for the next attempt.
    WAITING = rt_state.WAITING
