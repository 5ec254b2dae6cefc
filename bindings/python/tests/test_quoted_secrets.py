"""Servers quote the credentials that they were sent: errors, events and the log show them not."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from wire import WireServer, read

import librealtime
from librealtime import sync

TOKEN = "S3cret-token.of-this.test"
OTHER = "S3cret-other.of-this.test"


def quote(connection: socket.socket, _: int) -> None:
    """Refuses each request, and quotes its credentials wherever a server can."""
    while (request := read(connection)) is not None:
        head, _, body = request.partition(b"\r\n\r\n")
        found = re.search(rb"(?im)^authorization: *([^\r]*)", head)
        said = found[1] if found else head.split(b" ")[1]
        text = json.dumps(
            {"error": "invalid_grant", "error_description": (body + b" " + said).decode()}
        ).encode()
        connection.sendall(
            b"HTTP/1.1 %d bad %b\r\nX-Echo: %b\r\nContent-Length: %d\r\n\r\n%b"
            % (400 if head.startswith(b"POST") else 401, said, said, len(text), text)
        )


@pytest.fixture
def quoting() -> Iterator[str]:
    server = WireServer(quote)
    yield server.url
    server.close()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    caplog.set_level(logging.DEBUG)
    librealtime.set_log_level("DEBUG")
    yield lambda: caplog.text
    librealtime.set_log_level(None)


def shown(error: BaseException) -> str:
    return "".join([str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)])


def hides(error: BaseException, log: str) -> None:
    assert not re.search("S3cret", str(error)), error
    assert "S3cret" not in repr(vars(error)) and "S3cret" not in log
    assert "…" in shown(error)


def event_source(url: str) -> None:
    with sync.EventSource(url, bearer_token=TOKEN, reconnect=False) as source:
        source.recv(30)


def long_poll(url: str) -> None:
    with sync.LongPoll(url, bearer_token=TOKEN) as poll:
        poll.recv(30)


def web_socket(url: str) -> None:
    sync.connect(url.replace("http", "ws"), bearer_token=TOKEN)


def query(url: str) -> None:
    sync.connect(url.replace("http", "ws") + f"/?room=1&access_token={TOKEN}")


@pytest.mark.parametrize("ask", [event_source, long_poll, web_socket, query])
def test_a_refusal(quoting: str, lines: Callable[[], str], ask: Callable[[str], None]) -> None:
    with pytest.raises(librealtime.RealtimeError) as raised:
        ask(quoting)
    hides(raised.value, lines())


def test_a_request(quoting: str, lines: Callable[[], str]) -> None:
    """The body is the program's data; it has asked for it."""
    with sync.RESTClient(quoting, bearer_token=TOKEN) as client:
        response = client.get("/")
        with pytest.raises(librealtime.RealtimeError) as raised:
            response.raise_for_status()
    assert TOKEN in response.text
    assert TOKEN not in str(raised.value)
    assert TOKEN not in lines()


def test_tokens(quoting: str, lines: Callable[[], str]) -> None:
    client = sync.SpreadbotREST(
        quoting,
        access_token="S3cret-access",
        refresh_token=TOKEN,
        auth_url=quoting + "/token",
        base64_credentials="UzNjcmV0OlMzY3JldA==",
    )
    with client, pytest.raises(librealtime.RealtimeError):
        client.get_data("x")
    assert "S3cret" not in lines() and "UzNjcmV0" not in lines()


def test_a_close_reason(run: Any, lines: Callable[[], str]) -> None:
    async def refuse(ws: ServerConnection) -> None:
        assert ws.request is not None
        await ws.close(4001, "bad " + ws.request.headers["Authorization"])

    async def main() -> None:
        async with serve(refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"ws://127.0.0.1:{port}"
            async with librealtime.connect(url, bearer_token=TOKEN) as ws:
                with pytest.raises(librealtime.ConnectionClosed) as raised:
                    await ws.recv()
            assert ws.close_reason == "bad Bearer …"
            hides(raised.value, lines())

    run(main())


async def pusher_server(ws: ServerConnection) -> None:
    data = json.dumps({"socket_id": "1.2", "activity_timeout": 120})
    await ws.send(json.dumps({"event": "pusher:connection_established", "data": data}))
    async for message in ws:
        asked = json.loads(message)
        if asked["event"] == "pusher:subscribe":
            refused = {"type": "AuthError", "error": "bad " + asked["data"]["auth"], "status": 401}
            await ws.send(
                json.dumps(
                    {
                        "event": "pusher:subscription_error",
                        "channel": asked["data"]["channel"],
                        "data": refused,
                    }
                )
            )


@pytest.mark.parametrize("by_endpoint", [False, True])
def test_a_subscription(
    run: Any, quoting: str, lines: Callable[[], str], by_endpoint: bool
) -> None:
    if by_endpoint:
        more: dict[str, Any] = {
            "auth_endpoint": quoting + "/auth",
            "auth_headers": {"Authorization": "Bearer " + TOKEN},
            "auth_params": {"p": OTHER},
        }
    else:
        more = {"authorizer": lambda _: {"auth": "key:" + TOKEN}}

    async def main() -> None:
        async with serve(pusher_server, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            given = {"host": "127.0.0.1", "port": port, "use_tls": False, **more}
            events = []
            async with librealtime.Pusher("key", **given) as pusher:
                pusher.bind(lambda event: events.append(event.raw))
                with pytest.raises(librealtime.RealtimeError) as raised:
                    await pusher.subscribe("private-x")
            hides(raised.value, lines())
            assert events and "S3cret" not in str(events)

    run(main())


async def meteor_server(ws: ServerConnection) -> None:
    async for message in ws:
        asked = json.loads(message)
        if asked["msg"] == "connect":
            await ws.send('{"msg":"connected","session":"s"}')
        if asked["msg"] == "method":
            said = json.dumps(asked["params"])
            error = {"error": 403, "reason": "bad " + said, "details": asked["params"]}
            await ws.send(json.dumps({"msg": "result", "id": asked["id"], "error": error}))
            await ws.send(json.dumps({"msg": "updated", "methods": [asked["id"]]}))


def test_a_login(run: Any, lines: Callable[[], str]) -> None:
    async def main() -> None:
        async with serve(meteor_server, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with librealtime.DDPClient(f"ws://127.0.0.1:{port}") as client:
                with pytest.raises(librealtime.DDPError) as raised:
                    await client.reset_password(TOKEN, "new password")
                assert TOKEN not in shown(raised.value)
                assert raised.value.details[0] == "…"
                assert raised.value.details[1]["digest"] == "…"
            assert TOKEN not in lines()

    run(main())


def test_a_first_connect_waits_for_the_network(run: Any) -> None:
    """Also if the program has reported that there is none before."""

    async def main() -> None:
        came = asyncio.Event()

        async def meteor(ws: ServerConnection) -> None:
            came.set()
            await meteor_server(ws)

        async with serve(meteor, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = librealtime.DDPClient(f"ws://127.0.0.1:{port}")
            client.network_changed(False)
            connected = asyncio.ensure_future(client.connect())
            # The loop has done what it had to when another client is connected.
            async with librealtime.DDPClient(f"ws://127.0.0.1:{port}"):
                came.clear()
                assert client.status == "offline" and not connected.done()
            client.network_changed(True)
            await connected
            assert came.is_set()
            await client.aclose()

    run(main())
