"""Reachability in network namespaces: links, addresses and routes come and go."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from command_line import Tool, ends, http, line_of, running
from harness import PATIENCE_S, Build, Failed, Probe, also_under_valgrind, expect, in_namespaces
from namespaces import SERVER, Wire
from servers import Peer, Servers, frame

#: From a change to its report; a third of it is the longest delay to combine changes.
PROMPTLY_S = 1.0
#: Retries without delay, and often.
QUICKLY = "10,40,0"

pytestmark = in_namespaces


class Watcher:
    """Tests/Integration/reachability.c in a namespace: its output, line by line."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self.log: list[str] = []
        self._threads = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_log, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def expect(self, line: str) -> None:
        try:
            found = self._lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed(f"expected {line!r}, received nothing: {''.join(self.log)}") from None
        expect(found == line, f"expected {line!r}, received {found!r}: {''.join(self.log)}")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join()
        expect(code == 0, f"exit code {code}: {''.join(self.log)}")
        expect(self._lines.empty(), "it printed more")


@contextlib.contextmanager
def watcher(build: Build, wire: Wire, *prefix: str, valgrind: bool = False) -> Iterator[Watcher]:
    program = build.helper("reachability")
    made = Watcher(
        [*wire.inside, *prefix, *build.command(program, valgrind)], build.environment(valgrind)
    )
    try:
        yield made
        made.end()
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()


# Without a connection


def test_link_is_lost_and_returns(build: Build) -> None:
    with Wire() as wire, watcher(build, wire) as watch:
        watch.expect("online")
        for _ in range(2):
            wire.client("ip link set c0 down")
            watch.expect("offline")
            # Its address is back, too, and so is the route to its network.
            wire.client("ip link set c0 up")
            watch.expect("online")
        # Loopback does not count as a network.
        wire.client("ip link set c0 down")
        watch.expect("offline")
        wire.client("ip link set lo down; ip link set lo up; ip link del c0")


def test_address_is_removed_and_returns(build: Build) -> None:
    with Wire() as wire, watcher(build, wire) as watch:
        watch.expect("online")
        wire.client("ip addr flush dev c0 scope global")
        watch.expect("offline")
        # A link-local address is not enough to reach names.
        wire.client("ip addr add 169.254.7.7/16 dev c0; ip addr add 2001:db8::2/64 dev c0")
        watch.expect("online")


def test_route_is_removed_and_returns(build: Build) -> None:
    with Wire() as wire, watcher(build, wire) as watch:
        watch.expect("online")
        # All but the link-local routes.
        wire.client("ip route del default; ip route del 10.77.0.0/24")
        watch.expect("offline")
        wire.client("ip route add unreachable 198.51.100.0/24")
        wire.client("ip route add 203.0.113.0/24 dev c0")
        watch.expect("online")


@also_under_valgrind
def test_cable_is_cut(build: Build, grind: bool) -> None:
    """The link stays up, without a carrier."""
    with Wire() as wire, watcher(build, wire, valgrind=grind) as watch:
        watch.expect("online")
        wire.server("ip link set s0 down")
        watch.expect("offline")
        wire.server("ip link set s0 up")
        watch.expect("online")


def test_overrun(build: Build) -> None:
    """The kernel drops events that a stalled program does not read (ENOBUFS)."""
    with Wire() as wire, watcher(build, wire) as watch:
        watch.expect("online")
        watch.process.send_signal(signal.SIGSTOP)
        try:
            batch = "".join(
                f"addr add 10.{78 + number // 200}.{number % 200}.1/32 dev c0\n"
                for number in range(2000)
            )
            subprocess.run([*wire.inside, "ip", "-batch", "-"], input=batch, text=True, check=True)
            wire.client("ip link set c0 down")
        finally:
            watch.process.send_signal(signal.SIGCONT)
        watch.expect("offline")
        wire.client("ip link set c0 up")
        watch.expect("online")


