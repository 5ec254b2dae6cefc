"""Clients of Meteor servers. `ddp-load` loads documents; `ddp-changes` and `ddp-each` receive
changes of documents that were loaded before. Clients that keep documents add up what those have in
the end, the others what the messages had."""

import asyncio
import collections
import collections.abc
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from meter import Meter
from peers import NotSupportedError


async def receive_documents(name: str, meter: Meter) -> None:
    clients: dict[str, Callable[[Meter], Awaitable[None]]] = {
        "librealtime": _librealtime,
        "ddp-asyncio": _ddp_asyncio,
        "python-meteor": _python_meteor,
        "python-ddp": _python_ddp,
    }
    if name not in clients:
        raise NotSupportedError
    await clients[name](meter)


def _is_load(meter: Meter) -> bool:
    return meter.task.mode == "ddp-load"


def _report(meter: Meter, documents: Iterable[Mapping[str, Any]]) -> None:
    """Adds up the documents."""
    count = size = total = 0
    for document in documents:
        count += 1
        size += len(document["title"])
        total += int(document["n"]) + int(document["score"])
    meter.fields |= {"bytes": size, "documents": count, "checksum": total}
    if _is_load(meter):
        meter.fields["messages"] = count


async def _librealtime(meter: Meter) -> None:
    import librealtime

    changed = 0
    opened = asyncio.get_running_loop().create_future()

    def on_change(change: Any) -> None:
        nonlocal changed
        changed += change.kind == "changed"
        if change.is_initial and change.is_last:
            opened.set_result(None)

    is_each = meter.task.mode == "ddp-each"
    options = {"buffer_interval": 0} if is_each else {}
    async with librealtime.DDPClient(meter.task.url, compression=False, **options) as client:
        await client.connect()
        items = client.collection("items")
        if _is_load(meter):
            meter.start()
        await client.subscribe("items")
        if not _is_load(meter):
            items.observe(on_change, sort={"n": 1, "title": 1})
            await opened
            meter.start()
            await client.subscribe("changes")
        meter.stop(meter.task.count)
        if is_each and changed != meter.task.count:
            raise AssertionError(f"the live query reported {changed} changes")
        _report(meter, items.find())


async def _ddp_asyncio(meter: Meter) -> None:
    """It has no live queries; a queue receives the changes of a collection."""
    import websockets.exceptions
    import websockets.legacy.client

    # Version 0.3.0 is from 2018: newer versions of Python and websockets lack these names.
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
    import ddp_asyncio.ddpclient

    class Names:
        connect = websockets.legacy.client.connect
        exceptions = websockets.exceptions

    ddp_asyncio.ddpclient.websockets = Names
    client = ddp_asyncio.DDPClient(meter.task.url)
    await client.connect()
    items = client.get_collection("items")
    if _is_load(meter):
        meter.start()
    await (await client.subscribe("items")).wait()
    if not _is_load(meter):
        queue = items.get_queue()
        meter.start()
        subscription = await client.subscribe("changes")
        for _ in range(meter.task.count):
            await queue.get()
        await subscription.wait()
    meter.stop(meter.task.count)
    _report(meter, items.values())


async def _python_meteor(meter: Meter) -> None:
    """It keeps documents and reports changes of them. It has no live queries."""
    import MeteorClient

    client = MeteorClient.MeteorClient(meter.task.url, auto_reconnect=False)
    connected, loaded, done = threading.Event(), threading.Event(), threading.Event()
    changed = 0

    def on_change(*_: Any) -> None:
        nonlocal changed
        changed += 1

    client.ddp_client.on("connected", connected.set)
    client.on("changed", on_change)
    client.connect()
    await asyncio.to_thread(connected.wait)
    if _is_load(meter):
        meter.start()
    client.subscribe("items", [], lambda _: loaded.set())
    await asyncio.to_thread(loaded.wait)
    if not _is_load(meter):
        meter.start()
        client.subscribe("changes", [], lambda _: done.set())
        await asyncio.to_thread(done.wait)
    meter.stop(meter.task.count if _is_load(meter) else changed)
    _report(meter, client.find("items"))


async def _python_ddp(meter: Meter) -> None:
    """It passes the messages to handlers and keeps no documents."""
    import DDPClient

    client = DDPClient.DDPClient(meter.task.url, auto_reconnect=False)
    connected, loaded, done = threading.Event(), threading.Event(), threading.Event()
    size = total = count = 0

    def on_added(collection: str, id: str, fields: dict[str, Any]) -> None:
        nonlocal size, total, count
        count += 1
        size += len(fields["title"])
        total += int(fields["n"]) + int(fields["score"])

    def on_changed(collection: str, id: str, fields: dict[str, Any], cleared: list[str]) -> None:
        nonlocal total, count
        count += 1
        total += sum(int(value) for value in fields.values())

    client.on("connected", connected.set)
    client.on("added", on_added)
    client.on("changed", on_changed)
    client.connect()
    await asyncio.to_thread(connected.wait)
    if _is_load(meter):
        meter.start()
    client.subscribe("items", [], lambda *_: loaded.set())
    await asyncio.to_thread(loaded.wait)
    if not _is_load(meter):
        count = 0
        meter.start()
        client.subscribe("changes", [], lambda *_: done.set())
        await asyncio.to_thread(done.wait)
    meter.stop(count, size)
    meter.fields["checksum"] = total
