"""Event sources against faulty servers."""

import asyncio
import pathlib
import queue
import zlib
from collections.abc import Callable
from typing import Any

import librealtime
import pytest
import zstandard
from harness import PATIENCE_S, expect
from patience import patiently
from servers import Servers
from watch import Exchange, watching

MB = 1 << 20
#: The limit for the memory that a stream without events may take.
MOST_MEMORY = 48 * MB


async def loses_once(script: Callable[[Exchange], Any], name: str, text: str = "") -> None:
    """The first response breaks after an event, which comes once; the next response is good."""

    def spoilt(exchange: Exchange) -> None:
        if exchange.number == 0:
            return script(exchange)
        exchange.begin()
        exchange.send(f"data: from {exchange.headers.get('last-event-id', 'the start')}\n\n")
        return exchange.hold()

    async with watching(spoilt) as (watch, _):
        await watch.data("first")
        await watch.loses(name, text)
        await watch.data("from 1")


FIRST = b"id: 1\ndata: first\n\nid: 2\ndata: unfinished"


async def test_truncated_chunk() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin("Transfer-Encoding: chunked")
        exchange.send(b"%x\r\n" % (len(FIRST) + 9) + FIRST)

    await loses_once(script, "RT_ERROR_CONNECTION_LOST", "127.0.0.1")


async def test_bad_chunk() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin("Transfer-Encoding: chunked")
        exchange.chunk(FIRST)
        exchange.send("xyz\r\n")
        exchange.hold()

    await loses_once(script, "RT_ERROR_PROTOCOL", "chunk")


async def test_too_long() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin("Content-Length: 1000")
        exchange.send(FIRST)

    await loses_once(script, "RT_ERROR_CONNECTION_LOST")


async def test_too_short() -> None:
    """The body ends normally where its length says; the bytes after it are ignored."""

    def script(exchange: Exchange) -> None:
        exchange.begin(f"Content-Length: {len(FIRST)}")
        exchange.send(FIRST + b" and more\n\n")

    await loses_once(script, "RT_ERROR_CLOSED")


async def test_reset() -> None:
    go: queue.Queue[None] = queue.Queue()

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number:
            exchange.send(f"data: from {exchange.headers['last-event-id']}\n\n")
            return exchange.hold()
        exchange.send(FIRST)
        # A reset drops the bytes that the client has not read.
        go.get(timeout=PATIENCE_S)
        return exchange.reset()

    async with watching(script) as (watch, _):
        await watch.data("first")
        go.put(None)
        await watch.loses("RT_ERROR_CONNECTION_LOST")
        await watch.data("from 1")


async def test_no_answer() -> None:
    async with watching(lambda exchange: None) as (watch, _):
        await watch.loses("RT_ERROR_CONNECTION_LOST")


async def test_no_http() -> None:
    async with watching(lambda exchange: exchange.send("SSH-2.0-x\r\n\r\n" * 9)) as (watch, _):
        await watch.loses("RT_ERROR_PROTOCOL", "HTTP/0.9")


async def test_endless_head() -> None:
    """Headers have a limit: the client does not return to such a server."""

    def script(exchange: Exchange) -> None:
        exchange.send("HTTP/1.1 200 OK\r\n")
        for number in range(10_000_000):
            exchange.send(f"X-{number}: {'x' * 1000}\r\n")

    async with watching(script) as (watch, _):
        error = await watch.error()
        expect(error.error.name == "RT_ERROR_TOO_LARGE", f"{error}")


@pytest.mark.parametrize(
    "begin", (b"", b"HTTP/1.1 200 OK\r\nA: b\r\n"), ids=("before the head", "inside the head")
)
async def test_stalled(begin: bytes) -> None:
    def script(exchange: Exchange) -> None:
        exchange.send(begin)
        exchange.hold()

    async with watching(script, response_timeout=0.1) as (watch, _):
        await watch.loses("RT_ERROR_TIMEOUT", "did not answer within 100 ms (response_timeout)")


async def test_stalled_handshake() -> None:
    """The server never answers the TLS handshake; the timeout is the one for an HTTP head."""
    async with watching(lambda exchange: None) as (_, server):
        secure = server.url().replace("http:", "https:")
        errors: asyncio.Queue[librealtime.ErrorEvent] = asyncio.Queue()
        options = {"connect_timeout": 0.1, "on_error": errors.put_nowait}
        async with librealtime.EventSource(secure, **options):  # type: ignore[arg-type]
            error = await errors.get()
            expect(error.error.name == "RT_ERROR_TIMEOUT" and not error.fatal, f"{error}")
            expect(isinstance(error.error, TimeoutError), f"{error}")
            expect("within 100 ms (connect_timeout)" in error.error.message, f"{error}")


