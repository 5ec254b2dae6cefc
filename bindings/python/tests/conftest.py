"""Shared by all tests. LIBREALTIME_PATH names the library to test."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, TypeVar

import pytest
import trustme
from bots import BotServer
from meteor import DDPServer
from pushers import PusherServer
from servers import WebSocketServer, answers, raw_server
from streams import EventServer
from websockets.asyncio.server import ServerConnection
from websockets.typing import Subprotocol
from wire import Serve, WireServer

# Background processes and their children ignore Ctrl-C, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

T = TypeVar("T")

SOURCE = Path(__file__).resolve().parents[1] / "src"

# A guard against hanging, far above what a test needs on a busy machine; tests wait for events, not
# for a time.
PATIENCE_S = 240


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end."""

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        async def patiently() -> T:
            return await asyncio.wait_for(coroutine, PATIENCE_S)

        return asyncio.run(patiently())

    return run


def pytest_collection_finish() -> None:
    """Spares the collections before and after each test the modules and thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Checks after each test that the library holds no key and no descriptor is left open."""
    from librealtime._core import registry

    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert not registry._entries
    # The thread of a blocking client may still be freeing its loop.
    end = time.monotonic() + PATIENCE_S
    while (leaked := loops_since(before)) and time.monotonic() < end:
        time.sleep(0.001)
    assert not leaked


def loops_since(before: set[str]) -> dict[str, str]:
    """The descriptors of loops that were not open before."""
    return {
        name: target
        for name in set(os.listdir("/proc/self/fd")) - before
        if "[event" in (target := _link(name)) or "[timerfd" in target
    }


@pytest.fixture
def no_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases the library's loop at once, not some time after its last connection."""
    from librealtime._core import reactor

    monkeypatch.setattr(reactor, "LINGER_S", 0)


def _link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def select_subprotocol(_: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The first one known; a client that offers none is accepted, too."""
    return next((name for name in offered if name in ("chat", "echo")), None)


@pytest.fixture(scope="session")
def server() -> Iterator[WebSocketServer]:
    with WebSocketServer(select_subprotocol=select_subprotocol) as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[WebSocketServer]:
    """For tests that check what the server received."""
    with WebSocketServer(max_queue=1) as running:
        yield running


@pytest.fixture
def events() -> Iterator[EventServer]:
    with EventServer() as running:
        yield running


@pytest.fixture
def bots() -> Iterator[BotServer]:
    with BotServer() as running:
        yield running


@pytest.fixture
def pusher_server() -> Iterator[PusherServer]:
    with PusherServer() as running:
        yield running


@pytest.fixture(scope="session")
def meteor_server() -> Iterator[DDPServer]:
    with DDPServer() as running:
        yield running


@pytest.fixture
def app(meteor_server: DDPServer) -> DDPServer:
    """A Meteor server with two players, and a publication of all."""
    control = meteor_server.control
    control.collection("players", insert=True, update=True, remove=True)
    for document in control.find("players"):
        control.remove("players", document["_id"])
    control.insert("players", {"_id": "a", "name": "Ada"}, {"_id": "b", "name": "Bob"})
    control.publication("all", cursors=[{"collection": "players"}])
    return meteor_server


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def server_context(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


@pytest.fixture(scope="session")
def tls_server(authority: trustme.CA) -> Iterator[WebSocketServer]:
    with WebSocketServer(server_context(authority, "localhost")) as running:
        yield running


@pytest.fixture(scope="session")
def wrong_host_server(authority: trustme.CA) -> Iterator[WebSocketServer]:
    with WebSocketServer(server_context(authority, "example.org")) as running:
        yield running


@pytest.fixture
def secure_redirect(authority: trustme.CA) -> Callable[[str], Any]:
    """A TLS server that redirects one request; yields its wss URL."""
    context = server_context(authority, "localhost")

    @contextlib.contextmanager
    def redirecting(target: str) -> Iterator[str]:
        def serve_one(connection: socket.socket) -> None:
            with context.wrap_socket(connection, server_side=True) as secured:
                answers(f"HTTP/1.1 307 Go\r\nLocation: {target}\r\n\r\n".encode())(secured)

        with raw_server(serve_one) as url:
            yield url.replace("ws://127.0.0.1", "wss://localhost")

    return redirecting


@pytest.fixture
def environment() -> dict[str, str]:
    """For separate programs that import the package."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDEVMODE": "1"}


@pytest.fixture
def script(environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Runs a Python program and returns its result."""
    import subprocess

    def run_script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        return subprocess.run(
            [sys.executable, str(path), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    return run_script


@pytest.fixture
def serve() -> Iterator[Callable[[Serve], WireServer]]:
    servers: list[WireServer] = []

    def begin(serve: Serve) -> WireServer:
        servers.append(WireServer(serve))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()
