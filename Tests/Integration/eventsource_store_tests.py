"""The id file: always complete, private, shared by processes, and no fault in it stops a stream."""

import asyncio
import fcntl
import os
import pathlib
import subprocess
import sys
import threading
import time
from typing import Any

import librealtime
import pytest
from harness import PATIENCE_S, expect
from librealtime import StoreError
from watch import Exchange, StreamServer, watching

FIRST_LINE = "librealtime event ids 1\n"
#: How many processes run at once, and how many sources each has.
PROCESSES, SOURCES = 4, 25


def numbered(exchange: Exchange) -> None:
    """Sends the three events after the id that the client sent."""
    exchange.begin()
    last = int(exchange.headers.get("last-event-id", "0"))
    for number in range(last + 1, last + 4):
        exchange.send(f"id: {number}\ndata: {number}\n\n")
    if exchange.path != "/end":
        exchange.hold()


async def takes(path: pathlib.Path, *data: str, **options: Any) -> None:
    """A run that must receive events with these data from the start."""
    async with watching(numbered, id_file=path, **options) as (watch, _):
        await watch.data(*data)


async def test_kept(path: pathlib.Path) -> None:
    for first in (1, 4, 7):
        await takes(path, *map(str, range(first, first + 3)), store_key="one")
    await takes(path, "1", "2", "3", store_key="another")
    expect(path.read_text() == FIRST_LINE + "another 3\none 9\n", path.read_text())


async def test_private(path: pathlib.Path) -> None:
    """The file's mode ignores the umask, and each write creates a new file."""
    old = os.umask(0)
    try:
        await takes(path, "1", store_key="k")
        # Hold the file open, so that the next one cannot get its inode number.
        with path.open() as old_file:
            before = os.fstat(old_file.fileno())
            await takes(path, "4", store_key="k")
    finally:
        os.umask(old)
    after = path.stat()
    expect(before.st_mode & 0o777 == after.st_mode & 0o777 == 0o600, oct(after.st_mode))
    expect(before.st_ino != after.st_ino, "it was not replaced")
    names = sorted(entry.name for entry in path.parent.iterdir())
    expect(names == ["ids", "ids.lock"], f"{names}")


async def test_keys(path: pathlib.Path) -> None:
    with StreamServer(numbered) as server:
        for target in ("/a", "/a?b=c"):
            source = librealtime.EventSource(server.url(target, user="u:secret@"), id_file=path)
            async with source:
                await source.recv()
        text = path.read_text()
        expect("secret" not in text and text.count("\n") == 3, text)
        expect(f"http%3A%2F%2F127.0.0.1%3A{server.port}%2Fa%3Fb%3Dc " in text, text)


async def test_option_first(path: pathlib.Path) -> None:
    await takes(path, "1", "2", "3", store_key="k")
    await takes(path, "51", store_key="k", last_event_id="50")
    await takes(path, "1", store_key="k", last_event_id="")


