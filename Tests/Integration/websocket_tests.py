"""The library's client against servers that are strict, slow, silent or hostile."""

import asyncio
import socket
import struct
import threading
import zlib
from collections.abc import Callable

import pytest
from harness import PATIENCE_S, Probe, also_under_valgrind, expect, refused
from nchan import Nchan
from servers import Peer, Servers, frame
from websockets.asyncio.server import ServerConnection

pytestmark = also_under_valgrind


def deflate(data: bytes) -> bytes:
    """The payload of a compressed message, RFC 7692 §7.2.1."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


# Framing and control frames


def test_fragments_are_joined(make: Callable[..., Probe], servers: Servers) -> None:
    """1000 fragments, with a ping between any two, are one message."""
    pieces = [b"%d " % i for i in range(1000)]
    whole = b"".join(pieces)

    async def script(peer: Peer) -> None:
        data = peer.answer()
        for i, piece in enumerate(pieces):
            data += frame(1 if i == 0 else 0, piece, final=i == len(pieces) - 1)
            data += frame(9, b"between")
        await peer.send(data)
        for _ in pieces:
            opcode, payload = await peer.read_frame()
            expect((opcode, payload) == (10, b"between"), "no pong")
        payload = await peer.read_until_close()
        await peer.send(frame(8, payload))

    with make(servers.script(script)) as probe:
        probe.expect(r"open \[\] \[\]")
        probe.expect(f"text {len(whole)} {zlib.crc32(whole):08x}")
        probe.close()


def test_answers_ping(make: Callable[..., Probe], servers: Servers) -> None:
    async def handler(connection: ServerConnection) -> None:
        await (await connection.ping(b"are you there"))
        await connection.send("pong came")
        await connection.wait_closed()

    with make(servers.websockets(handler)) as probe:
        probe.expect("open .*")
        probe.expect("text 9 .*")
        probe.close()


def test_pong_is_reported(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo()) as probe:
        probe.expect("open .*")
        probe.ask("ping", "pong measured")
        probe.close()


# Time limits


def test_missing_pong_times_out(make: Callable[..., Probe], servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.read_to_end()

    with make(servers.script(script), ping_interval_ms=50, pong_timeout_ms=100) as probe:
        probe.expect("open .*")
        refused(probe, "RT_ERROR_TIMEOUT")
        probe.expect("close .* unclean.*")
        probe.end()


@pytest.mark.parametrize("pong", [b"", frame(0xA, b"not yours")], ids=["none", "another"])
def test_messages_without_pongs_keep_a_connection(
    make: Callable[..., Probe], servers: Servers, pong: bytes
) -> None:
    """Any bytes prove that the peer lives: here each ping is answered by a message only."""
    count = 10

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        for _ in range(count):
            await peer.read_frame()
            await peer.send(pong + frame(1, b"alive"))
        await peer.send(frame(8, await peer.read_until_close()))

    options = {"ping_interval_ms": 300, "pong_timeout_ms": 2000}
    with make(servers.script(script), **options) as probe:
        probe.expect("open .*")
        for _ in range(count):
            probe.expect("text 5 .*")
        probe.close()


def test_part_of_a_message_keeps_a_connection(make: Callable[..., Probe], servers: Servers) -> None:
    """A message over a slow link takes longer than a pong may take."""
    count = 10

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.send(bytes((0x82, count)))
        for number in range(count):
            await peer.read_frame()
            await peer.send(bytes((number,)))
        await peer.send(frame(8, await peer.read_until_close()))

    options = {"ping_interval_ms": 300, "pong_timeout_ms": 2000}
    with make(servers.script(script), **options) as probe:
        probe.expect("open .*")
        probe.expect(f"binary {count} .*")
        probe.close()


def test_only_pongs_count_if_they_are_required(
    make: Callable[..., Probe], servers: Servers
) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        while True:
            await peer.read_frame()
            await peer.send(frame(1, b"alive") + frame(0xA, b"not yours"))

    options = {"ping_interval_ms": 50, "pong_timeout_ms": 200, "require_pong": 1}
    with make(servers.script(script), **options) as probe:
        probe.expect("open .*")
        probe.expect("text 5 .*")
        while (line := probe.next()).startswith("text 5 "):
            pass
        expect(line.startswith("error RT_ERROR_TIMEOUT "), line)
        probe.expect("close .* unclean.*")
        probe.end()


def test_missing_close_times_out(make: Callable[..., Probe], servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.read_to_end()

    with make(servers.script(script), close_timeout_ms=100) as probe:
        probe.expect("open .*")
        probe.tell("close 1000")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_silent_server_times_out(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.script(Peer.read_to_end), open_timeout_ms=300) as probe:
        refused(probe, "RT_ERROR_TIMEOUT")
        probe.expect("close 1006 unclean.*")
        probe.end()


# Size limits


def test_header_limit(make: Callable[..., Probe], servers: Servers) -> None:
    """An endless response ends at the limit, without being stored."""

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 101 Switching Protocols\r\n")
        while True:
            await peer.send(b"X-More: " + b"x" * 1000 + b"\r\n")

    with make(servers.script(script), max_header_bytes=4096) as probe:
        refused(probe, "RT_ERROR_TOO_LARGE", text="4096")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_message_limit(make: Callable[..., Probe], servers: Servers) -> None:
    """A message at the limit is delivered; one byte more is refused with 1009."""
    codes: list[int] = []
    ended = threading.Event()

    async def handler(connection: ServerConnection) -> None:
        await connection.send("x" * 1000)
        await connection.send("x" * 1001)
        await connection.wait_closed()
        codes.append(connection.close_code or 0)
        ended.set()

    with make(servers.websockets(handler), max_message_bytes=1000) as probe:
        probe.expect("open .*")
        probe.expect("text 1000 .*")
        refused(probe, "RT_ERROR_TOO_LARGE", text="1000")
        probe.expect("close 1009 unclean.*")
        probe.end()
    expect(ended.wait(PATIENCE_S), "the server's connection does not end")
    expect(codes == [1009], f"the server saw {codes}")


def inflating(payload: bytes) -> Callable[[Peer], object]:
    """Agrees to compression and sends one compressed message."""

    async def script(peer: Peer) -> None:
        expect("permessage-deflate" in peer.header("Sec-WebSocket-Extensions"), "no offer")
        await peer.send(peer.answer("Sec-WebSocket-Extensions: permessage-deflate"))
        await peer.send(frame(2, payload, rsv1=True))
        payload_of_close = await peer.read_until_close()
        await peer.send(frame(8, payload_of_close))

    return script


def test_inflate_ratio_limit(make: Callable[..., Probe], servers: Servers) -> None:
    bomb = deflate(bytes(8 << 20))
    with make(servers.script(inflating(bomb)), max_inflate_ratio=20) as probe:
        probe.expect("open .*")
        refused(probe, "RT_ERROR_TOO_LARGE")
        probe.expect("close 1009 unclean.*")
        probe.end()


def test_inflate_within_ratio(make: Callable[..., Probe], servers: Servers) -> None:
    plain = bytes(1 << 20)
    with make(servers.script(inflating(deflate(plain))), max_inflate_ratio=1032) as probe:
        probe.expect("open .*")
        probe.expect(f"binary {len(plain)} {zlib.crc32(plain):08x}")
        probe.close()


def test_invalid_utf8_in_a_fragment(make: Callable[..., Probe], servers: Servers) -> None:
    """It fails at the bad byte, although the message never ends."""

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"good \xff", final=False))
        payload = await peer.read_until_close()
        await peer.send(frame(8, payload))

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        refused(probe, "RT_ERROR_PROTOCOL", text="UTF-8")
        probe.expect("close 1007 unclean.*")
        probe.end()


# Handshake and end


def test_subprotocol_is_selected(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo(subprotocols=["chat", "other"]), subprotocol="chat") as probe:
        probe.expect(r"open \[chat\] .*")
        probe.close()


def test_subprotocol_not_offered_is_refused(make: Callable[..., Probe], servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer("Sec-WebSocket-Protocol: unasked"))
        await peer.read_to_end()

    with make(servers.script(script), subprotocol="chat") as probe:
        refused(probe, "RT_ERROR_HANDSHAKE", text="unasked")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_http_status_is_reported(make: Callable[..., Probe], nchan: Nchan) -> None:
    with make(nchan.url("/busy")) as probe:
        probe.expect("refused 503 .*")
        refused(probe, "RT_ERROR_HTTP_STATUS", text="503")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_answer_comes_byte_by_byte(make: Callable[..., Probe], servers: Servers) -> None:
    """Handshake, messages and close frame, each byte in its own segment."""

    async def send_slowly(peer: Peer, data: bytes) -> None:
        for i in range(len(data)):
            await peer.send(data[i : i + 1])
            await asyncio.sleep(0)

    async def script(peer: Peer) -> None:
        peer.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await send_slowly(peer, peer.answer() + frame(1, "größer".encode()) + frame(2, b"x" * 200))
        await send_slowly(peer, frame(8, await peer.read_until_close()))

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        probe.expect(f"text 8 {zlib.crc32('größer'.encode()):08x}")
        probe.expect(f"binary 200 {zlib.crc32(b'x' * 200):08x}")
        probe.close()


def test_reset_is_reported(make: Callable[..., Probe], servers: Servers) -> None:
    """The peer's kernel sends RST in the middle of a frame."""

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"whole") + frame(1, b"half of it")[:5])
        await peer.read_frame()
        # Closing with SO_LINGER 0 sends RST instead of FIN.
        linger = struct.pack("ii", 1, 0)
        peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        probe.expect("text 5 .*")
        probe.ask("text 2 1", "sent .*")
        refused(probe, "RT_ERROR_CONNECTION_LOST")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_plain_server_refuses_tls(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo().replace("ws://", "wss://")
    with make(url) as probe:
        refused(probe, "RT_ERROR_TLS")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_tls_server_refuses_plain(make: Callable[..., Probe], servers: Servers) -> None:
    url = servers.echo(servers.tls()).replace("wss://localhost", "ws://127.0.0.1")
    with make(url) as probe:
        found = probe.expect(r"error (\w+) .*")[1]
        # The client receives a TLS alert, or nothing at all.
        expect(found in ("RT_ERROR_HANDSHAKE", "RT_ERROR_CONNECTION_LOST"), f"received {found}")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_other_protocol_is_refused(make: Callable[..., Probe], servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await peer.read_to_end()

    with make(servers.script(script)) as probe:
        refused(probe, "RT_ERROR_HANDSHAKE")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_lost_connection_is_reported(make: Callable[..., Probe], servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"last words"))

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        probe.expect("text 10 .*")
        refused(probe, "RT_ERROR_CONNECTION_LOST")
        probe.expect("close 1006 unclean.*")
        probe.end()


def test_close_code_and_reason_are_reported(make: Callable[..., Probe], servers: Servers) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.close(4001, "enough")

    with make(servers.websockets(handler)) as probe:
        probe.expect("open .*")
        probe.expect("close 4001 clean enough")
        probe.end()


def test_free_says_going_away(make: Callable[..., Probe], servers: Servers) -> None:
    codes: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        codes.append(int.from_bytes((await peer.read_until_close())[:2], "big"))
        await peer.send(frame(1, b"seen"))

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        probe.tell("free")
        probe.end()
        servers.settle()
    expect(codes == [1001], f"the server saw {codes}")


def test_authorization_reaches_nchan(make: Callable[..., Probe], nchan: Nchan) -> None:
    with make(nchan.url("/tok/a"), authorization="Bearer good") as probe:
        probe.expect("open .*")
        probe.close()
    with make(nchan.url("/tok/a"), authorization="Bearer bad") as probe:
        probe.expect("refused 401 .*")
        refused(probe, "RT_ERROR_HTTP_STATUS", text="401")
        probe.expect("close 1006 unclean.*")
        probe.end()
