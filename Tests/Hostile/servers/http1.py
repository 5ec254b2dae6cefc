"""Attacks by the framing of HTTP/1.1, against event sources, long polls and requests."""

from __future__ import annotations

import time

from servers.peer import MARKS, Peer, attack

EVENT = b"data: event\n\n"


def head(peer: Peer, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """The head of a response that the transport accepts, without framing."""
    kind = b"text/event-stream" if peer.transport == "events" else b"text/plain"
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNKED = b"Transfer-Encoding: chunked"


def answer(peer: Peer, body: bytes, *fields: bytes, status: bytes = b"200 OK") -> None:
    peer.send(head(peer, b"Content-Length: %d" % len(body), *fields, status=status) + body)


# The head.


@attack
def head_fields(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.flood(b"A: b\r\n")


@attack
def head_line(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nA: ")
    peer.flood(b"a")


@attack
def head_fold(peer: Peer) -> None:
    """One endlessly continued field (obs-fold, RFC 9112 §5.2)."""
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nA: b")
    peer.flood(b"\r\n c")


@attack
def status_line(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 ")
    peer.flood(b"O")


@attack
def empty_lines(peer: Peer) -> None:
    """Empty lines instead of a status line."""
    peer.request()
    peer.flood(b"\r\n")


@attack
def interim(peer: Peer) -> None:
    """Endless interim responses (RFC 9110 §15.2)."""
    peer.request()
    peer.flood(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")


@attack
def nul_in_head(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"X: a\0b", b"Content-Length: 2") + b"ok")
    peer.hold()


@attack
def garbage(peer: Peer) -> None:
    peer.request()
    peer.flood(bytes(range(128, 256)))


@attack
def slow_head(peer: Peer) -> None:
    peer.request()
    peer.drip(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000, 0.05)


@attack
def silent(peer: Peer) -> None:
    peer.request()
    peer.hold()


# Content-Length and Transfer-Encoding.


@attack
def two_lengths(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Length: 2", b"Content-Length: 5") + b"ok")
    peer.finish()


@attack
def length_overflow(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Length: 18446744073709551618") + b"ok")
    peer.finish()


@attack
def length_negative(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Length: -1") + b"ok")
    peer.finish()


@attack
def cut_body(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Length: 1000") + b"ok")
    peer.finish()


@attack
def cut_chunks(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + chunk(EVENT))
    peer.finish()


@attack
def cut_without_length(peer: Peer) -> None:
    """Over TLS: a body without a length, cut without close_notify."""
    peer.request()
    peer.send(head(peer, b"Connection: close") + EVENT)
    peer.cut()


@attack
def reset_body(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Connection: close") + EVENT)
    time.sleep(0.05)
    peer.reset()


@attack
def endless_body(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Connection: close"))
    peer.flood(b"x" * 1024)


@attack
def slow_body(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Length: 100000"))
    peer.drip(b":" * 100_000, 0.05)


# Chunks (RFC 9112 §7.1).


@attack
def trailers(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + chunk(EVENT) + b"0\r\n")
    peer.flood(b"A: b\r\n")


@attack
def trailer_line(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + chunk(EVENT) + b"0\r\nA: ")
    peer.flood(b"a")


@attack
def trailers_in_pieces(peer: Peer) -> None:
    """Each response's trailers are below every limit, and there are many responses."""
    trailer = b"A: " + b"b" * 8000 + b"\r\n"
    while True:
        peer.request()
        peer.send(head(peer, CHUNKED) + b"0\r\n" + trailer * 8 + b"\r\n")


@attack
def chunk_overflow(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + b"10000000000000005\r\n" + EVENT)
    peer.hold()


@attack
def chunk_negative(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + b"-5\r\n" + EVENT)
    peer.hold()


@attack
def chunk_0x(peer: Peer) -> None:
    """libcurl reads it as a size of 0 and a trailer without a colon."""
    peer.request()
    peer.send(head(peer, CHUNKED) + b"0x5\r\nhello\r\n0\r\n\r\n")
    peer.hold()


@attack
def chunk_zeros(peer: Peer) -> None:
    """A chunk size with endless leading zeros."""
    peer.request()
    peer.send(head(peer, CHUNKED))
    peer.flood(b"0")


@attack
def chunk_extension(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED) + b"5;a=")
    peer.flood(b"a")


@attack
def chunk_extensions(peer: Peer) -> None:
    """A small body, with thousands of times as many bytes in extensions."""
    peer.request()
    peer.send(head(peer, CHUNKED))
    peer.flood(b"1;" + b"a" * 8000 + b"\r\n:\r\n")


@attack
def chunk_bytes(peer: Peer) -> None:
    peer.request()
    peer.send(head(peer, CHUNKED))
    peer.flood(b"1\r\n:\r\n")


# Redirects.


@attack
def redirects(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", b"Location: /again", status=b"307 Again")


@attack
def redirect_long(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", b"Location: /" + b"a" * 100_000, status=b"302 Found")


@attack
def redirect_body(peer: Peer) -> None:
    """A redirect with an endless body of its own."""
    peer.request()
    peer.send(head(peer, b"Location: /next", b"Connection: close", status=b"302 Found"))
    peer.flood(b"x" * 1024)


def follow(peer: Peer, location: bytes, path: bytes) -> None:
    """Answers a redirect to `location`, then 200 at `path` and 404 elsewhere."""
    while True:
        first = peer.request().split(b"\r\n")[0].split(b" ")[1]
        if first == path:
            answer(peer, EVENT)
        elif first.startswith(b"/new"):
            answer(peer, first, status=b"404 Not Found")
        else:
            answer(peer, b"", b"Location: " + location, status=b"302 Found")


@attack
def redirect_space(peer: Peer) -> None:
    follow(peer, b"/new/a b", b"/new/a%20b")


@attack
def redirect_latin1(peer: Peer) -> None:
    follow(peer, b"/new/caf\xe9", b"/new/caf%E9")


# Responses that make the client ask again at once.


@attack
def refusals(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", b"Retry-After: 0", status=b"503 Later")


@attack
def unauthorized(peer: Peer) -> None:
    """401, whatever the credentials are."""
    while True:
        peer.request()
        answer(peer, b"", b'WWW-Authenticate: Basic realm="a"', status=b"401 Unauthorized")


@attack
def hangs_up(peer: Peer) -> None:
    """Accepts, reads the request, and closes."""
    peer.request()
    peer.finish()


@attack
def resets(peer: Peer) -> None:
    peer.request()
    peer.reset()


@attack
def retry_after_huge(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"", b"Retry-After: " + b"9" * 1000, status=b"503 Later")


# Kept connections.


@attack
def idle_flood(peer: Peer) -> None:
    """A complete response, then endless bytes that no request asked for."""
    peer.request()
    answer(peer, EVENT)
    peer.flood(b"x" * 1024)


@attack
def idle_drip(peer: Peer) -> None:
    peer.request()
    answer(peer, EVENT)
    peer.drip(b"x" * 1000, 0.02)


@attack
def idle_close(peer: Peer) -> None:
    peer.request()
    answer(peer, EVENT)
    peer.finish()


@attack
def second_answer(peer: Peer) -> None:
    """A second response after the first, which must not become the response to the next request."""
    while True:
        peer.request()
        answer(peer, b"right")
        answer(peer, b"wrong")
        peer.server.count(MARKS)


@attack
def second_answer_later(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"right")
        time.sleep(0.1)
        answer(peer, b"wrong")
        peer.server.count(MARKS)


@attack
def switches(peer: Peer) -> None:
    """101 instead of a response, then frames of another protocol."""
    peer.request()
    peer.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    peer.flood(b"\x81\x01x")


@attack
def no_tls(peer: Peer) -> None:
    """Never answers the client's first message, for a client that expects TLS."""
    peer.hold()


@attack
def plain_text(peer: Peer) -> None:
    """Answers the client's first TLS message with endless text."""
    peer.receive()
    peer.flood(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@attack
def connect_head(peer: Peer) -> None:
    """A proxy that answers CONNECT endlessly."""
    peer.request()
    peer.send(b"HTTP/1.1 200 Connection established\r\n")
    peer.flood(b"A: b\r\n")


@attack
def connect_body(peer: Peer) -> None:
    """A proxy that refuses CONNECT with an endless body."""
    peer.request()
    peer.send(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n")
    peer.flood(b"x" * 1024)


@attack
def connect_slow(peer: Peer) -> None:
    peer.request()
    peer.drip(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000, 0.05)


@attack
def connect_refused(peer: Peer) -> None:
    while True:
        peer.request()
        peer.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
