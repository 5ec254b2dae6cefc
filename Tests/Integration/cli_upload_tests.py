"""The command-line tool sends files and pipes as request bodies, while it reads them."""

import asyncio
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading

from command_line import INTERRUPTED, OTHER, REFUSED, Terminal, Tool, ends, http, running
from harness import PATIENCE_S, expect
from servers import Peer, Servers

LARGE = 200_000_000
#: Half of the size of the body.
MOST_RESIDENT = 100_000_000


class Upload:
    """Receives bodies, counts them, answers with the given statuses, then with 200 and "done"."""

    def __init__(self, *statuses: int, keep: bool = True) -> None:
        self.bodies: list[bytes] = []
        self.sizes: list[int] = []
        #: Content-Length, or "chunked".
        self.framings: list[str] = []
        self.types: list[str] = []
        self._statuses = list(statuses)
        self._keep = keep

    async def head(self, peer: Peer) -> None:
        self.framings.append(peer.header("Content-Length") or peer.header("Transfer-Encoding"))
        self.types.append(peer.header("Content-Type"))
        self.bodies.append(b"")
        self.sizes.append(0)

    async def piece(self, peer: Peer, most: int) -> int:
        """Reads at most this many bytes of the rest; 0 at the end."""
        framing = self.framings[-1]
        if framing == "chunked":
            size = int(await peer.reader.readuntil(b"\r\n"), 16)
            data = (await peer.reader.readexactly(size + 2))[:-2]
        else:
            size = min(most, int(framing) - self.sizes[-1])
            data = await peer.reader.readexactly(size)
        self.sizes[-1] += len(data)
        if self._keep:
            self.bodies[-1] += data
        return len(data)

    async def answer(self, peer: Peer) -> None:
        status = self._statuses.pop(0) if self._statuses else 200
        head = f"HTTP/1.1 {status} So\r\nContent-Length: 4\r\nRetry-After: 0\r\n"
        await peer.send(f"{head}Connection: close\r\n\r\ndone".encode())

    async def __call__(self, peer: Peer) -> None:
        await self.head(peer)
        while await self.piece(peer, 1 << 20):
            pass
        await self.answer(peer)


def test_files_have_a_length(tool: Tool, servers: Servers) -> None:
    """Also as standard input, from its current offset."""
    server = Upload()
    url = http(servers.script(server))
    data = bytes(range(256)) * 1000
    with tempfile.NamedTemporaryFile() as file:
        for content in (data, b""):
            file.seek(0)
            file.truncate()
            file.write(content)
            file.flush()
            tool.run("put", url, "--data-file", file.name)
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 56_000, os.SEEK_SET)
        with running(tool, "post", url, "--data-file", "-", stdin=file) as process:
            ends(process, 0)
    expect(server.bodies == [data, b"", data[56_000:]], f"{server.sizes}")
    expect(server.framings == ["256000", "0", "200000"], f"{server.framings}")
    expect(set(server.types) == {"application/octet-stream"}, f"{server.types}")


def test_pipes_come_in_chunks(tool: Tool, servers: Servers) -> None:
    """Each piece is sent as it comes: the test writes the next when the server has the last."""
    came: list[threading.Event] = [threading.Event() for _ in range(3)]
    server = Upload()

    async def script(peer: Peer) -> None:
        await server.head(peer)
        for event in came:
            await server.piece(peer, 0)
            event.set()
        expect(await server.piece(peer, 0) == 0, "more than was written")
        await server.answer(peer)

    arguments = ("post", http(servers.script(script)), "--data-file", "-", "--type", "text/x")
    with running(tool, *arguments) as process:
        assert process.stdin is not None
        for event in came:
            process.stdin.write(b"some")
            process.stdin.flush()
            expect(event.wait(PATIENCE_S), "it was not sent")
        process.stdin.close()
        ends(process, 0)
    expect(server.framings == ["chunked"] and server.bodies == [b"some" * 3], f"{server.bodies}")
    expect(server.types == ["text/x"], f"{server.types}")


def test_files_are_sent_again(tool: Tool, servers: Servers) -> None:
    """After a retryable status, and after the connection broke within the body."""
    data = os.urandom(300_000)
    server = Upload(503)

    async def broken(peer: Peer) -> None:
        if not server.framings:
            await server.head(peer)
            await server.piece(peer, 1000)
            return peer.writer.transport.abort()
        await server(peer)

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        tool.run("put", http(servers.script(broken)), "--data-file", file.name)
    expect(server.bodies[1:] == [data, data], f"{server.sizes}")


