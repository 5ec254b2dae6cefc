"""A server with just enough HTTP/2 over TLS to refuse requests in HTTP/2's own ways.

with HTTP2Server(tls.context, HTTP2Server.refuses(2)) as server:
    ...  # server.url; server.seen: (connection, stream, bytes of the body) of each request
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable

DATA, HEADERS, RESET, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
REFUSED_STREAM, CANCEL = 7, 8
#: The indexed header field ":status: 200" (RFC 7541, appendix A).
STATUS_200 = b"\x88"
PREFACE_BYTES, HEAD_BYTES = 24, 9

#: Handles the Nth request: its connection, stream and N; returns False to end the connection.
Script = Callable[[ssl.SSLSocket, int, int], bool]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def answer(connection: ssl.SSLSocket, stream: int) -> bool:
    head = frame(HEADERS, END_HEADERS, stream, STATUS_200)
    connection.sendall(head + frame(DATA, END_STREAM, stream, b"ok"))
    return True


class HTTP2Server:
    def __init__(self, context: ssl.SSLContext, script: Script) -> None:
        self._context = context
        self._context.set_alpn_protocols(["h2"])
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen: list[tuple[int, int, int]] = []

    @staticmethod
    def resets(code: int, count: int) -> Script:
        """The first `count` requests are reset with a code, the others are answered."""

        def script(connection: ssl.SSLSocket, stream: int, number: int) -> bool:
            if number > count:
                return answer(connection, stream)
            connection.sendall(frame(RESET, 0, stream, struct.pack(">I", code)))
            return True

        return script

    @staticmethod
    def goes_away(last: int, count: int) -> Script:
        """The first `count` requests meet a server that sends GOAWAY for streams after `last`."""

        def script(connection: ssl.SSLSocket, stream: int, number: int) -> bool:
            if number > count:
                return answer(connection, stream)
            connection.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", last, 0)))
            return False

        return script

    def __enter__(self) -> HTTP2Server:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                number += 1
                self._connections.append(connection)
                self._start(self._serve, connection, number)

    def _serve(self, plain: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ssl.SSLError), plain:
            with self._context.wrap_socket(plain, server_side=True) as connection:
                self._connections.append(connection)
                if not self._speak(connection, number):
                    self._end(connection)

    def _end(self, connection: ssl.SSLSocket) -> None:
        """Ends a connection, and reads what the client still sends.

        A socket that is closed with unread bytes resets the connection, and the client may lose
        what it has not read.
        """
        with contextlib.suppress(ssl.SSLError):
            connection.unwrap()
        with socket.socket(fileno=connection.detach()) as left:
            self._connections.append(left)
            left.shutdown(socket.SHUT_WR)
            while left.recv(4096):
                pass

    def _speak(self, connection: ssl.SSLSocket, number: int) -> bool:
        """Returns whether the client has ended the connection, not the script."""
        received = connection.makefile("rb")
        received.read(PREFACE_BYTES)
        connection.sendall(frame(SETTINGS, 0, 0))
        bodies: dict[int, int] = {}
        while len(head := received.read(HEAD_BYTES)) == HEAD_BYTES:
            kind, flags = head[3], head[4]
            stream = int.from_bytes(head[5:], "big")
            length = len(received.read(int.from_bytes(head[:3], "big")))
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            if kind == DATA:
                bodies[stream] = bodies.get(stream, 0) + length
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.seen.append((number, stream, bodies.get(stream, 0)))
                if not self._script(connection, stream, len(self.seen)):
                    return False
        return True
