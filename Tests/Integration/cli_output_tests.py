"""How the command-line tool writes: each message in a line, all that are ready at once."""

import asyncio
import json
import os
import pathlib
import select
import signal
import socket
import threading
import time

import pytest
from cli_pipe_tests import fills, spent
from command_line import (
    DONE,
    INTERRUPTED,
    OTHER,
    REFUSED,
    USAGE,
    Terminal,
    Tool,
    ends,
    http,
    line_of,
    promptly,
    running,
    says,
)
from ddp_server import DDPServer
from harness import PATIENCE_S, expect
from nchan import Nchan
from pusher_server import PusherServer
from servers import Peer, Servers, frame

#: A message with a line feed, and what the tool writes.
DATA, LINE = "one\ntwo \\ three\r", "one\\ntwo \\ three\r\n"
STREAM = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_each_message_is_a_line(tool: Tool, servers: Servers, nchan: Nchan) -> None:
    async def socket_script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, DATA.encode()))
        await peer.read_until_close()

    async def stream(peer: Peer) -> None:
        await peer.send(f"{STREAM}data: one\ndata: two\n\n".encode())
        await peer.read_to_end()

    def written(*arguments: str) -> str:
        with running(tool, *arguments, "--count", "1") as process:
            told, _ = process.communicate()
            ends(process, DONE)
        return told.decode()

    expect(written("ws", servers.script(socket_script)) == LINE, "a WebSocket")
    expect(written("sse", http(servers.script(stream))) == "one\\ntwo\n", "an event")
    answer = says(
        "HTTP/1.1 200 OK", "ETag: 1", "Last-Modified: x", f"Content-Length: {len(DATA)}", body=DATA
    )
    expect(written("poll", http(servers.script(answer)), "--cursor", "none") == LINE, "a poll")
    nchan.publish("feeds", DATA)
    for way in ("websocket", "poll"):
        url = nchan.url("/ps/feeds", "http")
        expect(written("listen", url, "--transports", way) == LINE, f"listen by {way}")
    (told,) = [
        line
        for line in tool.json("ws", servers.script(socket_script), "--count", "1")
        if line["event"] == "message"
    ]
    expect(told["data"] == DATA, f"{told}")


def test_binary_messages_are_unchanged(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(2, b"\xff\n\xfe"))
        await peer.read_until_close()

    with running(tool, "ws", servers.script(script), "--count", "1") as process:
        told, _ = process.communicate()
        expect(told == b"\xff\n\xfe\n", repr(told))


def test_events_of_channels_are_lines(tool: Tool, pusher_server: PusherServer) -> None:
    place = ["--host", "127.0.0.1", "--port", str(pusher_server.port), "--no-tls"]
    with running(tool, "pusher", "--key", "demo", *place, "feeds", "--count", "1") as process:
        pusher_server.control.wait(what="out", event="pusher_internal:subscription_succeeded")
        pusher_server.control.publish("feeds", "two\nlines", "a\nb")
        line = line_of(process)
        expect(line == "feeds two\\nlines a\\nb", line)
        ends(process, DONE)


def test_documents_are_lines(tool: Tool, ddp_server: DDPServer) -> None:
    ddp_server.control.publication("a", cursors=[{"collection": "a"}])
    ddp_server.control.insert("a", {"_id": "x\ny", "text": "a\nb"})
    line = tool.run("ddp", ddp_server.http, "sub", "a", "--once").stdout
    expect(line == 'added a x\\u{a}y {"text":"a\\nb"}\n', line)


def test_remarks_are_lines(tool: Tool, ddp_server: DDPServer) -> None:
    """A server cannot add lines that seem to be the tool's."""
    error = {"error": "a", "reason": "first\nrealtime: connected"}
    ddp_server.control.method("fails", [{"op": "throw", "error": error}])
    said = tool.run("ddp", ddp_server.http, "call", "fails", status=REFUSED).stderr
    expect("first\\nrealtime: connected" in said, said)


def test_a_body_on_a_terminal_keeps_its_lines(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says("HTTP/1.1 200 OK", "Content-Length: 3", body="a\nb")))
    with Terminal(tool, "get", url) as screen:
        screen.expect("a\r\nb\r\n")
        ends(screen.process, DONE)


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--binary"]])
def test_messages_that_are_ready_are_written_together(
    tool: Tool, servers: Servers, arguments: list[str]
) -> None:
    """Each write to a socket of packets is a packet."""
    count = 2000

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"1234567") * count + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, running(tool, "ws", servers.script(script), *arguments, stdout=its) as process:
        its.close()
        packets = []
        while packet := ours.recv(1 << 20):
            packets.append(packet)
        ends(process, DONE)
    expect(b"".join(packets).count(b"1234567") == count, "messages are missing")
    expect(len(packets) < count / 20, f"{len(packets)} writes for {count} messages")


