"""WebSocket connections, event streams, channels and requests by librealtime.

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

    async with librealtime.Pusher(key, cluster="eu") as pusher:
        channel = await pusher.subscribe("orders")
        async for event in channel:
            print(event.event, event.data)

    async with librealtime.DDPClient("https://example.org") as client:
        await client.subscribe("tasks")
        print(client.collection("tasks").find({"done": False}))

    async with librealtime.RESTClient("https://example.org/api") as client:
        user = (await client.get("users/1")).raise_for_status().json()

``librealtime.sync`` has the same without asyncio.
"""

from . import ddp_models, ejson, exceptions, sync
from ._core.abi import VERSION
from ._core.backoff import Backoff
from ._core.headers import basic_auth
from ._core.log import set_log_level
from ._core.network import Network
from ._core.reachability import Reachability
from ._core.reconnect import Attempt, Lost, process_exception
from ._core.response import Headers, Opened, Response
from ._core.statistics import LoopStatistics, Statistics
from ._ddp.asyncio_client import DDPCall, DDPClient, DDPLoader, DDPSubscription
from ._ddp.asyncio_collection import (
    DDPBatch,
    DDPCollection,
    DDPDocuments,
    DDPLiveChanges,
    DDPResults,
)
from ._ddp.asyncio_models import DDPModels
from ._ddp.live import DDPLiveQuery
from ._ddp.objects import DDPChange, DDPIndexChanges, DDPStatusChange
from ._ddp.stub import DDPRandomStream, DDPStub
from ._pusher.asyncio_channel import PusherChannel, PusherUser
from ._pusher.asyncio_push import PusherPush
from ._pusher.asyncio_pusher import Pusher
from ._pusher.asyncio_streams import PusherEvents
from ._pusher.authorization import (
    PusherAuthorization,
    PusherAuthorizationRequest,
    PusherPreparation,
)
from ._pusher.event import PusherEvent
from ._pusher.objects import (
    PusherMember,
    PusherPushResult,
    PusherStateChange,
    PusherWatchlistEvent,
)
from ._rest.asyncio_client import RESTClient
from ._rest.response import RESTResponse
from ._sources.asyncio_eventsource import EventSource
from ._sources.asyncio_longpoll import LongPoll
from ._sources.eventsource_options import RESILIENT, EventListener
from ._sources.eventstream_parser import EventStreamParser
from ._sources.longpoll_options import PollMessage
from ._sources.server_sent_event import ServerSentEvent
from ._sources.source_options import ErrorEvent, ReadyState
from ._spreadbot.asyncio_connection import Spreadbot
from ._spreadbot.asyncio_rest import SpreadbotREST
from ._spreadbot.options import SpreadbotError, SpreadbotMessage
from ._websocket.asyncio_connect import connect
from ._websocket.asyncio_connection import Connection
from ._websocket.options import Deflate
from ._websocket.state import State
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
    DDPError,
    DDPModelError,
    HTTPStatusError,
    InvalidArgument,
    InvalidHandshake,
    InvalidProxy,
    InvalidState,
    InvalidStatus,
    InvalidURI,
    ProtocolError,
    ProxyError,
    PusherError,
    PushError,
    QueueFull,
    RealtimeError,
    ReconnectsExhausted,
    SecurityError,
    SignInError,
    StoreError,
    StreamEnded,
    StreamRefused,
    SubscriptionError,
    TriggerError,
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
    "DDPBatch",
    "DDPCall",
    "DDPChange",
    "DDPClient",
    "DDPCollection",
    "DDPDocuments",
    "DDPError",
    "DDPIndexChanges",
    "DDPLiveChanges",
    "DDPLiveQuery",
    "DDPLoader",
    "DDPModelError",
    "DDPModels",
    "DDPRandomStream",
    "DDPResults",
    "DDPStatusChange",
    "DDPStub",
    "DDPSubscription",
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
    "Opened",
    "PollMessage",
    "ProtocolError",
    "ProxyError",
    "PushError",
    "Pusher",
    "PusherAuthorization",
    "PusherAuthorizationRequest",
    "PusherChannel",
    "PusherError",
    "PusherEvent",
    "PusherEvents",
    "PusherMember",
    "PusherPreparation",
    "PusherPush",
    "PusherPushResult",
    "PusherStateChange",
    "PusherUser",
    "PusherWatchlistEvent",
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
    "SignInError",
    "Spreadbot",
    "SpreadbotError",
    "SpreadbotMessage",
    "SpreadbotREST",
    "State",
    "Statistics",
    "StoreError",
    "StreamEnded",
    "StreamRefused",
    "SubscriptionError",
    "TriggerError",
    "basic_auth",
    "connect",
    "ddp_models",
    "ejson",
    "exceptions",
    "process_exception",
    "set_log_level",
    "sync",
]
