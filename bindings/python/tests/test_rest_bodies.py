"""Bodies from files: never more bytes than requested, and exactly the announced ones."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import librealtime
from librealtime import sync
from librealtime._rest.call import Source

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer

EVIL = b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def rest_server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


class Growing(io.BytesIO):
    """A file that is appended to while it is read."""

    def read(self, size: int | None = -1) -> bytes:
        at = self.tell()
        self.seek(0, io.SEEK_END)
        self.write(EVIL)
        self.seek(at)
        return super().read(size)


class Generous(io.BytesIO):
    """A file that returns everything, however little is requested."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read()


class Cut(io.BytesIO):
    """A file that is cut to `left` bytes after `reads` reads."""

    def __init__(self, data: bytes, left: int, reads: int) -> None:
        super().__init__(data)
        self._left, self._reads = left, reads

    def read(self, size: int | None = -1) -> bytes:
        if self._reads == 0:
            self.truncate(self._left)
        self._reads -= 1
        return super().read(size)


def text_file(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")


@pytest.mark.parametrize(
    "content", [text_file("é" * 50_000), Generous(b"x" * 100_000), [b"y" * 100_000]], ids=type
)
def test_never_more_than_the_buffer_holds(content: Any) -> None:
    """C passes a buffer of bytes; a text file's characters are not its bytes."""
    source = Source(content)
    pieces = list(iter(lambda: source.more(16384), b""))
    assert max(map(len, pieces)) == 16384
    assert sum(map(len, pieces)) == 100_000


def test_a_text_file(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, base_delay=0) as client:
            response = await client.put("/flaky/a/1", content=text_file("é" * 200_000))
            assert response.attempts == 2
        for request in rest_server.seen:
            assert request.body.decode() == "é" * 200_000

    run(main())


def test_a_file_that_grows(run: Any, rest_server: RESTServer) -> None:
    """The server would take bytes beyond the announced length for another request."""

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, base_delay=0) as client:
            for content in (Growing(b"0123456789"), Generous(b"0123456789")):
                content.seek(2)
                response = await client.put("/flaky/a/1", content=content)
                assert response.json()["body"] == "23456789"
            assert (await client.put("/echo", content=Growing())).json()["body"] == ""
            assert (await client.get("/after")).status_code == 404

    run(main())
    seen = [(request.target, request.body) for request in rest_server.seen]
    body = b"23456789"
    assert seen == [("/flaky/a/1", body)] * 3 + [("/echo", b""), ("/after", b"")]
    # After the one failure there was a new connection.
    assert rest_server.connections == 2


@pytest.mark.parametrize(
    ("left", "reads", "message"),
    [(5, 0, "after 5 of 100000 bytes"), (0, 0, "after 0 of"), (99_999, 1, "after 99999 of")],
)
def test_a_file_that_is_cut(
    run: Any, rest_server: RESTServer, left: int, reads: int, message: str
) -> None:
    """Otherwise the server would wait for the rest, and the client for the server."""

    def cut() -> io.BytesIO:
        return Cut(b"x" * 100_000, left, reads)

    options: dict[str, Any] = {"timeout": 10, "attempts": 1}

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, **options) as client:
            with pytest.raises(librealtime.InvalidArgument, match=f"the body ended {message}"):
                await client.put("/echo", content=cut())
            assert (await client.get("/echo")).is_success

    run(main())
    with sync.RESTClient(rest_server.url, **options) as client:
        with pytest.raises(librealtime.InvalidArgument, match=f"the body ended {message}"):
            client.put("/echo", content=cut())
        assert client.get("/echo").is_success
    assert [request.method for request in rest_server.seen] == ["GET", "GET"]


def test_a_file_that_is_cut_before_it_is_sent_again(rest_server: RESTServer) -> None:
    file = Cut(b"x" * 10, 5, 1)
    told = pytest.raises(ValueError, match="the body ended after 5 of 10 bytes")
    with sync.RESTClient(rest_server.url, base_delay=0) as client, told:
        client.put("/flaky/a/1", content=file)
    assert [request.body for request in rest_server.seen] == [b"x" * 10]


def test_a_generator_is_taken_once(rest_server: RESTServer, run: Any) -> None:
    """Otherwise a second request would be sent with an empty body."""
    with sync.RESTClient(rest_server.url) as client:
        pieces = (piece for piece in (b"ab", b"cd"))
        assert client.post("/echo", content=pieces).json()["body"] == "abcd"
        with pytest.raises(librealtime.InvalidState, match="exhausted"):
            client.post("/echo", content=pieces)

    async def awaited() -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"ab"

        taken = pieces()
        async with librealtime.RESTClient(rest_server.url) as client:
            assert (await client.post("/echo", content=taken)).json()["body"] == "ab"
            with pytest.raises(librealtime.InvalidState, match="exhausted"):
                await client.post("/echo", content=taken)
            # An object that makes a new iterator each time can be sent any number of times.
            for _ in range(2):
                assert (await client.post("/echo", content=[b"x"])).json()["body"] == "x"

    run(awaited())
    assert len(rest_server.seen) == 4


def test_a_piece_is_text_or_bytes(run: Any, rest_server: RESTServer) -> None:
    """bytes(n) would be n NUL bytes."""
    with sync.RESTClient(rest_server.url) as client, pytest.raises(TypeError):
        client.post("/echo", content=iter([5]))

    async def awaited() -> None:
        async def pieces() -> AsyncIterator[Any]:
            yield 5

        async with librealtime.RESTClient(rest_server.url) as client:
            with pytest.raises(TypeError):
                await client.post("/echo", content=pieces())

    run(awaited())
