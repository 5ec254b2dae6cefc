"""The blocking API, with the names of the asyncio one.

Objects stay active in the background: pings are answered, messages received and handlers called,
whatever the program does. A call that waits does this work, without holding the interpreter's lock;
while no call waits, a thread of the object does. So a handler may be called in either thread, but
never in two at once. What it raises is raised by the call that waits, or by the next one that does.

An object that has handlers lives until it is closed, even if the program does not keep it.
"""

from ._ddp.sync_client import DDPCall, DDPClient, DDPLoader, DDPSubscription
from ._ddp.sync_collection import (
    DDPBatch,
    DDPCollection,
    DDPDocuments,
    DDPLiveChanges,
    DDPResults,
)
from ._ddp.sync_models import DDPModels
from ._pusher.sync_channel import PusherChannel, PusherUser
from ._pusher.sync_push import PusherPush
from ._pusher.sync_pusher import Pusher
from ._pusher.sync_streams import PusherEvents
from ._rest.sync_client import RESTClient
from ._sources.sync_eventsource import EventSource
from ._sources.sync_longpoll import LongPoll
from ._spreadbot.sync_connection import Spreadbot
from ._spreadbot.sync_rest import SpreadbotREST
from ._websocket.sync_connect import connect, reconnect
from ._websocket.sync_connection import Connection

__all__ = [
    "Connection",
    "DDPBatch",
    "DDPCall",
    "DDPClient",
    "DDPCollection",
    "DDPDocuments",
    "DDPLiveChanges",
    "DDPLoader",
    "DDPModels",
    "DDPResults",
    "DDPSubscription",
    "EventSource",
    "LongPoll",
    "Pusher",
    "PusherChannel",
    "PusherEvents",
    "PusherPush",
    "PusherUser",
    "RESTClient",
    "Spreadbot",
    "SpreadbotREST",
    "connect",
    "reconnect",
]
