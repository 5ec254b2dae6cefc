"""The addresses of a host: looked up again for every attempt, and raced. The clients are processes
whose lookups names.c answers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import pathlib
import queue
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from harness import PATIENCE_S, ROOT, Failed, expect, in_namespaces
from namespaces import SERVER, Wire

#: Every object, and how its client is started.
OBJECTS = ["websocket", "eventsource", "longpoll", "rest", "spreadbot", "pusher", "ddp"]
REFUSAL = b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 0\r\n\r\n"


class Host:
    """Accepts connections at an address, and answers the head of each one's first request."""

    def __init__(
        self,
        address: str,
        port: int,
        answer: Callable[[socket.socket, bytes], None],
        listener: socket.socket | None = None,
    ) -> None:
        self.heads: queue.Queue[bytes] = queue.Queue()
        self._answer = answer
        self._listener = listener or socket.create_server((address, port))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                head = b""
                while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                    head += data
                if not head:
                    continue
                self.heads.put(head)
                self._answer(connection, head)

    def asked(self) -> bytes:
        try:
            return self.heads.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed("no request arrived") from None

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for one in [self._listener, *self._open]:
            one.close()


class Names:
    """What clients find for names, and what they have looked up."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._file = folder / "names"
        self._lookups = folder / "lookups"
        self._lookups.touch()
        self.library = folder / "names.so"
        source = ROOT / "Tests" / "Integration" / "names.c"
        command = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", self.library]
        subprocess.run([*command, source, "-ldl"], check=True)

    def set(self, name: str, *addresses: str) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(" ".join([name, *addresses]) + "\n")
        fresh.rename(self._file)

    @property
    def lookups(self) -> list[str]:
        return self._lookups.read_text().split()

    @contextlib.contextmanager
    def client(
        self, kind: str, place: str, prefix: Sequence[str] = ()
    ) -> Iterator[subprocess.Popen[str]]:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "NAMES": str(self._file),
            "LOOKUPS": str(self._lookups),
            "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
        }
        program = ROOT / "Tests" / "Integration" / "mover.py"
        process = subprocess.Popen(
            [*prefix, sys.executable, program, kind, place],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def names() -> Iterator[Names]:
    with tempfile.TemporaryDirectory() as folder:
        yield Names(pathlib.Path(folder))


def accepted(head: bytes) -> bytes:
    """A response to any of the clients, with one message."""
    if b"upgrade: websocket" not in head.lower():
        kind = b"text/event-stream" if b"text/event-stream" in head else b"text/plain"
        return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 9\r\n\r\ndata: b\n\n" % kind
    lines = head.split(b"\r\n")
    key = next(line for line in lines if line.lower().startswith(b"sec-websocket-key"))
    guid = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    proof = base64.b64encode(hashlib.sha1(key.split()[1] + guid).digest())
    head = b"HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return head + b"Sec-WebSocket-Accept: %s\r\n\r\n\x81\x01b" % proof


def accept(connection: socket.socket, head: bytes) -> None:
    connection.sendall(accepted(head))


def accept_once(connection: socket.socket, head: bytes) -> None:
    """The same; a further request needs another connection."""
    is_upgrade = b"upgrade: websocket" in head.lower()
    reply = accepted(head)
    connection.sendall(
        reply if is_upgrade else reply.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    )


# Looked up again


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("end", ["dropped", "refused", "unavailable", "kept", "ill"])
def test_a_host_that_moves_is_found(names: Names, kind: str, end: str) -> None:
    """The name moves while the first attempt is under way, whose end makes another one follow. No
    attempt goes to the old address any more, even if the server keeps its connection open."""

    def move(connection: socket.socket, head: bytes) -> None:
        names.set("host.names.test", "127.0.0.2")
        if end in ("kept", "ill"):
            is_ill = end == "ill" and b"upgrade: websocket" not in head.lower()
            kept = REFUSAL.replace(b"Connection: close\r\n", b"")
            connection.sendall(kept.replace(b"503", b"500") if is_ill else kept)
            # A further request, or the end of the connection.
            if data := connection.recv(65536):
                old.heads.put(data)
        if end == "unavailable":
            connection.sendall(REFUSAL)
        connection.close()

    with contextlib.ExitStack() as stack:
        old = stack.enter_context(contextlib.closing(Host("127.0.0.1", 0, move)))
        new = stack.enter_context(contextlib.closing(Host("127.0.0.2", old.port, accept_once)))
        first = "127.0.0.3" if end == "refused" else "127.0.0.1"
        names.set("host.names.test", first)
        stack.enter_context(names.client(kind, f"host.names.test:{old.port}"))
        if end == "refused":
            while not names.lookups:
                pass
            names.set("host.names.test", "127.0.0.2")
        new.asked()
        if kind in ("eventsource", "longpoll", "rest"):
            new.asked()  # not on the connection to the old address, if that is still open
        expect(len(names.lookups) >= 2 or end == "refused", f"{names.lookups}")
        expect(old.heads.qsize() == (end != "refused"), "the old address was tried again")


# Raced


def stalled(address: str, port: int, stack: contextlib.ExitStack) -> None:
    """Makes an address swallow connections: its listener's queue is full."""
    listener = stack.enter_context(socket.create_server((address, port), backlog=0))
    for _ in range(16):
        filler = stack.enter_context(socket.socket())
        filler.settimeout(0.2)
        try:
            filler.connect(listener.getsockname())
        except TimeoutError:
            return
    raise Failed("a listener with a full queue still accepts connections")


