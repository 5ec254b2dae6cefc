"""Attacks by content codings: few bytes on the wire, many or none when decoded.

The bombs are written by hand if the coding allows it, so that they are endless and cost nothing: a
block is made once and repeated.
"""

from __future__ import annotations

import ctypes
import gzip
import struct
import zlib

from servers.http1 import answer, chunk, head
from servers.peer import Peer, attack

#: RFC 1952 §2.3: magic, deflate, no flags, no time, no extra flags, unknown system.
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
MIB = 1 << 20


def coded(peer: Peer, coding: bytes, *fields: bytes) -> None:
    peer.request()
    peer.send(head(peer, b"Content-Encoding: " + coding, b"Connection: close", *fields))


def deflated(data: bytes) -> bytes:
    """Deflate blocks that do not refer back, so that they can be repeated."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def content(peer: Peer, count: int) -> bytes:
    """The content of a bomb; for event sources comments, so that only a turn's limit applies."""
    line = b":" + b"c" * 1022 + b"\n" if peer.transport == "events" else b"\0" * 1024
    return line * (count // len(line))


@attack
def gzip_bomb(peer: Peer) -> None:
    blocks = deflated(content(peer, 4 * MIB)) * 4
    coded(peer, b"gzip")
    peer.send(GZIP_HEAD)
    peer.flood(blocks)


@attack
def gzip_line(peer: Peer) -> None:
    """For event sources: one endless line."""
    blocks = deflated(b"x" * 4 * MIB) * 4
    coded(peer, b"gzip")
    peer.send(GZIP_HEAD + deflated(b"data:"))
    peer.flood(blocks)


@attack
def gzip_events(peer: Peer) -> None:
    """For event sources: endless events, 1,000 times as many bytes as on the wire."""
    blocks = deflated(b"data:x\n\n" * (MIB // 2)) * 4
    coded(peer, b"gzip")
    peer.send(GZIP_HEAD)
    peer.flood(blocks)


@attack
def deflate_bomb(peer: Peer) -> None:
    blocks = deflated(content(peer, 4 * MIB)) * 4
    coded(peer, b"deflate")
    peer.send(b"\x78\x9c")
    peer.flood(blocks)


@attack
def gzip_twice(peer: Peer) -> None:
    """A bomb inside a bomb."""
    inner = GZIP_HEAD + deflated(content(peer, 4 * MIB)) * 64
    body = gzip.compress(inner)
    coded(peer, b"gzip, gzip")
    peer.send(body)
    peer.cut()


@attack
def transfer_gzip_bomb(peer: Peer) -> None:
    """A bomb as a transfer coding (RFC 9112 §7), which our clients never ask for."""
    blocks = deflated(content(peer, 4 * MIB)) * 4
    peer.request()
    peer.send(head(peer, b"Transfer-Encoding: gzip, chunked") + chunk(GZIP_HEAD))
    peer.flood(chunk(blocks))


@attack
def gzip_many_times(peer: Peer) -> None:
    """As many codings as the head can hold."""
    coded(peer, b", ".join([b"gzip"] * 2000))
    peer.flood(b"x")


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def zstd_block(kind: int, size: int, data: bytes) -> bytes:
    """RFC 8878 §3.1.1.2: a block that is not the last; 0 is raw, 1 repeats one byte."""
    return struct.pack("<I", size << 3 | kind << 1)[:3] + data


@attack
def zstd_bomb(peer: Peer) -> None:
    """Four bytes become 128 KiB."""
    coded(peer, b"zstd")
    # A window of 2 MiB: exponent 11, mantissa 0 (§3.1.1.1.2).
    peer.send(ZSTD_MAGIC + b"\x00" + bytes([11 << 3]))
    peer.flood(zstd_block(1, 128 << 10, b":"))


@attack
def zstd_window(peer: Peer) -> None:
    """A window of 128 MiB, the largest that libzstd accepts by itself, filled completely."""
    coded(peer, b"zstd")
    peer.send(ZSTD_MAGIC + b"\x00" + bytes([17 << 3]))
    peer.flood(zstd_block(1, 128 << 10, b":"))


@attack
def zstd_nothing(peer: Peer) -> None:
    """Endless empty blocks."""
    coded(peer, b"zstd")
    peer.send(ZSTD_MAGIC + b"\x00" + bytes([11 << 3]))
    peer.flood(zstd_block(0, 0, b""))


@attack
def zstd_skippable(peer: Peer) -> None:
    """Frames that decode to nothing (RFC 8878 §3.1.2)."""
    coded(peer, b"zstd")
    peer.flood(b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip")


def brotli(data: bytes) -> bytes:
    """Compresses all of `data` with the library that matches libcurl's; Python has none."""
    library = ctypes.CDLL("libbrotlienc.so.1")
    size = ctypes.c_size_t(len(data) + 1024)
    output = ctypes.create_string_buffer(size.value)
    # Quality, window, mode generic.
    ok = library.BrotliEncoderCompress(
        1, 22, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(size), output
    )
    assert ok, "BrotliEncoderCompress failed"
    return output.raw[: size.value]


@attack
def brotli_bomb(peer: Peer) -> None:
    """128 MiB in few bytes."""
    body = brotli(content(peer, 128 * MIB))
    coded(peer, b"br")
    peer.send(body)
    peer.finish()


@attack
def brotli_nothing(peer: Peer) -> None:
    """Metadata blocks of no bytes (RFC 7932 §9.2): ISLAST 0, MNIBBLES 3, reserved 0, MSKIPBYTES 0.

    Six bits a block and padding to a byte; the first byte has WBITS, 16, before them.
    """
    coded(peer, b"br")
    peer.send(b"\x0c")
    peer.flood(b"\x06")


@attack
def gzip_members(peer: Peer) -> None:
    """Two members (RFC 1952 §2.2); the body is complete with the second one."""
    while True:
        peer.request()
        body = gzip.compress(b"data: one\n\n") + gzip.compress(b"data: two\n\n")
        answer(peer, body, b"Content-Encoding: gzip")


@attack
def gzip_empty_members(peer: Peer) -> None:
    """Endless members that decode to nothing."""
    member = gzip.compress(b"")
    coded(peer, b"gzip")
    peer.flood(member)


@attack
def gzip_small_members(peer: Peer) -> None:
    """Endless members of one byte each: each sets up a decoder again."""
    member = gzip.compress(b":")
    coded(peer, b"gzip")
    peer.flood(member)


@attack
def gzip_empty_blocks(peer: Peer) -> None:
    """Endless stored blocks of no bytes (RFC 1951 §3.2.4)."""
    coded(peer, b"gzip")
    peer.send(GZIP_HEAD)
    peer.flood(b"\x00\x00\x00\xff\xff")


@attack
def gzip_name(peer: Peer) -> None:
    """An endless file name (RFC 1952 §2.3.1, FNAME)."""
    coded(peer, b"gzip")
    peer.send(GZIP_HEAD[:3] + b"\x08" + GZIP_HEAD[4:])
    peer.flood(b"n")


@attack
def gzip_cut(peer: Peer) -> None:
    """The gzip stream ends too early, although the HTTP body is complete."""
    while True:
        peer.request()
        body = gzip.compress(b"data: %b\n\n" % bytes(range(32, 127)))
        answer(peer, body[:-12], b"Content-Encoding: gzip")


@attack
def gzip_damaged(peer: Peer) -> None:
    while True:
        peer.request()
        body = bytearray(gzip.compress(b"data: %b\n\n" % bytes(range(32, 127))))
        body[-8] ^= 0xFF
        answer(peer, bytes(body), b"Content-Encoding: gzip")


@attack
def gzip_rest(peer: Peer) -> None:
    """Bytes after the last member that are not a member."""
    while True:
        peer.request()
        answer(peer, gzip.compress(b"data: one\n\n") + b"rest" * 10, b"Content-Encoding: gzip")


@attack
def coding_unknown(peer: Peer) -> None:
    while True:
        peer.request()
        answer(peer, b"whatever", b"Content-Encoding: unheard-of")