async def test_emptied(path: pathlib.Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: 1\ndata: a\n\nid\ndata: b\n\n")
        exchange.hold()

    async with watching(script, id_file=path, store_key="k") as (watch, _):
        await watch.data("a", "b")
    expect(path.read_text() == FIRST_LINE if path.exists() else True, path.name)
    await takes(path, "1", store_key="k")


async def test_reset(path: pathlib.Path) -> None:
    await takes(path, "1", "2", "3", store_key="k")
    async with watching(numbered, id_file=path, store_key="k") as (watch, _):
        watch.source.reset_stored_id()
        expect(path.read_text() == FIRST_LINE, path.read_text())
    await takes(path, "1", store_key="k")
    async with librealtime.EventSource("http://127.0.0.1:1/") as source:
        try:
            source.reset_stored_id()
            expect(False, "without a file")
        except librealtime.InvalidState:
            pass


async def test_reset_stays(path: pathlib.Path) -> None:
    may_go_on = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: 1\ndata: 1\n\n")
        may_go_on.wait(PATIENCE_S)
        exchange.send("id: 2\ndata: 2\n\n")
        exchange.hold()

    async with watching(script, id_file=path, store_key="k") as (watch, _):
        await watch.data("1")
        while not path.exists():
            await asyncio.sleep(0.01)
        # Within a second of the first write, so it is not written yet.
        may_go_on.set()
        await watch.data("2")
        watch.source.reset_stored_id()
    # Closing wrote the pending id.
    expect(path.read_text() == FIRST_LINE, path.read_text())


async def test_damaged(path: pathlib.Path) -> None:
    path.write_text(FIRST_LINE + "what is this?\n")
    async with watching(numbered, id_file=path, store_key="k") as (watch, server):
        error = await watch.error()
        expect(isinstance(error.error, StoreError) and not error.fatal, f"{error}")
        expect(str(path) in error.error.message, error.error.message)
        expect((error.retry_in, error.attempt, error.http_status) == (None, 0, 0), f"{error}")
        await watch.data("1", "2", "3")
        expect("last-event-id" not in server.request().headers, "an id was sent")
        expect(watch.news.empty(), "reported again")
    expect(path.read_text() == FIRST_LINE + "k 3\n", path.read_text())
    await takes(path, "4", store_key="k")


async def test_kinds_of_damage(path: pathlib.Path) -> None:
    for content in (
        b"",
        FIRST_LINE.encode()[:-1],
        FIRST_LINE.encode() + b"k 3",
        FIRST_LINE.encode() + b"k\n",
        FIRST_LINE.encode() + b"k 1\nk 2\n",
        FIRST_LINE.encode() + b"k %zz\n",
        FIRST_LINE.encode() + b"k %FF\n",
        FIRST_LINE.encode() + b"\xff" * 1000,
        FIRST_LINE.encode() * 2,
    ):
        path.write_bytes(content)
        async with watching(numbered, id_file=path, store_key="k") as (watch, _):
            error = await watch.error()
            expect(isinstance(error.error, StoreError), f"{content[:40]!r}: {error}")
            await watch.data("1", "2", "3")


async def test_unusable(path: pathlib.Path) -> None:
    """The error is reported, and the stream continues."""
    path.mkdir()
    for place in (path, path.parent / "missing" / "ids"):
        async with watching(numbered, id_file=place, store_key="k") as (watch, _):
            errors = 0
            data: list[str] = []
            while errors == 0 or len(data) < 3:
                item = await watch.next()
                if isinstance(item, librealtime.ErrorEvent):
                    expect(isinstance(item.error, StoreError) and not item.fatal, f"{item}")
                    errors += 1
                elif isinstance(item, librealtime.ServerSentEvent):
                    data.append(item.data)
            expect(data == ["1", "2", "3"], f"{data}")


async def test_unusable_without_events(path: pathlib.Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.hold()

    async with watching(script, id_file=path.parent / "missing" / "ids") as (watch, _):
        error = await watch.error()
        expect(isinstance(error.error, StoreError) and not error.fatal, f"{error}")


async def test_not_a_regular_file(path: pathlib.Path) -> None:
    """A pipe stands for all special files: the library must not wait for a process at its other
    end."""
    os.mkfifo(path)
    async with watching(numbered, id_file=path, store_key="k") as (watch, _):
        error = await watch.error()
        expect(isinstance(error.error, StoreError), f"{error}")
        expect("not a regular file" in error.error.message, error.error.message)
        await watch.data("1", "2", "3")
        # Until the next stream, an id would have been written.
        watch.source.restart()
        await watch.data("4", "5", "6")
        expect(len(watch.states) == 1, "reported again")
    expect(path.is_fifo(), "it was replaced")
    expect(sorted(entry.name for entry in path.parent.iterdir()) == ["ids"], "it made a lock")


async def test_leftover_file(path: pathlib.Path) -> None:
    left = path.with_name("ids.new")
    left.touch()
    left.chmod(0o666)
    await takes(path, "1", store_key="k")
    expect(path.stat().st_mode & 0o777 == 0o600, oct(path.stat().st_mode))


async def test_look_alikes(path: pathlib.Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: caf\u00e9\ndata: 1\n\n")
        exchange.hold()

    def other(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: cafe\u0301\ndata: 2\n\n")
        exchange.hold()

    for number, one in enumerate((script, other), 1):
        async with watching(one, id_file=path, store_key="k") as (watch, _):
            await watch.data(str(number))
    expect(path.read_text() == FIRST_LINE + "k cafe%CC%81\n", path.read_text())


async def test_injected(path: pathlib.Path) -> None:
    """From a file that another program wrote."""
    path.write_text(FIRST_LINE + "k 1%0D%0AX-Evil:%20yes\n")
    async with watching(numbered, id_file=path, store_key="k") as (watch, server):
        error = await watch.error()
        expect(isinstance(error.error, StoreError), f"{error}")
        await watch.data("1", "2", "3")
        headers = server.request().headers
        expect("x-evil" not in headers and "last-event-id" not in headers, f"{headers}")


async def test_locked(path: pathlib.Path) -> None:
    """The library must not block the loop while another process holds the lock."""
    with path.with_name("ids.lock").open("w") as lock:
        async with watching(numbered, id_file=path, store_key="k") as (watch, _):
            fcntl.flock(lock, fcntl.LOCK_EX)
            await watch.data("1", "2", "3")
            given_up = threading.Timer(2, fcntl.flock, (lock, fcntl.LOCK_UN))
            given_up.start()
        expect(given_up.is_alive(), "it waited until the lock was given up")
        given_up.cancel()


STORE = """
import librealtime, os, sys
url, path, name, count, patience = sys.argv[1:]
for number in range(int(count)):
    key = f"{name} {number}"
    stored = ""
    # Again when others had the lock for too long.
    while f"{name}%20{number} " not in stored:
        with librealtime.sync.EventSource(url, id_file=path, store_key=key) as source:
            assert source.recv(float(patience)).data == "1"
        if os.path.exists(path):
            stored = open(path).read()
"""


async def test_processes(path: pathlib.Path) -> None:
    """In the end every entry is there, and the file is complete at any time."""
    source = pathlib.Path(librealtime.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with StreamServer(numbered) as server:
        arguments = [server.url(), str(path)]
        running = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    STORE,
                    *arguments,
                    f"process{number}",
                    str(SOURCES),
                    str(PATIENCE_S),
                ],
                env=environment,
            )
            for number in range(PROCESSES)
        ]
        deadline = time.monotonic() + PATIENCE_S
        try:
            while any(process.poll() is None for process in running):
                expect(time.monotonic() < deadline, "they do not end")
                text = path.read_text() if path.exists() else FIRST_LINE
                expect(text.startswith(FIRST_LINE) and text.endswith("\n"), text)
                await asyncio.sleep(0.001)
        finally:
            for process in running:
                process.kill()
                process.wait()
    expect(all(process.returncode == 0 for process in running), "one failed")
    stored = {line.split()[0] for line in path.read_text().splitlines()[1:]}
    numbers = [(process, number) for process in range(PROCESSES) for number in range(SOURCES)]
    missing = {f"process{process}%20{number}" for process, number in numbers} - stored
    expect(not missing, f"lost: {missing}")


CRASH = """
import librealtime, os, sys
url, path, last, patience = sys.argv[1:5]
def take(event):
    print(event.data, flush=True)
    if event.data == last:
        os._exit(0)
options = {"id_file": path, "store_key": "k"}
if sys.argv[5:] == ["iterate"]:
    with librealtime.sync.EventSource(url, **options) as source:
        for event in source:
            take(event)
with librealtime.sync.EventSource(url, on_message=take, **options) as source:
    source.wait_closed(float(patience))
"""


@pytest.mark.parametrize("how", ([], ["iterate"]), ids=("in a handler", "while iterating"))
async def test_crash(how: list[str], path: pathlib.Path) -> None:
    """A process that crashes in the middle of an event gets that event again."""
    source = pathlib.Path(librealtime.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with StreamServer(numbered) as server:
        arguments = [server.url(), str(path)]
        taken: list[int] = []
        for last in ("2", "3"):
            process = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", CRASH, *arguments, last, str(PATIENCE_S), *how],
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
            expect(process.returncode == 0, process.stderr)
            now = [int(line) for line in process.stdout.split()]
            expect(now[0] <= (taken[-1] if taken else 1), f"{now} after {taken}: one is lost")
            taken = now


async def test_unfinished(path: pathlib.Path) -> None:
    """All three events came; the first was processed, the second was being processed."""

    def stored() -> str:
        return path.read_text() if path.exists() else FIRST_LINE

    with StreamServer(numbered) as server:
        options: dict[str, Any] = {"id_file": path, "store_key": "k"}
        try:
            async with librealtime.EventSource(server.url(), **options) as source:
                async for event in source:
                    if event.data == "2":
                        raise LookupError
        except LookupError:
            expect(stored() == FIRST_LINE + "k 1\n", stored())
        async with librealtime.EventSource(server.url(), **options) as source:
            async for event in source:
                if event.data == "3":
                    break
            expect(stored() != FIRST_LINE + "k 3\n", "kept before it was done with")
        expect(stored() == FIRST_LINE + "k 3\n", stored())
        # The stream ended while its events waited.
        options["reconnect"] = False
        async with librealtime.EventSource(server.url("/end"), **options) as source:
            first = await source.recv()
            await source.wait_closed()
            expect((first.id, stored()) == ("4", FIRST_LINE + "k 3\n"), stored())
            expect([event.id async for event in source] == ["5", "6"], "events")
        expect(stored() == FIRST_LINE + "k 6\n", stored())


async def test_ids_kept_by_the_caller(path: pathlib.Path) -> None:
    kept: list[tuple[str, str]] = []
    options = {"on_store": lambda key, id_: kept.append((key, id_))}
    async with watching(numbered, **options) as (watch, server):
        await watch.data("1", "2", "3")
    expect(kept[-1] == (server.url(), "3"), f"{kept}")
    async with watching(numbered, store_key="k", **options) as (watch, _):
        await watch.data("1", "2", "3")
    expect(kept[-1] == ("k", "3"), f"{kept}")
    expect(not path.exists(), "a file")
