"""`realtime ddp` at servers that are not Meteor's, or cannot be reached."""

import asyncio
import contextlib

import pytest
from command_line import (
    DONE,
    LOST,
    REFUSED,
    UNREACHABLE,
    UNTRUSTED,
    USAGE,
    Script,
    Tool,
    ends,
    http,
    patiently,
    running,
    says,
    shown,
)
from ddp_server import DDPServer
from harness import expect
from servers import Peer, Servers, frame

PAGE = "<!DOCTYPE html><html></html>"
QUESTION = "Is it a Meteor server, and is the path right? Its WebSocket is expected at "


def page(status: str) -> Script:
    return says(f"HTTP/1.1 {status}", f"Content-Length: {len(PAGE)}", body=PAGE)


async def silent(peer: Peer) -> None:
    await peer.read_to_end()


async def echoes(peer: Peer) -> None:
    """What it receives on a WebSocket; other requests have nothing here."""
    if peer.header("Upgrade") != "websocket":
        await page("404 Not Found")(peer)
        return
    await peer.send(peer.answer())
    while True:
        opcode, payload = await peer.read_frame()
        await peer.send(frame(opcode, payload))


async def closes(peer: Peer) -> None:
    """With a close frame, once the client has said what it is."""
    if peer.header("Upgrade") != "websocket":
        await page("403 Forbidden")(peer)
        return
    await peer.send(peer.answer())
    await peer.read_frame()
    await peer.send(frame(8, (1008).to_bytes(2, "big") + b"Go away"))
    await peer.read_until_close()


async def hangs_up(_: Peer) -> None:
    pass


async def without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def speaks_something_else(peer: Peer) -> None:
    await peer.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    await peer.read_to_end()


@pytest.mark.parametrize(
    ("script", "status", "first", "last"),
    [
        (page("404 Not Found"), REFUSED, 'handshake with 404 "Not Found"', "with status 404."),
        (page("200 OK"), REFUSED, 'handshake with 200 "OK"', " does not answer as a SockJS server"),
        (page("501 Not Implemented"), REFUSED, "handshake with 501", "with status 501."),
        (closes, REFUSED, "closed the connection with code 1008: Go away", "status 403."),
        (hangs_up, LOST, "ended the connection during the handshake", ""),
        (speaks_something_else, LOST, "is not HTTP/1.1: its first line is", "not valid HTTP"),
    ],
)
def test_other_servers(
    tool: Tool, servers: Servers, script: Script, status: int, first: str, last: str
) -> None:
    url = http(servers.script(script)) + "a/"
    refuses(tool, url, status, first, last)


def test_no_attempt_follows_the_last(tool: Tool, servers: Servers) -> None:
    """Many at once keep the machine busy, so each has time for another attempt before it ends."""
    asked = 0

    async def script(peer: Peer) -> None:
        nonlocal asked
        asked += 1
        await page("404 Not Found")(peer)

    command = ["ddp", http(servers.script(script)), "sub", "tasks"]
    with contextlib.ExitStack() as stack:
        all_ = [stack.enter_context(running(tool, *command)) for _ in range(16)]
        for process in all_:
            ends(process, REFUSED)
            assert process.stderr is not None
            lines = process.stderr.read().decode().splitlines()
            expect(len(lines) == 4 and "status 404" in lines[-1], f"{lines}")
    expect(asked == 2 * len(all_), f"{asked} requests")


def refuses(tool: Tool, url: str, status: int, first: str, last: str, *options: str) -> None:
    """Both attempts fail, and the advice says what is expected where."""
    host = url.split("/")[2]
    arguments = ["ddp", url, "sub", "tasks", *options]
    lines = tool.run(*arguments, status=status).stderr.splitlines()
    expect(len(lines) == 4, f"{lines}")
    begin, tried, again, end = lines
    expect(begin == again == "realtime: connecting", f"{begin}, {again}")
    expect(host in tried and first in tried and "; trying SockJS in 0.01 s" in tried, tried)
    expect(host in end and last in end, end)
    question = f"{QUESTION}{host}/a/websocket, and SockJS beside it."
    expect(end.endswith(question), end)
    told = tool.json(*arguments, status=status)[-1]
    expect(told["event"] == "error" and told["advice"] == question, f"{told}")


def test_a_server_that_is_not_meteors(tool: Tool, servers: Servers) -> None:
    """It accepts the WebSocket, and then does not answer as a Meteor server does."""
    url = http(servers.script(echoes)) + "a/"

    def check(limit: str) -> None:
        first = f"not answer as a Meteor server within {shown(limit)}"
        refuses(tool, url, REFUSED, first, "with status 404.", "--timeout", limit)

    patiently(check)


