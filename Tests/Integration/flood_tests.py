"""Servers and proxies that send without end, and responses over TLS that were cut short.

In each case the loop keeps turning: a ticker beside the request is not delayed. Memory stays small,
and the request ends with an error that names the cause.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import pathlib
import socket
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any

import librealtime
import pytest
from certificates import TLS
from flood_server import ANSWERS, FRAMES, SMALL_FRAMES, flooding
from harness import PATIENCE_S, expect
from http2_server import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    STATUS_200,
    HTTP2Server,
    answer,
    frame,
)
from own_clock import own_clock
from patience import patiently
from streams import StreamServer
from watch import Exchange, watching

#: A blocked loop stood still for 3 to 60 s. Time that other processes took does not count.
MOST_GAP_S = 1.0
MOST_MEMORY = 100 << 20
TICK_S = 0.01

TOO_LARGE = ("trailers", "one trailer", "interim answers", "header lines", "one header line")
PROXIES = {
    "refusal in chunks": "",
    "long refusal": "",
    "tunnel's header lines": "answered CONNECT with more than 32768 bytes",
}
#: Whether cut or not, the response itself says where it ends.
WHOLE = (
    "ended",
    "cut after its length",
    "cut after its chunks",
    "closed after its length",
    "closed after its chunks",
)
LENGTHS = {
    "two values": ("Content-Length: 4\r\nContent-Length: 5", "4 and 5"),
    "a list of two values": ("Content-Length: 5, 4", "5 and 4"),
    "a number above 63 bits": ("Content-Length: 99999999999999999999999", "9999"),
    "a sign": ("Content-Length: +5", '"+5"'),
}
GOOD_LENGTHS = {
    "twice the same": "Content-Length: 5\r\nContent-Length: 5",
    "a list of the same": "Content-Length: 5, 5",
}


def memory() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Watcher:
    """Ticks beside the tested request."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.before = self.most = memory()

    async def run(self) -> None:
        with own_clock() as now:
            last, _ = now()
            while True:
                await asyncio.sleep(TICK_S)
                instant, _ = now()
                self.longest = max(self.longest, instant - last - TICK_S)
                self.most = max(self.most, memory())
                last = instant

    def check(self) -> None:
        expect(self.longest < MOST_GAP_S, f"the loop stood still for {self.longest:.1f} s")
        grown = self.most - self.before
        expect(grown < MOST_MEMORY, f"{grown >> 20} MiB more")


@contextlib.asynccontextmanager
async def watched() -> Any:
    watcher = Watcher()
    task = asyncio.create_task(watcher.run())
    try:
        yield
    finally:
        task.cancel()
    watcher.check()


async def get(url: str, **options: Any) -> Any:
    """The response to one request, or the error."""
    async with (
        watched(),
        librealtime.RESTClient(timeout=PATIENCE_S, attempts=1, deadline=None, **options) as client,
    ):
        try:
            return await client.get(url)
        except librealtime.RealtimeError as error:
            return error


async def exchange(name: str, scheme: str, *options: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        with flooding(name, pathlib.Path(folder), *options) as place:
            ca_file = f"{folder}/ca.pem" if scheme == "https" else None
            return await get(f"{scheme}://{place}/", ca_file=ca_file)


def failed(result: Any, name: str, text: str) -> None:
    expect(isinstance(result, librealtime.RealtimeError), f"expected an error, received {result}")
    expect(result.name == name, f"expected {name}, received {result.name}: {result}")
    expect(text in str(result), f"expected {text!r} in {result}")


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "interim heads"])
async def test_frames(name: str) -> None:
    # nghttp2 itself ends a connection when its answers to SETTINGS and pings pile up.
    text = "" if name in ("settings", "pings") else "without content"
    failed(await exchange(name, "https"), "RT_ERROR_PROTOCOL", text)


async def test_small_frames() -> None:
    response = await exchange("a byte a frame", "https")
    expect(response.content == b"x" * SMALL_FRAMES, f"{response}")


