"""Ids in their file: changing URLs, full disks, resets, many sources at once."""

import asyncio
import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import librealtime
import pytest
from eventsource_store_tests import FIRST_LINE, numbered
from harness import PATIENCE_S, expect
from own_clock import own_clock
from watch import Exchange, StreamServer, watching


async def test_renewed(path: pathlib.Path) -> None:
    """The URL has a token, a new one for each attempt."""
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


async def test_disk_full(path: pathlib.Path) -> None:
    """A limit on the size of files simulates it: only a part is written."""
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


async def test_no_room(path: pathlib.Path) -> None:
    """With another key the file would be too large to read again."""
    limit = 16 << 20
    text = FIRST_LINE + "k 1\npad "
    text += "p" * (limit - len(text) - 1) + "\n"
    path.write_text(text)
    async with watching(numbered, id_file=path, store_key="another") as (watch, _):
        # Their order depends on how the bytes arrive.
        items = [item for item in [await watch.next() for _ in range(5)] if item != "open"]
        errors = [item for item in items if isinstance(item, librealtime.ErrorEvent)]
        expect((len(items), len(errors)) == (4, 1), f"{items}")
        expect("is full" in errors[0].error.message and not errors[0].fatal, f"{errors}")
    expect(path.read_text() == text, "it has changed")
    # A source that already has an entry can store its ids.
    async with watching(numbered, id_file=path, store_key="k") as (watch, _):
        await watch.data("2", "3", "4")
    expect(path.read_text() == text.replace("k 1\n", "k 4\n"), "it has not changed")


async def test_once_a_second(path: pathlib.Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        for number in range(2000):
            exchange.send(f"id: {number}\ndata: {number}\n\n")
        exchange.hold()

    stored: list[str] = []
    begun = time.monotonic()
    options = {"on_store": lambda key, id_: stored.append(id_)}
    async with watching(script, id_file=path, store_key="k", **options) as (watch, _):
        await watch.data(*map(str, range(2000)))
    # The first, the last, and one for each second between.
    expect(1 <= len(stored) <= 3 + time.monotonic() - begun, f"{len(stored)} writes")
    expect(stored[-1] == "1999" and path.read_text() == FIRST_LINE + "k 1999\n", f"{stored}")


#: How many sources share a file.
SOURCES = 40


def ticking(exchange: Exchange) -> None:
    exchange.begin()
    with contextlib.suppress(OSError):
        for number in range(1000):
            exchange.send(f"id: {number}\ndata: {number}\n\n")
            if exchange.has_gone():
                break
            time.sleep(0.05)


@contextlib.contextmanager
def many(url: str, path: pathlib.Path, **options: Any) -> Iterator[list[librealtime.EventSource]]:
    sources = [
        librealtime.EventSource(url, id_file=path, store_key=str(number), **options)
        for number in range(SOURCES)
    ]
    try:
        yield sources
    finally:
        for source in sources:
            source.close()


def keys_in(path: pathlib.Path) -> set[str]:
    return {line.split()[0] for line in path.read_text().splitlines()[1:]}


async def test_together(path: pathlib.Path) -> None:
    """All of them together write at most once a second."""
    versions: set[int] = set()
    counts = [0] * SOURCES
    begun = time.monotonic()

    def count(event: librealtime.ServerSentEvent) -> None:
        counts[0] += 1
        if path.exists():
            versions.add(path.stat().st_mtime_ns)

    with StreamServer(ticking) as server, many(server.url(), path, on_any=count):
        while counts[0] < SOURCES * 40:
            await asyncio.sleep(0.01)
        expect(len(keys_in(path)) == SOURCES, path.read_text())
        # The first, and one for each second between.
        expect(len(versions) <= 2 + time.monotonic() - begun, f"{len(versions)} writes")


async def test_wait_together(path: pathlib.Path) -> None:
    errors: list[librealtime.ErrorEvent] = []
    with (
        path.with_name("ids.lock").open("w") as lock,
        StreamServer(ticking) as server,
        own_clock() as now,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        with many(server.url(), path, on_error=errors.append, on_any=lambda event: None) as all_:
            while len(errors) < SOURCES:
                await asyncio.sleep(0.01)
            expect(all("locked" in error.error.message for error in errors), f"{errors[0]}")
            fcntl.flock(lock, fcntl.LOCK_UN)
            while not path.exists() or len(keys_in(path)) < SOURCES:
                await asyncio.sleep(0.01)
            # Each reported one error.
            expect(len(errors) == SOURCES, f"{len(errors)} errors")
            fcntl.flock(lock, fcntl.LOCK_EX)
            last = [source.last_event_id for source in all_]
            while any(source.last_event_id == old for source, old in zip(all_, last, strict=True)):
                await asyncio.sleep(0.01)
            began, _ = now()
        # If each waited half a second, they would need 20 seconds. Time that other processes took
        # does not count.
        took = now()[0] - began
        expect(took < 10, f"they waited {took} s")


async def test_in_handler_of_another(path: pathlib.Path) -> None:
    """Closing another source in a handler does not store the id of this handler's event yet."""
    done = asyncio.Event()

    def handle(event: librealtime.ServerSentEvent) -> None:
        if event.data == "3":
            done.set()
        if event.data != "1":
            return
        expect(first.last_event_id == "1", first.last_event_id)
        second.close()
        expect(path.read_text() == FIRST_LINE + "second 3\n", path.read_text())

    came = asyncio.Event()
    with StreamServer(numbered) as server:
        second = librealtime.EventSource(server.url(), id_file=path, store_key="second")
        second.on_any = lambda event: came.set() if event.data == "3" else None
        await came.wait()
        first = librealtime.EventSource(server.url(), id_file=path, store_key="first")
        first.on_any = handle
        async with first:
            await done.wait()
    expect(path.read_text() == FIRST_LINE + "first 3\nsecond 3\n", path.read_text())


def two(exchange: Exchange) -> None:
    """The second event has no id of its own."""
    exchange.begin()
    exchange.send("id: 1\ndata: 1\n\n", "data: 2\n\n")
    if exchange.path == "/more":
        exchange.send("id: 3\ndata: 3\n\n")
    exchange.hold()


#: Makes an event source with these options, which calls the handler with each event.
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


@pytest.mark.parametrize("handling", (plain_handler, listener, coroutine, both))
async def test_reset_in_handler(handling: Handling, path: pathlib.Path) -> None:
    """The id of the event in the handler is dropped, too; later ids are stored."""
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
            # Let the steps after the handlers run.
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


@pytest.mark.parametrize("take", (iterate, block))
async def test_reset_in_iteration(take: Callable[..., Awaitable[None]], path: pathlib.Path) -> None:
    with StreamServer(two) as server:
        for count in (1, 2, 3):
            path.write_text(FIRST_LINE + "k 0\n")
            await take(server.url("/more"), count, id_file=path, store_key="k")
            stored = "k 3\n" if count == 3 else ""
            expect(path.read_text() == FIRST_LINE + stored, path.read_text())
