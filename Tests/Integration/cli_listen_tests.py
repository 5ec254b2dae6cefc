"""`realtime listen`: the transport, each change of it, and how the tool ends."""

import signal

from command_line import (
    INTERRUPTED,
    REFUSED,
    UNREACHABLE,
    UNTRUSTED,
    USAGE,
    Tool,
    ends,
    http,
    line_of,
    running,
)
from harness import expect
from servers import Peer, Servers


async def ends_with(peer: Peer, status: str, body: str = "", *headers: str) -> None:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    await peer.send("\r\n".join([*lines, "", body]).encode())


async def streams(peer: Peer, body: str) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    await peer.send((head + body).encode())
    await peer.read_to_end()


def test_transports_are_reported(tool: Tool, servers: Servers) -> None:
    """There is no WebSocket here, so events come, and each has its id."""

    async def script(peer: Peer) -> None:
        if peer.header("Upgrade"):
            return await ends_with(peer, "426 Upgrade Required")
        expect(peer.header("Accept") == "text/event-stream", peer.header("Accept"))
        await streams(peer, "id: 1\ndata: one\n\nid: 2\nevent: tick\ndata: two\n\n")

    url = http(servers.script(script)) + "news"
    told = tool.json("listen", url, "--count", "2")
    expect([line["event"] for line in told] == ["lost", "open", "message", "message"], f"{told}")
    expect(told[0]["transport"] == "webSocket" and told[0]["delay_ms"] == 0, f"{told[0]}")
    expect(told[0]["next"] == "sse", f"{told[0]}")
    expect(told[1] == {"event": "open", "transport": "sse", "resumed": False}, f"{told[1]}")
    one = {"event": "message", "id": "1", "name": "news", "data": "one"}
    expect(told[2] == one, f"{told[2]}")
    expect(told[3]["name"] == "tick" and told[3]["id"] == "2", f"{told[3]}")
    said = tool.run("listen", url, "--count", "2").stderr
    expect("realtime: WebSocket: " in said, said)
    expect("; trying Server-Sent Events at once\n" in said, said)
    result = tool.run("listen", url, "--transports", "sse", "--count", "2")
    expect(result.stdout == "one\ntwo\n", repr(result.stdout))
    expect("connected by Server-Sent Events" in result.stderr, result.stderr)


def test_tokens_are_refreshed(tool: Tool, servers: Servers) -> None:
    async def server(peer: Peer) -> None:
        if b"POST /token" in peer.request:
            good = peer.header("Authorization") == "Basic Yzpz"
            body = '{"access_token": "fresh", "token_type": "Bearer", "refresh_token": "r2"}'
            return await ends_with(peer, "200 OK" if good else "403 Forbidden", body)
        if peer.header("Authorization") != "Bearer fresh":
            return await ends_with(peer, "401 Unauthorized")
        await streams(peer, "data: in\n\n")

    url = http(servers.script(server))
    arguments = ("--transports", "sse", "--token", "stale", "--count", "1")
    root = url.split("/", 3)
    tokens = ("--refresh-token", "r1", "--auth-url", "/".join(root[:3]) + "/token")
    told = tool.json("listen", url, *arguments, *tokens, "--client", "Yzpz")
    events = [line["event"] for line in told]
    expect(events == ["lost", "tokens", "open", "message"], f"{told}")
    said = tool.run("listen", url, *arguments, *tokens, "--client", "Yzpz").stderr
    again = "401; trying Server-Sent Events again with fresh tokens\n"
    expect(again in said.replace(' "Unauthorized"', ""), said)
    said = tool.run("listen", url, *arguments, status=REFUSED).stderr
    expect("401" in said and "stale" not in said, said)


