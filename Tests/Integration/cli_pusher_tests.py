"""`realtime pusher`: what it prints, its authorization, and how it ends."""

import json
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import (
    CLOSED,
    INTERRUPTED,
    OTHER,
    REFUSED,
    UNREACHABLE,
    UNREAD,
    USAGE,
    Tool,
    ends,
    line_of,
    running,
)
from harness import expect
from pusher_server import PusherServer
from servers import Peer, Servers, frame


@pytest.fixture
def server(pusher_server: PusherServer) -> Iterator[PusherServer]:
    yield pusher_server
    pusher_server.control.clear()


@pytest.fixture
def secret(server: PusherServer, tmp_path: pathlib.Path) -> str:
    """A file with the app's secret."""
    path = tmp_path / "secret"
    path.write_text(f"{server.secret}\nsecond line\n")
    return str(path)


def to(server: PusherServer, *arguments: str, key: str = "") -> list[str]:
    """The arguments of a command that connects to the server."""
    where = ["--host", server.host, "--port", str(server.port), "--no-tls"]
    return ["pusher", "--key", key or server.key, *where, *arguments]


def subscribed(server: PusherServer, channel: str) -> None:
    """Waits until a channel has a subscriber."""
    server.control.wait(what="out", event="pusher_internal:subscription_succeeded", channel=channel)


def objects(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def test_events_are_lines(tool: Tool, server: PusherServer) -> None:
    with running(tool, *to(server, "lines", "--count", "2")) as process:
        subscribed(server, "lines")
        server.control.publish("lines", "created", {"id": 1})
        server.control.publish("lines", "deleted")
        expect(line_of(process) == 'lines created {"id":1}', "the first line")
        expect(line_of(process).startswith("lines deleted"), "the second line")
        ends(process, 0)
        said = process.stderr.read().decode() if process.stderr else ""
    expect("connecting to ws://" in said and "connected, socket id " in said, said)
    expect("subscribed to lines\n" in said and "disconnected" in said, said)


def test_events_are_objects(tool: Tool, server: PusherServer) -> None:
    arguments = to(server, "objects", "--json", "--count", "1", "--event", "created")
    with running(tool, *arguments) as process:
        subscribed(server, "objects")
        server.control.publish("objects", "other", {})
        server.control.publish("objects", "created", {"id": 1})
        ends(process, 0)
        told = objects(process.stdout.read().decode() if process.stdout else "")
    messages = [line for line in told if line["event"] == "message"]
    expect(
        messages
        == [
            {
                "event": "message",
                "channel": "objects",
                "name": "created",
                "data": '{"id":1}',
            }
        ],
        f"{told}",
    )
    states = [line["new"] for line in told if line["event"] == "state"]
    expect(states == ["connecting", "connected", "disconnecting", "disconnected"], f"{told}")


def test_presence_channels_show_members(tool: Tool, server: PusherServer, secret: str) -> None:
    arguments = to(
        server, "presence-a", "--secret-file", secret, "--user-id", "ann", "--json", "--count", "2"
    )
    with running(tool, *arguments) as process:
        subscribed(server, "presence-a")
        other = to(
            server, "presence-a", "--secret-file", secret, "--user-id", "bo", "--trigger",
            "client-hello", "--data", '{"on":true}', "--count", "0",
        )  # fmt: skip
        tool.run(*other)
        ends(process, 0)
        told = objects(process.stdout.read().decode() if process.stdout else "")
    first = next(line for line in told if line["event"] == "subscribed")
    expect(first["user_id"] == "ann" and first["members"] == ["ann"], f"{first}")
    names = [(line["name"], line.get("user_id")) for line in told if line["event"] == "message"]
    expect(names == [("pusher:member_added", None), ("client-hello", "bo")], f"{told}")


def test_the_endpoint_authorizes(tool: Tool, server: PusherServer) -> None:
    endpoint = ["--auth-endpoint", f"{server.http}/pusher/auth", "--bearer", "t0ken"]
    with running(tool, *to(server, "private-a", *endpoint)) as process:
        subscribed(server, "private-a")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
    request = server.control.log(what="auth")[-1]
    expect(request["headers"]["Authorization"] == "Bearer t0ken", f"{request}")
    handshake = server.control.log(what="open")[-1]
    expect("Authorization" not in handshake["headers"], "the token went to the wrong server")
    server.control.auth(mode="deny", body="not you")
    said = tool.run(*to(server, "private-a", *endpoint), status=REFUSED).stderr
    expect("403" in said, said)


def test_the_secret_is_not_shown(tool: Tool, server: PusherServer, secret: str) -> None:
    arguments = to(
        server, "private-quiet", "--secret-file", secret, "--trigger", "client-a", "--count", "0"
    )
    result = tool.run(*arguments, "--verbose")
    expect(server.secret not in result.stdout + result.stderr, "the secret is in the output")


def test_other_channels_continue(tool: Tool, server: PusherServer) -> None:
    with running(tool, *to(server, "private-never", "open", "--count", "1")) as process:
        subscribed(server, "open")
        server.control.publish("open", "e", "text")
        expect(line_of(process) == "open e text", "the event")
        ends(process, 0)
        said = process.stderr.read().decode() if process.stderr else ""
    expect("not subscribed to private-never: " in said, said)
    tool.run(*to(server, "private-never"), status=REFUSED)


def test_it_reconnects(tool: Tool, server: PusherServer) -> None:
    with running(tool, *to(server, "again", "--count", "1")) as process:
        subscribed(server, "again")
        before = len(server.control.log(what="open"))
        server.control.close(4200)
        server.control.wait(what="open", count=before + 1)
        server.control.wait_connections(1)
        server.control.wait(
            what="out",
            event="pusher_internal:subscription_succeeded",
            channel="again",
            count=2,
        )
        server.control.publish("again", "e", "text")
        expect(line_of(process) == "again e text", "the event")
        ends(process, 0)
        said = process.stderr.read().decode() if process.stderr else ""
    expect("; trying again in 1.0 s\n" in said, said)


def test_the_first_attempt_is_the_only_one(tool: Tool) -> None:
    nobody = ["pusher", "--key", "k", "--host", "127.0.0.1", "--port", "1", "--no-tls", "a"]
    said = tool.run(*nobody, status=UNREACHABLE).stderr
    expect("trying again" not in said and said.count("cannot connect") == 1, said)
    # The error is the last line, not the end of the connection that follows it.
    lines = said.splitlines()
    expect(len(lines) == 2 and "cannot connect" in lines[1], f"{lines}")


def test_encrypted_channels(tool: Tool, server: PusherServer, secret: str) -> None:
    endpoint = ["--auth-endpoint", f"{server.http}/pusher/auth"]
    channel = "private-encrypted-a"
    with running(tool, *to(server, channel, *endpoint, "--count", "2")) as process:
        subscribed(server, channel)
        server.control.publish(channel, "e", {"id": 1})
        server.control.publish(channel, "open", "text", encrypt=False)
        server.control.publish(channel, "e", "last")
        expect(line_of(process) == f'{channel} e {{"id":1}}', "the first line")
        expect(line_of(process) == f"{channel} e last", "the last line")
        ends(process, 0)
        said = process.stderr.read().decode() if process.stderr else ""
    expect(f"{channel}: the event open cannot be decrypted\n" in said, said)
    said = tool.run(*to(server, channel, "--secret-file", secret), status=REFUSED).stderr
    expect("Use --auth-endpoint." in said and "--token" not in said, said)


def test_the_end_of_the_reader_ends_it(tool: Tool, server: PusherServer) -> None:
    with running(tool, *to(server, "unread")) as process:
        subscribed(server, "unread")
        if process.stdout:
            process.stdout.close()
        server.control.publish("unread", "e", {})
        ends(process, UNREAD)


def test_a_lost_server_is_tried_again(tool: Tool, server: PusherServer) -> None:
    with running(tool, *to(server, "lost")) as process:
        subscribed(server, "lost")
        server.control.end()
        server.control.wait(
            what="out",
            event="pusher_internal:subscription_succeeded",
            channel="lost",
            count=2,
        )
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)


