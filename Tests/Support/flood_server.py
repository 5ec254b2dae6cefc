"""Misbehaving servers that send without end, in their own process.

with flooding("trailers", folder) as url: ...
flood_server.py NAME FOLDER prints its port and serves until its standard input ends. Servers of
HTTP/2, and those of `TLS_ANSWERS`, use TLS and write their authority to FOLDER as ca.pem.
"""

from __future__ import annotations

import contextlib
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

from certificates import TLS
from http2_server import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, STATUS_200, frame

PRIORITY, PING, WINDOW_UPDATE, ALTSVC, UNKNOWN, PADDED = 2, 6, 8, 10, 99, 8
OK = b"HTTP/1.1 200 OK\r\n"
CLOSE = b"Connection: close\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
REFUSED = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n"
#: Bytes of a body that comes in DATA frames of one byte.
SMALL_FRAMES = 1 << 18
BATCH = 1 << 16

#: Frames without content, on a stream that has been answered.
FRAMES: dict[str, Callable[[int], bytes]] = {
    "empty data": lambda stream: frame(DATA, 0, stream),
    "padding": lambda stream: frame(DATA, PADDED, stream, b"\0"),
    "window updates": lambda stream: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
    "pings": lambda stream: frame(PING, 0, 0, b"12345678"),
    "settings": lambda stream: frame(SETTINGS, 0, 0),
    "alternative services": lambda stream: frame(ALTSVC, 0, stream, b"\0\0h2=x"),
    "priorities": lambda stream: frame(PRIORITY, 0, stream, b"\0\0\0\0\1"),
    "unknown frames": lambda stream: frame(UNKNOWN, 0, stream),
    "interim heads": lambda stream: frame(HEADERS, END_HEADERS, stream, b"\x08\x03103"),
}

#: Bytes that are sent once, and bytes that are sent forever.
ANSWERS: dict[str, tuple[bytes, bytes]] = {
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n"),
    "one trailer": (CHUNKED + b"0\r\nA: ", b"b"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "header lines": (OK, b"A: b\r\n"),
    "one header line": (OK + b"A: ", b"b"),
    "status line": (b"HTTP/1.1 200 ", b"b"),
    "refusal in chunks": (REFUSED + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "long refusal": (REFUSED + b"Content-Length: 99999999999\r\n\r\n", b"x"),
    "tunnel's header lines": (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
}

#: Responses over TLS, and whether they end with close_notify.
TLS_ANSWERS: dict[str, tuple[bytes, bool]] = {
    "cut": (OK + b"\r\nhalf", False),
    "ended": (OK + b"\r\nwhole", True),
    "cut after its length": (OK + b"Content-Length: 5\r\n\r\nwhole", False),
    "cut after its chunks": (CHUNKED + b"5\r\nwhole\r\n0\r\n\r\n", False),
    "closed after its length": (OK + CLOSE + b"Content-Length: 5\r\n\r\nwhole", False),
    "closed after its chunks": (
        OK + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
        False,
    ),
}


@contextlib.contextmanager
def flooding(name: str, folder: pathlib.Path, *options: str) -> Iterator[str]:
    """Runs such a server; yields its host and port."""
    command = [sys.executable, __file__, name, str(folder), *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        assert server.stdin
        yield f"127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def flood(connection: socket.socket, piece: bytes) -> None:
    batch = piece * max(1, BATCH // len(piece))
    while True:
        connection.sendall(batch)


def answer(connection: socket.socket, once: bytes, for_ever: bytes) -> None:
    received = connection.makefile("rb")
    while received.readline().strip():
        pass
    connection.sendall(once)
    if for_ever:
        flood(connection, for_ever)


def drain(received: socket.SocketIO) -> None:
    with contextlib.suppress(OSError):
        while received.read(BATCH):
            pass


def speak_http2(connection: ssl.SSLSocket, name: str) -> None:
    received = connection.makefile("rb", buffering=0)
    received.read(24)
    connection.sendall(frame(SETTINGS, 0, 0))
    while head := received.read(9):
        received.read(int.from_bytes(head[:3], "big"))
        if head[3] == SETTINGS and not head[4] & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0))
        if head[3] == HEADERS:
            break
    stream = int.from_bytes(head[5:], "big")
    # Responses that nobody reads must not hold up the flood.
    threading.Thread(target=drain, args=(received,), daemon=True).start()
    if name != "interim heads":
        connection.sendall(frame(HEADERS, END_HEADERS, stream, STATUS_200))
    if name in FRAMES:
        flood(connection, FRAMES[name](stream))
    connection.sendall(frame(DATA, 0, stream, b"x") * SMALL_FRAMES)
    connection.sendall(frame(DATA, END_STREAM, stream))
    drain(received)


def serve(plain: socket.socket, context: ssl.SSLContext | None, name: str) -> None:
    with contextlib.suppress(OSError):
        if not context:
            return answer(plain, *ANSWERS[name])
        connection = context.wrap_socket(plain, server_side=True)
        if name not in TLS_ANSWERS:
            return speak_http2(connection, name)
        text, is_orderly = TLS_ANSWERS[name]
        answer(connection, text, b"")
        if is_orderly:
            connection.unwrap()
        else:
            # detach() takes the socket out of TLS, so no close_notify is sent at the end.
            with socket.socket(fileno=connection.detach()) as bare:
                bare.shutdown(socket.SHUT_RDWR)
    return None


def main() -> None:
    name, folder, *options = sys.argv[1:]
    context = None
    if name not in ANSWERS:
        newest = ssl.TLSVersion.TLSv1_2 if "1.2" in options else ssl.TLSVersion.TLSv1_3
        tls = TLS(pathlib.Path(folder), "127.0.0.1", newest=newest)
        (pathlib.Path(folder) / "ca.pem").write_bytes(tls.ca_file.read_bytes())
        context = tls.context
        context.set_alpn_protocols(["http/1.1" if name in TLS_ANSWERS else "h2"])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, context, name), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