async def test_idle() -> None:
    def script(exchange: Exchange) -> None:
        # In one segment: the event must not come later than the head.
        exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n")
        exchange.hold()

    async with watching(script, idle_timeout=0.1) as (watch, _):
        await watch.data("x")
        await watch.loses("RT_ERROR_TIMEOUT", "sent nothing for 100 ms (idle_timeout)")
        await watch.data("x")


@pytest.mark.parametrize(
    ("beat", "fields"),
    [
        pytest.param(b":\n", [], id="comments"),
        pytest.param(b"\0\0\0\xff\xff", ["Content-Encoding: gzip"], id="empty blocks"),
    ],
)
async def test_idle_but_alive(beat: bytes, fields: list[str]) -> None:
    """Bytes without an event keep coming for longer than twice the idle timeout."""
    for attempt in patiently():
        with attempt as limit:
            await idle_but_alive(beat, fields, limit)


async def idle_but_alive(beat: bytes, fields: list[str], limit: float) -> None:
    stop: queue.Queue[None] = queue.Queue()
    encode: Encoder = zlib_encoder(31) if fields else bytes

    def script(exchange: Exchange) -> None:
        exchange.begin(*fields)
        exchange.send(encode(b":\n"))
        while True:
            try:
                stop.get(timeout=limit / 20)
            except queue.Empty:
                exchange.send(beat)
            else:
                exchange.send(encode(b"data: still here\n\n"))
                return exchange.hold()

    async with watching(script, idle_timeout=limit) as (watch, _):
        await watch.opened()
        try:
            told = await asyncio.wait_for(watch.news.get(), 2.5 * limit)
            expect(False, f"received {told}")
        except asyncio.TimeoutError:
            stop.put(None)
        await watch.data("still here")


async def test_trickle() -> None:
    stream = "\ufeffid: é1\nevent: ü\ndata: smörgåsbord 😀\r\n\r\ndata:x\rdata:y\r\r".encode()

    def script(exchange: Exchange) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        exchange.send(*(bytes([byte]) for byte in head + stream))
        exchange.hold()

    async with watching(script) as (watch, _):
        first, second = await watch.event(), await watch.event()
        expect((first.event, first.data, first.id) == ("ü", "smörgåsbord 😀", "é1"), f"{first}")
        expect((second.event, second.data, second.id) == ("message", "x\ny", "é1"), f"{second}")


# Sizes


class Memory:
    """The growth of this process's memory, from now on."""

    def __init__(self) -> None:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self._before = self._peak()

    @staticmethod
    def _peak() -> int:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    def check(self) -> None:
        grown = self._peak() - self._before
        expect(grown < MOST_MEMORY, f"{grown} bytes more than before")


