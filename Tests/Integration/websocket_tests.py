"""The library's client against servers that are strict, slow, silent or hostile."""

import functools
import threading
import zlib
from collections.abc import Callable

from harness import PATIENCE_S, Build, Probe, Suite, expect
from nchan import Nchan
from servers import Peer, Servers, frame
from websockets.asyncio.server import ServerConnection
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory


def add(suite: Suite, build: Build, servers: Servers, nchan: Nchan) -> None:
    tests: list[Callable[..., None]] = [
        fragments_are_joined,
        answers_ping,
        pong_is_told,
        missing_pong_times_out,
        missing_close_times_out,
        silent_server_times_out,
        header_limit,
        message_limit,
        inflate_ratio_limit,
        inflate_within_ratio,
        invalid_utf8_in_a_fragment,
        subprotocol_is_selected,
        subprotocol_not_offered_is_refused,
        http_status_is_told,
        lost_connection_is_told,
        close_code_and_reason_come,
        free_says_going_away,
        authorization_reaches_nchan,
        pause_loses_nothing,
        drained_follows_high_water,
        send_limit_is_told,
        frames_are_split,
    ]
    for test in tests:
        for grind in (False, True):
            if grind and test in (pause_loses_nothing, drained_follows_high_water):
                continue  # Tens of megabytes take minutes under valgrind.
            name = test.__name__.replace("_", " ") + (", valgrind" if grind else "")
            probe = functools.partial(Probe, build, valgrind=grind)
            suite.add(name, functools.partial(test, probe, servers, nchan))
    add_deflate(suite, build, servers)


def refused(probe: Probe, status: str, *, text: str = "") -> None:
    """The connection fails with this status, and the text says why."""
    found = probe.expect(r"error (\w+) (.*)")
    expect(found[1] == status, f"expected {status}, received {found[0]!r}")
    expect(text in found[2], f"expected {text!r} in {found[2]!r}")


