"""WebSocket servers for tests, on their own thread: correct ones and misbehaving ones.

with Servers() as servers:
    url = servers.echo()                       # the websockets library
    url = servers.aiohttp_echo(tls=servers.tls())
    url = servers.script(my_coroutine)         # bytes by hand, after the handshake
"""

import asyncio
import base64
import concurrent.futures
import contextlib
import hashlib
import pathlib
import socket
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from aiohttp import WSMsgType, web
from certificates import TLS
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Script = Callable[["Peer"], Awaitable[None]]


def frame(opcode: int, payload: bytes, final: bool = True, rsv1: bool = False) -> bytes:
    """One unmasked frame, RFC 6455 §5.2."""
    first = (0x80 if final else 0) | (0x40 if rsv1 else 0) | opcode
    length = len(payload)
    if length < 126:
        return bytes([first, length]) + payload
    if length < 1 << 16:
        return bytes([first, 126]) + length.to_bytes(2, "big") + payload
    return bytes([first, 127]) + length.to_bytes(8, "big") + payload


def accept_key(key: bytes) -> bytes:
    """Sec-WebSocket-Accept for a Sec-WebSocket-Key, RFC 6455 §4.2.2."""
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def header(request: bytes, name: str) -> str:
    """A header of the request; "" if it is missing."""
    for line in request.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name.lower().encode():
            return value.strip().decode()
    return ""


