"""The blocking face, whose names are those of the asyncio one.

The thread that waits drives the connection, without holding the interpreter's lock; there is no
thread behind it. So pings are answered and messages taken in while a call of the connection runs,
and only then.
"""

from ._rest.sync_client import RESTClient
from ._sources.sync_eventsource import EventSource
from ._sources.sync_longpoll import LongPoll
from ._spreadbot.sync_connection import Spreadbot
from ._spreadbot.sync_rest import SpreadbotREST
from ._websocket.sync_connect import connect, reconnect
from ._websocket.sync_connection import Connection

__all__ = [
    "Connection",
    "EventSource",
    "LongPoll",
    "RESTClient",
    "Spreadbot",
    "SpreadbotREST",
    "connect",
    "reconnect",
]
