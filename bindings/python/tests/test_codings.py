"""Content codings: which are decoded, and the errors for bodies that cannot be decoded."""

from __future__ import annotations

import functools
import gzip
import socket
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from wire import WireServer, read

import librealtime
from librealtime import EventSource, LongPoll, sync

TEXT = b"hello hello hello hello, realtime\n"
#: Without a timestamp, because parameters must be the same in all workers.
compress = functools.partial(gzip.compress, mtime=0)
PACKED = compress(TEXT)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def answer(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture
def replying(serve: Any) -> Callable[..., str]:
    """Makes a server that gives these responses and then repeats the last one; returns its URL."""

    def make(*answers: bytes) -> str:
        left = list(answers)

        def reply(connection: socket.socket, number: int) -> None:
            while read(connection):
                connection.sendall(left.pop(0) if len(left) > 1 else left[0])

        server: WireServer = serve(reply)
        return server.url

    return make


def failure(url: str) -> librealtime.RealtimeError:
    with (
        sync.RESTClient(url, attempts=1) as client,
        pytest.raises(librealtime.RealtimeError) as raised,
    ):
        client.get("/")
    return raised.value


@pytest.mark.parametrize(
    ("coding", "body", "text"),
    [
        ("gzip", PACKED + PACKED, TEXT * 2),
        ("x-gzip", PACKED + compress(b"") + PACKED + bytes(512), TEXT * 2),
        ("gzip", b"".join(compress(b"%d\n" % n) for n in range(2000)), None),
        ("deflate", zlib.compress(TEXT), TEXT),
        ("deflate", raw_deflate(TEXT), TEXT),
        ("zstd", zstandard.compress(TEXT) + zstandard.compress(TEXT), TEXT * 2),
        ("deflate, gzip", compress(zlib.compress(TEXT)), TEXT),
        ("gzip\r\nContent-Encoding: zstd", zstandard.compress(PACKED), TEXT),
        ("identity", TEXT, TEXT),
        # The last one is undone first. A character set is not a coding.
        ("utf-8, gzip", PACKED, TEXT),
        ("gzip, UTF-8", PACKED, TEXT),
        ("foo, gzip", PACKED, TEXT),
        ("gzip, foo, deflate", zlib.compress(PACKED), PACKED),
        # Like libcurl: an empty body is an empty text.
        ("gzip", b"", b""),
    ],
)
def test_bodies(replying: Any, coding: str, body: bytes, text: bytes | None) -> None:
    if text is None:
        text = b"".join(b"%d\n" % n for n in range(2000))
    with sync.RESTClient(replying(answer(body, f"Content-Encoding: {coding}"))) as client:
        assert client.get("/").content == text
        with client.stream("GET", "/") as response:
            assert b"".join(response.iter_bytes()) == text


@pytest.mark.parametrize("coding", ["utf-8", "UTF-8", "foo", "gzip, foo", "compress"])
def test_an_unknown_coding_is_passed_through(replying: Any, coding: str) -> None:
    """As in browsers. Only one request is made."""
    url = replying(answer(PACKED, f"Content-Encoding: {coding}"))
    with sync.RESTClient(url) as client:
        assert client.get("/").content == PACKED


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("gzip", PACKED[:-8] + bytes(4) + PACKED[-4:], "is damaged: gzip CRC does not match"),
        ("gzip", PACKED[:-4] + bytes(4), "is damaged: gzip length does not match"),
        ("gzip", PACKED + b"<html>", "is damaged: gzip data is followed by something else"),
        ("gzip", TEXT, "is damaged: gzip data does not begin as such"),
        ("gzip", PACKED[:-1], "ended inside its gzip data"),
        ("gzip", PACKED + PACKED[:5], "ended inside its gzip data"),
        ("deflate", zlib.compress(TEXT)[:-3], "ended inside its deflate data"),
        ("br", b"\x8b\x10\x00", "ended inside its br data"),
        ("br", b"\xff" * 9, "is damaged: br data: "),
        ("zstd", zstandard.compress(TEXT)[:-1], "ended inside its zstd data"),
        ("zstd", b"hello", "is damaged: zstd data: Unknown frame descriptor"),
        ("gzip, gzip, gzip, gzip", PACKED, "4 content codings on top of each other, at most 3"),
    ],
)
def test_faults(replying: Any, coding: str, body: bytes, words: str) -> None:
    error = failure(url := replying(answer(body, f"Content-Encoding: {coding}")))
    assert error.name == "RT_ERROR_PROTOCOL"
    assert words in str(error)
    assert url.removeprefix("http://") in str(error)