def endless(*pieces: bytes) -> Callable[[Exchange], None]:
    """Sends 100 MB of each piece, then an event."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        for piece in pieces:
            block = piece * (MB // len(piece))
            for _ in range(100):
                exchange.send(block)
        exchange.send("\n\ndata: after it\n\n")
        exchange.hold()

    return script


async def test_long_line() -> None:
    memory = Memory()
    async with watching(endless(b"data:" + b"x" * 1019), max_line_size=MB) as (watch, server):
        await watch.fails("RT_ERROR_TOO_LARGE", f"127.0.0.1:{server.port}: ")
        expect(server.requests.qsize() == 1, "it reconnected")
    memory.check()


async def test_long_event() -> None:
    memory = Memory()
    async with watching(endless(b"data:" + b"x" * 1018 + b"\n"), max_event_size=MB) as (watch, _):
        await watch.fails("RT_ERROR_TOO_LARGE")
    memory.check()


async def test_long_comment() -> None:
    memory = Memory()
    async with watching(endless(b":" + b"x" * 1023), max_line_size=MB) as (watch, _):
        await watch.data("after it")
    memory.check()


async def test_long_unknown() -> None:
    memory = Memory()
    async with watching(endless(b"datax:" + b"x" * 1018), max_line_size=MB) as (watch, _):
        await watch.data("after it")
    memory.check()


# Whom TLS trusts


def greeting(exchange: Exchange) -> None:
    exchange.begin()
    exchange.send("data: hello\n\n")
    exchange.hold()


async def test_unknown_authority(servers: Servers) -> None:
    """Not fatal, because the server may be under maintenance."""
    context = servers.tls().context
    async with watching(greeting, context=context, ca_file=servers.tls().ca_file) as (watch, _):
        await watch.loses("RT_ERROR_TLS", "certificate")


async def test_another_host(servers: Servers) -> None:
    tls = servers.tls("example.org")
    async with watching(greeting, context=tls.context, ca_file=tls.ca_file) as (watch, _):
        await watch.loses("RT_ERROR_TLS", "localhost")


async def test_wrong_pin(servers: Servers) -> None:
    tls, other = servers.tls(), servers.tls()
    network = librealtime.Network(ca_file=tls.ca_file, pinned_public_keys=[other.pin()])
    async with watching(greeting, context=tls.context, network=network) as (watch, server):
        await watch.fails("RT_ERROR_TLS", "key")
        expect(server.requests.empty(), "it sent a request")


async def test_right_pin(servers: Servers) -> None:
    tls = servers.tls()
    network = librealtime.Network(ca_file=tls.ca_file, pinned_public_keys=[tls.pin()])
    async with watching(greeting, context=tls.context, network=network) as (watch, _):
        await watch.data("hello")


# Codings

Encoder = Callable[[bytes], bytes]


def zlib_encoder(bits: int) -> Encoder:
    compressor = zlib.compressobj(wbits=bits)
    return lambda data: compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)


def zstd_encoder() -> Encoder:
    compressor = zstandard.ZstdCompressor().compressobj()
    flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
    return lambda data: compressor.compress(data) + compressor.flush(flush)


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "gzip": lambda: zlib_encoder(31),
    "deflate": lambda: zlib_encoder(15),
    "zstd": zstd_encoder,
}


@pytest.mark.parametrize("in_chunks", (False, True), ids=("whole", "in chunks"))
@pytest.mark.parametrize("coding", ENCODERS)
async def test_coded(coding: str, in_chunks: bool) -> None:
    """Each event is sent when the one before it was received."""
    texts = [f"{number} in {coding} " * 100 for number in range(20)]
    go: queue.Queue[str] = queue.Queue()

    def script(exchange: Exchange) -> None:
        expect(coding in exchange.headers["accept-encoding"], f"not asked for: {exchange.headers}")
        encode = ENCODERS[coding]()
        chunked = ("Transfer-Encoding: chunked",) if in_chunks else ()
        exchange.begin(f"Content-Encoding: {coding}", *chunked)
        send = exchange.chunk if in_chunks else exchange.send
        for _ in texts:
            send(encode(f"data: {go.get(timeout=PATIENCE_S)}\n\n".encode()))
        exchange.hold()

    async with watching(script) as (watch, _):
        for text in texts:
            go.put(text)
            await watch.data(text)


async def test_unknown_coding() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin("Content-Encoding: x-best")
        exchange.send("data: x\n\n")

    async with watching(script) as (watch, _):
        # As in browsers, the body is passed on as it came.
        await watch.data("x")


async def test_damaged_gzip() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin("Content-Encoding: gzip")
        good = zlib_encoder(31)(b"data: good\n\n")
        exchange.send(good, b"\xff" * 100)
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("good")
        await watch.loses("RT_ERROR_PROTOCOL", "damaged: gzip data: invalid block type")


# Coming back


async def test_nobody_listens() -> None:
    async with watching(lambda exchange: None) as (_, server):
        url = server.url()
    errors: asyncio.Queue[librealtime.ErrorEvent] = asyncio.Queue()
    async with librealtime.EventSource(url, on_error=errors.put_nowait) as source:
        error = await errors.get()
        expect(error.error.name == "RT_ERROR_CONNECT" and not error.fatal, f"{error}")
        expect(isinstance(error.error, ConnectionError), f"{error}")
        expect(error.retry_in is not None and 3 <= error.retry_in <= 3.6, f"{error}")
        expect(source.ready_state is librealtime.ReadyState.CONNECTING, f"{source}")


async def test_exhausted() -> None:
    """Streams without an event count as failures; a stream with an event resets the count."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number == 1:
            exchange.send("data: x\n\n")

    async with watching(script, max_reconnects=1) as (watch, _):
        expect((await watch.loses("RT_ERROR_CLOSED")).attempt == 2, "the first")
        await watch.data("x")
        expect((await watch.loses("RT_ERROR_CLOSED")).attempt == 1, "after an event")
        expect((await watch.loses("RT_ERROR_CLOSED")).attempt == 2, "the third")
        error = await watch.fails("RT_ERROR_RECONNECTS_EXHAUSTED")
        expect(isinstance(error.error, librealtime.ReconnectsExhausted), f"{error}")


async def test_delays_grow() -> None:
    """C9 with a base of 10 ms: the first delay is within a fifth of it, the next are at least half
    of 500 ms and 1 s, and none is above max_delay."""
    bounds = [(0.01, 0.013), (0.25, 0.5), (0.3, 0.6), (0.3, 0.6)]
    async with watching(lambda exchange: exchange.begin(), max_delay=0.6) as (watch, _):
        for number, (least, most) in enumerate(bounds):
            error = await watch.loses("RT_ERROR_CLOSED")
            wait = error.retry_in
            expect(wait is not None and least <= wait <= most + 0.001, f"{number}: {wait}")
            expect(error.attempt == number + 2, f"{error}")
