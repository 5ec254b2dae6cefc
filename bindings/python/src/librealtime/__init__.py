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
from ._base import State
from ._options import Deflate
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
    InvalidState,
    InvalidStatus,
    InvalidURI,
    RealtimeError,
    SecurityError,
)

__version__ = VERSION

__all__ = [
    "BufferFull",
    "ConcurrencyError",
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "ConnectionTimeout",
    "Deflate",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "RealtimeError",
    "SecurityError",
    "State",
    "connect",
    "sync",
]
