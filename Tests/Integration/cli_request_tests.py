"""Requests by the command-line tool."""

import asyncio
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading

from command_line import (
    INTERRUPTED,
    OTHER,
    REFUSED,
    UNREACHABLE,
    UNREAD,
    USAGE,
    Terminal,
    Tool,
    ends,
    http,
    patiently,
    running,
    says,
    shown,
)
from harness import PATIENCE_S, expect
from nchan import Nchan
from servers import Peer, Servers, frame

OK = "HTTP/1.1 200 OK"


def test_posted_messages_on_every_transport(tool: Tool, nchan: Nchan) -> None:
    """Posted messages come by every transport, and one cursor serves all of them."""
    lines = ["one", "zwei ü", "three"]
    trust = ["--ca-file", str(nchan.ca_file)]
    for line in lines:
        tool.run("post", nchan.url("/pub/tool", "https"), "--data", line, *trust)
    ids = []
    for command, scheme in (("ws", "wss"), ("sse", "https"), ("poll", "https")):
        url = nchan.url("/ps/tool", scheme)
        told = tool.json(command, url, "--count", "3", *trust)
        messages = [line for line in told if line["event"] == "message"]
        expect([message["data"] for message in messages] == lines, f"{command}: {told}")
        ids.append(messages[1].get("id"))
    expect(ids[0] is None and ids[1] == ids[2] != "", f"{ids}")
    arguments = ["--count", "1", "--last-event-id", ids[1], *trust]
    url = nchan.url("/ps/tool", "https")
    for command in (["sse"], ["poll"], ["poll", "--cursor", "header"]):
        rest = tool.run(*command, url, *arguments).stdout
        expect(rest == "three\n", f"{command}: {rest!r}")


class Recorder:
    """Answers 200 with "done", or other statuses first, and keeps the requests."""

    def __init__(self, *statuses: int) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.keys: list[str] = []
        self._statuses = list(statuses)

    async def __call__(self, peer: Peer) -> None:
        line = peer.request.split(b"\r\n")[0].decode()
        length = int(peer.header("Content-Length") or 0)
        body = await peer.reader.readexactly(length)
        self.requests.append((line, peer.header("Content-Type"), body))
        self.keys.append(peer.header("Idempotency-Key"))
        status = self._statuses.pop(0) if self._statuses else 200
        head = f"HTTP/1.1 {status} So\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
        await peer.send(head.encode() + b"done")


def test_answers_are_written(tool: Tool, servers: Servers) -> None:
    data = bytes(range(256)) * 5000
    head = f"{OK}\r\nContent-Length: {len(data)}\r\nX-Some: thing\r\n\r\n".encode()

    async def script(peer: Peer) -> None:
        await peer.send(head + data)

    url = http(servers.script(script))
    with running(tool, "get", url) as process:
        output, said = process.communicate(timeout=PATIENCE_S)
        expect(output == data and said == b"", f"{len(output)} bytes, and {said!r}")
        ends(process, 0)
    with running(tool, "get", url, "--include") as process:
        output, said = process.communicate(timeout=PATIENCE_S)
        expect(output == data and b"X-Some: thing\n" in said and b"200 OK" in said, repr(said))


def test_answers_as_json(tool: Tool, servers: Servers) -> None:
    fields = ("Set-Cookie: a=b", "Set-Cookie: c=d", "Content-Length: 5")
    url = http(servers.script(says(OK, *fields, body='"ü"\n')))
    (line,) = tool.json("get", url + "path?q=1")
    expect(line["event"] == "answer" and line["status"] == 200, f"{line}")
    expect(line["reason"] == "OK" and line["data"] == '"ü"\n', f"{line}")
    expect(line["url"] == url + "path?q=1", f"{line}")
    expect([value for name, value in line["headers"] if name == "Set-Cookie"] == ["a=b", "c=d"], "")

    url = http(servers.script(says("HTTP/1.1 404 Not Found", "Content-Length: 4", body="none")))
    (line, *_) = tool.json("get", url, status=REFUSED)
    expect(line["status"] == 404 and line["data"] == "none", f"{line}")


def test_answers_into_a_file(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says(OK, "Content-Length: 5", body="hello")))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "body")
        path.write_text("something longer than that")
        result = tool.run("get", url, "--output", str(path))
        expect(result.stdout == "" and path.read_text() == "hello", result.stdout)
        (line,) = tool.json("get", url, "-o", str(path))
        expect(line["file"] == str(path) and "data" not in line, f"{line}")
        # The file is not truncated until there is a response.
        tool.run(
            "get", "http://127.0.0.1:1/", "-o", str(path), "--attempts", "1", status=UNREACHABLE
        )
        expect(path.read_text() == "hello", "it was emptied without an answer")
        said = tool.run("get", url, "-o", f"{folder}/no/body", status=OTHER).stderr
        expect("no/body" in said and "No such file" in said, said)