def answer(request: bytes, *headers: str) -> bytes:
    """The 101 response to the request, with further header lines."""
    accept = accept_key(header(request, "Sec-WebSocket-Key").encode()).decode()
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Peer:
    """The server's side of one connection, after reading the request."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.request = request

    def header(self, name: str) -> str:
        return header(self.request, name)

    def answer(self, *headers: str) -> bytes:
        return answer(self.request, *headers)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read_frame(self) -> tuple[int, bytes]:
        """The next frame's opcode and unmasked payload."""
        first, second = await self.reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(await self.reader.readexactly(2), "big")
        elif length == 127:
            length = int.from_bytes(await self.reader.readexactly(8), "big")
        mask = await self.reader.readexactly(4)
        payload = await self.reader.readexactly(length)
        repeated = mask * (length // 4 + 1)
        return first & 0x0F, bytes(a ^ b for a, b in zip(payload, repeated, strict=False))

    async def read_until_close(self) -> bytes:
        """Reads frames up to the close frame; returns its payload."""
        while True:
            opcode, payload = await self.read_frame()
            if opcode == 8:
                return payload

    async def read_to_end(self) -> None:
        """Reads and ignores everything until the peer has disconnected."""
        while await self.reader.read(1 << 16):
            pass


class Servers:
    """Starts servers, and stops them all at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._scripts: set[asyncio.Task[Any]] = set()
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> "Servers":
        self.folder = pathlib.Path(
            self._resources.enter_context(tempfile.TemporaryDirectory(prefix="servers-"))
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for close in reversed(self._closers):
            self._call(close())
        self._call(self._cancel_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._resources.close()

    def tls(self, *names: str, **options: Any) -> TLS:
        return TLS(self.folder, *(names or ("localhost", "127.0.0.1")), **options)

    def echo(self, tls: TLS | None = None, **options: Any) -> str:
        """The `websockets` library; echoes each message. Options are passed to the library."""

        async def handler(connection: ServerConnection) -> None:
            # Tests include clients that disconnect without a close frame.
            with contextlib.suppress(ConnectionClosed):
                async for message in connection:
                    await connection.send(message)

        return self.websockets(handler, tls, **options)

    def websockets(
        self,
        handler: Callable[[ServerConnection], Awaitable[None]],
        tls: TLS | None = None,
        **options: Any,
    ) -> str:
        """The `websockets` library with a handler from the test."""

        async def start() -> int:
            server = await serve(
                handler, "127.0.0.1", 0, ssl=tls.context if tls else None, max_size=None, **options
            )

            async def close() -> None:
                server.close()
                await server.wait_closed()

            self._closers.append(close)
            return int(next(iter(server.sockets)).getsockname()[1])

        return self._url(self._call(start()), tls)

    def aiohttp_echo(self, tls: TLS | None = None) -> str:
        async def handler(request: web.Request) -> web.WebSocketResponse:
            response = web.WebSocketResponse(max_msg_size=0)
            await response.prepare(request)
            async for message in response:
                if message.type is WSMsgType.TEXT:
                    await response.send_str(message.data)
                elif message.type is WSMsgType.BINARY:
                    await response.send_bytes(message.data)
            return response

        return self.application([web.get("/", handler)], tls)

    def application(self, routes: Sequence[web.RouteDef], tls: TLS | None = None) -> str:
        async def start() -> int:
            application = web.Application()
            application.add_routes(routes)
            runner = web.AppRunner(application, shutdown_timeout=1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.context if tls else None)
            await site.start()
            self._closers.append(runner.cleanup)
            return int(runner.addresses[0][1])

        return self._url(self._call(start()), tls)

    def script(
        self,
        script: Script,
        tls: TLS | None = None,
        path: pathlib.Path | None = None,
        host: str = "127.0.0.1",
        at: socket.socket | None = None,
    ) -> str:
        """Reads each connection's request; the script does the rest, including the response.
        Listens on the Unix socket at `path`, if given, or on a socket that is already bound."""
        context = tls.context if tls else None
        if path:
            where = str(path)
            return self._start(
                lambda: asyncio.start_unix_server(self._accepted(script), where, ssl=context), tls
            )
        if at:
            return self._start(
                lambda: asyncio.start_server(self._accepted(script), sock=at, ssl=context),
                tls,
                host,
            )
        return self._start(
            lambda: asyncio.start_server(self._accepted(script), host, 0, ssl=context), tls, host
        )

    def listen(
        self,
        accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        tls: TLS | None = None,
        at: socket.socket | None = None,
    ) -> str:
        """Passes on connections before any request is read. Listens on a socket that is already
        bound, or on its own."""
        context = tls.context if tls else None
        if at:
            host = str(at.getsockname()[0])
            return self._start(
                lambda: asyncio.start_server(accept, sock=at, ssl=context), tls, host
            )
        return self._start(lambda: asyncio.start_server(accept, "127.0.0.1", 0, ssl=context), tls)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs something on the servers' thread."""
        return self._call(coroutine)

    def stoppable(self, script: Script) -> "Stoppable":
        """Like `script`, on a port that can be closed and opened again."""
        return Stoppable(self, script)

    def _accepted(
        self, script: Script, tasks: set[asyncio.Task[Any]] | None = None
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        scripts = self._scripts if tasks is None else tasks

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            scripts.add(task)
            try:
                request = await reader.readuntil(b"\r\n\r\n")
                await script(Peer(reader, writer, request))
            except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                pass  # The client has disconnected; what tests expect of it they check there.
            except asyncio.CancelledError:
                pass  # The server is stopping.
            finally:
                scripts.discard(task)
                writer.close()

        return accepted

    def handshakes(self, tls: TLS) -> str:
        """Does TLS handshakes only, and sends the alerts that asyncio does not send."""
        listener = self._resources.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve_one_after_the_other() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return  # The listener was closed.
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(30)
                    # On a duplicate, since a failure closes it. Ends after the alert was sent; a
                    # reset would overtake it.
                    with contextlib.suppress(ssl.SSLError):
                        tls.context.wrap_socket(connection.dup(), server_side=True).close()
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass

        threading.Thread(target=serve_one_after_the_other, daemon=True).start()
        return self._url(listener.getsockname()[1], tls)

    def light_echo(self) -> str:
        """Echoes small frames with little memory per connection, for thousands of connections."""
        return self._start(
            lambda: asyncio.get_running_loop().create_server(
                LightEcho, "127.0.0.1", 0, backlog=4096
            )
        )

    def event(self) -> asyncio.Event:
        """An event that a script can wait for until the test sets it."""
        return asyncio.Event()

    def set(self, event: asyncio.Event) -> None:
        self._loop.call_soon_threadsafe(event.set)

    def settle(self) -> None:
        """Returns when every script has ended; the test's clients must have disconnected."""
        self._call(self._settle())

    async def _settle(self) -> None:
        while self._scripts:
            await asyncio.wait(self._scripts)

    def _start(
        self,
        make: Callable[[], Awaitable[asyncio.Server]],
        tls: TLS | None = None,
        host: str = "127.0.0.1",
    ) -> str:
        async def start() -> int:
            server = await make()

            async def close() -> None:
                server.close()

            self._closers.append(close)
            address = server.sockets[0].getsockname()
            # A Unix socket has no port; only the host of its URL is used.
            return int(address[1]) if isinstance(address, tuple) else 80

        return self._url(self._call(start()), tls, host)

    @staticmethod
    def _url(port: int, tls: TLS | None, host: str = "127.0.0.1") -> str:
        if tls:
            return f"wss://localhost:{port}/"
        return f"ws://[{host}]:{port}/" if ":" in host else f"ws://{host}:{port}/"

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        future: concurrent.futures.Future[Any] = asyncio.run_coroutine_threadsafe(
            coroutine, self._loop
        )
        return future.result(30)

    async def _cancel_tasks(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Stoppable:
    """A server that can stop and start again on the same port."""

    def __init__(self, servers: Servers, script: Script) -> None:
        self._servers = servers
        self._script = script
        self._port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.start()
        servers._closers.append(self._stop)

    @property
    def url(self) -> str:
        return Servers._url(self._port, None)

    def start(self) -> None:
        self._servers._call(self._start())

    def stop(self) -> None:
        """Stops listening and cuts every connection."""
        self._servers._call(self._stop())

    async def _start(self) -> None:
        accepted = self._servers._accepted(self._script, self._tasks)
        self._server = await asyncio.start_server(accepted, "127.0.0.1", self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in tuple(self._tasks):
            task.cancel()


class LightEcho(asyncio.Protocol):
    """A handshake, then frames of at most 125 bytes, each echoed. A frame with the payload "drop"
    cuts the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""
        self.is_open = False

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.is_open:
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self.transport.write(answer(head))
            self.buffer = rest
            self.is_open = True
        while len(self.buffer) >= 2:
            length = self.buffer[1] & 0x7F
            if length > 125:
                return self.transport.abort()
            end_of_frame = 6 + length
            if len(self.buffer) < end_of_frame:
                return
            mask, payload = self.buffer[2:6], self.buffer[6:end_of_frame]
            plain = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
            opcode = self.buffer[0] & 0x0F
            self.buffer = self.buffer[end_of_frame:]
            if plain == b"drop":
                return self.transport.abort()
            self.transport.write(frame(10 if opcode == 9 else opcode, plain))
            if opcode == 8:
                return self.transport.close()
