"""The demo server, used by the library and by independent clients."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from websockets.exceptions import ConnectionClosed, PayloadTooBig
from websockets.sync.client import connect

import librealtime
from librealtime import demo_server, sync

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from demo_process import COMMAND, ENVIRONMENT, PATIENCE_S, DemoProcess


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    running = DemoProcess(tmp_path_factory.mktemp("demo") / "output")
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.output.read_text(), running.output.read_text()


def test_echo(demo: DemoProcess, run: Any) -> None:
    large = "large " * 20_000

    async def main() -> None:
        async with librealtime.connect(demo.ws_url + "/echo") as ws:
            for message in ("ä", b"\0\xff", large, ""):
                await ws.send(message)
                assert await ws.recv() == message
            assert ws.statistics.wire_bytes_received < len(large), "not compressed"
        url = demo.url + "/echo"
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as other:
            await other.send_bytes(b"\0\xff")
            assert await other.receive_bytes() == b"\0\xff"

    run(main())
    with connect(demo.ws_url + "/echo") as ws:
        assert ws.protocol.extensions, "no permessage-deflate"
        for message in ("ä", b"\0\xff", large):
            ws.send(message)
            assert ws.recv(PATIENCE_S) == message


def test_events_continue_after_an_id(demo: DemoProcess) -> None:
    first = int(time.time()) - 10
    with sync.EventSource(demo.url + "/events", last_event_id=str(first)) as source:
        events = [source.recv(PATIENCE_S) for _ in range(11)]
    assert [event.id for event in events] == [str(first + number) for number in range(1, 12)]
    assert {event.event for event in events} == {"tick"}
    assert events[0].data == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(first + 1))


@pytest.mark.parametrize("last_id", ["", "x", "1", "9" * 18, "9" * 30])
def test_events_of_the_last_minute(demo: DemoProcess, run: Any, last_id: str) -> None:
    """An id from elsewhere, or too old, is harmless."""

    async def main() -> None:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": last_id}
        oldest = int(time.time()) - demo_server.MAX_MISSED
        url = demo.url + "/events"
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            async for line in answer.content:
                if line.startswith(b"id: "):
                    # Only the id 1 is older than what is repeated.
                    assert int(line[4:]) >= oldest + (last_id != "1")
                    return

    run(main())


@pytest.mark.parametrize("transport", ["websocket", "sse", "poll"])
def test_spreadbot(demo: DemoProcess, run: Any, transport: str) -> None:
    """A message that is sent comes back; a second run continues after the last one."""
    path = f"channel/bot-{transport}"
    texts = [f"number {number}: ä\n\nb" for number in range(10)]

    async def main() -> None:
        async with librealtime.Spreadbot(demo.url, transports=(transport,)) as bot:
            demo.publish(f"bot-{transport}", "first")
            await bot.establish_connection(path)
            assert (await bot.recv()).text == "first"
            for text in texts:
                await bot.send_message_string(text)
            received = [await bot.recv() for _ in texts]
            assert [message.text for message in received] == texts
            assert bot.transport == transport
            last_id = received[4].id
        async with librealtime.Spreadbot(demo.url, last_event_id=last_id) as bot:
            await bot.establish_connection(path)
            received = [await bot.recv() for _ in texts[5:]]
            assert [message.text for message in received] == texts[5:]

    run(main())


@pytest.mark.parametrize("transport", ["websocket", "poll"])
def test_every_byte_arrives(demo: DemoProcess, run: Any, transport: str) -> None:
    messages = [b"\xff\xfe\0", bytes(range(256)), b"", b"text", b"\r\n"]

    async def main() -> None:
        async with librealtime.Spreadbot(demo.url, transports=(transport,)) as bot:
            demo.publish(f"bytes-{transport}", *messages)
            await bot.establish_connection(f"channel/bytes-{transport}")
            assert [(await bot.recv()).data for _ in messages] == messages

    run(main())


def test_spreadbot_across_transports(demo: DemoProcess, run: Any) -> None:
    """One cursor serves all transports."""

    async def main() -> None:
        last_id = ""
        for number, transport in enumerate(["websocket", "sse", "poll", "sse", "websocket"]):
            demo.publish("across", f"number {number}")
            options: Any = {"transports": (transport,), "last_event_id": last_id}
            async with librealtime.Spreadbot(demo.url, **options) as bot:
                await bot.establish_connection("channel/across")
                message = await bot.recv()
                assert message.text == f"number {number}"
                last_id = message.id

    run(main())


@pytest.mark.parametrize("cursor", ["validators", "header_id", "query_id"])
def test_long_polls(demo: DemoProcess, cursor: Any) -> None:
    channel = f"polls-{cursor}"
    demo.publish(channel, "one", "two")
    with sync.LongPoll(f"{demo.url}/channel/{channel}", cursor=cursor) as poll:
        messages = [poll.recv(PATIENCE_S), poll.recv(PATIENCE_S)]
        demo.publish(channel, "three")
        messages.append(poll.recv(PATIENCE_S))
    assert [message.text for message in messages] == ["one", "two", "three"]
    assert len({message.id for message in messages}) == 3


def test_a_channel_by_other_clients(demo: DemoProcess) -> None:
    with connect(demo.ws_url + "/channel/others") as ws:
        response, body = demo.request("POST", "/channel/others", "by POST")
        assert response.status == 201
        assert ws.recv(PATIENCE_S).startswith('{"id": ')
        ws.send("by WebSocket")
        assert '"data": "by WebSocket"' in ws.recv(PATIENCE_S)
    first, body = demo.request("GET", "/channel/others")
    assert body == b"by POST"
    tag = first.headers["ETag"]
    second, body = demo.request("GET", "/channel/others", If_None_Match=tag)
    assert body == b"by WebSocket"
    url = f"{demo.url}/channel/others"
    last_id = first.headers["Last-Event-ID"]
    command = ["curl", "-sN", "-H", "Accept: text/event-stream", "-H", f"Last-Event-ID: {last_id}"]
    with subprocess.Popen([*command, url], stdout=subprocess.PIPE, text=True) as curl:
        assert curl.stdout
        lines = [curl.stdout.readline() for _ in range(5)]
        curl.kill()
    assert lines == [":\n", "\n", f"id: {second.headers['Last-Event-ID']}\n",
                     "data: by WebSocket\n", "\n"]  # fmt: skip


def test_a_repeated_post_is_one_message(demo: DemoProcess) -> None:
    answers = [
        demo.request("POST", f"/channel/{channel}", body, Idempotency_Key="key")
        for channel, body in (("once", "one"), ("once", "again"), ("elsewhere", "other"))
    ]
    assert [response.status for response, _ in answers] == [201, 200, 201]
    assert answers[0][1] == answers[1][1] != answers[2][1]
    assert demo.request("GET", "/channel/once")[1] == b"one"
    assert demo.request("GET", "/channel/elsewhere")[1] == b"other"


def test_history_is_bounded(run: Any) -> None:
    async def main() -> None:
        history = demo_server.History()
        for number in range(demo_server.MAX_MESSAGES + 10):
            history.add("many", b"%d" % number)
        kept = history.after("many", 0)
        assert [kept[0].data, len(kept)] == [b"10", demo_server.MAX_MESSAGES]
        assert [message.data for message in history.after("many", history.count - 2)] == [
            kept[-2].data,
            kept[-1].data,
        ]
        assert [history.number(kept[0].id), history.number("x-11")] == [11, 0]
        for _ in range(40):
            history.add("large", bytes(demo_server.MAX_BYTES))
        assert len(history.after("large", 0)) == 32 and not history.after("many", 0)
        table: dict[int, int] = {}
        for number in range(demo_server.MAX_KEYS + 1):
            demo_server.keep(table, number, 0)
        assert [min(table), len(table)] == [1, demo_server.MAX_KEYS]

    run(main())


def test_large_messages_are_refused(demo: DemoProcess) -> None:
    large = bytes(demo_server.MAX_BYTES + 1)
    assert demo.request("POST", "/channel/large", large)[0].status == 413
    assert demo.request("PUT", "/anything", large)[0].status == 413
    assert demo.request("GET", f"/channel/{'n' * 101}")[0].status == 404
    with connect(demo.ws_url + "/echo") as ws, pytest.raises((ConnectionClosed, PayloadTooBig)):
        ws.send(large)
        ws.recv(PATIENCE_S)
    assert ws.close_code == 1009


def test_requests(demo: DemoProcess) -> None:
    quickly: Any = {"base_delay": 0.002, "max_delay": 0.01}
    with sync.RESTClient(demo.url, headers={"X-Test": "1"}, **quickly) as client:
        said = client.put("/anything?a=1", content="text").raise_for_status().json()
        assert (said["method"], said["path"]) == ("PUT", "/anything?a=1")
        assert (said["headers"]["X-Test"], said["body"]) == ("1", "text")
        response = client.post("/flaky", content="x", idempotency_key=True)
        assert (response.status_code, response.attempts) == (200, 3)
        response = client.get("/status/418")
        assert (response.status_code, response.attempts) == (418, 1)
        response = client.get("/status/503", params={"retry_after": "900"})
        assert (response.status_code, response.retry_after) == (503, 900)
        assert client.get("/slow?seconds=0.01").text == "after 0.01 s\n"
        with pytest.raises(librealtime.RealtimeError, match=r"within \d+ ms"):
            client.get("/slow?seconds=60", timeout=0.05, attempts=1)


def test_bad_requests(demo: DemoProcess) -> None:
    for path in ("/slow?seconds=61", "/slow?seconds=nan", "/slow?seconds=x",
                 "/status/503?retry_after=a%0d%0ab"):  # fmt: skip
        assert demo.request("GET", path)[0].status == 400, path
    for path in ("/status/199", "/status/600", "/channel/", "/nowhere"):
        assert demo.request("GET", path)[0].status == 404, path
    # The name of the host does not matter.
    assert demo.request("GET", "/anything", Host="[x:y")[0].status == 200
    answers = [demo.request("GET", "/flaky")[0].status for _ in range(4)]
    assert answers == [503, 503, 200, 503]
    assert demo.request("GET", "/")[1].decode() in demo.output.read_text()


def test_each_request_is_a_line(demo: DemoProcess) -> None:
    demo.request("GET", "/anything?line=%1B%0A")
    demo.wait_for("GET /anything?line=%1B%0A: 200\n")
    with connect(demo.ws_url + "/echo?line=2"):
        demo.wait_for("GET /echo?line=2: 101\n")


@pytest.mark.parametrize("target", [b"/\xff\x1b[31m", b"/?\xff", b"/%0a%1b%ff"])
def test_log_lines_are_plain(demo: DemoProcess, target: bytes) -> None:
    """Nothing in a request controls the terminal."""
    address = urlsplit(demo.url)
    with socket.create_connection((address.hostname, address.port), PATIENCE_S) as client:
        client.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.makefile("rb").readline().split()[1] in (b"400", b"404")
    assert demo.output.read_text().replace("\n", "").isprintable()


def test_interrupted(tmp_path: Path) -> None:
    """Everything that is open ends in an orderly way."""
    own = DemoProcess(tmp_path / "output", "--host", "localhost")
    with sync.connect(own.ws_url + "/echo") as echo, connect(own.ws_url + "/channel/a") as channel:
        events, stream, poll, slow = (
            own.open(path, Accept=accept)
            for path, accept in (
                ("/events", "*/*"),
                ("/channel/a", "text/event-stream"),
                ("/channel/a", "*/*"),
                ("/slow?seconds=60", "*/*"),
            )
        )
        # The server reads connections in the order in which they sent something.
        assert own.request("GET", "/")[0].status == 200
        assert own.stop() == 0
        assert events.getresponse().read().startswith(b":\n\n")
        assert stream.getresponse().read().startswith(b":\n\n")
        assert poll.getresponse().status == 204
        assert slow.getresponse().status == 200
        with pytest.raises(librealtime.ConnectionClosed):
            echo.recv(PATIENCE_S)
        with pytest.raises(ConnectionClosed):
            channel.recv(PATIENCE_S)
        assert [echo.close_code, channel.close_code] == [1001, 1001]
        for connection in (events, stream, poll, slow):
            connection.close()
    assert "Traceback" not in own.output.read_text()


def test_interrupted_with_a_silent_client(tmp_path: Path) -> None:
    """A client that answers nothing does not keep the server from ending."""
    own = DemoProcess(tmp_path / "output")
    address = urlsplit(own.url)
    head = "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), PATIENCE_S) as client:
        client.sendall(f"GET /channel/a HTTP/1.1\r\n{head}{key}".encode())
        own.wait_for("/channel/a: 101")
        assert own.stop() == 0
    assert "Traceback" not in own.output.read_text()


def test_a_port_in_use(demo: DemoProcess) -> None:
    port = demo.url.rpartition(":")[2]
    for options, text in (
        (["--port", port], "Address already in use"),
        (["--port", "70000"], "port must be 0-65535"),
        (["--host", "no.such.host.invalid"], "demo_server: cannot listen on no.such.host.invalid"),
    ):
        result = subprocess.run(
            [*COMMAND, *options],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=PATIENCE_S,
        )
        assert result.returncode == 1 and text in result.stderr, result
        assert "Traceback" not in result.stderr


def test_without_aiohttp() -> None:
    program = (
        "import runpy, sys; sys.modules['aiohttp'] = None;"
        "runpy.run_module('librealtime.demo_server', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 1
    expected = "demo_server: aiohttp is missing; install it by: pip install 'librealtime[demo]'\n"
    assert result.stderr == expected
