"""Attacks by the content of event streams and long polls, and by their frequency."""

from __future__ import annotations

import time
import zlib

from servers.http1 import CHUNKED, EVENT, answer, chunk, head
from servers.peer import Peer, attack


def stream(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Connection: close"))


# Event streams.


@attack
def data_line(peer: Peer) -> None:
    stream(peer)
    peer.send(b"data: ")
    peer.flood(b"x")


@attack
def data_lines(peer: Peer) -> None:
    """One event with endless lines, each of which adds a single byte."""
    stream(peer)
    peer.flood(b"data\n")


@attack
def id_line(peer: Peer) -> None:
    stream(peer)
    peer.send(b"id: ")
    peer.flood(b"1")


@attack
def event_line(peer: Peer) -> None:
    stream(peer)
    peer.send(b"event: ")
    peer.flood(b"e")


@attack
def unknown_line(peer: Peer) -> None:
    stream(peer)
    peer.send(b"unknown: ")
    peer.flood(b"e")


@attack
def comment_line(peer: Peer) -> None:
    stream(peer)
    peer.send(b":")
    peer.flood(b"c")


@attack
def comments(peer: Peer) -> None:
    stream(peer)
    peer.flood(b":\n")


@attack
def blank_lines(peer: Peer) -> None:
    stream(peer)
    peer.flood(b"\n")


@attack
def carriage_returns(peer: Peer) -> None:
    stream(peer)
    peer.flood(b"\r")


@attack
def ids(peer: Peer) -> None:
    """Each line changes the id, and no event comes."""
    stream(peer)
    peer.flood(b"id: 1\nid: 2\n")


@attack
def small_events(peer: Peer) -> None:
    stream(peer)
    peer.flood(b"data\n\n")


@attack
def types(peer: Peer) -> None:
    """Every event has a new type and a new id."""
    stream(peer)
    while True:
        base = time.monotonic_ns()
        peer.send(
            b"".join(b"id:%d\nevent:%d\ndata:\n\n" % (base + i, base + i) for i in range(20_000))
        )


@attack
def retry_lines(peer: Peer) -> None:
    stream(peer)
    peer.flood(b"retry: 1\nretry: 2\n")


@attack
def retry_zero(peer: Peer) -> None:
    """One event with `retry: 0` for each connection."""
    stream(peer)
    peer.send(b"retry: 0\n" + EVENT)
    peer.finish()


@attack
def retry_huge(peer: Peer) -> None:
    stream(peer)
    peer.send(b"retry: 99999999999999999999999\n" + EVENT)
    peer.finish()


@attack
def event_each(peer: Peer) -> None:
    """One event for each connection, without `retry`."""
    stream(peer)
    peer.send(EVENT)
    peer.finish()


@attack
def empty_answers(peer: Peer) -> None:
    """Every request is answered completely and at once, on a kept connection."""
    while True:
        peer.request()
        answer(peer, b"")


@attack
def retry_zero_kept(peer: Peer) -> None:
    """Like retry-zero, on a kept connection."""
    while True:
        peer.request()
        answer(peer, b"retry: 0\nid: 1\n" + EVENT)


# Long polls.


@attack
def same_cursor(peer: Peer) -> None:
    while True:
        peer.request()
        peer.send(
            head(
                peer,
                b"Last-Event-ID: 7",
                b'ETag: "1"',
                b"Last-Modified: Thu, 01 Jan 1970 00:00:01 GMT",
                b"Content-Length: 2",
            )
            + b"ok"
        )


@attack
def no_cursor(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"ok")


@attack
def changing_body(peer: Peer) -> None:
    """A page that shows the time."""
    while True:
        peer.request()
        answer(peer, b'{"time": %d}' % time.monotonic_ns())


@attack
def bodies_alternate(peer: Peer) -> None:
    while True:
        for body in (b"a", b"b"):
            peer.request()
            answer(peer, body)


@attack
def two_cursors(peer: Peer) -> None:
    """The cursor alternates between two values."""
    which = 0
    while True:
        peer.request()
        which = 1 - which
        cursor = (b"Last-Event-ID: %d" % which, b'ETag: "%d"' % which)
        date = b"Last-Modified: Thu, 01 Jan 1970 00:00:0%d GMT" % which
        answer(peer, b"ok", *cursor, date)


@attack
def cursors_vanish(peer: Peer) -> None:
    """Responses with and without a cursor, in turn."""
    number = 0
    while True:
        peer.request()
        number += 1
        answer(peer, b"ok", *([b'ETag: "%d"' % number] if number % 2 else []))


@attack
def not_modified(peer: Peer) -> None:
    while True:
        peer.request()
        peer.send(b"HTTP/1.1 304 Not Modified\r\n\r\n")


@attack
def no_content(peer: Peer) -> None:
    while True:
        peer.request()
        peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")


@attack
def gone(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", status=b"410 Gone")


@attack
def timeouts(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", status=b"408 Request Timeout")


@attack
def cursor_huge(peer: Peer) -> None:
    """A cursor that makes each request as large as the limit of a head allows."""
    number = 0
    while True:
        peer.request()
        number += 1
        answer(peer, b"ok", b'ETag: "%d%b"' % (number, b"e" * 60_000))


@attack
def parts(peer: Peer) -> None:
    """A multipart response of endless parts, each with endless fields or without a body."""
    peer.request()
    kind = b"Content-Type: multipart/mixed; boundary=b"
    peer.send(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nConnection: close\r\n\r\n")
    peer.flood(b"--b\r\n\r\n\r\n")


@attack
def part_fields(peer: Peer) -> None:
    peer.request()
    kind = b"Content-Type: multipart/mixed; boundary=b"
    peer.send(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nConnection: close\r\n\r\n--b\r\n")
    peer.flood(b"A: b\r\n")


@attack
def many_parts(peer: Peer) -> None:
    """A complete multipart response of half a million empty parts."""
    kind = b"Content-Type: multipart/mixed; boundary=b"
    body = b"--b\r\n\r\n\r\n" * 500_000 + b"--b--\r\n"
    while True:
        peer.request()
        length = b"\r\nContent-Length: %d\r\n\r\n" % len(body)
        peer.send(b"HTTP/1.1 200 OK\r\n" + kind + length + body)


@attack
def held_poll(peer: Peer) -> None:
    """A poll whose body never ends, with a byte now and then."""
    peer.request()
    peer.send(head(peer, CHUNKED))
    while True:
        peer.send(chunk(b"x"))
        time.sleep(0.05)


def multipart(peer: Peer, boundary: bytes) -> None:
    peer.request()
    kind = b"Content-Type: multipart/mixed; boundary=" + boundary
    peer.send(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nConnection: close\r\n\r\n")


@attack
def boundary_repeats(peer: Peer) -> None:
    """The longest boundary (RFC 2046 §5.1.1), and a body that almost matches it everywhere."""
    multipart(peer, b"-" * 69 + b"b")
    peer.send(b"--" + b"-" * 69 + b"b\r\n\r\n")
    peer.flood(b"-" * 1024)


@attack
def boundary_lines(peer: Peer) -> None:
    """Like boundary-repeats, with lines that almost match the boundary."""
    multipart(peer, b"-" * 69 + b"b")
    peer.send(b"--" + b"-" * 69 + b"b\r\n\r\n")
    peer.flood(b"\r\n--" + b"-" * 69)


@attack
def boundary_long(peer: Peer) -> None:
    multipart(peer, b"-" * 60_000 + b"b")
    peer.flood(b"\r\n" + b"-" * 60_001)


# Spreadbot's tokens.


@attack
def token_storm(peer: Peer) -> None:
    """Every access token is refused, and every refresh returns new ones."""
    number = 0
    while True:
        path = peer.request().split(b" ")[1]
        number += 1
        if path == b"/token":
            token = b'{"access_token": "a%d", "refresh_token": "r%d"}' % (number, number)
            answer(peer, token)
        else:
            answer(peer, b"", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized")


@attack
def token_endless(peer: Peer) -> None:
    """Every access token is refused, and the response to the refresh is endless."""
    while True:
        path = peer.request().split(b" ")[1]
        if path == b"/token":
            peer.send(head(peer, b"Connection: close") + b'{"access_token": "')
            peer.flood(b"a" * 1024)
        answer(peer, b"", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized")


@attack
def token_nested(peer: Peer) -> None:
    """Like token-endless; the response is a JSON text of nested arrays."""
    while True:
        path = peer.request().split(b" ")[1]
        if path == b"/token":
            answer(peer, b"[" * 10_000_000)
        else:
            answer(peer, b"", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized")


@attack
def token_wide(peer: Peer) -> None:
    """Like token-nested; the response is a list of millions of numbers."""
    while True:
        path = peer.request().split(b" ")[1]
        if path == b"/token":
            answer(peer, b'{"access_token":[' + b"1," * 5_000_000 + b"1]}")
        else:
            answer(peer, b"", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized")


# Spreadbot's messages as JSON.


def batch(peer: Peer, opening: bytes, unit: bytes, times: int, closing: bytes) -> None:
    """Answers polls with a batch, as gzip, and refuses other requests."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    body = compressor.compress(opening)
    many = unit * 1000
    body += b"".join(compressor.compress(many) for _ in range(times // 1000))
    body += compressor.compress(closing) + compressor.flush()
    fields = [
        b"HTTP/1.1 200 OK",
        b"Content-Type: application/vnd.spreadbot.batch+json",
        b"Content-Encoding: gzip",
        b"Content-Length: %d" % len(body),
    ]
    while True:
        request = peer.request().lower()
        if b"\r\nupgrade: websocket" in request or b"text/event-stream" in request:
            answer(peer, b"", status=b"404 Not Found")
        else:
            peer.send(b"\r\n".join(fields) + b"\r\n\r\n" + body)


@attack
def batch_numbers(peer: Peer) -> None:
    """Invalid elements, nearly as many as a batch may have."""
    batch(peer, b'{"messages":[', b"1,", 8_000_000, b"1]}")


@attack
def batch_messages(peer: Peer) -> None:
    """Messages of one byte."""
    batch(peer, b'{"messages":[', b'{"id":1,"data":1},', 900_000, b'{"data":1}]}')


@attack
def batch_keys(peer: Peer) -> None:
    batch(peer, b"{", b'"a":1,', 2_700_000, b'"messages":[{"data":1}]}')


@attack
def batch_escapes(peer: Peer) -> None:
    batch(peer, b'{"messages":[{"data":"', b"\\u0041", 2_700_000, b'"}]}')


@attack
def batch_large(peer: Peer) -> None:
    """More than a batch may have, but less than the limit of a response."""
    batch(peer, b'{"messages":[', b"1,", 31_000_000, b"1]}")
