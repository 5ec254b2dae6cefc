"""The end of a connection: which side closes, with which code, and how users learn of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

import pytest
from servers import raw_server, read_head
from websockets.utils import accept_key

import librealtime
from librealtime import ConnectionClosed, ConnectionClosedError, ConnectionClosedOK, State

OK_CODES = [1000, 1001]
ERROR_CODES = [1002, 1003, 1008, 1011, 1012, 3000, 4999]


def upgrade(connection: socket.socket) -> None:
    """The server's side of a handshake."""
    lines = read_head(connection).decode().split("\r\n")
    key = next(line.split(": ")[1] for line in lines if line.startswith("Sec-WebSocket-Key"))
    answer = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_key(key)}\r\n\r\n"
    )
    connection.sendall(answer.encode())


@pytest.mark.parametrize("code", OK_CODES)
def test_iteration_ends_when_the_server_closes_in_order(run, server, code):
    async def main():
        ws = await librealtime.connect(f"{server.url}/count?to=3&then={code}")
        assert [message async for message in ws] == ["0", "1", "2"]
        assert ws.close_code == code
        assert ws.state is State.CLOSED
        with pytest.raises(ConnectionClosedOK) as raised:
            await ws.recv()
        assert raised.value.code == code

    run(main())


@pytest.mark.parametrize("code", ERROR_CODES)
def test_iteration_raises_when_the_server_closes_otherwise(run, server, code):
    async def main():
        ws = await librealtime.connect(f"{server.url}/count?to=2&then={code}")
        seen = []
        with pytest.raises(ConnectionClosedError) as raised:
            async for message in ws:
                seen.append(message)
        assert seen == ["0", "1"]
        assert (raised.value.code, ws.close_code) == (code, code)
        assert raised.value.name == "RT_ERROR_CLOSED"

    run(main())


def test_the_servers_reason_arrives(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/close?code=4000&reason=t%C3%BCr+zu")
        with pytest.raises(ConnectionClosedError, match="tür zu") as raised:
            await ws.recv()
        assert (raised.value.code, raised.value.reason) == (4000, "tür zu")
        assert (ws.close_code, ws.close_reason) == (4000, "tür zu")

    run(main())


def test_messages_have_no_control_characters(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/close?code=4000&reason=a%1b%5b2J%0ab")
        with pytest.raises(librealtime.ConnectionClosedError) as raised:
            await ws.recv()
        assert raised.value.reason == ws.close_reason == "a\x1b[2J\nb"
        assert str(raised.value).endswith(r"closed with 4000 (a\u{1b}[2J\u{a}b)")

    run(main())


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (3500, "bye 世界"), (4999, "x" * 123)])
def test_our_code_and_reason_arrive(run, own_server, code, reason):
    async def main():
        async with librealtime.connect(own_server.url + "/silent") as ws:
            await ws.close(code, reason)
            assert ws.close_code == code
            await ws.close(1000)

    run(main())
    assert own_server.closes.get(timeout=30) == (code, reason)


def test_a_block_that_ends_closes_with_1000_and_one_that_fails_with_1011(run, own_server):
    async def main():
        async with librealtime.connect(own_server.url + "/silent"):
            pass
        with pytest.raises(ZeroDivisionError):
            async with librealtime.connect(own_server.url + "/silent"):
                raise ZeroDivisionError

    run(main())
    assert [own_server.closes.get(timeout=30)[0] for _ in range(2)] == [1000, 1011]