@pytest.mark.parametrize("kind", ["once", "one_attempt", "eventsource"])
@pytest.mark.parametrize("silent", [["127.0.0.3"], ["127.0.0.3", "127.0.0.4", "127.0.0.5"]])
def test_silent_addresses_do_not_eat_the_attempt(
    names: Names, kind: str, silent: list[str]
) -> None:
    """With default options, the first attempt reaches the last address."""
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(contextlib.closing(Host("127.0.0.2", 0, accept)))
        for address in silent:
            stalled(address, host.port, stack)
        # ::1 refuses.
        names.set("host.names.test", *silent[:1], "::1", *silent[1:], "127.0.0.2")
        client = stack.enter_context(names.client(kind, f"host.names.test:{host.port}"))
        assert client.stdout is not None
        expect(client.stdout.readline().strip() in ("b", "data: b"), "it did not connect")
        expect(names.lookups == ["host.names.test"], f"{names.lookups}")
        expect(host.heads.qsize() == 1, "it connected more than once")


def test_the_error_names_each_address(names: Names) -> None:
    with contextlib.ExitStack() as stack:
        reserved = stack.enter_context(socket.socket())
        reserved.bind(("127.0.0.2", 0))
        port = reserved.getsockname()[1]
        names.set("host.names.test", "127.0.0.2", "127.0.0.3")
        client = stack.enter_context(names.client("one_attempt", f"host.names.test:{port}"))
        assert client.stdout is not None
        line = client.stdout.readline()
        text = (
            f"cannot connect to host.names.test:{port}: connection refused (127.0.0.2:{port}),"
            f" connection refused (127.0.0.3:{port})"
        )
        expect(line.startswith("RT_ERROR_CONNECT") and text in line, line)


def test_a_silent_name_server_blocks_nothing(names: Names) -> None:
    """The time limit counts, and the process ends although its lookup does not."""
    names.set("host.names.test", "!")
    with names.client("waiting", "host.names.test:1") as client:
        output = client.communicate(timeout=PATIENCE_S)[0]
        expect(client.returncode == 0, f"exit code {client.returncode}")
    expect(output.startswith("RT_ERROR_TIMEOUT"), output)
    expect("its name is still being looked up" in output, output)


