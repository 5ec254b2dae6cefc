"""What can go wrong, by family.

Every exception of the library is a ``RealtimeError``; where Python has a class of its own for the
kind of failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it is that, too.
"""

from ._core.errors import (
    AuthenticationFailed,
    BufferFull,
    ConcurrencyError,
    ConnectFailed,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    ConnectionLost,
    ConnectionTimeout,
    InvalidArgument,
    InvalidHandshake,
    InvalidProxy,
    InvalidState,
    InvalidStatus,
    InvalidURI,
    ProtocolError,
    ProxyError,
    QueueFull,
    RealtimeError,
    ReconnectsExhausted,
    SecurityError,
    StoreError,
    StreamEnded,
    StreamRefused,
)
from ._rest.response import HTTPStatusError

__all__ = [
    "AuthenticationFailed",
    "BufferFull",
    "ConcurrencyError",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "ConnectionLost",
    "ConnectionTimeout",
    "HTTPStatusError",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidProxy",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "ProtocolError",
    "ProxyError",
    "QueueFull",
    "RealtimeError",
    "ReconnectsExhausted",
    "SecurityError",
    "StoreError",
    "StreamEnded",
    "StreamRefused",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