def test_a_broken_connection(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/abort")
        assert await ws.recv() == "last words"
        with pytest.raises(ConnectionClosedError, match="without a closing handshake") as raised:
            await ws.recv()
        assert raised.value.code == ws.close_code == 1006
        assert raised.value.name == "RT_ERROR_CONNECTION_LOST"
        with pytest.raises(ConnectionClosedError):
            async for _ in ws:
                pass

    run(main())


def test_nothing_can_be_done_after_the_end(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/echo")
        await ws.close()
        for use in (ws.send("x"), ws.recv(), ws.ping()):
            with pytest.raises(ConnectionClosedOK):
                await use
        with pytest.raises(ConnectionClosed):
            ws.send_nowait("x")
        await ws.close()
        await ws.wait_closed()
        assert "CLOSED 1000" in repr(ws)

    run(main())


def test_messages_received_before_a_close_can_be_taken_after_it(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/count?to=50")
        await ws.wait_closed()
        assert [await ws.recv() for _ in range(50)] == [str(number) for number in range(50)]
        with pytest.raises(ConnectionClosedOK):
            await ws.recv()

    run(main())


def test_closing_while_another_task_receives(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/echo")
        receiver = asyncio.ensure_future(ws.recv())
        await asyncio.sleep(0)
        await ws.close(3333, "mine")
        with pytest.raises(ConnectionClosedError) as raised:
            await receiver
        assert (raised.value.code, raised.value.reason) == (3333, "mine")

    run(main())


def test_a_peer_that_never_answers_the_close(run):
    def serve_one(connection):
        upgrade(connection)
        while connection.recv(4096):
            pass

    async def main(url):
        ws = await librealtime.connect(url, close_timeout=0.05)
        await ws.close(1000)
        assert ws.state is State.CLOSED
        assert ws.close_code == 1006

    with raw_server(serve_one) as url:
        run(main(url))


def test_a_peer_that_does_not_answer_pings(run):
    def serve_one(connection):
        upgrade(connection)
        with contextlib.suppress(ConnectionError):
            while connection.recv(4096):
                pass

    async def main(url):
        ws = await librealtime.connect(url, ping_interval=0.02, ping_timeout=0.05)
        with pytest.raises(ConnectionClosedError) as raised:
            await ws.recv()
        assert raised.value.name == "RT_ERROR_TIMEOUT"

    with raw_server(serve_one) as url:
        run(main(url))


BROKEN = [
    (b"\xf1\x80\x00", 1002, "RT_ERROR_PROTOCOL"),
    (b"\x81\x02\xc3\x28", 1007, "RT_ERROR_PROTOCOL"),
    (b"\x83\x00", 1002, "RT_ERROR_PROTOCOL"),
    (b"\x82\x7f" + struct.pack(">Q", 2**40), 1009, "RT_ERROR_TOO_LARGE"),
    (b"\x88\x02\x03\xed", 1002, "RT_ERROR_PROTOCOL"),
]


@pytest.mark.parametrize(("frames", "code", "name"), BROKEN, ids=repr)
def test_a_peer_that_breaks_the_protocol(run, frames, code, name):
    sent = bytearray()

    def serve_one(connection):
        upgrade(connection)
        connection.sendall(b"\x81\x02ok" + frames)
        with contextlib.suppress(ConnectionError):
            # Only the code matters here.
            while len(sent) < 8 and (data := connection.recv(4096)):
                sent.extend(data)

    async def main(url):
        ws = await librealtime.connect(url)
        assert await ws.recv() == "ok"
        with pytest.raises(ConnectionClosedError) as raised:
            await ws.recv()
        assert (raised.value.name, raised.value.code) == (name, code)
        assert ws.close_code == code

    with raw_server(serve_one) as url:
        run(main(url))
    # A masked close frame with the code (RFC 6455 §5.3, §5.5.1).
    assert sent[0] == 0x88
    mask = sent[2:6]
    assert struct.unpack(">H", bytes(sent[6 + i] ^ mask[i] for i in range(2)))[0] == code


def test_a_message_above_max_size(run, own_server):
    async def main():
        ws = await librealtime.connect(own_server.url + "/blocks?to=1&size=100000", max_size=50_000)
        with pytest.raises(ConnectionClosedError) as raised:
            await ws.recv()
        assert (raised.value.code, raised.value.name) == (1009, "RT_ERROR_TOO_LARGE")

    run(main())
    assert own_server.closes.get(timeout=30)[0] == 1009
