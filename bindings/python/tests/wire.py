"""An HTTP server with hand-written bytes: records requests, and ends connections as scripted."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable

Serve = Callable[[socket.socket, int], None]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class WireServer:
    """Handles each connection on its own thread, with its number."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            number = len(self._connections)
            thread = threading.Thread(target=self._run, args=(connection, number))
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            self._serve(connection, number)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        # Connections that are kept for another request.
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


def read(connection: socket.socket) -> bytes | None:
    """Reads a complete request; None at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    length = re.search(rb"(?i)\ncontent-length: *(\d+)", data)
    wanted = data.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
    while len(data) < wanted:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    return data


def head_lines(request: bytes) -> list[str]:
    return request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