def test_a_transfer_coding_that_was_not_requested(replying: Any) -> None:
    """libcurl would decode it without any limit (RFC 9110 §10.1.4)."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    chunk = b"%x\r\n" % len(PACKED) + PACKED + b"\r\n0\r\n\r\n"
    error = failure(replying(head + chunk))
    assert error.name == "RT_ERROR_PROTOCOL"
    assert 'the transfer coding "gzip", which was not requested' in str(error)


@pytest.mark.parametrize("coding", ["gzip", "foo"])
def test_answers_without_a_body(replying: Any, coding: str) -> None:
    field = f"Content-Encoding: {coding}"
    head = answer(b"", field).replace(b"Content-Length: 0", b"Content-Length: 99")
    none = f"HTTP/1.1 204 No\r\n{field}\r\n\r\n".encode()
    unchanged = f"HTTP/1.1 304 No\r\n{field}\r\n\r\n".encode()
    with sync.RESTClient(replying(head, none, unchanged)) as client:
        assert client.head("/").headers["content-encoding"] == coding
        assert client.get("/").status_code == 204
        assert client.get("/").status_code == 304


def test_an_unused_body_is_not_decoded(replying: Any) -> None:
    """The body of a response that is retried, or of a redirect."""
    field = "Content-Encoding: gzip"
    busy = answer(b"no gzip", field, "Retry-After: 0", status="503 Busy")
    away = answer(b"no gzip", field, "Location: /other", status="302 Away")
    with sync.RESTClient(replying(busy, away, answer(PACKED, field))) as client:
        response = client.get("/")
        assert (response.content, response.attempts) == (TEXT, 2)


def test_without_compression_the_body_is_left_alone(replying: Any) -> None:
    url = replying(answer(PACKED, "Content-Encoding: gzip"))
    with sync.RESTClient(url, compression=False) as client:
        assert client.get("/").content == PACKED
    with sync.RESTClient(url) as client:
        assert client.get("/", headers={"Accept-Encoding": "gzip"}).content == PACKED


def stream(body: bytes) -> bytes:
    return answer(body, "Content-Type: text/event-stream", "Content-Encoding: gzip")


@pytest.mark.parametrize("coding", ["utf-8, gzip", "gzip, utf-8"])
def test_an_event_stream_whose_codings_name_a_character_set(replying: Any, coding: str) -> None:
    head = ("Content-Type: text/event-stream", f"Content-Encoding: {coding}")
    url = replying(answer(compress(b"data: hello\n\n"), *head))
    with sync.EventSource(url) as source:
        assert source.recv(60).data == "hello"


def test_an_event_stream_of_several_members(run: Any, replying: Any) -> None:
    members = b"".join(compress(b"data: %d\n\n" % number) for number in range(50))

    async def main() -> None:
        async with EventSource(replying(stream(members))) as source:
            assert [(await source.recv()).data for _ in range(50)] == list(map(str, range(50)))

    run(main())


@pytest.mark.parametrize(
    ("body", "name", "words"),
    [
        (
            compress(b"data: x\n\n") + b"\xff" * 9,
            "RT_ERROR_PROTOCOL",
            "gzip data is followed by something else",
        ),
        # A server that ends its stream may leave the coding incomplete.
        (compress(b"data: x\n\n")[:-3], "RT_ERROR_CLOSED", "ended"),
    ],
)
def test_a_coded_event_stream_that_ends(
    run: Any, replying: Any, body: bytes, name: str, words: str
) -> None:
    """Events before the end are delivered, and the next attempt waits as after any loss."""
    losses: list[librealtime.ErrorEvent] = []

    async def main() -> None:
        url = replying(stream(body), stream(compress(b"data: y\n\n")))
        options: dict[str, Any] = {"reconnection_time": 0.5, "on_error": losses.append}
        async with EventSource(url, **options) as source:
            assert [(await source.recv()).data for _ in range(2)] == ["x", "y"]

    run(main())
    assert losses[0].error.name == name
    assert words in str(losses[0].error)
    assert not losses[0].fatal
    assert losses[0].retry_in is not None
    assert losses[0].retry_in >= 0.5


def test_a_poll_of_several_members(run: Any, replying: Any) -> None:
    body = answer(PACKED + PACKED, "Content-Encoding: gzip", "Content-Type: text/plain")

    async def main() -> None:
        async with LongPoll(replying(body)) as poll:
            assert (await poll.recv()).data == TEXT * 2

    run(main())