def test_pipes_are_sent_once(tool: Tool, servers: Servers) -> None:
    """Data read from a pipe cannot be read again, so the response is final."""
    server = Upload(503)
    url = http(servers.script(server))
    result = tool.run("put", url, "--data-file", "-", text="some", status=REFUSED)
    expect(server.bodies == [b"some"], f"{server.bodies}")
    expect(result.stdout == "done" and "503" in result.stderr, result.stderr)


def resident(process: "subprocess.Popen[bytes]") -> int:
    """The process's peak memory, in bytes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def takes_little_memory(
    tool: Tool, servers: Servers, framing: str, path: str, **options: object
) -> None:
    server = Upload(keep=False)
    whole, measured = threading.Event(), servers.event()

    async def script(peer: Peer) -> None:
        await server.head(peer)
        while await server.piece(peer, 1 << 20):
            pass
        whole.set()
        await measured.wait()
        await server.answer(peer)

    url = http(servers.script(script))
    with running(tool, "put", url, "--data-file", path, **options) as process:
        expect(whole.wait(PATIENCE_S), f"{server.sizes} bytes came")
        most = resident(process)
        servers.set(measured)
        ends(process, 0)
    expect(server.sizes == [LARGE], f"{server.sizes} bytes came")
    expect(server.framings == [framing], f"{server.framings}")
    expect(0 < most < MOST_RESIDENT, f"{most} bytes resident")


def test_large_files_are_not_kept(tool: Tool, servers: Servers) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(LARGE)
        takes_little_memory(tool, servers, str(LARGE), file.name)


def test_large_pipes_are_not_kept(tool: Tool, servers: Servers) -> None:
    command = ["head", "-c", str(LARGE), "/dev/zero"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        takes_little_memory(tool, servers, "chunked", "-", stdin=writer.stdout)


def test_files_that_change_are_reported(tool: Tool, servers: Servers) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(LARGE)

        async def script(peer: Peer) -> None:
            file.truncate(1000)
            await peer.read_to_end()

        url = http(servers.script(script))
        said = tool.run("put", url, "--data-file", file.name, status=OTHER).stderr
        expect(file.name in said and "became shorter" in said, said)


def test_folders_cannot_be_bodies(tool: Tool) -> None:
    said = tool.run("put", "http://127.0.0.1:1/", "--data-file", "/tmp", status=OTHER).stderr
    expect("/tmp" in said and "Is a directory" in said, said)


def test_waiting_for_input_is_interrupted(tool: Tool, servers: Servers) -> None:
    came = threading.Event()

    async def script(peer: Peer) -> None:
        came.set()
        await peer.read_to_end()

    with running(tool, "post", http(servers.script(script)), "--data-file", "-") as process:
        expect(came.wait(PATIENCE_S), "no request")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_uploads_are_shown(tool: Tool, servers: Servers) -> None:
    """Progress is shown on a terminal, and removed before the response is shown there."""
    server = Upload(keep=False)
    seen = servers.event()

    async def script(peer: Peer) -> None:
        await server.head(peer)
        # Read slowly, until the screen has shown it.
        while server.sizes[-1] < LARGE // 2 and not seen.is_set():
            await server.piece(peer, 100_000)
            await asyncio.sleep(0.01)
        await seen.wait()
        while await server.piece(peer, 1 << 20):
            pass
        await server.answer(peer)

    with tempfile.NamedTemporaryFile() as file:
        file.truncate(LARGE)
        url = http(servers.script(script))
        with Terminal(tool, "put", url, "--data-file", file.name) as screen:
            screen.expect(" of 200.0 MB, ")
            servers.set(seen)
            screen.expect("done\r\n")
            ends(screen.process, 0)
    shown = screen.said.replace("\r\n", "\n")
    expect("sent " in shown, repr(shown))
    expect(shown.endswith("\rdone\n"), repr(shown))
    expect(server.sizes == [LARGE], f"{server.sizes}")


def test_typed_bodies_are_sent(tool: Tool, servers: Servers) -> None:
    server = Upload()
    url = http(servers.script(server))
    with Terminal(tool, "post", url, "--data-file", "-") as screen:
        screen.type("hello\n\x04")
        screen.expect("done\r\n")
        ends(screen.process, 0)
    expect(server.bodies == [b"hello\n"], f"{server.bodies}")
