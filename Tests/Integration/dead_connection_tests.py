"""Connections that die silently, as behind a router that forgot them: no object keeps using one.
This includes HTTP/2, where one connection serves all."""

import asyncio
import contextlib
import itertools
import os
import socket
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import librealtime
import pytest
from command_line import Tool, http, line_of, running
from harness import PATIENCE_S, Build, Failed, expect, in_namespaces
from namespaces import CLIENT, SERVER, Wire
from nchan import Nchan
from patience import patiently
from rest_server import RESTServer
from servers import Peer, Servers
from watch import Watch

#: Timeouts that notice a lost connection.
NOTICED_S = 0.5

_channels = itertools.count(1)


class Relay:
    """Carries bytes to nginx until they are lost; later connections carry them again."""

    def __init__(self, servers: Servers, nchan: Nchan) -> None:
        self.nchan = nchan
        self.connections = 0
        self._lost = 0
        # asyncio keeps no reference to a task that waits for a stream.
        self._tasks: set[asyncio.Task[None] | None] = set()
        self.port = urllib.parse.urlsplit(servers.listen(self._accept)).port

    def url(self, path: str) -> str:
        return f"https://localhost:{self.port}{path}"

    def lose(self) -> None:
        """From now on the existing connections carry nothing, and do not end."""
        self._lost = self.connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._tasks.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.nchan.tls_port)
            with contextlib.closing(writer), contextlib.closing(up_writer):
                await asyncio.gather(
                    self._carry(number, reader, up_writer), self._carry(number, up_reader, writer)
                )
        self._tasks.discard(asyncio.current_task())

    async def _carry(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(1 << 16):
            if number > self._lost:
                writer.write(data)
                await writer.drain()
        writer.close()


Test = Callable[[Relay, dict[str, Any]], Awaitable[None]]


def channel() -> str:
    return f"dead{next(_channels)}"


@pytest.fixture
def relay(servers: Servers, nchan: Nchan) -> Relay:
    return Relay(servers, nchan)


@pytest.fixture(params=[True, False], ids=["HTTP/2", "HTTP/1.1"])
def options(request: pytest.FixtureRequest, nchan: Nchan) -> dict[str, Any]:
    return {"ca_file": nchan.ca_file, "http2": request.param}


async def test_request(relay: Relay, options: dict[str, Any]) -> None:
    """All kept connections are dead, not only the one that failed. Over HTTP/2 the requests that
    follow use the new connection, too."""
    for attempt in patiently(NOTICED_S):
        with attempt as limit:
            await requests_on_dead_connections(relay, options, limit)


async def requests_on_dead_connections(relay: Relay, options: dict[str, Any], limit: float) -> None:
    async with librealtime.RESTClient(relay.url("/"), timeout=limit, **options) as client:
        await asyncio.gather(*(client.get("/rest/protocol") for _ in range(4)))
        kept = relay.connections
        relay.lose()
        for attempts in (2, 1) if options["http2"] else (2,):
            answer = await client.get("/rest/protocol")
            expect(answer.status_code == 200, f"{answer}")
            expect(answer.attempts == attempts, f"{answer.attempts} attempts")
            wanted = "HTTP/2.0" if options["http2"] else "HTTP/1.1"
            expect(answer.text == wanted, answer.text)
    expect(relay.connections == kept + 1, f"{relay.connections} connections, {kept} before")


@contextlib.contextmanager
def watching(relay: Relay, path: str, options: dict[str, Any]) -> Iterator[Watch]:
    watch = Watch(relay.url(path), **options)
    with contextlib.closing(watch.source):
        yield watch


async def test_silence(relay: Relay, options: dict[str, Any]) -> None:
    for attempt in patiently(NOTICED_S):
        with attempt as limit:
            name = channel()
            limits = {"idle_timeout": limit, "response_timeout": 10 * limit}
            with watching(relay, f"/ps/{name}", options | limits) as watch:
                await watch.opened()
                relay.lose()
                await watch.loses("RT_ERROR_TIMEOUT", "sent nothing")
                await watch.opened()
                await asyncio.to_thread(relay.nchan.publish, name, "here")
                await watch.data("here")


async def test_restart(relay: Relay, options: dict[str, Any]) -> None:
    """Without a timeout, a restart leaves the dead connection."""
    name = channel()
    with watching(relay, f"/ps/{name}", options | {"response_timeout": None}) as watch:
        await watch.opened()
        relay.lose()
        watch.source.restart()
        await watch.opened()
        await asyncio.to_thread(relay.nchan.publish, name, "here")
        await watch.data("here")
    expect(relay.connections == 2, f"{relay.connections} connections")


async def test_poll(relay: Relay, options: dict[str, Any]) -> None:
    """If a poll lasts its full time, its connection may be dead."""
    name = channel()
    options |= {"poll_timeout": NOTICED_S, "min_hold": NOTICED_S / 2}
    async with librealtime.LongPoll(relay.url(f"/ps/{name}"), **options) as source:
        for text in ("one", "two"):
            await asyncio.to_thread(relay.nchan.publish, name, text)
            message = await asyncio.wait_for(source.recv(), PATIENCE_S)
            expect(message.text == text, message.text)
            relay.lose()


async def test_probes() -> None:
    """The kernel probes kept connections, because an event stream may use one later and be idle for
    long."""
    with RESTServer() as server:
        async with librealtime.RESTClient(server.url) as client:
            await client.get("/echo")
            with connected_to(server.port) as kept:
                expect(kept.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1, "no probes")
                for option, wanted in (
                    (socket.TCP_KEEPIDLE, 20),
                    (socket.TCP_KEEPINTVL, 5),
                    (socket.TCP_KEEPCNT, 3),
                ):
                    found = kept.getsockopt(socket.IPPROTO_TCP, option)
                    expect(found == wanted, f"{option} is {found}, not {wanted}")


@in_namespaces
def test_vanishes(build: Build, servers: Servers) -> None:
    """The route back disappears silently: an idle stream ends by the default options."""

    async def script(peer: Peer) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        await peer.send(f"{head}data: hello\n\n".encode())
        await peer.read_to_end()

    with Wire() as wire:
        url = http(servers.script(script, host=SERVER, at=wire.listen()))
        with running(Tool(build), "sse", url, prefix=wire.inside) as process:
            expect(line_of(process) == "hello", "no event")
            lost = time.monotonic()
            wire.server(f"ip route add blackhole {CLIENT}/32")
            expect("connected to" in line_of(process, "stderr"), "it did not report the connection")
            told = line_of(process, "stderr")
            noticed = time.monotonic() - lost
            expect("timed out" in told, told)
            expect(20 < noticed < 40, f"noticed after {noticed:.1f} s")


def connected_to(port: int) -> socket.socket:
    """A duplicate of this process's socket that is connected to the port."""
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        with contextlib.suppress(OSError):
            end = socket.socket(fileno=os.dup(number))
            if end.family == socket.AF_INET and end.getpeername()[1] == port:
                return end
    raise Failed(f"nothing is connected to port {port}")