async def test_cancelled() -> None:
    """24 MiB are in transit when a response is cancelled. Another response continues, a third
    follows."""
    is_asked, has_begun, is_gone = threading.Event(), threading.Event(), threading.Event()
    piece = b"x" * 16384
    first: list[int] = []

    def script(connection: ssl.SSLSocket, stream: int, number: int) -> bool:
        head = frame(HEADERS, END_HEADERS, stream, STATUS_200)
        if number == 1:
            first.append(stream)
            connection.sendall(head)
            is_asked.set()
        elif number == 2:
            connection.sendall(head + frame(DATA, 0, stream, piece))
            has_begun.set()
            is_gone.wait(PATIENCE_S)
            for _ in range((24 << 20) // len(piece)):
                connection.sendall(frame(DATA, 0, stream, piece))
            connection.sendall(frame(DATA, END_STREAM, first[0], b"ok"))
        else:
            return answer(connection, stream)
        return True

    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        with HTTP2Server(tls.context, script) as server:
            async with librealtime.RESTClient(
                server.url, ca_file=tls.ca_file, attempts=1, timeout=PATIENCE_S, deadline=None
            ) as client:
                slow = asyncio.create_task(client.get("/slow"))
                await asyncio.to_thread(is_asked.wait, PATIENCE_S)
                large = asyncio.create_task(client.get("/large"))
                await asyncio.to_thread(has_begun.wait, PATIENCE_S)
                large.cancel()
                await asyncio.wait([large])
                is_gone.set()
                expect((await slow).content == b"ok", "the one beside it failed")
                expect((await client.get("/next")).content == b"ok", "the next one failed")
            expect({connection for connection, _, _ in server.seen} == {1}, f"{server.seen}")


async def test_event_source() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with flooding("empty data", pathlib.Path(folder)) as place:
            lost: asyncio.Queue[Any] = asyncio.Queue()
            async with watched():
                source = librealtime.EventSource(
                    f"https://{place}/", ca_file=f"{folder}/ca.pem", on_error=lost.put_nowait
                )
                with contextlib.closing(source):
                    event = await asyncio.wait_for(lost.get(), PATIENCE_S)
    expect(event.error is not None, f"{event}")


@pytest.mark.parametrize("name", ("interim heads", *TOO_LARGE, "status line"))
async def test_too_large(name: str) -> None:
    scheme = "http" if name in ANSWERS else "https"
    failed(await exchange(name, scheme), "RT_ERROR_TOO_LARGE", "answered with")


@pytest.mark.parametrize(("name", "text"), PROXIES.items(), ids=PROXIES)
async def test_proxy(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with flooding(name, pathlib.Path(folder)) as place:
            result = await get("https://example.org/", proxy=f"http://{place}")
    if text:
        failed(result, "RT_ERROR_PROXY", text)
    else:
        expect(getattr(result, "status_code", 0) == 407, f"{result}")


@pytest.mark.parametrize("version", ("1.2", "1.3"))
async def test_cut(version: str) -> None:
    text = "without TLS close_notify: the body may be cut short"
    failed(await exchange("cut", "https", version), "RT_ERROR_CONNECTION_LOST", text)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("version", ("1.2", "1.3"))
async def test_whole(name: str, version: str) -> None:
    response = await exchange(name, "https", version)
    expect(response.content == b"whole", f"{response}")


async def with_length(fields: str) -> Any:
    def script(exchange: Exchange) -> None:
        exchange.send(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\nwhole")
        exchange.hold()

    with StreamServer(script, None) as server:
        return await get(server.url("/"))


@pytest.mark.parametrize(("fields", "text"), LENGTHS.values(), ids=LENGTHS)
async def test_bad_length(fields: str, text: str) -> None:
    failed(await with_length(fields), "RT_ERROR_PROTOCOL", text)


@pytest.mark.parametrize("fields", GOOD_LENGTHS.values(), ids=GOOD_LENGTHS)
async def test_good_length(fields: str) -> None:
    response = await with_length(fields)
    expect(response.content == b"whole", f"{response}")


async def test_in_time() -> None:
    """The deadline passes when the kernel has the whole response, but none of it is decoded."""
    body = gzip.compress(bytes(48 << 20))
    may_answer, has_answered = threading.Event(), threading.Event()

    def script(exchange: Exchange) -> None:
        may_answer.wait(PATIENCE_S)
        length = f"Content-Length: {len(body)}"
        exchange.begin(length, "Content-Encoding: gzip", kind="application/octet-stream")
        exchange.send(body)
        has_answered.set()
        exchange.hold()

    for attempt in patiently(1):
        may_answer.clear()
        has_answered.clear()
        with attempt as limit, StreamServer(script, None) as server:
            async with librealtime.RESTClient(timeout=limit, deadline=limit, attempts=1) as client:
                begun = time.monotonic()
                task = asyncio.create_task(client.get(server.url("/")))
                await asyncio.to_thread(server.request)
                may_answer.set()
                has_answered.wait(PATIENCE_S)
                # The loop cannot run meanwhile.
                time.sleep(max(0, begun + 1.1 * limit - time.monotonic()))
                expect(len((await task).content) == 48 << 20, "it is not whole")


async def test_stops_early() -> None:
    """The server answers before the caller's body ends. The time limit for the rest of its response
    runs although the caller sends nothing."""

    def script(exchange: Exchange) -> None:
        exchange.begin("Content-Length: 10", status="413 Too large", kind="text/plain")
        exchange.send("half")
        exchange.hold()

    async def endless() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(PATIENCE_S)

    for attempt in patiently():
        with attempt as limit, StreamServer(script, None) as server:
            async with librealtime.RESTClient(timeout=limit, deadline=None, attempts=1) as client:
                try:
                    response: Any = await client.post(server.url("/"), content=endless())
                except librealtime.RealtimeError as error:
                    response = error
            # The head must come within that time, too.
            failed(response, "RT_ERROR_TIMEOUT", "did not complete its response within")


async def test_dirty() -> None:
    """Bytes after a response do not become the next response: the next request uses a new
    connection."""
    answered, seen = threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket, number: int) -> None:
            with connection, contextlib.suppress(OSError):
                while data := connection.recv(65536):
                    seen.append((number, data.split(b" ")[0]))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
                    if len(seen) == 1 and is_over.wait(PATIENCE_S):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
                        answered.set()

        def accept() -> None:
            with contextlib.suppress(OSError):
                for number in range(1, 3):
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection, number), daemon=True).start()

        is_over = threading.Event()
        threading.Thread(target=accept, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with librealtime.RESTClient(url, timeout=PATIENCE_S, attempts=1) as client:
            await client.get("")
            is_over.set()
            await asyncio.to_thread(answered.wait, PATIENCE_S)
            response = await client.post("", content=b"pay")
    expect(response.content == b"good" and response.attempts == 1, f"{response}")
    expect(seen == [(1, b"GET"), (2, b"POST")], f"{seen}")


@pytest.mark.parametrize("ends_with", ("chunks", "connection"))
async def test_compressed_stream(ends_with: str) -> None:
    """Servers close event streams, and seldom finish their compression first."""

    def script(exchange: Exchange) -> None:
        in_chunks = ends_with == "chunks"
        fields = ("Transfer-Encoding: chunked",) if in_chunks else ()
        exchange.begin("Content-Encoding: gzip", *fields)
        encoder = zlib.compressobj(wbits=31)
        data = encoder.compress(b"data: x\n\n") + encoder.flush(zlib.Z_SYNC_FLUSH)
        (exchange.chunk if in_chunks else exchange.send)(data)
        if in_chunks:
            exchange.chunk(b"")

    async with watching(script) as (watch, _):
        for _ in range(3):
            await watch.data("x")
            error = await watch.loses("RT_ERROR_CLOSED", "ended the stream")
            expect(error.attempt <= 1, f"a clean end counts as a failure: {error}")
