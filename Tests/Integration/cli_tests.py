"""The command-line tool, through pipes and through a terminal."""

import base64
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from command_line import (
    CLOSED,
    DONE,
    INTERRUPTED,
    LOST,
    OTHER,
    REFUSED,
    UNREACHABLE,
    UNREAD,
    UNTRUSTED,
    USAGE,
    Terminal,
    Tool,
    ends,
    line_of,
    promptly,
    running,
    says,
)
from harness import PATIENCE_S, expect
from servers import Peer, Servers, frame


async def echo(peer: Peer) -> None:
    await peer.send(peer.answer())
    while True:
        opcode, payload = await peer.read_frame()
        await peer.send(frame(opcode, payload))
        if opcode == 8:
            return


# Without a server


def test_help_lists_the_exit_codes(tool: Tool) -> None:
    text = tool.run("--help").stdout
    for name in ("NO_PROXY", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        expect(name in text, text)
    for status in (DONE, UNREACHABLE, UNTRUSTED, REFUSED, LOST, CLOSED, USAGE, INTERRUPTED, UNREAD):
        expect(
            re.search(rf"^ +{status}  \S", text, re.M) is not None, f"{status} is not in: {text}"
        )
    for command in re.findall(r"^  (\w+) {10,}\S", text.split("SUBCOMMANDS:")[1], re.M):
        about = tool.run(command, "--help").stdout
        expect("EXAMPLES" in about and f"realtime {command} " in about, about)
    expect(re.fullmatch(r"realtime \d+\.\d+\.\d+\n", tool.run("--version").stdout) is not None, "")


def test_shells_complete(tool: Tool, tmp_path: pathlib.Path) -> None:
    script, file = tmp_path / "script", tmp_path / "token"
    script.write_text(tool.run("--generate-completion-script", "bash").stdout)
    file.touch()
    # What bash does when the tab key is typed after these words.
    call = """
        source "$0"
        COMP_WORDS=(realtime "$@") COMP_CWORD=$# COMP_LINE="realtime $*" COMP_POINT=${#COMP_LINE}
        _realtime realtime "${@: -1}" "${COMP_WORDS[-2]}"
        echo "${COMPREPLY[@]}"
    """
    begin = str(file)[:-2]
    for words, wanted in [
        (["dd"], "ddp"),
        (["ddp", "http://127.0.0.1", ""], "sub call"),
        (["ddp", "--wat"], "--watch"),
        (["get", "--interface", "lo"], "lo"),
        *([[*words, begin], str(file)] for words in FILES),
    ]:
        result = subprocess.run(
            ["bash", "-c", call, str(script), *words], capture_output=True, text=True
        )
        expect(result.stdout == f"{wanted}\n" and result.stderr == "", f"{words}: {result}")


#: Options whose values are files.
FILES = [
    *(["ddp", option] for option in ("--token-file", "--password-file", "--unix-socket")),
    *(["ws", option] for option in ("--ca-file", "--certificate", "--certificate-key")),
    *(["post", option] for option in ("--data-file", "--output", "-o", "--bearer-file")),
    ["pusher", "--secret-file"],
    ["sse", "--id-file"],
]


def test_invalid_arguments(tool: Tool) -> None:
    for arguments, culprit in (
        (["ws"], "<url>"),
        (["ws", "nonsense"], "nonsense"),
        (["ws", "http://127.0.0.1/"], "ws and wss are for"),
        (["sse", "ws://127.0.0.1/"], "http and https"),
        (["sse", "http://127.0.0.1/", "--event", ""], "have the type message"),
        (["ws", "ws://127.0.0.1/", "-H", "no colon"], "no colon"),
        (["ws", "ws://127.0.0.1/", "-H", "Upgrade: x"], "Upgrade"),
        (["ws", "ws://127.0.0.1/", "--bearer", ""], '--bearer is ""'),
        (["ws", "ws://127.0.0.1/", "--user", ""], '--user is ""'),
        (["listen", "http://127.0.0.1/", "--token", ""], '--token is ""'),
        (["ws", "ws://127.0.0.1/", "--bearer-file", "/dev/null"], "has no token"),
        (["ws", "ws://127.0.0.1/", "--count", "0"], "--count"),
        (["ws", "ws://127.0.0.1/", "--ping", "nan"], "--ping"),
        (["ws", "ws://127.0.0.1/", "--wait", "-1"], "--wait"),
        (["ws", "ws://127.0.0.1/", "--close", "--wait", "1e20"], "0 to 86400 seconds"),
        (["listen", "http://127.0.0.1/", "--upgrade", "1e18"], "0 to 86400 seconds"),
        (["get", "http://127.0.0.1/", "--idle-timeout=-1"], "0 to 86400 seconds"),
        (["get", "http://127.0.0.1/", "--max-time", "0"], "more than 0, up to 86400 seconds"),
        (["get", "http://127.0.0.1/", "--resolve", "*:80:127.0.0.1"], "*:80:127.0.0.1"),
        (["get", "http://127.0.0.1/", "--unix-socket", ""], '--unix-socket is ""'),
        (["sse", "http://127.0.0.1/", "--id-file", ""], '--id-file is ""'),
        (["listen", "http://127.0.0.1/", "--max-rounds", "-1"], "--max-rounds"),
        (["ws", "ws://127.0.0.1/", "--timeout", "-1"], "--timeout"),
        (["ws", "ws://127.0.0.1/", "--resolve", "host:x:1"], "HOST:PORT:ADDRESS"),
        (["ws", "ws://127.0.0.1/", "--proxy", "gopher://p/"], "gopher"),
        (["ws", "ws://127.0.0.1/", "--user", "a:b", "--bearer", "c"], "--bearer"),
        (["ws", "ws://127.0.0.1/", "--subprotocol", "two words"], "two words"),
        (["ws", "ws://127.0.0.1/", "--certificate-key", "k"], "--certificate"),
    ):
        said = tool.run(*arguments, status=USAGE).stderr
        expect(culprit in said, f"{arguments}: {culprit!r} is not in {said!r}")
        # Advice about a URL must not come with errors about a proxy.
        expect("gopher" not in said or "ws and wss" not in said, said)


# WebSocket, through pipes


def test_lines_are_echoed(tool: Tool, servers: Servers) -> None:
    text = "one\n\n ü 🙂 \nlast"
    result = tool.run("ws", servers.echo(), "--count", "4", text=text)
    expect(result.stdout == text + "\n", repr(result.stdout))
    expect("connected" in result.stderr and "permessage-deflate" in result.stderr, result.stderr)


def test_input_ends_before_the_messages_do(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        opcode, payload = await peer.read_frame()
        expect((opcode, payload) == (1, b"go"), repr(payload))
        await peer.send(frame(1, b"one") + frame(1, b"two") + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    result = tool.run("ws", servers.script(script), "--no-compress", text="go\n")
    expect(result.stdout == "one\ntwo\n", repr(result.stdout))


def test_json_lines(tool: Tool, servers: Servers) -> None:
    url = servers.echo(subprotocols=["chat"])
    text = 'say "ü\\\t\x01\x7f"'
    lines = tool.json("ws", url, "--subprotocol", "chat", "--count", "1", text=text + "\n")
    expect([line["event"] for line in lines] == ["open", "message", "close"], f"{lines}")
    expect(lines[0]["subprotocol"] == "chat", f"{lines[0]}")
    expect(lines[1] == {"event": "message", "kind": "text", "data": text}, f"{lines[1]}")
    closed = {"event": "close", "code": 1000, "reason": "", "clean": True}
    expect(lines[2] == closed, f"{lines[2]}")

    url = servers.echo()
    for count in range(1, 4):
        data = "ab\n"[:count]
        line = tool.json("ws", url, "--binary", "--count", "1", text=data)[1]
        expect(line["kind"] == "binary", f"{line}")
        expect(base64.b64decode(line["base64"], validate=True) == data.encode(), f"{line}")


def test_headers_of_the_request(tool: Tool, servers: Servers) -> None:
    requests: list[dict[str, str]] = []
    names = ["X-One", "Authorization", "Origin", "Sec-WebSocket-Protocol", "Host"]
    names.append("Sec-WebSocket-Extensions")

    async def script(peer: Peer) -> None:
        requests.append({name: peer.header(name) for name in names})
        await peer.send(peer.answer() + frame(8, b"\x03\xe8"))
        await peer.read_until_close()

    url = servers.script(script)
    port = url.rstrip("/").rsplit(":", 1)[1]
    tool.run("ws", url, "-H", "X-One:  a: b", "--header", "X-Two: c", "--bearer", "t0ken")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("from a file\nand more\n")
        file.flush()
        tool.run("ws", url, "--bearer-file", file.name)
    said = tool.run("ws", url, "--bearer-file", "/no/such/file", status=OTHER).stderr
    expect("/no/such/file" in said and "No such file" in said, said)
    tool.run("ws", url, "--user", "Aladdin:open sesame", "--origin", "https://example.org")
    elsewhere = url.replace("127.0.0.1", "name.invalid")
    tool.run("ws", elsewhere, "--no-compress", "--resolve", f"name.invalid:{port}:127.0.0.1")
    # Headers are split at bytes: a colon or space counts even before a combining character.
    tool.run("ws", url, "--user", "me:\u0301", "-H", "X-One:\u0301 b")
    first, filed, second, third, combined = requests
    expect(combined["Authorization"] == "Basic bWU6zIE=", f"{combined}")
    expect(combined["X-One"] == "\u0301 b", f"{combined}")
    expect(filed["Authorization"] == "Bearer from a file", f"{filed}")
    expect(first["X-One"] == "a: b" and first["Authorization"] == "Bearer t0ken", f"{first}")
    expect(first["Sec-WebSocket-Extensions"] != "", f"{first}")
    expect(second["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", f"{second}")
    expect(second["Origin"] == "https://example.org", f"{second}")
    expect(third["Host"] == f"name.invalid:{port}", f"{third}")
    expect(third["Sec-WebSocket-Extensions"] == "", f"{third}")


def test_refusals(tool: Tool, servers: Servers) -> None:
    for status, advice in ((404, "nothing at this path"), (401, "--bearer"), (503, "")):
        url = servers.script(says(f"HTTP/1.1 {status} No", "Content-Length: 0"))
        said = tool.run("ws", url, status=REFUSED).stderr
        expect(str(status) in said and "127.0.0.1" in said and advice in said, said)
        line = tool.json("ws", url, status=REFUSED)[-1]
        expect(line["event"] == "error" and line["code"] == "httpStatus", f"{line}")
        expect(line["status"] == status, f"{line}")


def test_nobody_listens(tool: Tool) -> None:
    for command, scheme in (("ws", "ws"), ("sse", "http")):
        arguments = [command, f"{scheme}://127.0.0.1:1/"]
        if command == "sse":
            arguments += ["--no-reconnect"]
        said = tool.run(*arguments, status=UNREACHABLE).stderr
        expect("127.0.0.1:1" in said and "whether the server is running" in said, said)
    url = "ws://127.0.0.1:2/"
    said = tool.run("ws", url, "--proxy", "http://127.0.0.1:1/", status=UNREACHABLE).stderr
    expect("proxy 127.0.0.1:1: " in said and "--proxy none" in said, said)


def test_tls_is_checked(tool: Tool, servers: Servers) -> None:
    tls = servers.tls()
    url = servers.echo(tls)
    said = tool.run("ws", url, status=UNTRUSTED).stderr
    expect("--ca-file" in said, said)
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            connection, _ = plain.accept()
            with connection, contextlib.suppress(ConnectionError):
                connection.recv(1)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                while connection.recv(65536):
                    pass

        threading.Thread(target=refuse, daemon=True).start()
        port = plain.getsockname()[1]
        said = tool.run("ws", f"wss://127.0.0.1:{port}/", status=UNTRUSTED).stderr
    expect("does not speak TLS" in said and "--ca-file" not in said, said)
    for option in (["--ca-file", tls.ca_file], ["--insecure"]):
        result = tool.run("ws", url, *option, "--count", "1", text="hello\n")
        expect(result.stdout == "hello\n", result.stdout)


def test_peer_closes(tool: Tool, servers: Servers) -> None:
    for code, status in ((1000, DONE), (1001, DONE), (1011, CLOSED), (4000, CLOSED)):

        async def script(peer: Peer, code: int = code) -> None:
            await peer.send(peer.answer() + frame(8, code.to_bytes(2, "big") + b"because"))
            await peer.read_until_close()

        said = tool.run("ws", servers.script(script), status=status).stderr
        expect(f"{code}" in said and "because" in said, said)

    async def drops(peer: Peer) -> None:
        await peer.send(peer.answer())

    tool.run("ws", servers.script(drops), status=LOST)

    async def breaks(peer: Peer) -> None:
        await peer.send(peer.answer() + b"\xff\xff")

    tool.run("ws", servers.script(breaks), status=LOST)


def test_reconnects(tool: Tool, servers: Servers) -> None:
    visits: list[int] = []

    async def script(peer: Peer) -> None:
        visits.append(1)
        await peer.send(peer.answer() + frame(1, b"%d" % len(visits)))
        if len(visits) == 2:
            await peer.read_until_close()

    lines = tool.json("ws", servers.script(script), "--reconnect", "--count", "2")
    told = [line["event"] for line in lines if line["event"] != "error"]
    expect(told[:5] == ["open", "message", "lost", "open", "message"], f"{lines}")
    lost = next(line for line in lines if line["event"] == "lost")
    expect(lost["attempt"] == 1 and 500 <= lost["delay_ms"] <= 1000, f"{lost}")


def test_reconnects_after_a_normal_close(tool: Tool, servers: Servers) -> None:
    visits: list[int] = []

    async def script(peer: Peer) -> None:
        visits.append(1)
        await peer.send(peer.answer() + frame(1, b"%d" % len(visits)))
        if len(visits) == 1:
            await peer.send(frame(8, (1000).to_bytes(2, "big")))
        await peer.read_until_close()

    option = "--reconnect-after-normal-close"
    url = servers.script(script)
    lines = tool.json("ws", url, "--reconnect", option, "--count", "2")
    told = [line["event"] for line in lines]
    expect(told[:5] == ["open", "message", "lost", "open", "message"], f"{lines}")
    said = tool.run("ws", url, option, status=USAGE).stderr
    expect("needs --reconnect" in said, said)


def test_round_trips(tool: Tool, servers: Servers) -> None:
    with running(tool, "ws", servers.echo(), "--ping", "0.02", "--json") as process:
        while (line := json.loads(line_of(process)))["event"] != "pong":
            expect(line["event"] == "open", f"{line}")
        expect(0 <= line["round_trip_ms"] < PATIENCE_S * 1000, f"{line}")


class Recorder:
    """A server that reports when a client is there, and with which code it closed."""

    def __init__(self, answers_close: bool = True) -> None:
        self.came = threading.Event()
        self.left = threading.Event()
        self.code = 0
        self._answers = answers_close

    async def __call__(self, peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, b"hello"))
        self.came.set()
        payload = await peer.read_until_close()
        self.code = int.from_bytes(payload[:2], "big")
        self.left.set()
        if self._answers:
            await peer.send(frame(8, payload))
        else:
            await peer.read_to_end()

    def wait(self, event: threading.Event) -> None:
        expect(event.wait(PATIENCE_S), "nothing happened at the server")


def test_interrupted(tool: Tool, servers: Servers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        server = Recorder()
        with running(tool, "ws", servers.script(server)) as process:
            expect(line_of(process) == "hello", "no message")
            process.send_signal(number)
            ends(process, INTERRUPTED)
        server.wait(server.left)
        expect(server.code == 1001, f"closed with {server.code}")


def test_interrupted_while_connecting(tool: Tool, servers: Servers) -> None:
    came = threading.Event()

    async def silent(peer: Peer) -> None:
        came.set()
        await peer.read_to_end()

    with running(tool, "ws", servers.script(silent), "--timeout", "600") as process:
        expect(came.wait(PATIENCE_S), "nothing happened at the server")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_errors_name_flags(tool: Tool, servers: Servers) -> None:
    """The library's error names the option of Swift, which the user of the tool does not know."""

    async def silent(peer: Peer) -> None:
        await peer.read_to_end()

    command = ["ws", servers.script(silent), "--timeout", "0.2"]
    said = tool.run(*command, status=UNREACHABLE).stderr
    expect("within 200 ms (--timeout)" in said, said)
    written = tool.run(*command, "--json", status=UNREACHABLE).stdout
    error = json.loads(written.splitlines()[-1])
    expect("within 200 ms (--timeout)" in error["message"], written)
    # Also where the option comes first, and where the tool has no flag for it.
    long = tool.run("get", "http://127.0.0.1:1/", "--unix-socket", "x" * 200, status=USAGE).stderr
    expect("realtime: --unix-socket has 200 bytes" in long, long)

    async def full(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.send(frame(8, b"\x03\xe8too much (option max_document_bytes)"))

    said = tool.run("ws", servers.script(full)).stderr
    expect("too much" in said and "option" not in said, said)


def test_interrupted_twice(tool: Tool, servers: Servers) -> None:
    """The peer does not answer the close frame, and the user does not wait ten seconds."""

    def duration() -> float:
        server = Recorder(answers_close=False)
        with running(tool, "ws", servers.script(server)) as process:
            line_of(process)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            server.wait(server.left)
            process.send_signal(signal.SIGINT)
            ends(process, INTERRUPTED)
            return time.monotonic() - start

    promptly(10, duration)


# Through a terminal


def test_terminal(tool: Tool, servers: Servers) -> None:
    with Terminal(tool, "ws", servers.echo()) as screen:
        screen.expect("Ctrl-D closes")
        screen.type("hello\n")
        screen.expect("\nhello\r\n")
        screen.type("\x04")
        screen.expect("closed with 1000")
        ends(screen.process, DONE)


def test_terminal_interrupted(tool: Tool, servers: Servers) -> None:
    server = Recorder()
    with Terminal(tool, "ws", servers.script(server)) as screen:
        screen.expect("hello")
        screen.type("\x03")
        ends(screen.process, INTERRUPTED)
    server.wait(server.left)
    expect(server.code == 1001, f"closed with {server.code}")


def test_control_characters_are_escaped_on_a_terminal(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        evil = frame(1, "a\x1b[2J\u009bb".encode()) + frame(2, b"\x1b[2J")
        await peer.send(peer.answer() + evil + frame(8, b"\x0f\xa0\x1b[2Jbye"))
        await peer.read_until_close()

    with Terminal(tool, "ws", servers.script(script)) as screen:
        screen.expect("a\\u{1b}[2J\\u{9b}b")
        screen.expect("4 bytes")
        screen.expect("bye")
        expect("\x1b" not in screen.said, repr(screen.said))
