"""The command-line tool in pipes: other programs read its output or write its input, or do not."""

import os
import pathlib
import select
import signal
import subprocess
import time

from command_line import DONE, INTERRUPTED, OTHER, UNREAD, USAGE, Tool, ends, http, line_of, running
from harness import PATIENCE_S, expect
from servers import Peer, Servers, frame


def fills(process: subprocess.Popen[bytes]) -> None:
    """Waits until the pipe of its standard output is full. How many bytes that are depends on the
    sizes of its writes, because some do not fill their pages."""
    pipe = os.open(f"/proc/{process.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while select.select([], [pipe], [], 0)[1]:
            expect(process.poll() is None, "it has ended")
            time.sleep(0.01)
    finally:
        os.close(pipe)


def waits_in_write(process: subprocess.Popen[bytes]) -> None:
    """Waits until one of its threads waits for room in a pipe."""
    threads = pathlib.Path(f"/proc/{process.pid}/task")
    while not any("pipe_write" in path.read_text() for path in threads.glob("*/wchan")):
        expect(process.poll() is None, "it has ended")
        time.sleep(0.01)


def spent(process: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU time."""
    with open(f"/proc/{process.pid}/stat") as stat:
        times = stat.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def test_interrupted_with_a_reader_that_does_not_read(tool: Tool, servers: Servers) -> None:
    """The tool waits for the reader no longer than for a closing handshake."""

    async def flood(peer: Peer) -> None:
        await peer.send(peer.answer())
        while True:
            await peer.send(frame(1, b"line") * 1000)

    with running(tool, "ws", servers.script(flood)) as process:
        assert process.stdout is not None
        fills(process)
        process.send_signal(signal.SIGTERM)
        ends(process, INTERRUPTED)


def test_interrupted_when_only_the_last_output_is_not_read(tool: Tool, servers: Servers) -> None:
    """The request is over, and its result waits for room in the pipe."""

    async def answer(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntext")

    reader, pipe = os.pipe()
    try:
        os.set_blocking(pipe, False)
        while select.select([], [pipe], [], 0)[1]:
            os.write(pipe, bytes(4096))
        os.set_blocking(pipe, True)
        url = http(servers.script(answer))
        with running(tool, "get", "--json", url, stdout=pipe) as process:
            waits_in_write(process)
            process.send_signal(signal.SIGTERM)
            ends(process, INTERRUPTED)
    finally:
        os.close(reader)
        os.close(pipe)


def test_reader_goes_away(tool: Tool, servers: Servers) -> None:
    async def flood(peer: Peer) -> None:
        await peer.send(peer.answer())
        while True:
            await peer.send(frame(1, b"line") * 1000)

    with running(tool, "ws", servers.script(flood)) as process:
        line_of(process)
        assert process.stdout is not None
        process.stdout.close()
        ends(process, UNREAD)
        assert process.stderr is not None
        said = process.stderr.read()
        expect(said == b"realtime: connected\n", f"said {said!r}")


def test_output_has_no_room(tool: Tool, servers: Servers) -> None:
    with open("/dev/full", "wb") as full:
        process = tool.start("ws", servers.echo(), stdout=full)
        _, said = process.communicate(b"line\n", PATIENCE_S)
        ends(process, OTHER)
    lines = said.decode().splitlines()
    expected = "realtime: standard output cannot be written: No space left on device"
    expect(lines[1:] == [expected], f"said {lines}")


def test_output_that_does_not_block(tool: Tool, servers: Servers) -> None:
    """Its parent made standard output non-blocking, and reads slowly: the tool must wait without
    polling."""
    line = "x" * 4095

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, line.encode()) * 50 + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    arguments = ("ws", servers.script(script), "--count", "50")
    with running(tool, *arguments, stdout=writer) as process, open(reader) as output:
        os.close(writer)
        fills(process)
        before = spent(process)
        time.sleep(1)
        meanwhile = spent(process) - before
        expect(meanwhile < 0.5, f"{meanwhile} s of CPU in one second")
        expect(output.read() == f"{line}\n" * 50, "not all of it came")
        ends(process, DONE)


def test_input_that_does_not_block(tool: Tool, servers: Servers) -> None:
    """If a non-blocking input has no data yet, that is not its end."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with running(tool, "ws", servers.echo(), "--close", stdin=reader) as process:
        os.close(reader)
        line_of(process, "stderr")
        os.write(writer, b"one\n")
        expect(line_of(process) == "one", "wrong data")
        os.close(writer)
        ends(process, DONE)


def test_standard_streams_that_are_closed(tool: Tool, servers: Servers) -> None:
    """The tool does not need standard error, but the others."""
    url = servers.echo()

    def runs(closed: int, status: int, *arguments: str) -> tuple[str, str]:
        process = tool.start(*arguments, preexec_fn=lambda: os.close(closed))
        output, said = process.communicate(b"line\n", PATIENCE_S)
        ends(process, status)
        return output.decode(), said.decode()

    _, said = runs(1, OTHER, "ws", url, "--count", "1")
    expect("standard output cannot be written: Bad file descriptor" in said, said)
    output, _ = runs(2, DONE, "ws", url, "--count", "1")
    expect(output == "line\n", output)
    _, said = runs(0, OTHER, "post", http(url), "--data-file", "-")
    expect("standard input cannot be read" in said, said)


def test_a_line_without_end(tool: Tool, servers: Servers) -> None:
    """A line is not kept in memory without limit."""
    for arguments, status in (
        (["ws", servers.echo()], USAGE),
        (["listen", http(servers.echo()), "--send"], INTERRUPTED),
    ):
        with open("/dev/zero") as zeros, running(tool, *arguments, stdin=zeros) as process:
            said = ""
            while "line 1 of the input has more than 64 MiB" not in said:
                said += line_of(process, "stderr")
            if status == INTERRUPTED:
                process.send_signal(signal.SIGINT)
            ends(process, status)