def test_nobody_reads_the_answer(tool: Tool, servers: Servers) -> None:
    size = 8 << 20
    url = http(servers.script(says(OK, f"Content-Length: {size}", body="x" * size)))
    with running(tool, "get", url) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        ends(process, UNREAD)
        said = process.stderr.read()
        expect(said == b"", f"said {said!r}")
    with open("/dev/full", "wb") as full, running(tool, "get", url, stdout=full) as process:
        _, said = process.communicate(timeout=PATIENCE_S)
        expect(
            said == b"realtime: standard output cannot be written: No space left on device\n", ""
        )
        ends(process, OTHER)


def test_errors_are_reported(tool: Tool, servers: Servers) -> None:
    url = http(servers.script(says("HTTP/1.1 404 Not Found", "Content-Length: 4", body="none")))
    result = tool.run("get", url + "a?token=secret", status=REFUSED)
    expect(result.stdout == "none" and "404 Not Found" in result.stderr, result.stderr)
    expect("/a answered" in result.stderr and "secret" not in result.stderr, result.stderr)
    said = tool.run("get", "http://127.0.0.1:1/", "--attempts", "1", status=UNREACHABLE).stderr
    expect("127.0.0.1:1" in said and "whether the server is running" in said, said)


def test_data_is_sent(tool: Tool, servers: Servers) -> None:
    server = Recorder()
    url = http(servers.script(server))
    expect(tool.run("post", url + "a?b=c", "--data", "ü").stdout == "done", "no answer")
    tool.run("put", url, "-d", "{}", "--type", "application/json")
    tool.run("put", url, "-d", "{}", "-H", "Content-Type: text/x")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\x00\xff")
        file.flush()
        tool.run("post", url, "--data-file", file.name, "--idempotency-key")
    tool.run("delete", url)
    text = "text/plain; charset=utf-8"
    expected = [
        ("POST /a?b=c HTTP/1.1", text, "ü".encode()),
        ("PUT / HTTP/1.1", "application/json", b"{}"),
        ("PUT / HTTP/1.1", "text/x", b"{}"),
        ("POST / HTTP/1.1", "application/octet-stream", b"\x00\xff"),
        ("DELETE / HTTP/1.1", "", b""),
    ]
    expect(server.requests == expected, f"{server.requests}")
    expect([bool(key) for key in server.keys] == [False] * 3 + [True, False], "keys")


def test_failed_requests_are_retried(tool: Tool, servers: Servers) -> None:
    server = Recorder(503, 503)
    expect(tool.run("get", http(servers.script(server))).stdout == "done", "no answer")
    expect(len(server.requests) == 3, f"{server.requests}")
    server = Recorder(503, 503)
    url = http(servers.script(server))
    tool.run("get", url, "--attempts", "1", status=REFUSED)
    # A POST is not repeated, since the server may have executed it.
    server = Recorder(500, 500)
    tool.run("post", http(servers.script(server)), "-d", "x", status=REFUSED)
    expect(len(server.requests) == 1, f"{server.requests}")


def test_invalid_requests(tool: Tool) -> None:
    for arguments, culprit in (
        (["get", "http://127.0.0.1/", "--data", "x"], "sends no body"),
        (["post", "http://127.0.0.1/", "--data", "x", "--data-file", "y"], "--data-file"),
        (["get", "ws://127.0.0.1/"], "http and https"),
        (["get", "http://127.0.0.1/", "--attempts", "0"], "--attempts"),
        (["get", "http://127.0.0.1/", "--max-time", "-1"], "--max-time"),
    ):
        said = tool.run(*arguments, status=USAGE).stderr
        expect(culprit in said, f"{arguments}: {culprit!r} is not in {said!r}")
    said = tool.run("post", "http://127.0.0.1/", "--data-file", "/no/file", status=OTHER).stderr
    expect("/no/file" in said, said)


def test_time_runs_out(tool: Tool, servers: Servers) -> None:
    async def silent(peer: Peer) -> None:
        await peer.read_to_end()

    url = http(servers.script(silent))
    said = tool.run("get", url, "--max-time", "0.2", status=UNREACHABLE).stderr
    expect("127.0.0.1" in said and "See --max-time." in said, said)


