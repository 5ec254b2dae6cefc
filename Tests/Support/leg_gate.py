"""A TCP proxy that recognizes a ladder's legs by their request heads, and can block each of them.

gate = LegGate(servers, "127.0.0.1", nchan.port)
gate.set(Leg.WEBSOCKET, 404)            # WebSocket handshakes are answered with 404
gate.set(Leg.SSE, Treat.STALL)          # held without a response
gate.cut(Then.RESET)                    # resets all connections

Each connection carries one request, so that each request's head can be inspected.
"""

import asyncio
import contextlib
import enum
import socket
import threading
from collections.abc import Callable

from fault_proxy import Then, end_both
from servers import Servers, answer, frame, header


class Leg(enum.IntEnum):
    """The legs of `rt_spreadbot_transport`, and a POST."""

    WEBSOCKET = 1
    SSE = 2
    POLL = 3
    POST = 4

    @staticmethod
    def of(head: bytes) -> "Leg":
        if head.startswith(b"POST "):
            return Leg.POST
        if header(head, "Upgrade").lower() == "websocket":
            return Leg.WEBSOCKET
        return Leg.SSE if "text/event-stream" in header(head, "Accept") else Leg.POLL


class Treat(enum.Enum):
    """What happens to a request."""

    PASS = enum.auto()
    #: The connection ends after the request's head.
    CLOSE = enum.auto()
    RESET = enum.auto()
    #: No response, until the client disconnects or all is cut.
    STALL = enum.auto()
    #: For a WebSocket: a probe's handshake, which has no cursor, passes; others get 404.
    PROBES = enum.auto()


#: A number is the status of a response without a body.
Treatment = Treat | int


class LegGate:
    """Carries requests to the server at host and port.

    at: the socket to listen on, already bound.
    may_pass: called with every head first. A request that it refuses is answered with 401, a
        WebSocket every second time by a close frame with 4401.
    """

    def __init__(
        self,
        servers: Servers,
        host: str,
        port: int,
        at: socket.socket | None = None,
        may_pass: Callable[[bytes], bool] = lambda head: True,
    ) -> None:
        self._server = (host, port)
        self._may_pass = may_pass
        self._treatments: dict[Leg, Treatment] = {}
        self._lock = threading.Lock()
        self._servers = servers
        self._carried: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._held: set[asyncio.StreamWriter] = set()
        # References to tasks, because asyncio keeps none to a task that waits for a stream.
        self._tasks: set[asyncio.Task[None] | None] = set()
        self._stalled = asyncio.Event()
        #: Heads in order of arrival, with the treatment of each.
        self.seen: list[tuple[Leg, Treatment, bytes]] = []
        self.refused = 0
        self.url = servers.listen(self._accept, at=at).replace("ws://", "http://").rstrip("/")

    def set(self, *legs: Leg, to: Treatment) -> None:
        """Sets how requests are treated from now on."""
        with self._lock:
            self._treatments.update(dict.fromkeys(legs, to))

    def cut(self, how: Then) -> None:
        """Ends all connections: normally, by a reset, or with data in transit held back."""
        self._servers.run(self._cut(how))

    async def _cut(self, how: Then) -> None:
        if how is Then.STALL:
            # What the server sends in this time is lost.
            self._stalled.set()
            await asyncio.sleep(0.02)
            self._stalled.clear()
        for ends in tuple(self._carried):
            # A connection that has ended by itself has no socket any more.
            with contextlib.suppress(OSError):
                end_both(ends, Then.RESET if how is Then.RESET else Then.CUT)
        for writer in tuple(self._held):
            writer.transport.abort()

    def count(self, leg: Leg, treatment: Treatment = Treat.PASS) -> int:
        with self._lock:
            return sum((one, how) == (leg, treatment) for one, how, _ in self.seen)

    def heads(self, leg: Leg) -> list[bytes]:
        with self._lock:
            return [head for one, _, head in self.seen if one is leg]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                await self._treat(head, reader, writer)
        except asyncio.CancelledError:
            pass  # The servers are stopping.
        finally:
            self._tasks.discard(task)
            writer.close()

    def _treatment(self, leg: Leg, head: bytes) -> Treatment:
        with self._lock:
            treatment = self._treatments.get(leg, Treat.PASS)
            if treatment is Treat.PROBES:
                treatment = 404 if header(head, "Last-Event-ID") else Treat.PASS
            if not self._may_pass(head):
                treatment = 401
            self.seen.append((leg, treatment, head))
        return treatment

    async def _treat(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        leg = Leg.of(head)
        treatment = self._treatment(leg, head)
        if treatment is Treat.PASS:
            await self._carry_both(leg, head, reader, writer)
        elif treatment is Treat.RESET:
            end_both((writer, writer), Then.RESET)
        elif treatment is Treat.STALL:
            self._held.add(writer)
            while await reader.read(1 << 16):
                pass
            self._held.discard(writer)
        elif treatment == 401 and leg is Leg.WEBSOCKET and self._closes_by_frame():
            writer.write(answer(head) + frame(8, (4401).to_bytes(2, "big") + b"expired"))
            await writer.drain()
            # The client answers with a close frame, and the server disconnects (RFC 6455 §7.1.1).
            await reader.read(1 << 16)
        elif isinstance(treatment, int):
            length = int(header(head, "Content-Length") or 0)
            await reader.readexactly(length)
            text = f"HTTP/1.1 {treatment} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            writer.write(text.encode())
            await writer.drain()

    def _closes_by_frame(self) -> bool:
        self.refused += 1
        return self.refused % 2 == 0

    async def _carry_both(
        self,
        leg: Leg,
        head: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._server)
        ends = (writer, up_writer)
        for end in ends:
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if leg is not Leg.WEBSOCKET:
            head = head[:-2] + b"Connection: close\r\n\r\n"
        up_writer.write(head)
        self._carried.add(ends)
        carriers = [
            asyncio.create_task(self._carry(reader, up_writer)),
            asyncio.create_task(self._carry(up_reader, writer)),
        ]
        try:
            await asyncio.wait(carriers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._carried.discard(ends)
            for carrier in carriers:
                carrier.cancel()
            for end in ends:
                end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self._stalled.is_set():
                    continue
                writer.write(data)
                await writer.drain()
