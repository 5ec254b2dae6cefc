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


def test_a_post_is_sent_once(run: Any, serve: Any) -> None:
    """Even if several connections were kept, and all end before a response (R6)."""
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
            with pytest.raises(librealtime.ConnectionLost, match="before a response"):
                await client.post("/", content=b"once")

    run(main())
    assert len(posts) == 1


class Acting:
    """Acts on each request but GET, and ends the connections of the first ones instead of a
    response."""

    def __init__(self, serve: Any, unanswered: int = 1) -> None:
        self.acted: list[bytes] = []
        self._unanswered = unanswered
        self.url: str = serve(self._answer).url

    def _answer(self, connection: socket.socket, number: int) -> None:
        while request := read(connection):
            if not request.startswith(b"GET"):
                self.acted.append(request.split(b" ")[0])
                if len(self.acted) <= self._unanswered:
                    return
            connection.sendall(OK)


MOVED = b"HTTP/1.1 307 Moved\r\nLocation: /go\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("method", ["POST", "PATCH", "LOCK"])
def test_what_was_carried_out_is_not_sent_again(serve: Any, method: str) -> None:
    """The server reads the request and ends the kept connection (R6, RFC 9110 §9.2.2)."""
    server = Acting(serve)
    with sync.RESTClient(server.url) as client:
        client.get("/")
        with pytest.raises(librealtime.ConnectionLost):
            client.request(method, "/pay", json={"amount": 1})
    assert server.acted == [method.encode()]


@pytest.mark.parametrize("options", [{"retry_unsafe": True}, {"headers": {"Idempotency-Key": "1"}}])
def test_the_program_may_let_it_be_sent_again(serve: Any, options: dict[str, Any]) -> None:
    server = Acting(serve)
    with sync.RESTClient(server.url) as client:
        client.get("/")
        assert client.post("/pay", content=b"1", **options).attempts == 1
    assert server.acted == [b"POST"] * 2


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_idempotent_requests_are_sent_again(serve: Any, method: str) -> None:
    server = Acting(serve)
    with sync.RESTClient(server.url, attempts=1) as client:
        client.get("/")
        assert client.request(method, "/").status_code == 200
    assert server.acted == [method.encode()] * 2


def test_a_redirected_post_is_not_sent_again(serve: Any) -> None:
    """It follows on the connection of the redirect, which ends."""
    for kind in ("rest", "eventsource"):
        served: list[bytes] = []

        def answer(connection: socket.socket, number: int, served: list[bytes] = served) -> None:
            while request := read(connection):
                served.append(request.split(b" ")[1])
                if served[-1] == b"/go":
                    return
                connection.sendall(MOVED)

        url = serve(answer).url
        with pytest.raises(librealtime.ConnectionLost):
            if kind == "rest":
                with sync.RESTClient(url) as client:
                    client.post("/start", content=b"1")
            else:
                options: dict[str, Any] = {"method": "POST", "content": "1"}
                with sync.EventSource(f"{url}/start", reconnection_time=0.01, **options) as source:
                    source.recv(60)
        assert served == [b"/start", b"/go"]


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


class Dying:
    """Ends each connection when the next request begins to arrive."""

    def __init__(self, serve: Any) -> None:
        #: The sizes of the bodies that were read whole.
        self.bodies: list[int] = []
        self.url: str = serve(self._answer).url

    def _answer(self, connection: socket.socket, number: int) -> None:
        request = read(connection)
        if request is None:
            # A connection that libcurl opened itself and was prevented from using.
            return
        self.bodies.append(len(request.partition(b"\r\n\r\n")[2]))
        connection.sendall(OK)
        connection.recv(1)
        cut(connection)


SIZE = 300_000


def test_a_body_sent_on_a_dead_connection_is_sent_again(serve: Any) -> None:
    """A part of the body was sent: libcurl itself replays only complete ones (R6)."""
    server = Dying(serve)
    with sync.RESTClient(server.url, attempts=1) as client:
        client.get("/")
        for _ in range(20):
            assert client.put("/", content=b"x" * SIZE).attempts == 1
    assert server.bodies == [0] + [SIZE] * 20


def test_a_body_that_may_have_arrived_is_not_sent_again(serve: Any) -> None:
    server = Dying(serve)
    with sync.RESTClient(server.url) as client:
        client.get("/")
        for _ in range(10):
            with pytest.raises(librealtime.ConnectionLost):
                client.post("/", content=b"x" * SIZE)
            assert client.post("/", content=b"x" * SIZE).attempts == 1
    assert server.bodies == [0] + [SIZE] * 10


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


class Hosts:
    """One server under many addresses, each an origin of its own."""

    def __init__(self) -> None:
        self.opened = 0
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=128)
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, sock=self._listener)

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.close()

    def url(self, number: int) -> str:
        address = f"127.0.{1 + number // 250}.{1 + number % 250}"
        return f"http://{address}:{self._listener.getsockname()[1]}/"

    @property
    def idle(self) -> int:
        return len(self._open)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._open.add(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._open.discard(writer)
            writer.close()


def test_connections_are_kept_for_several_origins(run: Any) -> None:
    async def main() -> None:
        hosts = Hosts()
        await hosts.start()
        async with librealtime.RESTClient() as client:
            for number in range(24):
                await client.get(hosts.url(number % 12))
        assert hosts.opened == 12
        await hosts.stop()

    run(main())


def test_only_so_many_connections_are_kept(run: Any) -> None:
    """A program may send requests to any number of servers."""

    async def main() -> None:
        hosts = Hosts()
        await hosts.start()
        async with librealtime.RESTClient() as client:
            most = 0
            for number in range(400):
                await client.get(hosts.url(number))
                most = max(most, hosts.idle)
            assert hosts.opened == 400 and 200 < most <= 260
        await hosts.stop()

    run(main())
