"""A server of event streams that runs a script, byte by byte.

    def script(exchange):
        exchange.begin()
        exchange.send(b"data: one\n\n")

    with StreamServer(script) as server:
        server.url("/events")

Each request runs the script on its own thread; the end of the script closes the connection.
"""

import contextlib
import queue
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60


class Exchange:
    """One request, and the server's side of its response.

    number: counts all requests to the server, from 0.
    headers: names in lower case; repeated ones joined by ", ".
    """

    def __init__(self, connection: socket.socket, head: bytes, body: bytes, number: int) -> None:
        self.connection = connection
        self.number = number
        self.body = body
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.path, _, self.query = self.target.partition("?")
        self.headers: dict[str, str] = {}
        for line in filter(None, lines):
            name, _, value = line.partition(":")
            key, value = name.lower(), value.strip()
            known = self.headers.get(key)
            self.headers[key] = value if known is None else f"{known}, {value}"

    def begin(self, *fields: str, status: str = "200 OK", kind: str = "text/event-stream") -> None:
        """Sends a head, with no Content-Type if `kind` is "". The body ends with the connection."""
        lines = [f"HTTP/1.1 {status}", "Connection: close", *fields]
        if kind:
            lines.append(f"Content-Type: {kind}")
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def answer(self, status: str, *fields: str) -> None:
        """Sends a complete response without a body."""
        self.begin("Content-Length: 0", *fields, status=status, kind="")

    def send(self, *pieces: bytes | str) -> None:
        """Sends each piece in its own segment."""
        for piece in pieces:
            self.connection.sendall(piece.encode() if isinstance(piece, str) else piece)

    def chunk(self, *pieces: bytes) -> None:
        """Sends pieces as chunks (RFC 9112 §7.1), for a response with that coding."""
        for piece in pieces:
            self.send(b"%x\r\n%b\r\n" % (len(piece), piece))

    def hold(self) -> None:
        """Waits until the client has disconnected."""
        with contextlib.suppress(OSError):
            while self.connection.recv(65536):
                pass

    def has_gone(self) -> bool:
        """Whether the client has disconnected."""
        return bool(select.select([self.connection], [], [], 0)[0])

    def reset(self) -> None:
        """Ends the connection by a reset instead of normally."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()


Script = Callable[[Exchange], Any]


class StreamServer:
    """Runs a script for each request; `requests` has them in order of arrival."""

    def __init__(
        self, script: Script, context: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self._script = script
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self.requests: queue.Queue[Exchange] = queue.Queue()
        #: Exceptions of scripts, except that the client had disconnected.
        self.failures: list[BaseException] = []
        self._count = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def url(self, path: str = "/", user: str = "") -> str:
        scheme = "http" if self._context is None else "https"
        host = "127.0.0.1" if self._context is None else "localhost"
        return f"{scheme}://{user}{host}:{self.port}{path}"

    @property
    def origin(self) -> str:
        return self.url("")

    def request(self) -> Exchange:
        """Waits for the next request."""
        return self.requests.get(timeout=PATIENCE_S)

    def __enter__(self) -> "StreamServer":
        self._start(self._accept)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a script does not end"
        if kind is None and self.failures:
            raise self.failures[0]

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            with connection:
                exchange = self._read(connection)
                if exchange is not None:
                    self.requests.put(exchange)
                    self._script(exchange)
        except (OSError, ConnectionError):
            pass  # The client has disconnected, as it may.
        except BaseException as error:
            self.failures.append(error)
        finally:
            with self._lock:
                self._open.discard(connection)

    def _read(self, connection: socket.socket) -> Exchange | None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        while len(body) < length:
            more = connection.recv(65536)
            if not more:
                return None
            body += more
        with self._lock:
            number = self._count
            self._count += 1
        return Exchange(connection, head, body, number)