def test_changes_are_prompt(build: Build) -> None:
    """A busy machine may be late, so the best of several counts."""
    with Wire() as wire, watcher(build, wire) as watch:
        watch.expect("online")
        best = {"down": PATIENCE_S * 1.0, "up": PATIENCE_S * 1.0}
        for _ in range(4):
            for change, line in (("down", "offline"), ("up", "online")):
                wire.client(f"ip link set c0 {change}")
                # The program may have reported it before `ip` has ended.
                start = time.monotonic()
                watch.expect(line)
                best[change] = min(best[change], time.monotonic() - start)
        for change, took in best.items():
            expect(took < PROMPTLY_S, f"link {change} was reported after {took:.2f} s")


def test_netlink_is_forbidden(build: Build) -> None:
    """Then everything counts as reachable, and the log says so once, for any number of monitors."""
    with Wire() as wire:
        wire.client("ip link set c0 down")
        forbidding = str(build.helper("without_netlink"))
        with watcher(build, wire, forbidding) as watch:
            watch.expect("online")
        warnings = [line for line in watch.log if line.startswith("log 2 ")]
        expect(len(warnings) == 1, f"warnings: {warnings}")
        expect("always" in warnings[0] and "Permission denied" in warnings[0], warnings[0])


# With a connection


async def echo(peer: Peer) -> None:
    await peer.send(peer.answer())
    while True:
        opcode, payload = await peer.read_frame()
        await peer.send(frame(opcode, payload))
        if opcode == 8:
            return


def echoes(probe: Probe, seed: int) -> None:
    checksum = probe.ask(f"text 100 {seed}", "sent (.*)")[1]
    probe.expect(f"text 100 {checksum}")


def test_websocket_reconnects(build: Build, servers: Servers) -> None:
    """The cable is cut: the connection waits without attempts, and returns by itself."""
    with Wire() as wire:
        url = servers.script(echo, host=SERVER, at=wire.listen())
        with Probe(
            build, url, prefix=wire.inside, reconnect=QUICKLY, ping_interval_ms=200,
            pong_timeout_ms=300, open_timeout_ms=2000, log=4,
        ) as probe:  # fmt: skip
            probe.expect("open .*")
            echoes(probe, 1)
            wire.client("ip link set c0 down")
            probe.expect("error RT_ERROR_(TIMEOUT|CONNECTION_LOST) .*")
            probe.expect("lost [0-9]+ attempt 0 in -1")
            # Nothing is printed, so nothing was tried.
            probe.tell("state")
            probe.expect("state 3")
            wire.client(f"ip link set c0 up; ip route add default via {SERVER}")
            probe.expect("attempt 0")
            # The neighbours may have to find each other first.
            while not (line := probe.next()).startswith("open "):
                expect(line.startswith(("error ", "lost ", "attempt ")), f"received {line!r}")
            echoes(probe, 2)
            probe.close()


def test_websocket_starts_without_a_network(build: Build, servers: Servers) -> None:
    """The first attempt waits, too."""
    with Wire() as wire:
        wire.client("ip link set c0 down")
        url = servers.script(echo, host=SERVER, at=wire.listen())
        with Probe(build, url, prefix=wire.inside, reconnect="10,40,1", log=4) as probe:
            probe.expect("error RT_ERROR_CONNECT .*: no network reaches it")
            probe.expect("lost 1006 attempt 0 in -1")
            # Nothing is printed, so nothing was tried.
            probe.tell("state")
            probe.expect("state 3")
            wire.client("ip link set c0 up")
            probe.expect("attempt 0")
            probe.expect("open .*")
            echoes(probe, 1)
            probe.close()


def drops(visits: list[int]) -> Callable[[Peer], object]:
    async def script(peer: Peer) -> None:
        visits.append(1)
        if len(visits) > 2:
            await echo(peer)
        await peer.send(peer.answer())

    return script


