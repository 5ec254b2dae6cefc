"""What becomes of ids in their file: URLs that change, disks that are full, resets."""

import asyncio
import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import librealtime
from eventsource_store_tests import FIRST_LINE, add_tests, numbered
from harness import PATIENCE_S, Suite, expect
from watch import Exchange, StreamServer, watching


def add(suite: Suite) -> None:
    add_tests(
        suite,
        {
            "a URL that changes leaves the key as it is": renewed,
            "a write that fails leaves nothing behind": disk_full,
            "one that has no room stays as it is": no_room,
            "a reset in a handler stays": functools.partial(reset_in_handler, plain_handler),
            "a reset in a listener stays": functools.partial(reset_in_handler, listener),
            "a reset in a coroutine stays": functools.partial(reset_in_handler, coroutine),
            "a reset before a coroutine stays": functools.partial(reset_in_handler, both),
            "a reset in an iteration stays": functools.partial(reset_in_iteration, iterate),
            "a reset in a blocking one stays": functools.partial(reset_in_iteration, block),
        },
    )


async def renewed(path: pathlib.Path) -> None:
    """A token in the URL, another for each attempt."""
    with StreamServer(numbered) as server:
        for run, last in enumerate((None, "3", "6")):

            def renew(attempt: librealtime.Attempt, run: int = run) -> None:
                attempt.set_url(server.url(f"/end?token={run}"))

            options = {"id_file": path, "on_request": renew, "reconnect": False}
            async with librealtime.EventSource(server.url("/first"), **options) as source:
                expect(len([event async for event in source]) == 3, "events")
            request = server.request()
            expect(request.path == "/end", request.path)
            expect(request.headers.get("last-event-id") == last, f"{request.headers}")
        lines = path.read_text().splitlines()
        expect(len(lines) == 2 and lines[1].endswith("%2Ffirst 9"), f"{lines}")
        options = {
            "id_file": path,
            "on_request": lambda attempt: attempt.set_url(server.url("/held")),
        }
        async with librealtime.EventSource(server.url("/first"), **options) as source:
            await source.recv()
            source.reset_stored_id()
            expect(path.read_text() == FIRST_LINE, path.read_text())


FULL = """
import librealtime, resource, sys
url, path = sys.argv[1:]
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
with librealtime.sync.EventSource(url, id_file=path, store_key="k" * 1000) as source:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    print(source.recv(60).id, flush=True)
"""


async def disk_full(path: pathlib.Path) -> None:
    """A limit on the size of files stands for it: a part is written."""
    path.write_text(FIRST_LINE + "other 1\n")
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(librealtime.__file__).parents[1])}
    with StreamServer(numbered) as server:
        process = subprocess.run(
            [sys.executable, "-c", FULL, server.url(), str(path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    expect(process.stdout == "1\n", process.stderr)
    expect(path.read_text() == FIRST_LINE + "other 1\n", path.read_text())
    names = sorted(entry.name for entry in path.parent.iterdir())
    expect(names == ["ids", "ids.lock"], f"{names}")


async def no_room(path: pathlib.Path) -> None:
    """It could not be read again, with all that others have in it."""
    limit = 16 << 20
    text = FIRST_LINE + "k 1\npad "
    text += "p" * (limit - len(text) - 1) + "\n"
    path.write_text(text)
    async with watching(numbered, id_file=path, store_key="another") as (watch, _):
        await watch.data("1", "2", "3")
        error = await watch.error()
        expect("no room" in error.error.message and not error.fatal, f"{error}")
    expect(path.read_text() == text, "it has changed")
    # What needs no more of it goes on.
    async with watching(numbered, id_file=path, store_key="k") as (watch, _):
        await watch.data("2", "3", "4")
    expect(path.read_text() == text.replace("k 1\n", "k 4\n"), "it has not changed")


def two(exchange: Exchange) -> None:
    """The second event has no id of its own."""
    exchange.begin()
    exchange.send("id: 1\ndata: 1\n\n", "data: 2\n\n")
    if exchange.path == "/more":
        exchange.send("id: 3\ndata: 3\n\n")
    exchange.hold()


#: Has an event source of these options call this with each event.
Handling = Callable[..., librealtime.EventSource]
Handler = Callable[[librealtime.EventSource, librealtime.ServerSentEvent], None]


def plain_handler(url: str, handler: Handler, **options: Any) -> librealtime.EventSource:
    source = librealtime.EventSource(url, **options)
    source.on_any = lambda event: handler(source, event)
    return source


def listener(url: str, handler: Handler, **options: Any) -> librealtime.EventSource:
    source = librealtime.EventSource(url, **options)
    source.add_event_listener("message", lambda event: handler(source, event))
    return source


def coroutine(url: str, handler: Handler, **options: Any) -> librealtime.EventSource:
    async def handle(event: librealtime.ServerSentEvent) -> None:
        await asyncio.sleep(0)
        handler(source, event)
        await asyncio.sleep(0)

    source = librealtime.EventSource(url, on_message=handle, **options)
    return source


def both(url: str, handler: Handler, **options: Any) -> librealtime.EventSource:
    source = librealtime.EventSource(url, **options)

    async def nothing(event: librealtime.ServerSentEvent) -> None:
        pass

    source.on_message = lambda event: handler(source, event)
    source.on_any = nothing
    return source


async def reset_in_handler(handling: Handling, path: pathlib.Path) -> None:
    """The id of the event in work goes too, those of later ones do not."""
    await reset_in_first(handling, path, "/", "2", "")
    await reset_in_first(handling, path, "/more", "3", "k 3\n")


async def reset_in_first(
    handling: Handling, path: pathlib.Path, target: str, last: str, stored: str
) -> None:
    path.write_text(FIRST_LINE + "k 0\n")
    done = asyncio.Event()

    def handle(source: librealtime.EventSource, event: librealtime.ServerSentEvent) -> None:
        if event.data == "1":
            source.reset_stored_id()
            expect(path.read_text() == FIRST_LINE, path.read_text())
        if event.data == last:
            done.set()

    with StreamServer(two) as server:
        url = server.url(target)
        async with handling(url, handle, id_file=path, store_key="k") as source:
            await done.wait()
            # For what is done behind the handlers.
            for _ in range(10):
                await asyncio.sleep(0)
            expect(source.last_event_id == ("3" if stored else "1"), source.last_event_id)
    expect(path.read_text() == FIRST_LINE + stored, path.read_text())


async def iterate(url: str, count: int, **options: Any) -> None:
    async with librealtime.EventSource(url, **options) as source:
        async for event in source:
            if event.data == "1":
                source.reset_stored_id()
            if event.data == str(count):
                break


async def block(url: str, count: int, **options: Any) -> None:
    def run() -> None:
        with librealtime.sync.EventSource(url, **options) as source:
            for event in source:
                if event.data == "1":
                    source.reset_stored_id()
                if event.data == str(count):
                    break

    await asyncio.to_thread(run)


async def reset_in_iteration(take: Callable[..., Awaitable[None]], path: pathlib.Path) -> None:
    with StreamServer(two) as server:
        for count in (1, 2, 3):
            path.write_text(FIRST_LINE + "k 0\n")
            await take(server.url("/more"), count, id_file=path, store_key="k")
            stored = "k 3\n" if count == 3 else ""
            expect(path.read_text() == FIRST_LINE + stored, path.read_text())