def test_the_address_in_the_advice(tool: Tool, servers: Servers) -> None:
    host = servers.script(page("404 Not Found")).split("/")[2]
    for url, path in [
        (host, ""),
        (f"{host}/app", "/app"),
        (f"ws://{host}/websocket?a=b", ""),
        (f"http://ada:s3cret@{host}//", ""),
    ]:
        said = tool.run("ddp", url, "call", "a", status=REFUSED).stderr
        expect(f"{QUESTION}{host}{path}/websocket, and" in said, said)
        expect("s3cret" not in said, said)


def test_servers_that_say_nothing(tool: Tool, servers: Servers) -> None:
    host = servers.script(silent).split("/")[2]
    for arguments, attempts in [([], 2), (["--no-reconnect"], 1)]:

        def check(limit: str, arguments: list[str] = arguments, attempts: int = attempts) -> None:
            command = ["ddp", host, "call", "a", "--timeout", limit, *arguments]
            said = tool.run(*command, status=UNREACHABLE).stderr
            silence = f"{host} did not answer within {shown(limit)}"
            expect(said.count(silence) == attempts, said)
            expect(said.endswith("see --timeout.\n") and QUESTION not in said, said)

        patiently(check)


def test_refused_credentials_and_servers_in_trouble(tool: Tool, servers: Servers) -> None:
    for status, advice in [("401 Unauthorized", "see --bearer and --user."), ("503 Down", "503.")]:
        url = servers.script(page(status))
        said = tool.run("ddp", url, "call", "a", status=REFUSED).stderr
        expect(said.endswith(f"{advice}\n"), said)


def test_servers_that_cannot_be_reached(tool: Tool, servers: Servers) -> None:
    tls = servers.tls()
    for url, status, cause in [
        ("http://127.0.0.1:1", UNREACHABLE, "connect to 127.0.0.1:1: connection refused. Check"),
        ("nobody.invalid", UNREACHABLE, "nobody.invalid:80: its name cannot be resolved. Check"),
        (http(servers.script(silent, tls)), UNTRUSTED, "To trust your own authority use --ca-file"),
        (http(servers.listen(without_tls)).replace("http", "https"), UNTRUSTED, "not speak TLS"),
    ]:
        said = tool.run("ddp", url, "sub", "a", status=status).stderr
        expect(said.startswith("realtime: connecting\n") and said.count("\n") == 2, said)
        expect(cause in said, said)


def test_sockjs_where_websockets_are_blocked(tool: Tool, ddp_server: DDPServer) -> None:
    ddp_server.control.method("one", [{"op": "return", "value": 1}])
    ddp_server.control.settings(websocket=False)
    result = tool.run("ddp", ddp_server.http, "call", "one")
    expect(result.stdout == "1\n" and "; trying SockJS in 0.01 s\n" in result.stderr, f"{result}")
    said = tool.run("ddp", ddp_server.http, "call", "one", "--no-reconnect", status=REFUSED).stderr
    expect("trying" not in said and QUESTION in said, said)
    ddp_server.control.settings(websocket=True, versions=["9"])
    host = ddp_server.http.removeprefix("http://")
    said = tool.run("ddp", ddp_server.http, "call", "one", status=REFUSED).stderr
    expect(f"{host} wants 9, and we support 1, " in said and QUESTION not in said, said)


def test_a_lost_connection_is_tried_for_longer(tool: Tool, ddp_server: DDPServer) -> None:
    """Only the first connection has to succeed soon."""
    ddp_server.control.publication("a", cursors=[])
    with running(tool, "ddp", ddp_server.http, "sub", "a") as process:
        ddp_server.control.wait(what="out", msg="ready")
        ddp_server.control.fault(point="handshake", do="status", code=503, times=1)
        ddp_server.control.end("reset")
        ddp_server.control.wait(what="out", msg="ready", count=2)
        ddp_server.control.publish("a", "stop")
        ends(process, DONE)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    expect("; trying again in " in said and "SockJS" not in said, said)


def test_a_query_with_a_fault(tool: Tool, servers: Servers) -> None:
    """It is found out before the command connects, and so before it logs in."""
    requests: list[bytes] = []

    async def script(peer: Peer) -> None:
        requests.append(peer.request)
        await peer.read_to_end()

    url = http(servers.script(script))
    for options in (["--selector", '{"$bad":1}'], ["--fields", "a,a.b"]):
        for what in (["--collection", "c"], ["--watch"]):
            said = tool.run("ddp", url, "sub", "a", *what, *options, status=USAGE).stderr
            expect("invalid " in said, said)
    expect(not requests, f"{requests}")
