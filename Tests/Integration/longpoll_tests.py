"""Long polls against faulty servers."""

import contextlib
import functools
import gzip
from collections.abc import Awaitable, Callable, Iterator

import pytest
from harness import Build, also_under_valgrind, expect
from poller import TOKEN, Make, Poller
from servers import Peer, Servers

pytestmark = also_under_valgrind

Answer = Callable[[Peer], Awaitable[None]]


@pytest.fixture
def make(build: Build, grind: bool) -> Iterator[Make]:
    """Makes clients; their output must not contain a token."""
    first = len(Poller.said)
    yield functools.partial(Poller, build, grind)
    said = "".join(Poller.said[first:])
    expect("polling" in said, "the log is empty")
    expect(f"Bearer {TOKEN}" not in said and "Authorization" not in said, "a token was logged")


@contextlib.contextmanager
def answering(servers: Servers, *answers: "Answer | bytes") -> Iterator[tuple[str, list[bytes]]]:
    """Answers one request after the other, over any connections; the last answer is repeated.
    Yields the URL and the list of requests."""
    left = list(answers)
    requests: list[bytes] = []

    async def script(peer: Peer) -> None:
        while True:
            requests.append(peer.request)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, bytes):
                await peer.send(answer)
            else:
                return await answer(peer)
            peer.request = await peer.reader.readuntil(b"\r\n\r\n")

    yield servers.script(script).replace("ws://", "http://"), requests