def test_exit_codes(tool: Tool, server: PusherServer, secret: str) -> None:
    """A close code that forbids to reconnect, nobody there, and wrong arguments."""
    said = tool.run(*to(server, "a", key="unknown"), status=CLOSED).stderr
    expect("4001" in said, said)
    nobody = ["pusher", "--key", "k", "--host", "127.0.0.1", "--port", "1", "--no-tls", "a"]
    tool.run(*nobody, status=UNREACHABLE)
    tool.run(*to(server, "not a name"), status=USAGE)
    tool.run(*to(server, "a", "--trigger", "client-a"), status=USAGE)
    for arguments in [
        ["a", "--host", "ws://127.0.0.1"],
        ["a", "--cluster", "eu"],
        ["a", "--bearer", "t"],
        ["a", "--data", "1"],
        ["a", "--count", "0"],
        ["a", "--user-id", "u"],
        ["private-a", "--trigger", "a"],
        ["private-encrypted-a", "--trigger", "client-a"],
        ["private-a", "b", "--trigger", "client-a"],
        ["a", "--secret-file", secret, "--auth-endpoint", "http://127.0.0.1"],
        ["a", "--path", "x y"],
        ["a", "--path", "/ws?x"],
        ["a", "not a name"],
        [],
    ]:
        before = len(server.control.log(what="open"))
        tool.run(*to(server, *arguments), status=USAGE)
        expect(len(server.control.log(what="open")) == before, f"it connects with {arguments}")
    tool.run(*to(server, "a", "--secret-file", "/nowhere"), status=OTHER)


def test_a_signal_while_it_waits(tool: Tool, servers: Servers) -> None:
    """There is no connection to close, so the process does not wait for that."""
    hello = {"socket_id": "1.2", "activity_timeout": 120}
    established = {"event": "pusher:connection_established", "data": json.dumps(hello)}
    attempts: list[bytes] = []

    async def script(peer: Peer) -> None:
        attempts.append(peer.request)
        if len(attempts) == 1:
            await peer.send(peer.answer() + frame(1, json.dumps(established).encode()))
            await peer.send(frame(8, b"\x10\x68"))
        else:
            await peer.read_to_end()

    host, port = servers.script(script).removeprefix("ws://").rstrip("/").split(":")
    command = ["pusher", "--key", "k", "--host", host, "--port", port, "--no-tls", "a"]
    for texts in (["; trying again in "], ["; trying again in ", "connecting to "]):
        attempts.clear()
        with running(tool, *command) as process:
            line_of(process, "stderr")
            for text in texts:
                while text not in line_of(process, "stderr"):
                    pass
            process.send_signal(signal.SIGTERM)
            sent = time.monotonic()
            ends(process, INTERRUPTED)
            took = time.monotonic() - sent
            expect(took < 8, f"{took} s")