def test_an_unknown_name(names: Names) -> None:
    names.set("other.names.test", "127.0.0.1")
    with names.client("one_attempt", "host.names.test:1") as client:
        output = client.communicate(timeout=PATIENCE_S)[0]
    expect(output.startswith("RT_ERROR_RESOLVE"), output)
    expect("its name cannot be resolved" in output, output)


# Without a network


@in_namespaces
@pytest.mark.parametrize("kind", OBJECTS)
def test_a_name_of_this_machine_needs_no_network(names: Names, kind: str) -> None:
    """It is not in /etc/hosts, so only a lookup can tell."""
    with Wire() as wire, contextlib.ExitStack() as stack:
        wire.client("ip link set c0 down")
        listener = wire.listen(at_client=True)
        listener.listen()
        host = stack.enter_context(contextlib.closing(Host("", 0, accept, listener)))
        names.set("host.names.test", "192.0.2.1", "127.0.0.1")
        stack.enter_context(names.client(kind, f"host.names.test:{host.port}", wire.inside))
        host.asked()


@in_namespaces
def test_a_name_that_begins_to_lead_here_is_tried(names: Names) -> None:
    """Nothing reports that a name leads elsewhere, so it is looked up again while objects wait."""
    with Wire() as wire, contextlib.ExitStack() as stack:
        wire.client("ip link set c0 down")
        listener = wire.listen(at_client=True)
        listener.listen()
        host = stack.enter_context(contextlib.closing(Host("", 0, accept, listener)))
        names.set("host.names.test", "192.0.2.1")
        for kind in OBJECTS:
            stack.enter_context(names.client(kind, f"host.names.test:{host.port}", wire.inside))
        while len(names.lookups) < len(OBJECTS):
            pass
        names.set("host.names.test", "127.0.0.1")
        for _ in OBJECTS:
            host.asked()


@in_namespaces
def test_the_wait_for_a_network_is_reported(names: Names) -> None:
    """Once by each object, before its first attempt, which follows when there is a network."""

    def is_silent(connection: socket.socket, head: bytes) -> None:
        pass

    names.set("host.names.test", SERVER)
    with Wire() as wire, contextlib.ExitStack() as stack:
        wire.client("ip link set c0 down")
        listener = wire.listen()
        listener.listen()
        host = stack.enter_context(contextlib.closing(Host("", 0, is_silent, listener)))
        place = f"host.names.test:{host.port}"
        client = stack.enter_context(names.client("told", place, wire.inside))
        assert client.stdout is not None
        lines = sorted(client.stdout.readline() for _ in OBJECTS)
        peers = {kind: f"GET http://{place}/" if kind == "rest" else place for kind in OBJECTS}
        told = [f"{kind} None {peers[kind]}: no network reaches it\n" for kind in sorted(OBJECTS)]
        expect(lines == told, f"{lines}")
        wire.client("ip link set c0 up")
        for _ in OBJECTS:
            host.asked()
        client.kill()
        more = client.stdout.read()
        expect(more == "", f"told more: {more}")


@in_namespaces
def test_an_attempt_that_is_not_repeated_needs_no_network(names: Names) -> None:
    """The system's error says what is wrong."""
    names.set("host.names.test", "192.0.2.1")
    kinds = ["ddp", "eventsource", "pusher", "websocket"]
    with Wire() as wire:
        wire.client("ip link set c0 down")
        with names.client("single", "host.names.test:1", wire.inside) as client:
            assert client.stdout is not None
            lines = sorted(client.stdout.readline() for _ in kinds)
    for kind, line in zip(kinds, lines, strict=True):
        expect(line.startswith(f"{kind} None ") and "network is unreachable" in line, line)


@in_namespaces
def test_a_deadline_counts_without_a_network(names: Names) -> None:
    names.set("host.names.test", "192.0.2.1")
    with Wire() as wire:
        wire.client("ip link set c0 down")
        with names.client("hurried", "host.names.test:1", wire.inside) as client:
            output = client.communicate(timeout=PATIENCE_S)[0]
    expect(output.startswith("RT_ERROR_DEADLINE"), output)
    expect("waiting for a network" in output, output)
