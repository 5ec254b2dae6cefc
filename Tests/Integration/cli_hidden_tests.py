"""The command-line tool shows text of a peer, which may try to control the terminal."""

import json

import pytest
from command_line import DONE, Terminal, Tool, ends
from harness import expect
from servers import Peer, Servers, frame

#: What a terminal obeys or nobody sees, and two joiners, which are shown.
HIDDEN = "\x1b\x9b\u00ad\u061c\u200b\u200e\u2028\u202e\u2060\u2066\ufeff\U000e0041"
SHOWN = "\u200c\u200d\u00e9"


def hides(texts: str) -> None:
    expect(SHOWN in texts, repr(texts))
    expect(not set(HIDDEN) & set(texts), repr(texts))


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_peer_cannot_command_a_terminal(
    tool: Tool, servers: Servers, arguments: list[str]
) -> None:
    async def script(peer: Peer) -> None:
        text = f"<{HIDDEN}{SHOWN}>".encode()
        await peer.send(peer.answer() + frame(1, text) + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    with Terminal(tool, "ws", servers.script(script), *arguments) as screen:
        screen.expect(f"{SHOWN}>")
        hides(screen.said)
        ends(screen.process, DONE)


def test_a_pipe_gets_text_as_it_came(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, HIDDEN.encode()) + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    expect(HIDDEN in tool.run("ws", servers.script(script)).stdout, "text was changed")
    line = tool.run("ws", servers.script(script), "--json").stdout
    found = [json.loads(each).get("data") for each in line.splitlines()]
    expect(HIDDEN in found and not set(HIDDEN) & set(line), line)
