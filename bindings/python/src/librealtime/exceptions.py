"""Exceptions, by kind of failure.

Every exception of the library is a ``RealtimeError``. Where Python has a class for the kind of
failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it also derives from that.
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
from ._ddp.errors import (
    DDPError,
    DDPModelError,
)
from ._pusher.errors import (
    PusherError,
    PushError,
    SignInError,
    SubscriptionError,
    TriggerError,
)
from ._rest.response import HTTPStatusError

# Written out, as type checkers follow no list that is computed.
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
    "DDPError",
    "DDPModelError",
    "HTTPStatusError",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidProxy",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "ProtocolError",
    "ProxyError",
    "PushError",
    "PusherError",
    "QueueFull",
    "RealtimeError",
    "ReconnectsExhausted",
    "SecurityError",
    "SignInError",
    "StoreError",
    "StreamEnded",
    "StreamRefused",
    "SubscriptionError",
    "TriggerError",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
