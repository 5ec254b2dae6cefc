"""Servers and proxies that send without end, and answers over TLS that were cut short.

Whatever comes, the loop goes on turning: a ticker beside the request is not held up, memory stays
small, and the request ends by an error that says what was wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
import tempfile
import time
from typing import Any

import librealtime
from flood_server import ANSWERS, FRAMES, SMALL_FRAMES, flooding
from harness import PATIENCE_S, Suite, expect
from streams import StreamServer
from watch import Exchange, add_async

#: A held up loop stood still for 3 to 60 s.
MOST_GAP_S = 1.0
MOST_MEMORY = 100 << 20
TICK_S = 0.01

TOO_LARGE = ("trailers", "one trailer", "interim answers", "header lines", "one header line")
PROXIES = {
    "refusal in chunks": "",
    "long refusal": "",
    "tunnel's header lines": "answered CONNECT with more than 32768 bytes",
}
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


def add(suite: Suite) -> None:
    tests: dict[str, Any] = {
        f"HTTP/2 {name}": functools.partial(frames, name)
        for name in FRAMES
        if name != "interim heads"
    }
    tests["HTTP/2 interim heads"] = functools.partial(too_large, "interim heads")
    tests["HTTP/2 frames of one byte are no flood"] = small_frames
    tests["an event source leaves a flood, too"] = event_source
    for name in (*TOO_LARGE, "status line"):
        tests[name] = functools.partial(too_large, name)
    for name, text in PROXIES.items():
        tests[f"a proxy's {name}"] = functools.partial(proxy, name, text)
    for version in ("1.2", "1.3"):
        tests[f"TLS {version}: a body cut short"] = functools.partial(cut, version)
        for name in ("ended", "cut behind its length", "cut behind its chunks"):
            tests[f"TLS {version}: a body that {name} is whole"] = functools.partial(
                whole, name, version
            )
    for name, (fields, text) in LENGTHS.items():
        tests[f"Content-Length: {name}"] = functools.partial(bad_length, fields, text)
    for name, fields in GOOD_LENGTHS.items():
        tests[f"Content-Length: {name}"] = functools.partial(good_length, fields)
    add_async(suite, {f"flood: {name}": test for name, test in tests.items()})


def memory() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Watcher:
    """Ticks beside what is tested."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.before = self.most = memory()

    async def run(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self.longest = max(self.longest, now - last - TICK_S)
            self.most = max(self.most, memory())
            last = now

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
    """The answer to one request, or the error."""
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
    expect(isinstance(result, librealtime.RealtimeError), f"no error but {result}")
    expect(result.name == name, f"expected {name}, was told {result.name}: {result}")
    expect(text in str(result), f"expected {text!r} in {result}")


async def frames(name: str) -> None:
    # Of SETTINGS each wants an answer: nghttp2 itself ends it when those pile up.
    text = "" if name in ("settings", "pings") else "that carry nothing"
    failed(await exchange(name, "https"), "RT_ERROR_PROTOCOL", text)


async def small_frames() -> None:
    response = await exchange("a byte a frame", "https")
    expect(response.content == b"x" * SMALL_FRAMES, f"{response}")


async def event_source() -> None:
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


async def too_large(name: str) -> None:
    scheme = "http" if name in ANSWERS else "https"
    failed(await exchange(name, scheme), "RT_ERROR_TOO_LARGE", "answered with")


async def proxy(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with flooding(name, pathlib.Path(folder)) as place:
            result = await get("https://example.org/", proxy=f"http://{place}")
    if text:
        failed(result, "RT_ERROR_PROXY", text)
    else:
        expect(getattr(result, "status_code", 0) == 407, f"{result}")


async def cut(version: str) -> None:
    text = "without TLS close_notify: the body may be cut short"
    failed(await exchange("cut", "https", version), "RT_ERROR_CONNECTION_LOST", text)


async def whole(name: str, version: str) -> None:
    response = await exchange(name, "https", version)
    expect(response.content == b"whole", f"{response}")


async def with_length(fields: str) -> Any:
    def script(exchange: Exchange) -> None:
        exchange.send(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\nwhole")
        exchange.hold()

    with StreamServer(script, None) as server:
        return await get(server.url("/"))


async def bad_length(fields: str, text: str) -> None:
    failed(await with_length(fields), "RT_ERROR_PROTOCOL", text)


async def good_length(fields: str) -> None:
    response = await with_length(fields)
    expect(response.content == b"whole", f"{response}")
