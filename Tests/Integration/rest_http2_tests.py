"""Requests that an HTTP/2 server did not process are sent again, whatever their method."""

from __future__ import annotations

import pathlib
import ssl
import struct
import tempfile

import pytest
from certificates import TLS
from harness import Build, expect
from http2_server import CANCEL, GOAWAY, REFUSED_STREAM, HTTP2Server, Script, answer, frame
from rest_tests import Client, check

#: How often libcurl itself sends a request before it gives up.
TRIES = 6
FOR_EVER = 1000


def posted(build: Build, script: Script, status: str, http: int, attempts: int) -> int:
    """A POST that must end this way; returns how often the server saw it."""
    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        with HTTP2Server(tls.context, script) as server:
            client = Client(build, server.url)
            check(
                client("POST", "/x", "body=12345", f"ca={tls.ca_file}")[0], status, http, attempts
            )
            expect(all(size == len("12345") for _, _, size in server.seen), f"{server.seen}")
            return len(server.seen)


def test_streams_above_the_last_are_sent_again(build: Build) -> None:
    seen = posted(build, HTTP2Server.goes_away(0, 1), "RT_OK", 200, 2)
    expect(seen == 2, f"seen {seen} times")
    lost = "RT_ERROR_CONNECTION_LOST"
    seen = posted(build, HTTP2Server.goes_away(0, FOR_EVER), lost, 0, 3)
    expect(seen == 3, f"seen {seen} times")


def test_refused_streams_are_sent_again(build: Build) -> None:
    seen = posted(build, HTTP2Server.resets(REFUSED_STREAM, TRIES), "RT_OK", 200, 2)
    expect(seen == TRIES + 1, f"seen {seen} times")


def test_streams_that_may_have_begun_are_not_sent_again(build: Build) -> None:
    lost = "RT_ERROR_CONNECTION_LOST"
    for script in (HTTP2Server.goes_away(1, 1), HTTP2Server.resets(CANCEL, 1)):
        seen = posted(build, script, lost, 0, 1)
        expect(seen == 1, f"seen {seen} times")


@pytest.mark.parametrize(
    ("last", "status", "http", "attempts", "times"),
    [(1, "RT_OK", 200, 2, 3), (3, "RT_ERROR_CONNECTION_LOST", 0, 1, 2)],
)
def test_a_kept_connection_that_goes_away(
    build: Build, last: int, status: str, http: int, attempts: int, times: int
) -> None:
    """The second POST, stream 3, is sent again only if the server did not process it (R6)."""

    def script(connection: ssl.SSLSocket, stream: int, number: int) -> bool:
        if number != 2:
            return answer(connection, stream)
        connection.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", last, 0)))
        return False

    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        with HTTP2Server(tls.context, script) as server:
            client = Client(build, server.url)
            posts = ("path2=/y", "count=2", "turns=1", "body=12345", f"ca={tls.ca_file}")
            first, second = client("POST", "/x", *posts)
            check(first, "RT_OK", 200, 1)
            check(second, status, http, attempts)
            expect(len(server.seen) == times, f"{server.seen}")
            expect(server.seen[1][:2] == (1, 3), f"{server.seen}")
