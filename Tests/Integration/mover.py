"""A client of one kind, for tests in which its host moves: mover.py KIND HOST:PORT

It runs until its standard input ends, or, for requests, until the response. Prints what it gets.
"""

import asyncio
import contextlib
import sys
from collections.abc import Coroutine
from typing import Any

import librealtime

QUICKLY = librealtime.Backoff(initial_delay=0.01, max_delay=0.05)


async def websocket(place: str) -> None:
    async with librealtime.connect(f"ws://{place}/", reconnect=QUICKLY) as ws:
        print(await ws.recv(), flush=True)


async def once(place: str) -> None:
    """No second attempt."""
    async with librealtime.connect(f"ws://{place}/") as ws:
        print(await ws.recv(), flush=True)


async def eventsource(place: str) -> None:
    options: dict[str, Any] = {"backoff": QUICKLY, "retry_statuses": librealtime.RESILIENT}
    async with librealtime.EventSource(f"http://{place}/", **options) as source:
        async for event in source:
            print(event.data, flush=True)


async def longpoll(place: str) -> None:
    async with librealtime.LongPoll(f"http://{place}/", backoff=QUICKLY) as poll:
        async for message in poll:
            print(message.data, flush=True)


async def rest(place: str, **options: Any) -> None:
    async with librealtime.RESTClient(**options) as client:
        try:
            print((await client.get(f"http://{place}/")).text, flush=True)
        except librealtime.RealtimeError as error:
            print(error.name, error, flush=True)


async def one_attempt(place: str) -> None:
    await rest(place, attempts=1)


async def waiting(place: str) -> None:
    await rest(place, attempts=1, timeout=0.2)


async def hurried(place: str) -> None:
    await rest(place, deadline=0.3)


async def spreadbot(place: str) -> None:
    async with librealtime.Spreadbot(f"http://{place}") as bot:
        await bot.establish_connection("news")
        async for message in bot:
            print(message, flush=True)


async def told(place: str) -> None:
    """Event source, long poll and Spreadbot connection: prints what the error handlers get."""

    def report(event: librealtime.ErrorEvent) -> None:
        print(event.retry_in, event.error, flush=True)

    bot = librealtime.Spreadbot(f"http://{place}", on_error=report)
    await bot.establish_connection("news", wait=False)
    source = librealtime.EventSource(f"http://{place}/", on_error=report)
    poll = librealtime.LongPoll(f"http://{place}/", on_error=report)
    await asyncio.gather(source.__aiter__().__anext__(), poll.__aiter__().__anext__())


async def forever(connecting: Coroutine[Any, Any, Any]) -> None:
    """The first failure does not end the client."""
    with contextlib.suppress(librealtime.RealtimeError):
        await connecting
    await asyncio.Event().wait()


async def pusher(place: str) -> None:
    host, port = place.rsplit(":", 1)
    client = librealtime.Pusher(
        "key", host=host, port=int(port), use_tls=False, max_reconnect_gap=0.05
    )
    await forever(client.connect())


async def ddp(place: str) -> None:
    client = librealtime.DDPClient(f"ws://{place}/websocket", backoff=QUICKLY)
    await forever(client.connect())


asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
