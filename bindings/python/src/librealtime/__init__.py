"""WebSocket connections, event streams and requests by librealtime.

    async with librealtime.connect("wss://example.org/") as ws:
        await ws.send("hello")
        async for message in ws:
            print(message)

    async with librealtime.EventSource("https://example.org/events") as source:
        async for event in source:
            print(event.data)

    async with librealtime.Spreadbot("https://example.org", access_token=token) as bot:
        await bot.establish_connection("news")
        async for message in bot:
            print(message.text)

    async with librealtime.RESTClient("https://example.org/api") as client:
        user = (await client.get("users/1")).raise_for_status().json()

``librealtime.sync`` has the same without asyncio.
"""

from . import sync
from ._abi import VERSION
from ._asyncio import Connection
from ._backoff import Backoff
from ._connect import connect
from ._events import ServerSentEvent
from ._eventsource import EventSource
from ._eventsource_options import RESILIENT, EventListener
from ._eventstream import EventStreamParser
from ._headers import basic_auth
from ._log import set_log_level
from ._longpoll import LongPoll
from ._longpoll_parameters import PollMessage
from ._network import Network
from ._options import Deflate
from ._reachability import Reachability
from ._reconnect import Attempt, Lost, process_exception
from ._response import Headers, Response
from ._rest import RESTClient
from ._rest_response import RESTResponse
from ._source_options import ErrorEvent, ReadyState
from ._spreadbot import Spreadbot
from ._spreadbot_options import SpreadbotError, SpreadbotMessage
from ._spreadbot_rest import SpreadbotREST
from ._state import State
from ._statistics import LoopStatistics, Statistics
from .exceptions import (
    AuthenticationFailed,
    BufferFull,
    ConcurrencyError,
    ConnectFailed,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    ConnectionLost,
    ConnectionTimeout,
    HTTPStatusError,
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

__version__ = VERSION

__all__ = [
    "RESILIENT",
    "Attempt",
    "AuthenticationFailed",
    "Backoff",
    "BufferFull",
    "ConcurrencyError",
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "ConnectionLost",
    "ConnectionTimeout",
    "Deflate",
    "ErrorEvent",
    "EventListener",
    "EventSource",
    "EventStreamParser",
    "HTTPStatusError",
    "Headers",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidProxy",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "LongPoll",
    "LoopStatistics",
    "Lost",
    "Network",
    "PollMessage",
    "ProtocolError",
    "ProxyError",
    "QueueFull",
    "RESTClient",
    "RESTResponse",
    "Reachability",
    "ReadyState",
    "RealtimeError",
    "ReconnectsExhausted",
    "Response",
    "SecurityError",
    "ServerSentEvent",
    "Spreadbot",
    "SpreadbotError",
    "SpreadbotMessage",
    "SpreadbotREST",
    "State",
    "Statistics",
    "StoreError",
    "StreamEnded",
    "StreamRefused",
    "basic_auth",
    "connect",
    "process_exception",
    "set_log_level",
    "sync",
]