def test_lines_are_sent(tool: Tool, servers: Servers) -> None:
    url = http(servers.echo())
    with running(tool, "listen", url, "--send", "--json") as process:
        assert process.stdin is not None
        expect('"transport":"webSocket"' in line_of(process), "no WebSocket")
        process.stdin.write(b"one\ntwo\n")
        process.stdin.close()
        told = line_of(process) + line_of(process)
        expect('"data":"one"' in told and '"data":"two"' in told, told)
        process.stdin = None
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_a_refused_line_is_reported(tool: Tool, servers: Servers) -> None:
    """The next line is sent all the same."""

    async def script(peer: Peer) -> None:
        if b"POST " not in peer.request:
            return await streams(peer, ": hello\n\n")
        line = await peer.reader.readexactly(int(peer.header("Content-Length")))
        arrived.append(line)
        await ends_with(peer, "400 Bad Request" if line == b"bad" else "200 OK")

    arrived: list[bytes] = []
    url = http(servers.script(script))
    with running(tool, "listen", url, "--transports", "sse", "--send", "--json") as process:
        assert process.stdin is not None
        expect('"transport":"sse"' in line_of(process), "no event stream")
        process.stdin.write(b"bad\ngood\nbad\n")
        process.stdin.close()
        for _ in range(2):
            told = line_of(process)
            expect('"unsent"' in told and "400" in told, told)
        process.stdin = None
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
    expect(arrived == [b"bad", b"good", b"bad"], f"{arrived}")


def test_fatal_errors(tool: Tool, servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await ends_with(peer, "404 Not Found")

    url = http(servers.script(script))
    said = tool.run("listen", url, status=REFUSED).stderr
    expect("404" in said, said)
    said = tool.run("listen", url, "--transports", "websocket", "--token", "a", status=REFUSED)
    expect("404" in said.stderr, said.stderr)
    said = tool.run("listen", url, "--transports", "ws", status=USAGE)
    expect("not a transport" in said.stderr, said.stderr)
    said = tool.run("listen", url, "--refresh-token", "r", status=USAGE)
    expect("--auth-url" in said.stderr, said.stderr)

    async def html(peer: Peer) -> None:
        await ends_with(peer, "400 Bad Request")

    url = http(servers.script(html))
    said = tool.run("listen", url, status=REFUSED)
    for leg in ("WebSocket: ", "SSE: ", "long poll: "):
        expect(leg in said.stderr, said.stderr)
    told = tool.json("listen", url, "--transports", "sse", "--max-rounds", "2", status=REFUSED)
    expect([line["event"] for line in told] == ["lost", "error"], f"{told}")
    expect(told[0]["code"] == "reconnectsExhausted" and told[0]["next"] == "sse", f"{told[0]}")
    expect(500 <= told[0]["delay_ms"] <= 1000, f"{told[0]}")


def test_a_server_that_was_never_reached(tool: Tool, servers: Servers) -> None:
    """The tool ends after one round, unless more are asked for."""
    said = tool.run("listen", "http://127.0.0.1:1/", "--transports", "poll", status=UNREACHABLE)
    last = said.stderr.splitlines()[-1]
    expect("127.0.0.1:1" in last and "whether the server is running" in last, said.stderr)
    expect("; trying long polls again in " in said.stderr, said.stderr)
    said = tool.run(
        "listen", http(servers.echo(servers.tls())).replace("http:", "https:"),
        "--transports", "poll", status=UNTRUSTED,
    )  # fmt: skip
    expect("--ca-file" in said.stderr, said.stderr)


def test_an_outage_is_survived(tool: Tool, servers: Servers) -> None:
    """Once the server was reached, the tool reconnects without an option."""
    visits: list[str] = []

    async def script(peer: Peer) -> None:
        visits.append(peer.header("Last-Event-ID"))
        if len(visits) in (2, 3):
            return await ends_with(peer, "400 Bad Request")
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        await peer.send(f"{head}id: {len(visits)}\ndata: here\n\n".encode())
        if len(visits) > 1:
            await peer.read_to_end()

    url = http(servers.script(script))
    told = tool.json("listen", url, "--transports", "sse", "--count", "2")
    events = [line["event"] for line in told]
    expect(events == ["open", "message", *["lost"] * 3, "open", "message"], f"{told}")
    codes = [line["code"] for line in told if line["event"] == "lost"]
    expect(codes == ["closed", *["reconnectsExhausted"] * 2], f"{codes}")
    expect(told[4]["delay_ms"] >= 1000 > told[3]["delay_ms"], f"{told}")
    expect(visits == ["", "1", "1", "1"], f"{visits}")


def test_an_interrupt_closes(tool: Tool, servers: Servers) -> None:
    url = http(servers.echo())
    with running(tool, "listen", url) as process:
        expect("connected by WebSocket" in line_of(process, "stderr"), "no WebSocket")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
