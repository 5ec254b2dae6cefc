"""A TCP proxy that damages the connections it carries.

proxy = FaultProxy(servers, url, [Ways(down=Fault(after=300, then=Then.RESET)), Ways()])
proxy.url                               # the first connection is reset, all later ones are intact
"""

import asyncio
import contextlib
import dataclasses
import enum
import socket
import struct
import urllib.parse

from certificates import TLS
from servers import Servers


class Then(enum.Enum):
    """What happens when a direction has carried enough bytes."""

    NOTHING = enum.auto()
    #: Both ends see the end of the stream.
    CUT = enum.auto()
    #: Both ends see a reset.
    RESET = enum.auto()
    #: No more bytes are carried in this direction; the connection stays open.
    STALL = enum.auto()
    #: One byte is changed; all others are carried unchanged.
    CORRUPT = enum.auto()


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault in one direction of a connection.

    after: the number of bytes to carry before `then`.
    split: send each byte in its own segment.
    delay_s: how long to hold each piece.
    """

    after: int = 0
    then: Then = Then.NOTHING
    split: bool = False
    delay_s: float = 0


@dataclasses.dataclass(frozen=True)
class Ways:
    """Both directions of a connection: up to the server, down to the client."""

    up: Fault = Fault()
    down: Fault = Fault()


class FaultProxy:
    """Carries connections to the server of `url`: the n-th by ways[n], later ones by the last.

    tls: TLS that the proxy itself uses, for a server without it.
    """

    def __init__(
        self, servers: Servers, url: str, ways: list[Ways], tls: TLS | None = None
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 0)
        self._ways = ways
        self.connections = 0
        # References to tasks, because asyncio keeps none to a task that waits for a stream.
        self._tasks: set[asyncio.Task[None] | None] = set()
        port = urllib.parse.urlsplit(servers.listen(self._accept, tls)).port
        self.url = parts._replace(netloc=f"{parts.hostname}:{port}").geturl()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ways = self._ways[min(self.connections, len(self._ways) - 1)]
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        try:
            await self._carry_both(reader, writer, ways)
        except asyncio.CancelledError:
            pass  # The servers are stopping.
        finally:
            self._tasks.discard(asyncio.current_task())

    async def _carry_both(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ways: Ways
    ) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        ends = (writer, up_writer)
        for end in ends:
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        carriers = [
            asyncio.create_task(carry(reader, up_writer, ways.up, ends)),
            asyncio.create_task(carry(up_reader, writer, ways.down, ends)),
        ]
        try:
            await asyncio.gather(*carriers)
        finally:
            for carrier in carriers:
                carrier.cancel()
            for end in ends:
                end.close()


async def carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    fault: Fault,
    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
) -> None:
    """Carries one direction until it ends."""
    carried = 0
    # The end of one side is passed on to the other; an error counts as an end.
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            room = fault.after - carried
            if fault.then is not Then.NOTHING and 0 <= room < len(data):
                if fault.then is Then.CORRUPT:
                    data = data[:room] + bytes([data[room] ^ 0x55]) + data[room + 1 :]
                else:
                    await write(writer, data[:room], fault)
                    if fault.then is Then.STALL:
                        break
                    return end_both(ends, fault.then)
            carried += len(data)
            await write(writer, data, fault)
        else:
            if writer.can_write_eof():
                writer.write_eof()
            else:
                # asyncio has no half-closed TLS connections (RFC 8446 §6.1 would allow them).
                writer.close()
    # A stalled direction is drained, so that its end is noticed.
    with contextlib.suppress(OSError):
        while await reader.read(1 << 16):
            pass
        if fault.then is Then.STALL:
            end_both(ends, Then.CUT)


async def write(writer: asyncio.StreamWriter, data: bytes, fault: Fault) -> None:
    if fault.delay_s:
        await asyncio.sleep(fault.delay_s)
    size = 1 if fault.split else max(1, len(data))
    for start in range(0, len(data), size):
        writer.write(data[start : start + size])
        await writer.drain()
        if fault.split:
            await asyncio.sleep(0)


def end_both(ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter], how: Then) -> None:
    for end in ends:
        if how is Then.RESET:
            # Closing with SO_LINGER 0 sends RST instead of FIN.
            linger = struct.pack("ii", 1, 0)
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            end.transport.abort()
        else:
            end.close()
