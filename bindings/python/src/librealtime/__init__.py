"""WebSocket connections by librealtime.

    async with librealtime.connect("wss://example.org/") as ws:
        await ws.send("hello")
        async for message in ws:
            print(message)

``librealtime.sync`` has the same without asyncio.
"""

from . import sync
from ._abi import VERSION
from ._asyncio import Connection, connect
from ._backoff import Backoff
from ._events import ServerSentEvent
from ._eventstream import EventStreamParser
from ._log import set_log_level
from ._network import Network
from ._options import Deflate
from ._reachability import Reachability
from ._reconnect import Attempt, Lost, process_exception
from ._response import Headers, Response
from ._state import State
from ._statistics import LoopStatistics, Statistics
from .exceptions import (
    BufferFull,
    ConcurrencyError,
    ConnectFailed,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    ConnectionTimeout,
    InvalidArgument,
    InvalidHandshake,
    InvalidProxy,
    InvalidState,
    InvalidStatus,
    InvalidURI,
    ProxyError,
    RealtimeError,
    SecurityError,
)

__version__ = VERSION

__all__ = [
    "Attempt",
    "Backoff",
    "BufferFull",
    "ConcurrencyError",
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "ConnectionTimeout",
    "Deflate",
    "EventStreamParser",
    "Headers",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidProxy",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "LoopStatistics",
    "Lost",
    "Network",
    "ProxyError",
    "Reachability",
    "RealtimeError",
    "Response",
    "SecurityError",
    "ServerSentEvent",
    "State",
    "Statistics",
    "connect",
    "process_exception",
    "set_log_level",
    "sync",
]
