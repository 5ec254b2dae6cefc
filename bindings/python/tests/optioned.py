"""Every object and value that has options, and how it is made, for tests that try all of them."""

from __future__ import annotations

from typing import Any

import librealtime
from librealtime import sync
from librealtime._core.handle import new_loop
from librealtime._ddp.options import OPTIONS as DDP_OPTIONS
from librealtime._pusher.options import OPTIONS as PUSHER_OPTIONS
from librealtime._rest.client_options import OPTIONS as REST_OPTIONS
from librealtime._sources.eventsource_options import OPTIONS as EVENTSOURCE_OPTIONS
from librealtime._sources.longpoll_options import OPTIONS as LONGPOLL_OPTIONS
from librealtime._spreadbot.options import OPTIONS as SPREADBOT_OPTIONS
from librealtime._spreadbot.rest_base import OPTIONS as SPREADBOT_REST_OPTIONS
from librealtime._websocket.connector import Connector
from librealtime._websocket.options import OPTIONS as WEBSOCKET_OPTIONS
from librealtime._websocket.sync_connection import Connection

NOWHERE = "http://127.0.0.1:1/"


def connection(**options: Any) -> None:
    made = Connector("ws://127.0.0.1:1/", **options)
    Connection(new_loop(), made._url, made._given)._abandon()


#: The options of each object, and a function that makes it with some of them and closes it.
OBJECTS = {
    "connect": (WEBSOCKET_OPTIONS, connection),
    "EventSource": (EVENTSOURCE_OPTIONS, lambda **o: sync.EventSource(NOWHERE, **o).close()),
    "LongPoll": (LONGPOLL_OPTIONS, lambda **o: sync.LongPoll(NOWHERE, **o).close()),
    "Spreadbot": (SPREADBOT_OPTIONS, lambda **o: sync.Spreadbot(NOWHERE, **o).close()),
    "SpreadbotREST": (
        SPREADBOT_REST_OPTIONS,
        lambda **o: sync.SpreadbotREST(NOWHERE, **o).close(),
    ),
    "Pusher": (PUSHER_OPTIONS, lambda **o: sync.Pusher("key", **o).close()),
    "DDPClient": (DDP_OPTIONS, lambda **o: sync.DDPClient(NOWHERE, **o).close()),
    "RESTClient": (REST_OPTIONS, lambda **o: sync.RESTClient(NOWHERE, **o).close()),
}

#: The classes of values, and a function that uses one.
VALUE_CLASSES = (
    (librealtime.Backoff, lambda made: made.make()),
    (librealtime.Network, lambda made: made.make()),
    (librealtime.Deflate, lambda made: connection(compression=made)),
)
