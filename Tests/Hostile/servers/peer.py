"""One accepted connection, and the process that accepts them.

An attack is a function of a `Peer`. It reads the client's requests and answers with raw bytes as
long as the connection lasts; if the connection breaks, it ends silently. The process is killed at
the end of its case.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import os
import resource
import select
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

#: Floods are sent in pieces of about this size, so that Python's own cost does not matter.
FLOOD_BYTES = 1 << 20
#: A server never outlives its case by more than this, even if the runner is killed.
MAX_SECONDS = 150
#: How many connections are served at a time; further ones are closed at once.
MAX_THREADS = 64

#: The indices of the counters that server and runner share. An attack counts a mark when the victim
#: may send its late request.
CONNECTIONS, REQUESTS, MARKS = range(3)

Attack = Callable[["Peer"], None]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Registers an attack under the name of its function, with hyphens."""
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


class Context(Protocol):
    """Makes the server's end of a TLS connection, as `ssl.SSLContext` does."""

    def wrap_socket(self, connection: socket.socket, server_side: bool) -> socket.socket: ...


class Gone(Exception):
    """The client has closed the connection."""


class Peer:
    def __init__(self, connection: socket.socket, server: Server, number: int) -> None:
        self.connection = connection
        self.server = server
        #: 1 for the first connection of this server.
        self.number = number
        self._received = b""

    @property
    def transport(self) -> str:
        return self.server.transport

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def flood(self, unit: bytes) -> None:
        """Repeats `unit` until the client closes the connection."""
        data = unit * max(1, FLOOD_BYTES // len(unit))
        while True:
            self.connection.sendall(data)

    def drip(self, data: bytes, interval_s: float) -> None:
        """Sends the bytes one by one."""
        for byte in data:
            self.connection.sendall(bytes([byte]))
            time.sleep(interval_s)

    def receive(self) -> bytes:
        data = self.connection.recv(1 << 16)
        if not data:
            raise Gone
        return data

    def read(self, count: int) -> bytes:
        while len(self._received) < count:
            self._received += self.receive()
        data, self._received = self._received[:count], self._received[count:]
        return data

    def request(self) -> bytes:
        """The head of the next request; its body is read and dropped."""
        while b"\r\n\r\n" not in self._received:
            self._received += self.receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                self.read(int(value))
        self.server.count(REQUESTS)
        return head

    def unread(self, head: bytes) -> None:
        """The next `request` returns this head again."""
        self._received = head + b"\r\n\r\n" + self._received

    def hold(self) -> None:
        """Keeps the connection open and drops the client's bytes, until it closes."""
        while True:
            self.receive()

    def drain(self) -> None:
        """Drops all further bytes from the client, in a thread.

        It reads from TCP even over TLS, because OpenSSL allows only one thread at a time.
        """

        def run() -> None:
            with contextlib.suppress(OSError):
                while socket.socket.recv(self.connection, 1 << 16):
                    pass

        threading.Thread(target=run, daemon=True).start()

    def finish(self) -> None:
        """Ends the stream normally, over TLS with close_notify."""
        if isinstance(self.connection, ssl.SSLSocket):
            with contextlib.suppress(OSError, ssl.SSLError):
                self.connection.unwrap()
        self.cut()

    def cut(self) -> None:
        """Ends the TCP stream with FIN; over TLS without close_notify."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        with contextlib.suppress(OSError, ssl.SSLError, Gone):
            self.connection.settimeout(2)
            self.hold()

    def reset(self) -> None:
        """Ends the connection with RST."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()


class Server:
    """A process that serves one attack, from `start` to `stop`."""

    def __init__(
        self, name: str, transport: str, context: Context | None, backlog: int = 128
    ) -> None:
        self.name = name
        self.transport = transport
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port: int = self._listener.getsockname()[1]
        fork = multiprocessing.get_context("fork")
        self._counters: Any = fork.Array("Q", 3)
        self._process: multiprocessing.context.ForkProcess = fork.Process(target=self._run)
        self._threads = threading.Semaphore(MAX_THREADS)

    def start(self) -> None:
        self._process.start()
        self._listener.close()

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()

    def count(self, counter: int) -> None:
        with self._counters.get_lock():
            self._counters[counter] += 1

    def counters(self) -> list[int]:
        with self._counters.get_lock():
            return list(self._counters)

    def _run(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.alarm(MAX_SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        threading.Thread(target=self._watch_parent, daemon=True).start()
        number = 0
        while True:
            connection, _ = self._listener.accept()
            number += 1
            self.count(CONNECTIONS)
            if self._threads.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()
            else:
                connection.close()

    def _watch_parent(self) -> None:
        parent = os.getppid()
        while os.getppid() == parent:
            select.select([], [], [], 1)
        os._exit(1)

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, Gone):
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                with connection:
                    ATTACKS[self.name](Peer(connection, self, number))
            finally:
                self._threads.release()
