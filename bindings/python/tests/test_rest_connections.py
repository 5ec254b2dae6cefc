"""Kept connections: found dead, replaced, shared or not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
from wire import OK, read

import librealtime
from librealtime import sync


def test_a_post_is_sent_at_most_twice(run: Any, serve: Any) -> None:
    """Even if several connections were kept and all end before a response (R6)."""
    posts: list[int] = []
    together = threading.Barrier(4)

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            if request.startswith(b"POST"):
                posts.append(number)
                return
            together.wait(60)
            connection.sendall(OK)

    server = serve(answer)

    async def main() -> None:
        async with librealtime.RESTClient(server.url) as client:
            await asyncio.gather(*(client.get("/") for _ in range(4)))
            with pytest.raises(librealtime.ConnectionLost):
                await client.post("/", content=b"once")

    run(main())
    # The second one was sent on a new connection.
    assert len(posts) == 2 and posts[1] == 5


def cut(connection: socket.socket) -> None:
    """Ends the connection like a dead one: with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_dead_connections_are_replaced_however_many(serve: Any) -> None:
    """libcurl counts its own replays over all requests of a handle, and fails at the sixth (R6)."""

    def answer(connection: socket.socket, number: int) -> None:
        if read(connection) is None:
            return
        connection.sendall(OK)
        # It looks alive until the next request has arrived.
        connection.recv(1)

    server = serve(answer)
    with sync.RESTClient(server.url, attempts=1) as client:
        for _ in range(20):
            assert client.get("/").attempts == 1


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_body_sent_on_a_dead_connection_is_sent_again(serve: Any, method: str) -> None:
    """A part of the body was sent: libcurl itself replays only complete ones (R6)."""
    size = 300_000
    bodies: list[int] = []

    def answer(connection: socket.socket, number: int) -> None:
        request = read(connection)
        if request is None:
            # A connection that libcurl opened itself and was prevented from using.
            return
        bodies.append(len(request.partition(b"\r\n\r\n")[2]))
        connection.sendall(OK)
        connection.recv(1)
        cut(connection)

    server = serve(answer)
    with sync.RESTClient(server.url, attempts=1) as client:
        client.get("/")
        for _ in range(20):
            assert client.request(method, "/", content=b"x" * size).attempts == 1
    assert bodies == [0] + [size] * 20


def test_a_tunnel_is_not_shared(serve: Any, tmp_path: Path) -> None:
    """libcurl 7.88 sends requests on an HTTP/2 connection whose tunnel is not yet open."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    spoken: list[str | None] = []

    def answer(connection: socket.socket, number: int) -> None:
        if number == 1:
            assert (read(connection) or b"").startswith(b"CONNECT 127.0.0.1:")
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as secure:
            spoken.append(secure.selected_alpn_protocol())
            if number == 1:
                assert read(secure)
                secure.sendall(OK)

    server = serve(answer)
    url = server.url.replace("http:", "https:")
    with sync.RESTClient(url, proxy=server.url, ca_file=ca_file) as client:
        assert client.get("/").http_version == "HTTP/1.1"
    direct = sync.RESTClient(url, proxy=None, ca_file=ca_file, attempts=1)
    with direct, pytest.raises(librealtime.RealtimeError):
        direct.get("/")
    assert spoken == ["http/1.1", "h2"]
