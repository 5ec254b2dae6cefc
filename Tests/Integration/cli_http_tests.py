"""The command-line tool receives events, polls and answers through proxies."""

import fcntl
import pathlib
import resource
import signal
import tempfile
import threading

import pytest
from command_line import (
    INTERRUPTED,
    OTHER,
    REFUSED,
    UNREACHABLE,
    USAGE,
    Tool,
    ends,
    http,
    line_of,
    running,
    says,
)
from harness import PATIENCE_S, expect
from servers import Peer, Servers, frame

# Events

STREAM = (
    "HTTP/1.1 200 OK",
    "Content-Type: text/event-stream",
)
BODY = "id: 1\ndata: one\n\n: note\nevent: tick\ndata: a\ndata: b\n\nid: 3\ndata: three\n\n"


def test_events(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says(*STREAM, body=BODY)))
    result = tool.run("sse", url, "--no-reconnect")
    expect(result.stdout == "one\na\\nb\nthree\n", repr(result.stdout))
    expect("connected to http://127.0.0.1" in result.stderr, result.stderr)


def test_events_as_json(tool: Tool, servers: Servers) -> None:
    ids: list[str] = []

    async def script(peer: Peer) -> None:
        ids.append(peer.header("Last-Event-ID"))
        await peer.send("\r\n".join([*STREAM, "", f"retry: 1\n{BODY}"]).encode())

    url = http(servers.script(script))
    lines = tool.json("sse", url, "--count", "4", "--last-event-id", "0")
    told = [line["event"] for line in lines]
    expect(told == ["open", *["message"] * 3, "lost", "open", "message"], f"{told}")
    tick = {"event": "message", "type": "tick", "id": "1", "data": "a\nb"}
    expect(lines[2] == tick, f"{lines[2]}")
    expect(ids == ["0", "3"], f"{ids}")


def test_events_are_chosen(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says(*STREAM, body="retry: 1\n" + BODY)))
    result = tool.run("sse", url, "--event", "tick", "--event", "tock", "--count", "2")
    expect(result.stdout == "a\\nb\n" * 2, repr(result.stdout))


def test_types_that_look_alike(tool: Tool, servers: Servers) -> None:
    """Types are compared byte by byte."""
    body = "event: e\u0301\ndata: two scalars\n\nevent: \u00e9\ndata: one\n\n"
    url = http(servers.script(says(*STREAM, body=body)))
    result = tool.run("sse", url, "--no-reconnect", "--event", "\u00e9")
    expect(result.stdout == "one\n", repr(result.stdout))


def test_event_stream_is_refused(tool: Tool, servers: Servers) -> None:
    for answer, culprit in (
        (("HTTP/1.1 404 Not Found", "Content-Length: 0"), "404"),
        (("HTTP/1.1 204 No Content",), "204"),
        (("HTTP/1.1 200 OK", "Content-Type: text/html", "Content-Length: 0"), "text/html"),
    ):
        said = tool.run("sse", http(servers.script(says(*answer))), status=REFUSED).stderr
        expect(culprit in said, said)


def test_events_interrupted(tool: Tool, servers: Servers) -> None:
    gone = threading.Event()

    async def script(peer: Peer) -> None:
        await peer.send("\r\n".join([*STREAM, "", "data: one\n\n"]).encode())
        try:
            await peer.read_to_end()
        finally:
            gone.set()

    with running(tool, "sse", http(servers.script(script))) as process:
        expect(line_of(process) == "one", "no event")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
    expect(gone.wait(PATIENCE_S), "the connection is still there")


def test_ids_are_kept(tool: Tool, servers: Servers) -> None:
    """The file keeps ids between runs, however a run ends."""
    ids: list[str] = []

    async def script(peer: Peer) -> None:
        ids.append(peer.header("Last-Event-ID"))
        number = len(ids)
        body = f"id: {number}a\ndata: one\n\nid: {number}b\ndata: two\n\n"
        await peer.send("\r\n".join([*STREAM, "", body]).encode())
        await peer.read_to_end()

    url = http(servers.script(script))
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["sse", url, "--id-file", f"{folder}/ids"]
        # Resumes after the last event that was printed.
        tool.run(*arguments, "--count", "1")
        with running(tool, *arguments) as process:
            expect([line_of(process), line_of(process)] == ["one", "two"], "no events")
            process.send_signal(signal.SIGINT)
            ends(process, INTERRUPTED)
        tool.run(*arguments, "--count", "2")
        expect(ids == ["", "1a", "2b"], f"{ids}")
        # A damaged file does not end the command: it is replaced. One of another program does.
        damaged = pathlib.Path(folder, "ids")
        first, *_ = damaged.read_text().splitlines()
        damaged.write_text(f"{first}\nno ids")
        said = tool.run(*arguments, "--count", "1").stderr
        expect(f"{folder}/ids" in said and "network" not in said, said)
        expect("4a" in damaged.read_text(), damaged.read_text())
        damaged.write_text("no ids")
        said = tool.run(*arguments, "--count", "1", status=OTHER).stderr
        expect(f"{folder}/ids was not written by librealtime" in said, said)
        expect(damaged.read_text() == "no ids" and len(ids) == 4, f"{ids}")


