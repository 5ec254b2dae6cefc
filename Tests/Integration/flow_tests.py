"""Flow control in both directions: pauses, marks and limits of the send buffer, frame sizes."""

import functools
import threading
import zlib
from collections.abc import Callable

from harness import PATIENCE_S, Probe, also_under_valgrind, expect
from servers import Peer, Servers, frame
from websockets.asyncio.server import ServerConnection


def test_pause_loses_nothing(make: Callable[..., Probe], servers: Servers) -> None:
    """Far more is sent than the sockets hold; none of it is delivered while receiving is paused."""
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
        # On loopback, sent bytes are already at the client's socket: only the pause keeps them
        # there.
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
        expect(found[3] == f"{checksum:08x}", "wrong bytes")
        probe.close()


def test_drained_follows_high_water(make: Callable[..., Probe], servers: Servers) -> None:
    """The server reads only when the test lets it; then the buffer drains, which is reported."""
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


@also_under_valgrind
def test_send_limit_is_reported(make: Callable[..., Probe], servers: Servers) -> None:
    with make(servers.echo(), send_limit_bytes=10_000, print=False) as probe:
        probe.expect("open .*")
        # Both commands come in one read, so nothing is written between them.
        probe.tell("binary 9000 1\nbinary 9000 2")
        probe.expect("sent .*")
        probe.expect("sent .*")
        probe.expect("failed RT_ERROR_BUFFER_FULL .*")
        probe.expect("drained")
        probe.close()


@also_under_valgrind
def test_frames_are_split(make: Callable[..., Probe], servers: Servers) -> None:
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