def test_an_answer_that_stands_still(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(f"{OK}\r\nContent-Length: 9\r\n\r\nbegin".encode())
        await peer.read_to_end()

    url = http(servers.script(script))
    arguments = ["get", url, "--attempts", "1", "--idle-timeout"]

    def check(limit: str) -> None:
        # The first byte must come within that time, too.
        result = tool.run(*arguments, limit, status=UNREACHABLE)
        expect(result.stdout == "begin", result.stdout)
        expect("sent no more of its response" in result.stderr, result.stderr)
        expect("See --idle-timeout." in result.stderr, result.stderr)

    patiently(check)
    said = tool.run(*arguments, "-1", status=USAGE).stderr
    expect("--idle-timeout" in said, said)


def test_a_server_that_says_nothing(tool: Tool, servers: Servers) -> None:
    """The advice names the option that sets the limit: --timeout is about connecting."""

    async def silent(peer: Peer) -> None:
        await peer.read_to_end()

    url = http(servers.script(silent))

    def check(limit: str) -> None:
        command = ["get", url, "--attempts", "1", "--idle-timeout", limit]
        said = tool.run(*command, status=UNREACHABLE).stderr
        within = f"did not answer within {shown(limit)} (--idle-timeout). See --idle-timeout.\n"
        expect(said.endswith(within), said)
        (told,) = tool.json(*command, status=UNREACHABLE)
        expect(told["advice"] == "See --idle-timeout.", f"{told}")

    patiently(check)


def test_a_silent_port_for_tls(tool: Tool) -> None:
    """TCP connects, and nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        for command in (
            ["get", "--attempts", "1", f"https://{place}/"],
            ["sse", "--no-reconnect", f"https://{place}/"],
            ["ws", f"wss://{place}/"],
        ):

            def check(limit: str, command: list[str] = command) -> None:
                said = tool.run(*command, "--timeout", limit, status=UNREACHABLE).stderr
                expect(f"cannot connect to {place}" in said, said)
                expect("the TLS handshake timed out; the server may not speak TLS" in said, said)
                expect("firewall" not in said, said)

            patiently(check)


def test_requests_interrupted(tool: Tool, servers: Servers) -> None:
    came = threading.Event()

    async def script(peer: Peer) -> None:
        await peer.send(f"{OK}\r\nContent-Length: 1000\r\n\r\nbegin".encode())
        came.set()
        await peer.read_to_end()

    with running(tool, "get", http(servers.script(script))) as process:
        expect(came.wait(PATIENCE_S), "no request")
        assert process.stdout is not None
        expect(process.stdout.read(5) == b"begin", "not as it comes")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_answers_on_a_terminal(tool: Tool, servers: Servers) -> None:
    for body, wanted in (
        ("a\x1b[2Jb", "a\\u{1b}[2Jb\r\n"),
        ("\0", "\\u{0}\r\n"),
        ("a line\n", "a line\r\n"),
    ):
        url = http(servers.script(says(OK, f"Content-Length: {len(body)}", body=body)))
        with Terminal(tool, "get", url) as screen:
            screen.expect(wanted)
            expect("\x1b" not in screen.said, repr(screen.said))
            ends(screen.process, 0)
            screen.read_to_end()
            expect(screen.said == wanted, repr(screen.said))

    async def binary(peer: Peer) -> None:
        await peer.send(f"{OK}\r\nContent-Length: 2\r\n\r\n".encode() + b"\xff\xfe")

    with Terminal(tool, "get", http(servers.script(binary))) as screen:
        screen.expect("2 bytes")


def test_control_characters_in_messages_are_escaped(tool: Tool, servers: Servers) -> None:
    """Control characters are escaped even in a file, because a terminal may show it later."""
    status, header = "HTTP/1.1 404 \x1b[2Jno\x07", "X-Evil: \x1b]0;own\x07"
    url = http(servers.script(says(status, header, "Content-Length: 5", body="\x1b[31m")))
    answer = tool.run("get", "--include", url, status=REFUSED)
    expect(answer.stdout == "\x1b[31m", repr(answer.stdout))
    shown = ("answered 404 \\u{1b}[2Jno\\u{7}\n", "X-Evil: \\u{1b}]0;own\\u{7}\n")
    expect(all(text in answer.stderr for text in shown), repr(answer.stderr))
    expect(not {"\x1b", "\x07"} & set(answer.stderr), repr(answer.stderr))

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(8, b"\x03\xe8\x1b]0;own\x07\nrealtime: forged"))
        await peer.read_until_close()

    said = tool.run("ws", servers.script(script)).stderr
    expect(r"\u{1b}]0;own\u{7}\u{a}realtime: forged" in said, repr(said))
    expect(not {"\x1b", "\x07"} & set(said), repr(said))


def test_long_transfers_are_shown(tool: Tool, servers: Servers) -> None:
    """Progress is shown on a terminal if the body goes elsewhere, and removed at the end."""
    piece = bytes(100_000)
    more = servers.event()

    async def script(peer: Peer) -> None:
        await peer.send(f"{OK}\r\nContent-Length: {len(piece) * 1000}\r\n\r\n".encode())
        for _ in range(500):
            await peer.send(piece)
        # Send until the screen has shown it.
        sent = 500
        while sent < 999 and not more.is_set():
            await peer.send(piece)
            sent += 1
            await asyncio.sleep(0.02)
        await more.wait()
        for _ in range(1000 - sent):
            await peer.send(piece)

    url = http(servers.script(script))
    with Terminal(tool, "get", url, "--output", "/dev/null") as screen:
        screen.expect(" of 100.0 MB, ")
        servers.set(more)
        ends(screen.process, 0)
    result = subprocess.run(
        [tool.program, "get", url, "--output", "/dev/null"],
        capture_output=True,
        env=tool.environment,
        timeout=PATIENCE_S,
    )
    expect(result.stderr == b"", repr(result.stderr))
