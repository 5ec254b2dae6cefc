"""A client of one kind, for tests in which its host moves: mover.py KIND HOST:PORT

It runs until its standard input ends, or, for requests, until the response. Prints what it gets.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine
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


async def rest(place: str, requests: int = 2, **options: Any) -> None:
    async with librealtime.RESTClient(**options) as client:
        try:
            for _ in range(requests):
                print((await client.get(f"http://{place}/")).text, flush=True)
        except librealtime.RealtimeError as error:
            print(error.name, error, flush=True)


async def one_attempt(place: str) -> None:
    await rest(place, requests=1, attempts=1)


async def waiting(place: str) -> None:
    await rest(place, requests=1, attempts=1, timeout=0.2)


async def hurried(place: str) -> None:
    await rest(place, requests=1, deadline=0.3)


async def spreadbot(place: str) -> None:
    async with librealtime.Spreadbot(f"http://{place}") as bot:
        await bot.establish_connection("news")
        async for message in bot:
            print(message, flush=True)


async def told(place: str) -> None:
    """All objects: prints each failure that they report, with the delay until the next attempt."""
    await tell_all(place, repeats=True)


async def single(place: str) -> None:
    """The same for those that have an option not to repeat their attempts."""
    await tell_all(place, repeats=False)


async def tell_all(place: str, repeats: bool) -> None:
    host, port = place.rsplit(":", 1)

    def tell(kind: str) -> Callable[[Any], None]:
        def report(event: Any) -> None:
            delay = getattr(event, "delay", getattr(event, "retry_in", None))
            if event.error is not None:
                print(kind, delay, event.error, flush=True)

        return report

    async def websocket() -> None:
        options: dict[str, Any] = {"on_lost": tell("websocket"), "reconnect": QUICKLY}
        try:
            await librealtime.connect(f"ws://{place}/", **(options if repeats else {}))
        except librealtime.RealtimeError as error:
            print("websocket None", error, flush=True)

    source = librealtime.EventSource(
        f"http://{place}/", on_error=tell("eventsource"), reconnect=repeats
    )
    pusher = librealtime.Pusher(
        "key", host=host, port=int(port), use_tls=False, on_state=tell("pusher"),
        auto_reconnect=repeats,
    )  # fmt: skip
    ddp = librealtime.DDPClient(
        f"ws://{place}/websocket", on_status=tell("ddp"), auto_reconnect=repeats,
        sockjs_fallback=False,
    )  # fmt: skip
    await pusher.connect(wait=False)
    await ddp.connect(wait=False)
    work = [websocket(), source.__aiter__().__anext__()]
    if repeats:
        bot = librealtime.Spreadbot(f"http://{place}", on_error=tell("spreadbot"))
        await bot.establish_connection("news", wait=False)
        poll = librealtime.LongPoll(f"http://{place}/", on_error=tell("longpoll"))
        client = librealtime.RESTClient()
        work += [
            poll.__aiter__().__anext__(),
            client.get(
                f"http://{place}/",
                on_retry=lambda error, delay, _: print("rest", delay, error, flush=True),
            ),
        ]
    await asyncio.gather(*work, return_exceptions=True)
    await asyncio.Event().wait()


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
