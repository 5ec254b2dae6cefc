"""Real servers for the tests, each on its own thread and port of 127.0.0.1."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import hashlib
import logging
import queue
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

# Its log about clients that misbehave on purpose does not help readers of the tests.
logging.getLogger("websockets").setLevel(logging.CRITICAL)


class AsyncServer:
    """Runs `start` on an asyncio loop in a thread; `start` returns the port and how to stop."""

    def __init__(self, start: Callable[[], Awaitable[tuple[int, Callable[[], Any]]]]) -> None:
        self._start = start
        self._ready: queue.Queue[int | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.port = 0

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            port, stop = await self._start()
        except BaseException as error:
            self._ready.put(error)
            raise
        self._ready.put(port)
        await self._stop.wait()
        await stop()

    def __enter__(self) -> AsyncServer:
        self._thread.start()
        port = self._ready.get(timeout=30)
        if isinstance(port, BaseException):
            raise port
        self.port = port
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=30)
        assert not self._thread.is_alive(), "the server does not stop"


class WebSocketServer(AsyncServer):
    """A server with the `websockets` package; what it does depends on the requested path."""

    def __init__(self, context: ssl.SSLContext | None = None, **options: Any) -> None:
        super().__init__(self._serve)
        self._context = context
        self._options = options
        #: The close code and reason of each ended connection, as the server saw them.
        self.closes: queue.Queue[tuple[int | None, str | None]] = queue.Queue()
        #: The last request to /record.
        self.requests: queue.Queue[Any] = queue.Queue()
        self.go = threading.Event()
        #: The fates of the next connections to /flaky, in order; afterwards they echo.
        self.fates: collections.deque[str] = collections.deque()
        self.received: list[Any] = []

    @property
    def url(self) -> str:
        scheme = "ws" if self._context is None else "wss"
        host = "127.0.0.1" if self._context is None else "localhost"
        return f"{scheme}://{host}:{self.port}"

    async def _serve(self) -> tuple[int, Callable[[], Any]]:
        server = await serve(
            self._handle,
            "127.0.0.1",
            0,
            ssl=self._context,
            max_size=None,
            ping_interval=None,
            **self._options,
        )

        async def stop() -> None:
            server.close()
            await server.wait_closed()

        return next(iter(server.sockets)).getsockname()[1], stop

    async def _handle(self, ws: ServerConnection) -> None:
        assert ws.request is not None
        parts = urlsplit(ws.request.path)
        arguments = {name: values[0] for name, values in parse_qs(parts.query).items()}
        handler = getattr(self, "do_" + parts.path.strip("/"))
        try:
            await handler(ws, **arguments)
        except ConnectionClosed:
            pass
        finally:
            with contextlib.suppress(ConnectionClosed):
                await ws.close()
            self.closes.put((ws.close_code, ws.close_reason))

    async def do_echo(self, ws: ServerConnection) -> None:
        async for message in ws:
            await ws.send(message)

    async def do_fragments(self, ws: ServerConnection) -> None:
        """Echoes text in fragments of one character, bytes in fragments of 1000."""
        async for message in ws:
            step = 1 if isinstance(message, str) else 1000
            await ws.send(message[i : i + step] for i in range(0, len(message), step))

    async def do_close(self, ws: ServerConnection, code: str, reason: str = "") -> None:
        await ws.close(int(code), reason)

    async def do_one(self, ws: ServerConnection) -> None:
        """Closes after one message."""
        await ws.recv()

    async def do_count(self, ws: ServerConnection, to: str, then: str = "1000") -> None:
        """Sends the numbers, then closes with the code."""
        for number in range(int(to)):
            await ws.send(str(number))
        await ws.close(int(then))

    async def do_blocks(self, ws: ServerConnection, to: str, size: str) -> None:
        """Sends numbered blocks of bytes, then closes."""
        for number in range(int(to)):
            await ws.send(number.to_bytes(4, "big") * (int(size) // 4))

    async def do_silent(self, ws: ServerConnection) -> None:
        await ws.wait_closed()

    async def do_abort(self, ws: ServerConnection) -> None:
        """Sends one message and drops the connection without a close frame."""
        await ws.send("last words")
        ws.transport.abort()

    async def do_flaky(self, ws: ServerConnection) -> None:
        """Sends how many fates are left, then drops the connection, closes or echoes."""
        fate = self.fates.popleft() if self.fates else "echo"
        await ws.send(f"{len(self.fates)} left")
        if fate == "drop":
            ws.transport.abort()
        elif fate == "echo":
            await self.do_echo(ws)
        else:
            await ws.close(int(fate))

    async def do_record(self, ws: ServerConnection) -> None:
        self.requests.put((ws.request, ws.subprotocol, ws.protocol.extensions))
        await ws.wait_closed()

    async def do_late(self, ws: ServerConnection) -> None:
        """Reads nothing until the test allows it, then everything."""
        await asyncio.to_thread(self.go.wait, 30)
        async for message in ws:
            self.received.append(message)


@contextlib.contextmanager
def raw_server(*serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A TCP server that passes each connection to the next function; yields its ws URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for serve_one in serve:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(30)
                    serve_one(connection)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with listener:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(timeout=30)
    assert not thread.is_alive(), "fewer connections arrived than expected"
    assert not failures, failures


def read_head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = connection.recv(4096)
        if not data:
            break
        head += data
    return head


def read_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        assert more, "the client hung up"
        data += more
    return data


def upgrade(connection: socket.socket) -> None:
    """Reads a WebSocket handshake and accepts it (RFC 6455 §4.2.2)."""
    lines = read_head(connection).decode().split("\r\n")
    key = next(line.partition(":")[2].strip() for line in lines if "-key:" in line.lower())
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
    )


def answers(answer: bytes) -> Callable[[socket.socket], None]:
    """For `raw_server`: reads a request and answers it."""

    def serve_one(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(answer)

    return serve_one


def relay(connection: socket.socket, port: int) -> None:
    """Carries bytes between the connection and a port of 127.0.0.1 until one side ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as other:

        def carry(source: socket.socket, sink: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=carry, args=(other, connection))
        back.start()
        carry(connection, other)
        back.join()