def ok(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


HELD: Answer = Peer.read_to_end


def test_one_connection_is_used(make: Make, servers: Servers) -> None:
    """Ten polls over one connection, each after the last message's id."""
    ports = set()

    async def script(peer: Peer) -> None:
        ports.add(peer.writer.get_extra_info("peername"))
        for number in range(10):
            expected = str(number) if number else ""
            if peer.header("Last-Event-ID") != expected:
                return
            await peer.send(ok(b"x", f"Last-Event-ID: {number + 1}"))
            peer.request = await peer.reader.readuntil(b"\r\n\r\n")
        await peer.read_to_end()

    url = servers.script(script).replace("ws://", "http://")
    with make(url, cursor="header_id", count=10) as poller:
        names = [poller.message()[0] for _ in range(10)]
        expect(poller.end() == "10", "the last id is another")
    expect(names == [str(number) for number in range(1, 11)], f"received {names}")
    expect(len(ports) == 1, f"{len(ports)} connections")


def test_a_cut_body_is_polled_again(make: Make, servers: Servers) -> None:
    """A message that was cut is not delivered at all, and the cursor stays."""

    async def cut(peer: Peer) -> None:
        await peer.send(ok(b"half", "ETag: 2", length=8))

    first, whole = ok(b"one", "ETag: 1"), ok(b"halfhalf", "ETag: 2")
    with answering(servers, first, cut, whole, HELD) as (url, requests):
        with make(url, max_delay=10, count=2) as poller:
            expect(poller.message()[3] == "one", "not the first")
            line = poller.line()
            expect(line.startswith("error RT_ERROR_CONNECTION_LOST 0 "), f"received {line!r}")
            expect(poller.message()[3] == "halfhalf", "not the second")
            poller.end()
    tags = [b"If-None-Match: 1" in request for request in requests[:3]]
    expect(tags == [False, True, True], f"cursors {tags}")


def test_a_cut_batch_is_polled_again(make: Make, servers: Servers) -> None:
    kind = "Content-Type: multipart/mixed; boundary=b"
    part = b"--b\r\nContent-Type: text/plain\r\n\r\none\r\n"
    answers = (ok(part + b"--b\r\n\r\ntw", kind), ok(part + b"--b\r\n\r\ntwo\r\n--b--", kind), HELD)
    with answering(servers, *answers) as (url, _):
        with make(url, max_delay=10, count=2) as poller:
            line = poller.line()
            expect(line.startswith("error RT_ERROR_PROTOCOL 0 "), f"received {line!r}")
            # It counts as open once an answer can be delivered.
            poller.expect("open")
            expect(poller.message()[2:] == ("text/plain", "one"), "not the first part")
            expect(poller.message()[2:] == ("-", "two"), "not the second part")
            poller.end()


def test_a_held_poll_is_repeated(make: Make, servers: Servers) -> None:
    """After poll_timeout without a byte, which is not an error."""
    with answering(servers, HELD, HELD, ok(b"one"), HELD) as (url, requests):
        with make(url, poll_timeout=50, min_hold=10, count=1) as poller:
            poller.wait_for_polls(3)
            expect(poller.message()[3] == "one", "not the message")
            poller.end()
    expect(len(requests) >= 3, f"{len(requests)} requests")


def test_a_body_that_stops_is_a_timeout(make: Make, servers: Servers) -> None:
    async def stop(peer: Peer) -> None:
        await peer.send(ok(b"half", length=8))
        await peer.read_to_end()

    with answering(servers, stop, ok(b"one"), HELD) as (url, _):
        with make(url, poll_timeout=1500, max_delay=10, count=1) as poller:
            line = poller.line()
            expect(line.startswith("error RT_ERROR_TIMEOUT 0 "), f"received {line!r}")
            expect(poller.message()[3] == "one", "not the message")
            poller.end()


def test_retry_after_is_respected(make: Make, servers: Servers) -> None:
    busy = ok(b"busy", "Retry-After: 1", status="503 Busy")
    with answering(servers, busy, ok(b"one"), HELD) as (url, _):
        with make(url, max_delay=10, count=1) as poller:
            poller.expect("error RT_ERROR_HTTP_STATUS 503 1000")
            expect(poller.message()[3] == "one", "not the message")
            poller.end()


def test_a_large_answer_is_fatal(make: Make, servers: Servers) -> None:
    async def endless(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            await peer.send(bytes(1 << 16))

    with answering(servers, ok(bytes(1000)), endless) as (url, _):
        with make(url, max_body=1000) as poller:
            expect(poller.message()[3] == "1000 bytes", "not the first")
            poller.expect("fatal RT_ERROR_TOO_LARGE 0")
            poller.end()


def test_an_event_stream_is_fatal(make: Make, servers: Servers) -> None:
    async def stream(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n")
        await peer.read_to_end()

    with answering(servers, stream) as (url, requests):
        with make(url) as poller:
            poller.expect("fatal RT_ERROR_CONTENT_TYPE 200")
            poller.end()
    expect(b"Accept: */*\r\n" in requests[0], "another Accept")


def test_endless_redirects_end(make: Make, servers: Servers) -> None:
    again = ok(b"", "Location: /again", status="302 Found")
    with answering(servers, again) as (url, requests):
        with make(url) as poller:
            poller.expect("fatal RT_ERROR_REDIRECT 302")
            poller.end()
    expect(len(requests) == 21, f"{len(requests)} requests")


def test_a_compressed_answer_is_decoded(make: Make, servers: Servers) -> None:
    packed = ok(gzip.compress(b"x" * 10_000), "Content-Encoding: gzip")
    with answering(servers, packed) as (url, requests):
        with make(url, count=1, max_body=10_000) as poller:
            expect(poller.message()[3] == "10000 bytes", "not the message")
            poller.end()
        with make(url, max_body=9_999) as poller:
            poller.expect("fatal RT_ERROR_TOO_LARGE 0")
            poller.end()
    expect(b"gzip" in requests[0], "gzip is not offered")


def test_an_endless_refusal_is_not_read(make: Make, servers: Servers) -> None:
    """A body that nobody wants is read up to a limit, then dropped."""

    async def endless(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 404 No\r\nConnection: close\r\n\r\n")
        while True:
            await peer.send(bytes(1 << 16))

    with answering(servers, endless) as (url, _):
        with make(url) as poller:
            poller.expect("fatal RT_ERROR_HTTP_STATUS 404")
            poller.end()
