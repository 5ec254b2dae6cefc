"""Connecting: refusals, failures, timeouts, cancellation, and what TLS accepts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

import pytest
from servers import raw_server, read_head

import librealtime

SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: bm90IHRoZSByaWdodCBvbmUuLi4=\r\n\r\n"
)
ANSWERS = [
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "RT_ERROR_HTTP_STATUS", "403"),
    (b"HTTP/1.1 302 Found\r\n\r\n", "RT_ERROR_REDIRECT", "302"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "RT_ERROR_HTTP_STATUS", "200"),
    (SWITCH, "RT_ERROR_HANDSHAKE", "Sec-WebSocket-Accept"),
    (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "RT_ERROR_HANDSHAKE", ""),
    (b"HTTP/1.1 101 x\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", "RT_ERROR_TOO_LARGE", ""),
]


@contextlib.contextmanager
def silent_listener():
    """Accepts connections and sends nothing; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}/"


def refusing_url() -> str:
    """A port without a listener: a socket was bound there and closed again."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.mark.parametrize(("answer", "name", "culprit"), ANSWERS, ids=lambda value: str(value)[:30])
def test_answers_that_are_not_a_handshake(run, answer, name, culprit):
    def serve_one(connection):
        read_head(connection)
        connection.sendall(answer)
        with contextlib.suppress(OSError):
            connection.recv(1)

    with raw_server(serve_one) as url, pytest.raises(librealtime.RealtimeError) as raised:
        run(librealtime.connect(url)._connect())
    assert raised.value.name == name
    assert culprit in str(raised.value)
    if name != "RT_ERROR_TOO_LARGE":
        assert isinstance(raised.value, librealtime.InvalidHandshake)


def test_a_server_that_hangs_up(run):
    with raw_server(read_head) as url, pytest.raises(librealtime.RealtimeError) as raised:
        run(librealtime.connect(url)._connect())
    assert raised.value.name in ("RT_ERROR_HANDSHAKE", "RT_ERROR_CONNECTION_LOST")


def test_a_port_without_a_listener(run):
    with pytest.raises(librealtime.ConnectFailed, match=r"127\.0\.0\.1") as raised:
        run(librealtime.connect(refusing_url())._connect())
    assert raised.value.name == "RT_ERROR_CONNECT"
    assert isinstance(raised.value, ConnectionError)
    with pytest.raises(librealtime.ConnectFailed):
        librealtime.sync.connect(refusing_url())


def test_a_host_that_does_not_exist(run):
    with pytest.raises(librealtime.ConnectFailed, match=r"nowhere\.invalid") as raised:
        run(librealtime.connect("ws://nowhere.invalid/")._connect())
    assert raised.value.name == "RT_ERROR_RESOLVE"


def test_a_handshake_that_takes_too_long(run):
    with silent_listener() as url:
        with pytest.raises(librealtime.ConnectionTimeout, match="open_timeout") as raised:
            run(librealtime.connect(url, open_timeout=0.05)._connect())
        assert isinstance(raised.value, TimeoutError)
        assert isinstance(raised.value, asyncio.TimeoutError)
        with pytest.raises(TimeoutError, match="open_timeout"):
            librealtime.sync.connect(url, open_timeout=0.05)


def test_cancelling_a_connect_closes_what_it_opened(run):
    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            url = f"ws://127.0.0.1:{listener.getsockname()[1]}/"
            loop = asyncio.get_running_loop()
            connecting = asyncio.ensure_future(librealtime.connect(url)._connect())
            accepted, _ = await loop.sock_accept(listener)
            with accepted:
                accepted.setblocking(False)
                assert b"Upgrade" in await loop.sock_recv(accepted, 4096)
                connecting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await connecting
                assert await loop.sock_recv(accepted, 4096) == b""

    run(main())


def test_cancelling_a_connect_at_any_moment(run, server):
    async def main():
        outcomes = set()
        for turns in range(40):
            connecting = asyncio.ensure_future(librealtime.connect(server.url + "/echo")._connect())
            for _ in range(turns):
                await asyncio.sleep(0.0002)
            connecting.cancel()
            try:
                async with await connecting:
                    outcomes.add("open")
            except asyncio.CancelledError:
                outcomes.add("cancelled")
        assert "cancelled" in outcomes

    run(main())


def test_many_connects_fail_beside_one_that_works(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            attempts = [librealtime.connect(refusing_url())._connect() for _ in range(50)]
            results = await asyncio.gather(*attempts, return_exceptions=True)
            assert all(isinstance(result, librealtime.ConnectFailed) for result in results)
            await ws.send("unharmed")
            assert await ws.recv() == "unharmed"

    run(main())


def test_tls_with_a_ca_file(run, tls_server, ca_file):
    async def main():
        async with librealtime.connect(tls_server.url + "/echo", ca_file=ca_file) as ws:
            for message in ("hello", os.urandom(1 << 20), "é" * 100_000):
                await ws.send(message)
                assert await ws.recv() == message
            assert await (await ws.ping()) > 0

    run(main())
    with librealtime.sync.connect(tls_server.url + "/echo", ca_file=str(ca_file)) as ws:
        ws.send("blocking")
        assert ws.recv() == "blocking"


def test_a_certificate_of_an_unknown_authority_is_refused(run, tls_server):
    with pytest.raises(librealtime.ConnectFailed, match="certificate") as raised:
        run(librealtime.connect(tls_server.url + "/echo")._connect())
    assert raised.value.name == "RT_ERROR_TLS"
    with pytest.raises(librealtime.ConnectFailed, match="certificate"):
        librealtime.sync.connect(tls_server.url + "/echo")


def test_a_certificate_of_another_host_is_refused(run, wrong_host_server, ca_file):
    with pytest.raises(librealtime.ConnectFailed, match="localhost") as raised:
        run(librealtime.connect(wrong_host_server.url + "/echo", ca_file=ca_file)._connect())
    assert raised.value.name == "RT_ERROR_TLS"


def test_a_ca_file_that_cannot_be_read(run, tls_server, tmp_path):
    missing = tmp_path / "missing.pem"
    with pytest.raises(librealtime.ConnectFailed) as raised:
        run(librealtime.connect(tls_server.url + "/echo", ca_file=missing)._connect())
    assert raised.value.name == "RT_ERROR_TLS"


def test_tls_to_a_server_without_it(run, server, ca_file):
    url = server.url.replace("ws:", "wss:")
    with pytest.raises(librealtime.ConnectFailed) as raised:
        run(librealtime.connect(url, ca_file=ca_file)._connect())
    assert raised.value.name == "RT_ERROR_TLS"


def test_one_loop_after_the_other(server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            await ws.send("again")
            assert await ws.recv() == "again"

    for _ in range(3):
        asyncio.run(main())