def test_websocket_to_this_machine(build: Build, servers: Servers) -> None:
    """A connection to this machine needs no network."""
    with Wire() as wire:
        wire.client("ip link set c0 down")
        url = servers.script(drops([]), at=wire.listen(at_client=True))
        with Probe(build, url, prefix=wire.inside, reconnect=QUICKLY, log=4) as probe:
            for attempt in (1, 2):
                probe.expect("open .*")
                probe.expect("error RT_ERROR_CONNECTION_LOST .*")
                probe.expect(f"lost 1006 attempt {attempt} in {attempt * 10}")
                probe.expect(f"attempt {attempt}")
            probe.expect("open .*")
            probe.close()


def test_websocket_without_netlink(build: Build, servers: Servers) -> None:
    """Attempts are made and counted as if there were a network."""
    with Wire() as wire:
        wire.client("ip link set c0 down")
        url = servers.script(echo, host=SERVER, at=wire.listen())
        prefix = [*wire.inside, os.fspath(build.helper("without_netlink"))]
        with Probe(build, url, prefix=prefix, reconnect=QUICKLY, log=4) as probe:
            for attempt, delay_ms in ((1, 10), (2, 20), (3, 40)):
                probe.expect("error RT_ERROR_CONNECT .*")
                probe.expect(f"lost 1006 attempt {attempt} in {delay_ms}")
                probe.expect(f"attempt {attempt}")


def test_tool_waits_for_the_network(build: Build, servers: Servers) -> None:
    """The tool also prints that it waits."""

    async def script(peer: Peer) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        await peer.send(f"{head}data: hello\n\n".encode())
        await peer.read_to_end()

    tool = Tool(build)
    with Wire() as wire:
        wire.client("ip link set c0 down")
        url = http(servers.script(script, host=SERVER, at=wire.listen()))
        with running(tool, "sse", url, "--count", "1", prefix=wire.inside) as process:
            expect("no network" in line_of(process, "stderr"), "not told")
            wire.client("ip link set c0 up")
            # Once: the next line is about the connection.
            expect("connected to" in line_of(process, "stderr"), "told more than once")
            expect(line_of(process) == "hello", "no event")
            ends(process, 0)


async def confirm(peer: Peer) -> None:
    """A Pusher server that has nothing to say."""
    await peer.send(peer.answer())
    established = r'{"event":"pusher:connection_established","data":"{\"socket_id\":\"1.1\"}"}'
    await peer.send(frame(1, established.encode()))
    await peer.read_to_end()


async def greet(peer: Peer) -> None:
    """A Meteor server that answers the question for a session."""
    await peer.send(peer.answer())
    await peer.read_frame()
    await peer.send(frame(1, b'{"msg":"connected","session":"S"}'))
    await peer.read_to_end()


@pytest.mark.parametrize("kind", ["pusher", "ddp", "ws"])
def test_tool_connects_when_the_network_returns(build: Build, servers: Servers, kind: str) -> None:
    """It does not end, although it has never been connected."""
    script = {"pusher": confirm, "ddp": greet, "ws": echo}[kind]
    with Wire() as wire:
        wire.client("ip link set c0 down")
        url = servers.script(script, host=SERVER, at=wire.listen())
        host, port = url.removeprefix("ws://").split("/")[0].rsplit(":", 1)
        arguments = {
            "pusher": ["--host", host, "--port", port, "--no-tls", "--key", "k", "news"],
            "ddp": [f"ws://{host}:{port}", "sub", "posts"],
            "ws": [url, "--reconnect"],
        }[kind]
        with running(Tool(build), kind, *arguments, prefix=wire.inside) as process:
            line = line_of(process, "stderr")
            while "connecting" in line or "each line" in line:
                line = line_of(process, "stderr")
            expect(f"{host}:{port}: no network reaches it" in line, f"told {line!r}")
            wire.client("ip link set c0 up")
            while "connected" not in (line := line_of(process, "stderr")):
                expect("no network" not in line, f"told again: {line!r}")