def test_output_and_remarks_keep_their_order(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(f"{STREAM}data: a\n\n".encode())

    with Terminal(tool, "sse", http(servers.script(script)), "--no-reconnect") as screen:
        screen.expect("realtime: connected to")
        screen.process.wait()
        screen.read_to_end()
    lines = [line for line in screen.said.splitlines() if line]
    expect("connected" in lines[0] and lines[1] == "a" and len(lines) >= 2, f"{lines}")


@pytest.mark.parametrize("arguments", [["ws"], ["ws", "--json"], ["ws", "--binary"], ["get"]])
def test_a_signal_when_nobody_reads(tool: Tool, servers: Servers, arguments: list[str]) -> None:
    """The tool does not wait for the closing handshake, which may take 12 seconds."""

    async def flood(peer: Peer) -> None:
        if peer.header("Upgrade"):
            await peer.send(peer.answer())
            piece = frame(1, b"line") * 1000
        else:
            await peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            piece = b"line" * 1000
        while True:
            await peer.send(piece)

    url = servers.script(flood)
    url = url if arguments[0] == "ws" else http(url)

    def duration() -> float:
        with running(tool, *arguments, url) as process:
            assert process.stdout is not None
            fills(process)
            process.send_signal(signal.SIGTERM)
            sent = time.monotonic()
            ends(process, INTERRUPTED)
            return time.monotonic() - sent

    promptly(8, duration)


def test_a_signal_while_a_long_body_becomes_json(tool: Tool, servers: Servers) -> None:
    """Neither the conversion nor the reader, who does not read, delays the end."""
    body = b"some text of a long body\n" * 2_500_000
    received = threading.Event()

    async def script(peer: Peer) -> None:
        head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        await peer.send(head.encode())
        await peer.send(body)
        # The tool disconnects when it has all.
        await peer.read_to_end()
        received.set()

    def duration() -> float:
        received.clear()
        with running(tool, "get", "--json", http(servers.script(script))) as process:
            expect(received.wait(PATIENCE_S), "the body was not received")
            before = spent(process)
            while not select.select([process.stdout], [], [], 0.01)[0]:
                if spent(process) >= before + 0.1:
                    break
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            ends(process, INTERRUPTED)
            return time.monotonic() - began

    promptly(3, duration)


def test_json_texts(tool: Tool, servers: Servers) -> None:
    """Each control character is escaped, at the beginning and at the end, too."""
    control = [*range(0x20), *range(0x7F, 0xA0)]
    text = "".join(map(chr, [0x22, 0x5C, *control, 0xA0, 0xC2, 0xE9, 0x4E2D, 0x1F642, 0x85]))
    body = text.encode()

    async def script(peer: Peer) -> None:
        await peer.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    written = tool.run("get", http(servers.script(script)), "--json").stdout
    expect(json.loads(written)["data"] == text, written)
    expect(not any(chr(code) in written.rstrip("\n") for code in control), repr(written))
    for wanted in ('"data":"\\"\\\\\\u0000', "\\t\\n\\u000b", "\\u007f\\u0080", '🙂\\u0085"'):
        expect(wanted in written, f"{wanted} is not in {written!r}")


def test_a_signal_when_nobody_opens_the_pipe(
    tool: Tool, servers: Servers, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "pipe")

    def duration() -> float:
        with running(tool, "get", http(servers.echo()), "-o", str(tmp_path / "pipe")) as process:
            # It handles signals before it opens the file.
            status = pathlib.Path(f"/proc/{process.pid}/status")
            handled = 1 << (signal.SIGTERM - 1)
            while not int(status.read_text().split("SigCgt:\t")[1].split()[0], 16) & handled:
                expect(process.poll() is None, "it has ended")
            process.send_signal(signal.SIGTERM)
            sent = time.monotonic()
            ends(process, INTERRUPTED)
            return time.monotonic() - sent

    promptly(8, duration)


@pytest.mark.parametrize("columns", [1, 10, 40])
def test_progress_on_a_narrow_terminal(tool: Tool, servers: Servers, columns: int) -> None:
    """It takes one line, which leaves nothing behind."""
    more = servers.event()

    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while not more.is_set():
            await peer.send(bytes(1000))
            await asyncio.sleep(0.01)

    url = http(servers.script(script))
    arguments = ["get", url, "--output", "/dev/null", "--attempts", "1"]
    with Terminal(tool, *arguments, columns=columns) as screen:
        # Two drawings, or the end, which follows when there is no room for any.
        if columns > 1:
            screen.wait_until(lambda: screen.said.count("\r") >= 2, "progress")
        servers.set(more)
        screen.process.wait()
        screen.read_to_end()
    drawn, _, _ = screen.said.partition("realtime: ")
    pieces = drawn.replace("\n", "").split("\r")
    expect(all(len(piece) < columns or not piece for piece in pieces), f"{pieces}")
    expect(columns == 1 or any(piece.startswith("receive") for piece in pieces), f"{pieces}")


def test_options_that_need_another(tool: Tool) -> None:
    """An option that would have no effect is an error."""
    socket_path = ["--unix-socket", "/tmp/socket"]
    for arguments, what in (
        (["ws", "--wait", "1"], "--wait needs --close"),
        (["sse", "--resilient", "--no-reconnect"], "--resilient and --no-reconnect exclude each"),
        (["poll", "--id-parameter", "x"], "--id-parameter needs --cursor query"),
        (["poll", "--cursor", "none", "--last-event-id", "1:0"], "does not send --last-event-id"),
        (["listen", "--client", "x"], "--client needs --auth-url"),
        (["listen", "--upgrade", "9", "--transports", "sse,poll"], "--upgrade needs websocket and"),
        (
            ["listen", "--upgrade", "9", "--transports", "websocket"],
            "--upgrade needs websocket and",
        ),
        (["post", "--type", "a/b"], "--type needs --data"),
        (["put", "-d", "x", "--type", "a/b", "-H", "content-type: a/c"], "both set it"),
        (["put", "-d", "x", "--idempotency-key"], "is for post"),
        (["get", "--idempotency-key"], "is for post"),
        (["post", "--idempotency-key", "-H", "Idempotency-Key: 1"], "both set it"),
        (["get", "-4", "-6"], "--ipv4 and --ipv6 exclude each other"),
        (["get", *socket_path, "--proxy", "http://p"], "--proxy is of no use with --unix-socket"),
        (["get", *socket_path, "--interface", "lo"], "--interface is of no use"),
        (["get", *socket_path, "--resolve", "a:1:127.0.0.1"], "--resolve is of no use"),
        (["get", *socket_path, "-4"], "--ipv4 is of no use"),
        (["get", *socket_path, "-6"], "--ipv6 is of no use"),
    ):
        said = tool.run(*arguments, "http://127.0.0.1:1/", status=USAGE).stderr
        expect(said.startswith("Error: ") and what in said.splitlines()[0], f"{arguments}: {said}")


def test_files_of_the_connection(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    """A file that cannot be used is found out before any attempt, with every command."""
    requests: list[bytes] = []

    async def script(peer: Peer) -> None:
        requests.append(peer.request)
        await says("HTTP/1.1 404 Not Found", "Content-Length: 0")(peer)

    url = http(servers.script(script))
    text = tmp_path / "text"
    text.write_text("no PEM")
    key = tmp_path / "key"
    key.write_text("-----BEGIN CERTIFICATE-----\n")
    missing, none = "cannot be read: No such file or directory", "has no certificate (PEM)"
    for options, what in (
        (["--ca-file", "/nope"], f'--ca-file: "/nope" {missing}'),
        (["--certificate", "/nope"], f'--certificate: "/nope" {missing}'),
        (["--ca-file", str(tmp_path)], "cannot be read: Is a directory"),
        (["--ca-file", str(text)], f'--ca-file: "{text}" {none}'),
        (["--certificate", str(text)], f'--certificate: "{text}" {none}'),
        (["--certificate", str(key)], f'--certificate: "{key}" has no private key (PEM)'),
        (
            ["--certificate", str(key), "--certificate-key", "/nope"],
            f'--certificate-key: "/nope" {missing}',
        ),
    ):
        said = tool.run("get", url, *options, status=OTHER).stderr
        expect(said.count("\n") == 1 and what in said, said)
    port = url.rstrip("/").rpartition(":")[2]
    for command in (
        ["ws", url.replace("http", "ws")],
        ["sse", url],
        ["poll", url],
        ["listen", url],
        ["pusher", "--key", "k", "--host", "127.0.0.1", "--port", port, "--no-tls", "a"],
        ["ddp", url, "call", "a"],
        ["post", url, "-d", "x"],
        ["put", url, "-d", "x"],
        ["delete", url],
    ):
        (told,) = tool.json(*command, "--ca-file", "/nope", status=OTHER)
        expect(told["event"] == "error" and "--ca-file" in told["message"], f"{told}")
    expect(not requests, f"{requests}")


def test_files_that_are_kept(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    requests: list[bytes] = []

    async def script(peer: Peer) -> None:
        requests.append(peer.request)
        await says("HTTP/1.1 404 Not Found", "Content-Length: 0")(peer)

    url = http(servers.script(script))
    missing = "No such file or directory"
    call = ["ddp", url, "call", "a", "--token-file"]
    pipe, foreign, locked = (tmp_path / name for name in ("pipe", "foreign", "locked"))
    os.mkfifo(pipe)
    foreign.write_text("of another program")
    (tmp_path / "locked.lock").mkdir()
    for command, path, cause in (
        *(
            (start, path, cause)
            for start in (["sse", url, "--id-file"], call)
            for path, cause in (
                ("/dev/null", "is not a regular file"),
                (str(pipe), "is not a regular file"),
                (str(foreign), "was not written by librealtime"),
                (str(locked), "has a lock that cannot be opened"),
            )
        ),
        (["sse", url, "--id-file"], "/no/folder", missing),
        (["sse", url, "--id-file"], str(tmp_path), "Is a directory"),
        (call, "/no/folder", missing),
        (call, str(tmp_path), "is not a regular file"),
    ):
        said = tool.run(*command, path, status=OTHER).stderr
        expect(path in said and cause in said and said.count("\n") == 1, said)
    expect(not requests, f"{requests}")
    expect(foreign.read_text() == "of another program", "it was changed")
    # A name without a folder is one in the current folder.
    with running(tool, "sse", url, "--id-file", "ids", cwd=tmp_path) as process:
        ends(process, REFUSED)


def test_no_password(tool: Tool, ddp_server: DDPServer) -> None:
    """Ctrl-D at the prompt, or an empty line."""
    for typed in ("\x04", "\n", "a\x7f\x04"):
        with Terminal(tool, "ddp", ddp_server.http, "call", "a", "--login", "ada") as screen:
            screen.expect("Password for ada: ")
            screen.type(typed)
            screen.expect("no password was typed")
            ends(screen.process, USAGE)
    expect(ddp_server.control.log(what="open") == [], "it connected without a password")


def test_data_from_files(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    """As curl's -d, but unchanged."""
    got: list[tuple[str, bytes]] = []

    async def script(peer: Peer) -> None:
        body = await peer.reader.readexactly(int(peer.header("Content-Length") or 0))
        got.append((peer.header("Content-Type"), body))
        await says("HTTP/1.1 200 OK", "Content-Length: 0", "Connection: close")(peer)

    url = http(servers.script(script))
    file = tmp_path / "data"
    file.write_bytes(b"a\r\nb\n\x00")
    with file.open("rb") as opened, running(tool, "post", url, "-d", "@-", stdin=opened) as process:
        ends(process, DONE)
    tool.run("post", url, "-d", f"@{file}")
    tool.run("put", url, "--data", f"@{file}", "--type", "a/b")
    tool.run("post", url, "--data-raw", "@data")
    tool.run("post", url, "-d", "a@b")
    raw, text = "application/octet-stream", "text/plain; charset=utf-8"
    data = file.read_bytes()
    expected = [(raw, data), (raw, data), ("a/b", data), (text, b"@data"), (text, b"a@b")]
    expect(got == expected, f"{got}")
    said = tool.run("post", url, "-d", "@/no/file", status=OTHER).stderr
    expect('"/no/file" cannot be read' in said, said)
    said = tool.run("post", url, "-d", "@", status=USAGE).stderr
    expect("--data-raw @" in said, said)
    said = tool.run("post", url, "-d", "a", "--data-raw", "b", status=USAGE).stderr
    expect("--data and --data-raw" in said, said)


def test_data_of_client_events(
    tool: Tool, pusher_server: PusherServer, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "secret").write_text("demo-secret\n")
    (tmp_path / "data").write_text('{"on": true}\n')
    place = ["--host", "127.0.0.1", "--port", str(pusher_server.port), "--no-tls"]
    command = ["pusher", "--key", "demo", *place, "--secret-file", str(tmp_path / "secret")]
    command += ["private-a", "--trigger", "client-a", "--count", "0", "--data"]
    tool.run(*command, f"@{tmp_path / 'data'}")
    sent = pusher_server.control.wait(what="in", event="client-a")
    expect('"on":true' in str(sent).replace(" ", "").replace("'on':True", '"on":true'), f"{sent}")
    tool.run(*command, "@/no/file", status=OTHER)
    said = tool.run(*command, "@", status=USAGE).stderr
    expect("names no file" in said, said)