def deflate(data: bytes) -> bytes:
    """The payload of a compressed message, RFC 7692 §7.2.1."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


# Framing and control frames


def fragments_are_joined(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
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


def answers_ping(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    async def handler(connection: ServerConnection) -> None:
        await (await connection.ping(b"are you there"))
        await connection.send("pong came")
        await connection.wait_closed()

    with make(servers.websockets(handler)) as probe:
        probe.expect("open .*")
        probe.expect("text 9 .*")
        probe.close()


def pong_is_told(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    with make(servers.echo()) as probe:
        probe.expect("open .*")
        probe.ask("ping", "pong measured")
        probe.close()


# Time limits


def missing_pong_times_out(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.read_to_end()

    with make(servers.script(script), ping_interval_ms=50, pong_timeout_ms=100) as probe:
        probe.expect("open .*")
        refused(probe, "RT_ERROR_TIMEOUT")
        probe.expect("close .* unclean.*")
        probe.end()


def missing_close_times_out(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.read_to_end()

    with make(servers.script(script), close_timeout_ms=100) as probe:
        probe.expect("open .*")
        probe.tell("close 1000")
        probe.expect("close 1006 unclean.*")
        probe.end()


def silent_server_times_out(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    with make(servers.script(Peer.read_to_end), open_timeout_ms=300) as probe:
        refused(probe, "RT_ERROR_TIMEOUT")
        probe.expect("close 1006 unclean.*")
        probe.end()


# Limits of size


def header_limit(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    """An answer that never ends is given up at the limit, not stored."""

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 101 Switching Protocols\r\n")
        while True:
            await peer.send(b"X-More: " + b"x" * 1000 + b"\r\n")

    with make(servers.script(script), max_header_bytes=4096) as probe:
        refused(probe, "RT_ERROR_TOO_LARGE", text="4096")
        probe.expect("close 1006 unclean.*")
        probe.end()


def message_limit(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    """A message at the limit comes; one byte more is refused with 1009."""
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


def inflate_ratio_limit(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    bomb = deflate(bytes(8 << 20))
    with make(servers.script(inflating(bomb)), max_inflate_ratio=20) as probe:
        probe.expect("open .*")
        refused(probe, "RT_ERROR_TOO_LARGE")
        probe.expect("close 1009 unclean.*")
        probe.end()


def inflate_within_ratio(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    plain = bytes(1 << 20)
    with make(servers.script(inflating(deflate(plain))), max_inflate_ratio=1032) as probe:
        probe.expect("open .*")
        probe.expect(f"binary {len(plain)} {zlib.crc32(plain):08x}")
        probe.close()


def invalid_utf8_in_a_fragment(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    """It fails at the bad byte: the message has no end."""

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


def subprotocol_is_selected(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    with make(servers.echo(subprotocols=["chat", "other"]), subprotocol="chat") as probe:
        probe.expect(r"open \[chat\] .*")
        probe.close()


def subprotocol_not_offered_is_refused(
    make: Callable[..., Probe], servers: Servers, _: Nchan
) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer("Sec-WebSocket-Protocol: unasked"))
        await peer.read_to_end()

    with make(servers.script(script), subprotocol="chat") as probe:
        refused(probe, "RT_ERROR_HANDSHAKE", text="unasked")
        probe.expect("close 1006 unclean.*")
        probe.end()


def http_status_is_told(make: Callable[..., Probe], _: Servers, nchan: Nchan) -> None:
    with make(nchan.url("/busy")) as probe:
        refused(probe, "RT_ERROR_HTTP_STATUS", text="503")
        probe.expect("close 1006 unclean.*")
        probe.end()


def lost_connection_is_told(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"last words"))

    with make(servers.script(script)) as probe:
        probe.expect("open .*")
        probe.expect("text 10 .*")
        refused(probe, "RT_ERROR_CONNECTION_LOST")
        probe.expect("close 1006 unclean.*")
        probe.end()


def close_code_and_reason_come(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.close(4001, "enough")

    with make(servers.websockets(handler)) as probe:
        probe.expect("open .*")
        probe.expect("close 4001 clean enough")
        probe.end()


def free_says_going_away(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
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


def authorization_reaches_nchan(make: Callable[..., Probe], _: Servers, nchan: Nchan) -> None:
    with make(nchan.url("/tok/a"), authorization="Bearer good") as probe:
        probe.expect("open .*")
        probe.close()
    with make(nchan.url("/tok/a"), authorization="Bearer bad") as probe:
        refused(probe, "RT_ERROR_HTTP_STATUS", text="401")
        probe.expect("close 1006 unclean.*")
        probe.end()


# Flow


def pause_loses_nothing(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    """Far more than the sockets hold is sent; none of it comes while receiving is paused."""
    messages = [bytes([i % 256]) * 100_000 for i in range(400)]
    first_was_sent = threading.Event()
    checksum = functools.reduce(lambda value, data: zlib.crc32(data, value), messages, 0)

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        for message in messages:
            await connection.send(message)
            first_was_sent.set()
        await connection.wait_closed()

    with make(servers.websockets(handler, compression=None), print=False) as probe:
        probe.expect("open .*")
        probe.ask("pause", "paused")
        probe.ask("text 2 1", "sent .*")
        # On loopback what is sent is at the client's socket: only pausing keeps it there.
        expect(first_was_sent.wait(PATIENCE_S), "the server does not send")
        probe.ask("count", "count 0 .*")
        probe.tell("resume")
        for _ in range(3):
            probe.ask("pause", "paused")
            before = probe.ask("count", r"count (\d+) .*")[1]
            after = probe.ask("count", r"count (\d+) .*")[1]
            expect(before == after, f"{after} messages while paused, {before} before")
            probe.tell("resume")
        total = len(messages)
        while (found := probe.ask("count", r"count (\d+) (\d+) (\w+)"))[1] != str(total):
            expect(int(found[1]) < total, f"{found[1]} messages of {total}")
        expect(int(found[2]) == 100_000 * total, f"{found[2]} bytes")
        expect(found[3] == f"{checksum:08x}", "other bytes than were sent")
        probe.close()


def drained_follows_high_water(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    """The server reads only when it is told to; then the buffer empties, and that is told."""
    gate = servers.event()
    received: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await gate.wait()
        received.extend([len((await peer.read_frame())[1]) for _ in range(3)])
        await peer.send(frame(8, await peer.read_until_close()))

    options = {"send_high_water_bytes": 100_000, "compression": False}
    with make(servers.script(script), **options) as probe:
        probe.expect("open .*")
        for _ in range(3):
            probe.ask("binary 8000000 1", "sent .*")
        buffered = int(probe.ask("buffered", r"buffered (\d+)")[1])
        expect(buffered > 100_000, f"only {buffered} bytes are buffered")
        servers.set(gate)
        probe.expect("drained")
        probe.ask("buffered", "buffered 0")
        probe.close()
    expect(received == [8_000_000] * 3, f"the server received {received}")


def send_limit_is_told(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    with make(servers.echo(), send_limit_bytes=10_000, print=False) as probe:
        probe.expect("open .*")
        # Both commands come in one read, so that nothing is written between them.
        probe.tell("binary 9000 1\nbinary 9000 2")
        probe.expect("sent .*")
        probe.expect("sent .*")
        probe.expect("failed RT_ERROR_BUFFER_FULL .*")
        probe.close()


def frames_are_split(make: Callable[..., Probe], servers: Servers, _: Nchan) -> None:
    sizes: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        while sum(sizes) < 2500:
            sizes.append(len((await peer.read_frame())[1]))
        await peer.send(frame(1, b"done"))
        await peer.send(frame(8, await peer.read_until_close()))

    with make(servers.script(script), max_frame_bytes=1000, compression=False) as probe:
        probe.expect("open .*")
        probe.ask("text 2500 1", "sent .*")
        probe.expect("text 4 .*")
        probe.close()
    expect(sizes == [1000, 1000, 500], f"frames of {sizes} bytes")


# permessage-deflate, RFC 7692 §7.1

OFFERS: dict[str, dict[str, object]] = {
    "default": {},
    "server_no_context_takeover": {"server_no_context_takeover": True},
    "client_no_context_takeover": {"client_no_context_takeover": True},
    "server_max_window_bits": {"server_max_window_bits": 9},
    "client_max_window_bits": {"client_max_window_bits": 9},
    "all four": {
        "server_no_context_takeover": True,
        "client_no_context_takeover": True,
        "server_max_window_bits": 10,
        "client_max_window_bits": 10,
    },
}


def add_deflate(suite: Suite, build: Build, servers: Servers) -> None:
    for side in ("client", "server"):
        for name, parameters in OFFERS.items():
            for grind in (False, True):
                test = functools.partial(deflates, build, servers, side, parameters, grind)
                suffix = ", valgrind" if grind else ""
                suite.add(f"permessage-deflate: {side} asks for {name}{suffix}", test)


def deflates(
    build: Build, servers: Servers, side: str, parameters: dict[str, object], grind: bool
) -> None:
    """Messages of many sizes go both ways, whichever side asks for the parameters."""
    options: dict[str, object] = {}
    if side == "server":
        factory = ServerPerMessageDeflateFactory(**parameters)  # type: ignore[arg-type]
        url = servers.echo(compression=None, extensions=[factory])
    else:
        url = servers.echo()
        options = parameters
    with Probe(build, url, grind, compression_min_bytes=0, **options) as probe:
        agreed = probe.expect(r"open \[\] \[(.*)\]")[1]
        expect(agreed.startswith("permessage-deflate"), f"the server agreed to {agreed!r}")
        for name, value in parameters.items():
            text = name if value is True else f"{name}={value}"
            expect(text in agreed, f"{text} is not in {agreed!r}")
        for seed, length in enumerate((0, 1, 125, 126, 5000, 65535, 65536, 300_000)):
            for kind in ("text", "binary"):
                checksum = probe.ask(f"{kind} {length} {seed}", r"sent (\w+)")[1]
                probe.expect(f"{kind} {length} {checksum}")
        probe.close()
