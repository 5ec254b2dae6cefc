"""Clients of Pusher Channels. Their handlers count the text of an event's data; with
``pusher-json`` they also read it as JSON."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from meter import Meter
from peers import NotSupportedError


class Counter:
    """Counts events, and knows when all have arrived."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.total = meter.task.count
        self.count = self.size = self.sum = 0

    def add(self, data: str, quantity: int = 0) -> bool:
        """Returns whether this is the last event."""
        self.count += 1
        self.size += len(data)
        self.sum += quantity
        if self.count != self.total:
            return False
        self.meter.stop(self.count, self.size)
        if self.sum:
            self.meter.fields["checksum"] = self.sum
        return True


async def receive_events(name: str, meter: Meter) -> None:
    clients: dict[str, Callable[[Meter, Counter, bool], Awaitable[None]]] = {
        "librealtime": _librealtime,
        "pysher": _pysher,
    }
    if name not in clients:
        raise NotSupportedError
    await clients[name](meter, Counter(meter), meter.task.mode == "pusher-json")


def _server(meter: Meter) -> tuple[str, str, int]:
    """Key, host and port."""
    url = urlsplit(meter.task.url)
    return url.path.removeprefix("/app/"), url.hostname or "", url.port or 0


async def _librealtime(meter: Meter, counter: Counter, reads_json: bool) -> None:
    import librealtime

    key, host, port = _server(meter)
    done = asyncio.Event()

    def on_text(event: Any) -> None:
        if counter.add(event.raw):
            done.set()

    def on_json(event: Any) -> None:
        if counter.add(event.raw, event.data["quantity"]):
            done.set()

    async with librealtime.Pusher(key, host=host, port=port, use_tls=False) as pusher:
        meter.start()
        channel = await pusher.subscribe("chat", wait=False)
        channel.bind("new-price", on_json if reads_json else on_text)
        await done.wait()


async def _pysher(meter: Meter, counter: Counter, reads_json: bool) -> None:
    import pysher

    key, host, port = _server(meter)
    done = threading.Event()

    def on_text(data: str) -> None:
        if counter.add(data):
            done.set()

    def on_json(data: str) -> None:
        if counter.add(data, json.loads(data)["quantity"]):
            done.set()

    pusher = pysher.Pusher(key, custom_host=host, port=port, secure=False)

    def subscribe(_: str) -> None:
        meter.start()
        pusher.subscribe("chat").bind("new-price", on_json if reads_json else on_text)

    pusher.connection.bind("pusher:connection_established", subscribe)
    pusher.connect()
    await asyncio.to_thread(done.wait)
