"""Bodies that take longer than an attempt may, and responses that arrive but cannot be read."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from wire import OK, read

import librealtime
from librealtime import sync

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from patience import patiently

#: A body comes in so many pieces, with a tenth of the time limit between two of them.
PIECES = 30


def pause(limit: float) -> None:
    threading.Event().wait(limit / 10)


def trickle(connection: socket.socket, pieces: int, limit: float) -> None:
    for _ in range(pieces):
        pause(limit)
        connection.sendall(b"1\r\nx\r\n")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_streamed_answer_may_take_longer_than_an_attempt(run: Any, serve: Any) -> None:
    for attempt in patiently(0.5, last=10):
        with attempt as limit:
            streamed(run, serve, limit)


def streamed(run: Any, serve: Any, limit: float) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            connection.sendall(CHUNKED)
            trickle(connection, PIECES, limit)
            connection.sendall(b"0\r\n\r\n")

    server = serve(answer)
    with (
        sync.RESTClient(server.url, timeout=limit, attempts=1) as client,
        client.stream("GET", "/") as response,
    ):
        assert response.read() == b"x" * PIECES

    async def main() -> None:
        async with librealtime.RESTClient(server.url, timeout=limit, attempts=1) as client:
            async with client.stream("GET", "/") as response:
                assert await response.aread() == b"x" * PIECES
            # A response that is not streamed must be complete by then.
            with pytest.raises(librealtime.ConnectionTimeout, match="did not complete its"):
                await client.get("/")

    run(main())


def test_a_streamed_answer_may_take_longer_than_the_deadline(run: Any, serve: Any) -> None:
    for attempt in patiently(1, last=20):
        with attempt as deadline:
            beyond_the_deadline(run, serve, deadline)


def beyond_the_deadline(run: Any, serve: Any, deadline: float) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            connection.sendall(CHUNKED)
            trickle(connection, PIECES, deadline / 2)
            connection.sendall(b"0\r\n\r\n")

    short: dict[str, Any] = {"deadline": deadline, "attempts": 1}
    # It takes longer than the client's deadline, which must not end it either.
    own: list[dict[str, Any]] = [{}, {"timeout": 0.9 * deadline}]
    own += [{"timeout": 9 * deadline}, {"timeout": None}]
    with sync.RESTClient(serve(answer).url, **short) as client:

        def read_all(options: dict[str, Any]) -> bytes:
            with client.stream("GET", "/", **options) as response:
                return response.read()

        with ThreadPoolExecutor(len(own)) as threads:
            assert list(threads.map(read_all, own)) == [b"x" * PIECES] * len(own)
        with pytest.raises(librealtime.RealtimeError, match="deadline"):
            read_all({"deadline": deadline, "timeout": None})

    async def main() -> None:
        async with (
            librealtime.RESTClient(serve(answer).url, **short) as client,
            client.stream("GET", "/", timeout=9 * deadline) as response,
        ):
            assert await response.aread() == b"x" * PIECES

    run(main())


def test_the_deadline_counts_until_a_streamed_answer_begins(serve: Any) -> None:
    """Attempts and delays; without it a dead server would be tried for minutes."""

    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    patient: dict[str, Any] = {"deadline": 0.3, "attempts": 20, "base_delay": 0.05}
    with sync.RESTClient(serve(answer).url, **patient) as client:
        with client.stream("GET", "/") as response:
            assert response.status_code == 503
        with (
            pytest.raises(librealtime.RealtimeError) as raised,
            client.stream("GET", "http://127.0.0.1:1/"),
        ):
            pass
    assert "127.0.0.1:1" in str(raised.value)


def test_a_streamed_answer_that_stands_still_ends(serve: Any) -> None:
    for attempt in patiently(0.5, last=10):
        with attempt as limit:
            standing_still(serve, limit)


def standing_still(serve: Any, limit: float) -> None:
    done = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        read(connection)
        connection.sendall(CHUNKED)
        trickle(connection, 3, limit)
        done.wait(30)

    server = serve(answer)
    with (
        sync.RESTClient(server.url, timeout=limit, attempts=1) as client,
        pytest.raises(librealtime.ConnectionTimeout, match="sent no more of its response"),
        client.stream("GET", "/") as response,
    ):
        response.read()
    done.set()


def test_a_reader_may_be_slow(serve: Any) -> None:
    """Meanwhile the response waits in the kernel: the reader stalls, not the server."""
    size = 8 << 20

    def answer(connection: socket.socket, number: int) -> None:
        read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))

    for attempt in patiently(0.5, last=10):
        with (
            attempt as limit,
            sync.RESTClient(serve(answer).url, timeout=limit, attempts=1) as client,
            client.stream("GET", "/") as response,
        ):
            got = 0
            for index, piece in enumerate(response.iter_bytes()):
                got += len(piece)
                if index == 0:
                    threading.Event().wait(2 * limit)
            assert got == size


def test_a_body_may_take_longer_than_an_attempt(run: Any, serve: Any) -> None:
    for attempt in patiently(0.5, last=10):
        with attempt as limit:
            long_body(run, serve, limit)


def long_body(run: Any, serve: Any, limit: float) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += connection.recv(65536)
        connection.sendall(OK)

    def pieces() -> Iterator[bytes]:
        for _ in range(PIECES):
            pause(limit)
            yield b"x"

    async def later() -> AsyncIterator[bytes]:
        for _ in range(3):
            await asyncio.sleep(1.5 * limit)
            yield b"x"

    server = serve(answer)
    with sync.RESTClient(server.url, timeout=limit, attempts=1) as client:
        assert client.put("/", content=pieces()).content == b"ok"

    async def main() -> None:
        async with librealtime.RESTClient(server.url, timeout=limit, attempts=1) as client:
            assert (await client.put("/", content=later())).content == b"ok"

    run(main())


def test_a_slow_link_carries_a_large_body(serve: Any) -> None:
    """All of it is available, and is sent as fast as the server reads it."""
    for attempt in patiently(0.5, last=10):
        with attempt as limit:
            large_body(serve, limit)


def large_body(serve: Any, limit: float) -> None:
    size = 24 << 20

    def answer(connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        left = size
        while left > 0:
            pause(limit)
            left -= len(connection.recv(1 << 20, socket.MSG_WAITALL))
        connection.sendall(OK)

    with sync.RESTClient(serve(answer).url, timeout=limit, attempts=1) as client:
        assert client.post("/", content=bytes(size)).content == b"ok"


DAMAGED = (
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 14\r\n\r\nno gzip at all",
    b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
)


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_request_with_a_damaged_answer_is_not_sent_again(serve: Any, damaged: bytes) -> None:
    """Repeating the request would perform it twice."""
    requests: list[bytes] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            requests.append(request)
            connection.sendall(damaged)

    with sync.RESTClient(serve(answer).url, base_delay=0.01, idempotency_keys=True) as client:
        with pytest.raises(librealtime.ProtocolError) as caught:
            client.post("/", content=b"pay")
        assert isinstance(caught.value, librealtime.ConnectionLost)
        assert not isinstance(caught.value, librealtime.ConnectFailed)
        assert caught.value.response.status_code in (200, 201)  # type: ignore[attr-defined]
        assert len(requests) == 1
        # A GET may be repeated.
        with pytest.raises(librealtime.ProtocolError):
            client.put("/", content=b"set")
        assert len(requests) == 4


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_send_of_the_outbox_is_delivered_by_a_2xx(
    serve: Any, tmp_path: Any, damaged: bytes
) -> None:
    """Earlier, it was sent again every 20 s, forever."""
    keys: list[bytes] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            if request.startswith(b"POST"):
                keys.append(request)
                connection.sendall(damaged)
            else:
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n"
                )

    url = serve(answer).url
    options = {"outbox": tmp_path / "outbox", "transports": ["sse"]}
    with sync.Spreadbot(url, **options) as bot:
        bot.establish_connection("room")
        bot.send_message_string("once", timeout=30)
        with pytest.raises(librealtime.ProtocolError):
            bot.rest.post_data("things", 1)
    assert len(keys) == 2
    # The outbox is empty.
    network = librealtime.Reachability("manual")
    network.set_online(False)
    with sync.Spreadbot(url, reachability=network, **options) as bot:
        bot.establish_connection("room", wait=False)
        assert len(bot._sends) == 0
    assert (tmp_path / "outbox").stat().st_size < 64


def test_the_clients_own_is_for_the_base_alone(serve: Any) -> None:
    seen: list[tuple[str, bool, bool, bool]] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            seen.append(
                (
                    request.split(b" ")[1].decode(), b"Bearer secret" in request,
                    b"X-Key" in request, b"Cookie: a=b" in request,
                )
            )  # fmt: skip
            connection.sendall(OK)

    base, other, third = serve(answer), serve(answer), serve(answer)
    mine: dict[str, Any] = {
        "bearer_token": "secret", "headers": {"X-Key": "k"}, "cookies": {"a": "b"},
        "params": {"key": "p"},
    }  # fmt: skip
    with sync.RESTClient(base.url, credential_origins=[third.url], **mine) as client:
        for where in ("a", base.url + "/b", other.url + "/c", third.url + "/d"):
            client.get(where)
        with pytest.raises(librealtime.InvalidURI, match="leads out of the base URL"):
            client.get("../x")
        with pytest.raises(librealtime.InvalidURI) as caught:
            client.get("http://user:SECRET#x@host/")
        assert "SECRET" not in str(caught.value)
    with sync.RESTClient(base.url, credential_origins=["*"], **mine) as client:
        client.get(other.url + "/e")
    with sync.RESTClient(**mine) as client:
        client.get(other.url + "/f")
    with sync.RESTClient(credential_origins=[base.url], **mine) as client:
        client.get(base.url.upper().replace("HTTP", "http") + "/g")
        client.get(other.url + "/h", params={"own": 1})
    with pytest.raises(librealtime.InvalidURI, match="is not an origin"):
        sync.RESTClient(base.url, credential_origins=["http://h/path"])
    assert seen == [
        ("/a?key=p", True, True, True), ("/b?key=p", True, True, True),
        ("/c", False, False, False), ("/d?key=p", True, True, True),
        ("/e?key=p", True, True, True), ("/f?key=p", True, True, True),
        ("/g?key=p", True, True, True), ("/h?own=1", False, False, False),
    ]  # fmt: skip
