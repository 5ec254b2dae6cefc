"""`realtime ws`: how standard input becomes messages, and what happens at its end."""

import signal
import tempfile

from command_line import DONE, INTERRUPTED, USAGE, Tool, ends, line_of, running
from harness import PATIENCE_S, expect
from servers import Peer, Servers, frame


def test_all_is_sent_before_it_closes(tool: Tool, servers: Servers) -> None:
    received: list[tuple[int, bytes]] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        while not received or received[-1][0] != 8:
            received.append(await peer.read_frame())
        await peer.send(frame(*received[-1]))

    text = "".join(f"{number}\n" for number in range(1000))
    arguments = ("--no-compress", "--close", "--wait", "0")
    tool.run("ws", servers.script(script), *arguments, text=text)
    expect(received.pop() == (8, b"\x03\xe8"), "no close frame with 1000")
    expect([payload for _, payload in received] == text.encode().split(), "wrong data")


def test_messages_that_the_server_still_sends_are_received(tool: Tool, servers: Servers) -> None:
    """A server that has received a close frame answers nothing any more."""
    text = "".join(f"{number} {'x' * 1000}\n" for number in range(3000))
    result = tool.run("ws", servers.echo(), "--close", text=text)
    expect(result.stdout == text, f"{len(result.stdout)} of {len(text)} characters")


def test_a_close_waits_for_the_server(tool: Tool, servers: Servers) -> None:
    """The tool waits until the server has answered a ping after all messages, however long that
    takes."""
    received: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        received.append((await peer.read_frame())[0])
        opcode, payload = await peer.read_frame()
        received.append(opcode)
        await peer.send(frame(10, payload) + frame(1, b"late"))
        opcode, payload = await peer.read_frame()
        received.append(opcode)
        await peer.send(frame(8, payload))

    arguments = ("--no-compress", "--close", "--wait", "0.1")
    result = tool.run("ws", servers.script(script), *arguments, text="go\n")
    expect(received == [1, 9, 8], f"{received}")
    expect(result.stdout == "late\n", repr(result.stdout))


def test_end_of_input_is_reported(tool: Tool, servers: Servers) -> None:
    with running(tool, "ws", servers.echo()) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.close()
        process.stdin = None
        expect(line_of(process) == "one", "no echo")
        expect("connected" in line_of(process, "stderr"), "not connected")
        said = line_of(process, "stderr")
        expect("input has ended" in said and "--close" in said and "--count" in said, said)
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_input_that_is_not_utf_8(tool: Tool, servers: Servers) -> None:
    with running(tool, "ws", servers.echo()) as process:
        output, said = process.communicate(b"good\n\xff\xfe\n", PATIENCE_S)
        expect(b"line 2 of the input is not UTF-8" in said, repr(said))
        ends(process, USAGE)


def test_binary_input_is_sent_unchanged(tool: Tool, servers: Servers) -> None:
    """A line end is a byte like any other, in both directions."""
    kinds: set[int] = set()

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        while True:
            opcode, payload = await peer.read_frame()
            kinds.add(opcode)
            if opcode == 2:
                expect(0 < len(payload) <= 65536, f"{len(payload)} bytes")
            await peer.send(frame(10 if opcode == 9 else opcode, payload))
            if opcode == 8:
                return

    data = b"\n\n" + bytes(range(256)) * 4000 + b"end\n"
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        arguments = ("--no-compress", "--binary", "--close", "--wait", "0.2")
        with running(tool, "ws", servers.script(script), *arguments, stdin=file) as process:
            output, _ = process.communicate(timeout=PATIENCE_S)
            expect(output == data, f"{len(output)} of {len(data)} bytes, or others")
            ends(process, DONE)
    expect(kinds == {2, 8, 9}, f"{kinds}")
    for data in (b"no line end", b"\n", b"a\n\nb\n"):
        with running(tool, "ws", servers.echo(), "--binary", "--count", "1") as process:
            output, _ = process.communicate(data, PATIENCE_S)
            expect(output == data, repr(output))
            ends(process, DONE)