def test_ids_that_do_not_fit(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    """Above the limit of the process for files, which otherwise ends it by a signal."""

    async def script(peer: Peer) -> None:
        await peer.send("\r\n".join([*STREAM, "", "id: 1\ndata: one\n\n"]).encode())
        await peer.read_to_end()

    command = ["sse", http(servers.script(script)), "--id-file", "ids", "--count", "1"]
    limit = (0, 0)
    with running(
        tool,
        *command,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    ) as process:
        output, said = process.communicate()
        ends(process, OTHER)
    expect(output == b"one\n" and not (tmp_path / "ids").exists(), repr(said))
    expect(b"the id file ids cannot be written: File too large" in said, repr(said))


@pytest.mark.parametrize(
    ("options", "status"),
    [(["--count", "2"], OTHER), (["--no-reconnect"], OTHER), ([], INTERRUPTED)],
    ids=["by count", "by the server", "by Ctrl-C"],
)
def test_ids_whose_file_is_in_use(
    options: list[str], status: int, tool: Tool, servers: Servers, tmp_path: pathlib.Path
) -> None:
    """The next run would begin with an event that this one has printed."""

    async def script(peer: Peer) -> None:
        body = "id: 1\ndata: one\n\nid: 2\ndata: two\n\n"
        await peer.send("\r\n".join([*STREAM, "", body]).encode())
        if not options:
            await peer.read_to_end()

    path = tmp_path / "ids"
    command = ["sse", http(servers.script(script)), "--id-file", str(path), *options]
    with path.with_name("ids.lock").open("w") as lock:
        path.with_name("ids.lock").chmod(0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with running(tool, *command) as process:
            got = [line_of(process) for _ in range(2)]
            if not options:
                process.send_signal(signal.SIGINT)
            ends(process, status)
            assert process.stderr is not None
            said = process.stderr.read().decode()
    expect(got == ["one", "two"], f"{got}")
    expect(f"the id file {path} is locked by another process" in said, said)
    expect(not path.exists(), "an id was kept")


# Long polls


class Board:
    """Answers each poll with the next message, and holds the poll after the last one."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = messages
        self.polls: list[tuple[str, str]] = []
        self.held = threading.Event()

    async def __call__(self, peer: Peer) -> None:
        seen = peer.header("If-None-Match") or peer.header("Last-Event-ID")
        self.polls.append((peer.header("Accept"), seen))
        number = len(self.polls)
        if number > len(self.messages):
            self.held.set()
            return await peer.read_to_end()
        body = self.messages[number - 1]
        head = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/plain",
            f"Etag: {number}",
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        await peer.send("\r\n".join([*head, "", ""]).encode() + body)


def test_polls(tool: Tool, servers: Servers) -> None:
    board = Board("ü".encode(), b"two", b"three")
    result = tool.run("poll", http(servers.script(board)), "--count", "2")
    expect(result.stdout == "ü\ntwo\n", repr(result.stdout))
    expect(board.polls[:2] == [("*/*", ""), ("*/*", "1")], f"{board.polls}")


def test_polls_as_json(tool: Tool, servers: Servers) -> None:
    board = Board(b"one", b"\xff")
    url = http(servers.script(board))
    lines = tool.json("poll", url, "--count", "2", "--cursor", "header", "--last-event-id", "0:0")
    expect([line["event"] for line in lines] == ["open", "message", "message"], f"{lines}")
    one = {"event": "message", "type": "text/plain", "id": "784111777:1", "data": "one"}
    expect(lines[1] == one, f"{lines[1]}")
    expect(lines[2]["base64"] == "/w==", f"{lines[2]}")
    expect([seen for _, seen in board.polls] == ["0:0", "784111777:1"], f"{board.polls}")


def test_polls_that_are_refused(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says("HTTP/1.1 403 Forbidden", "Content-Length: 0")))
    said = tool.run("poll", url, status=REFUSED).stderr
    expect("403" in said and "127.0.0.1" in said, said)
    said = tool.run("poll", url, "--cursor", "some", status=USAGE).stderr
    expect("validators" in said, said)
    said = tool.run("poll", url, "--last-event-id", "nonsense", status=USAGE).stderr
    expect("nonsense" in said, said)


def test_a_poll_that_gets_an_event_stream(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says("HTTP/1.1 200 OK", "Content-Type: text/event-stream")))
    said = tool.run("poll", url, status=REFUSED).stderr
    expect(said.endswith("does not end. `realtime sse` prints its events.\n"), said)


def test_polls_interrupted(tool: Tool, servers: Servers) -> None:
    board = Board(b"one")
    with running(tool, "poll", http(servers.script(board))) as process:
        expect(line_of(process) == "one", "no message")
        expect(board.held.wait(PATIENCE_S), "no other poll")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_a_proxy_that_wants_credentials(tool: Tool, servers: Servers) -> None:
    """The error names the proxy, not the server."""
    refusal = ("HTTP/1.1 407 No", 'Proxy-Authenticate: Basic realm="a"', "Content-Length: 0")
    proxy = http(servers.script(says(*refusal)))
    for command in (
        ["get", "http://server.invalid/"],
        ["get", "https://server.invalid/"],
        ["sse", "http://server.invalid/"],
        ["sse", "https://server.invalid/", "--no-reconnect"],
        ["poll", "http://server.invalid/"],
        ["listen", "http://server.invalid/", "--transports", "poll"],
        ["ws", "ws://server.invalid/"],
    ):
        said = tool.run(*command, "--proxy", proxy, status=UNREACHABLE).stderr
        expect("proxy" in said and "407" in said, said)
        expect("proxy's" in said and "--bearer" not in said and "--token" not in said, said)
        expect("refresh" not in said and proxy.split("/")[2] in said, said)


def test_a_proxy_that_refuses(tool: Tool, servers: Servers) -> None:
    """The proxy opens no tunnel, so no server has answered."""
    proxy = http(servers.script(says("HTTP/1.1 403 No", "Content-Length: 0")))
    for command in (
        ["get", "https://server.invalid/"],
        ["ws", "ws://server.invalid/"],
        ["listen", "https://server.invalid/"],
        ["listen", "https://server.invalid/", "--transports", "poll"],
    ):
        said = tool.run(*command, "--proxy", proxy, status=UNREACHABLE).stderr
        expect("answered 403 to CONNECT" in said and "Check the proxy's URL" in said, said)


def test_a_server_that_answers_407(tool: Tool, servers: Servers) -> None:
    """Without a proxy, a 407 is an answer like any other."""
    url = servers.script(says("HTTP/1.1 407 No", "Content-Length: 0"))
    for command in (
        ["get", http(url)],
        ["sse", http(url), "--no-reconnect"],
        ["poll", http(url)],
        ["listen", http(url), "--transports", "poll"],
        ["ws", url],
    ):
        said = tool.run(*command, status=REFUSED).stderr
        expect("407" in said and "proxy" not in said, said)


def test_it_connects_from_an_address(tool: Tool, servers: Servers) -> None:
    """Of every command the server sees the address that was chosen."""
    seen: list[str] = []

    async def script(peer: Peer) -> None:
        seen.append(peer.writer.get_extra_info("peername")[0])
        if peer.header("Upgrade"):
            await peer.send(peer.answer() + frame(1, b"hello"))
            return await peer.read_to_end()
        kind = "text/event-stream" if "event-stream" in peer.header("Accept") else "text/plain"
        body = b"data: hello\n\n"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        await peer.send(head.encode() + body)

    url = servers.script(script)
    web = http(url)
    commands = [
        ["ws", url, "--count", "1"],
        ["sse", web, "--count", "1"],
        ["poll", web, "--count", "1"],
        ["get", web],
        ["listen", web, "--count", "1"],
    ]
    for index, command in enumerate(commands, 2):
        tool.run(*command, "--interface", f"127.0.0.{index}")
        expect(seen == [f"127.0.0.{index}"], f"{command[0]} came from {seen}")
        seen.clear()
    said = tool.run("get", web, "--interface", "nothing0", status=UNREACHABLE).stderr
    expect('no such device for the interface "nothing0"' in said, said)
    expect("See --interface" in said, said)
    expect("--interface" in tool.run("get", web, "--interface", "", status=USAGE).stderr, "usage")
