"""Attacks by WebSocket handshakes and frames (RFC 6455, RFC 7692)."""

from __future__ import annotations

import base64
import hashlib
import struct
import time

from servers.codings import deflated
from servers.peer import Peer, attack

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, RSV1, MASK = 0x80, 0x40, 0x80
MIB = 1 << 20


def field(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return b""


def handshake(peer: Peer, *fields: bytes) -> None:
    key = field(peer.request(), b"sec-websocket-key")
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    lines = [b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade"]
    peer.send(b"\r\n".join([*lines, b"Sec-WebSocket-Accept: " + accept, *fields, b"", b""]))


def frame(first: int, payload: bytes = b"") -> bytes:
    if len(payload) < 126:
        return bytes([first, len(payload)]) + payload
    if len(payload) < 65536:
        return struct.pack(">BBH", first, 126, len(payload)) + payload
    return struct.pack(">BBQ", first, 127, len(payload)) + payload


def flood(peer: Peer, unit: bytes, first: bytes = b"") -> None:
    handshake(peer)
    peer.drain()
    peer.send(first)
    peer.flood(unit)


@attack
def ws_small_messages(peer: Peer) -> None:
    flood(peer, frame(FIN | TEXT, b"a"))


@attack
def ws_empty_messages(peer: Peer) -> None:
    flood(peer, frame(FIN | TEXT))


@attack
def ws_pings(peer: Peer) -> None:
    flood(peer, frame(FIN | PING, b"p" * 125))


@attack
def ws_pings_unread(peer: Peer) -> None:
    """The peer does not read the pongs."""
    handshake(peer)
    peer.flood(frame(FIN | PING, b"p" * 125))


@attack
def ws_pongs(peer: Peer) -> None:
    flood(peer, frame(FIN | PONG))


@attack
def ws_empty_fragments(peer: Peer) -> None:
    flood(peer, frame(CONTINUATION), frame(TEXT, b"a"))


@attack
def ws_byte_fragments(peer: Peer) -> None:
    flood(peer, frame(CONTINUATION, b"a"), frame(TEXT, b"a"))


@attack
def ws_fragments_and_pings(peer: Peer) -> None:
    flood(peer, frame(CONTINUATION, b"a") + frame(FIN | PING), frame(TEXT, b"a"))


@attack
def ws_huge_frame(peer: Peer) -> None:
    handshake(peer)
    peer.send(struct.pack(">BBQ", FIN | BINARY, 127, (1 << 63) - 1))
    peer.flood(b"x")


@attack
def ws_negative_frame(peer: Peer) -> None:
    handshake(peer)
    peer.send(struct.pack(">BBQ", FIN | BINARY, 127, 1 << 63))
    peer.flood(b"x")


@attack
def ws_promised_frame(peer: Peer) -> None:
    """Announces 64 MiB, sends little, and starts over with each connection."""
    handshake(peer)
    peer.send(struct.pack(">BBQ", FIN | BINARY, 127, 64 * MIB) + b"x" * 1000)
    peer.hold()


@attack
def ws_masked(peer: Peer) -> None:
    handshake(peer)
    peer.flood(bytes([FIN | TEXT, MASK | 1]) + b"maskA")


@attack
def ws_reserved(peer: Peer) -> None:
    handshake(peer)
    peer.flood(frame(FIN | RSV1 | 0x10 | TEXT, b"a"))


@attack
def ws_after_close(peer: Peer) -> None:
    """A close frame, then endless frames instead of the end of the connection."""
    flood(peer, frame(FIN | TEXT, b"a"), frame(FIN | CLOSE, struct.pack(">H", 1000)))


@attack
def ws_closes(peer: Peer) -> None:
    flood(peer, frame(FIN | CLOSE, struct.pack(">H", 1000)))


@attack
def ws_ignores_close(peer: Peer) -> None:
    """Never answers the client's close frame, and continues to send messages."""
    flood(peer, frame(FIN | BINARY, b"a" * 1000))


@attack
def ws_drops(peer: Peer) -> None:
    """Each connection is established and lost."""
    handshake(peer)
    peer.finish()


@attack
def ws_message_and_drop(peer: Peer) -> None:
    handshake(peer)
    peer.send(frame(FIN | TEXT, b"a"))
    peer.finish()


@attack
def ws_restarts(peer: Peer) -> None:
    """Every connection is closed with 1012, service restart."""
    handshake(peer)
    peer.send(frame(FIN | CLOSE, struct.pack(">H", 1012)))
    peer.finish()


@attack
def ws_slow_frame(peer: Peer) -> None:
    handshake(peer)
    peer.send(struct.pack(">BBQ", FIN | BINARY, 127, MIB))
    peer.drip(b"x" * 1000, 0.05)


# permessage-deflate.

DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate"


def compressed(data: bytes, times: int = 1) -> bytes:
    """One message's payload (RFC 7692 §7.2.1), which does not refer back."""
    payload = deflated(data) * times
    assert payload.endswith(b"\x00\x00\xff\xff")
    return payload[:-4]


def bomb(peer: Peer, opcode: int, block: bytes, mebibytes: int) -> None:
    message = frame(FIN | RSV1 | opcode, compressed(block, mebibytes))
    handshake(peer, DEFLATE)
    peer.drain()
    peer.flood(message)


@attack
def ws_bomb(peer: Peer) -> None:
    """Messages of 57 MiB of zeros, each below the limit; 17 of them are 1 MB."""
    bomb(peer, BINARY, bytes(MIB), 57)


@attack
def ws_bomb_text(peer: Peer) -> None:
    bomb(peer, TEXT, b"a" * MIB, 57)


@attack
def ws_bomb_15(peer: Peer) -> None:
    """Below the limit of a Python client, which holds several copies."""
    bomb(peer, BINARY, bytes(MIB), 15)


@attack
def ws_bomb_text_15(peer: Peer) -> None:
    bomb(peer, TEXT, b"a" * MIB, 15)


@attack
def ws_bomb_small(peer: Peer) -> None:
    """Messages that inflate to 1 MiB each."""
    bomb(peer, BINARY, bytes(MIB), 1)


@attack
def ws_bomb_endless(peer: Peer) -> None:
    """One message of endless fragments."""
    block = deflated(bytes(4 * MIB)) * 4
    handshake(peer, DEFLATE)
    peer.drain()
    peer.send(frame(RSV1 | BINARY, block))
    peer.flood(frame(CONTINUATION, block))


@attack
def ws_empty_blocks(peer: Peer) -> None:
    """One compressed message of empty stored blocks: it never inflates to a byte."""
    handshake(peer, DEFLATE)
    peer.drain()
    block = b"\x00\x00\x00\xff\xff" * 13_000
    peer.send(frame(RSV1 | BINARY, block))
    peer.flood(frame(CONTINUATION, block))


@attack
def ws_empty_compressed(peer: Peer) -> None:
    """Compressed messages that are empty."""
    handshake(peer, DEFLATE)
    peer.drain()
    peer.flood(frame(FIN | RSV1 | TEXT, b"\x00"))


@attack
def ws_bad_deflate(peer: Peer) -> None:
    handshake(peer, DEFLATE)
    peer.flood(frame(FIN | RSV1 | BINARY, b"\xff" * 100))


# The handshake.


@attack
def ws_head(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 101 Switching Protocols\r\n")
    peer.flood(b"A: b\r\n")


@attack
def ws_accept_wrong(peer: Peer) -> None:
    peer.request()
    lines = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n"
    peer.send(b"HTTP/1.1 101 Switching Protocols\r\n" + lines)
    peer.flood(frame(FIN | TEXT, b"a"))


@attack
def ws_extensions(peer: Peer) -> None:
    """As many extensions as the head can hold."""
    handshake(peer, b"Sec-WebSocket-Extensions: " + b"permessage-deflate;a," * 3000)
    peer.flood(frame(FIN | TEXT, b"a"))


@attack
def ws_refusal_body(peer: Peer) -> None:
    """A refusal with an endless body."""
    peer.request()
    peer.send(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n")
    peer.flood(b"x" * 1024)


@attack
def ws_refusal_slow(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 10000\r\n\r\n")
    while True:
        peer.send(b"x")
        time.sleep(0.05)


@attack
def ws_answers_with_h2(peer: Peer) -> None:
    """An HTTP/2 server answers a WebSocket handshake."""
    peer.request()
    peer.flood(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))


def envelope(peer: Peer, opening: bytes, unit: bytes, times: int, closing: bytes) -> None:
    """One message for a Spreadbot as JSON, compressed."""
    handshake(peer, DEFLATE)
    peer.drain()
    payload = deflated(opening) + deflated(unit * 1_000_000) * (times // 1_000_000)
    peer.send(frame(FIN | RSV1 | TEXT, payload + compressed(closing)))
    peer.hold()


@attack
def ws_numbers(peer: Peer) -> None:
    """An envelope of numbers, nearly as long as allowed."""
    envelope(peer, b'{"data":[', b"1,", 8_000_000, b"1]}")


@attack
def ws_escapes(peer: Peer) -> None:
    envelope(peer, b'{"data":"', b"\\u0041", 2_000_000, b'"}')


@attack
def ws_numbers_large(peer: Peer) -> None:
    """An envelope that is longer than allowed, but below the limit of a message."""
    envelope(peer, b'{"data":[', b"1,", 31_000_000, b"1]}")
