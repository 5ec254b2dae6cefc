"""Messages in both directions with asyncio, against the `websockets` package and aiohttp."""

from __future__ import annotations

import asyncio
import os

import aiohttp.web
import pytest
from servers import AsyncServer

import librealtime

MESSAGES = [
    "hello",
    "",
    "grüße, 世界 🙂 \0 end",
    b"",
    b"\0\xff" * 500,
    os.urandom(3 << 20),
    "é" * (1 << 20),
    "x" * 70_000,
]
COMPRESSIONS = [
    None,
    "deflate",
    librealtime.Deflate(level=6, min_size=0),
    librealtime.Deflate(client_no_context_takeover=True, server_no_context_takeover=True),
    librealtime.Deflate(client_max_window_bits=9, server_max_window_bits=9, min_size=0),
    librealtime.Deflate(level=0),
]


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=repr)
def test_echo_of_every_kind(run, server, compression):
    async def main():
        async with librealtime.connect(server.url + "/echo", compression=compression) as ws:
            for message in MESSAGES:
                await ws.send(message)
                echoed = await ws.recv()
                assert type(echoed) is type(message)
                assert echoed == message

    run(main())


def test_bytes_like_messages_arrive_as_bytes(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for message in (bytearray(b"abc"), memoryview(b"xyz"), memoryview(b"a-b-c")[::2]):
                await ws.send(message)
                assert await ws.recv() == bytes(message)

    run(main())


def test_other_types_than_messages_are_refused(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for message in (None, 1, ["a"]):
                with pytest.raises(TypeError, match="str or bytes"):
                    ws.send_nowait(message)
            for message in (None, 1, {"a": "b"}, [1], [None], object()):
                with pytest.raises(TypeError, match=r"str(, | or )bytes"):
                    await ws.send(message)
            with pytest.raises(librealtime.InvalidArgument, match="surrogate at index 2") as caught:
                await ws.send("ok\ud800")
            assert caught.value.name == "RT_ERROR_INVALID_UTF8"
            await ws.send("still open")
            assert await ws.recv() == "still open"

    run(main())


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_fragments_from_the_server_become_one_message(run, server, compression):
    async def main():
        async with librealtime.connect(server.url + "/fragments", compression=compression) as ws:
            for message in ("Grüße 🙂", b"0123456789" * 1000):
                await ws.send(message)
                assert await ws.recv() == message

    run(main())


def test_max_frame_size_splits_messages(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo", max_frame_size=100) as ws:
            for message in MESSAGES[:5]:
                await ws.send(message)
                assert await ws.recv() == message

    run(main())


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_many_pipelined_messages_keep_their_order(run, server, compression):
    count = 20_000

    async def main():
        async with librealtime.connect(server.url + "/echo", compression=compression) as ws:

            async def send_all():
                for number in range(count):
                    await ws.send(str(number) if number % 2 else number.to_bytes(4, "big"))

            sender = asyncio.create_task(send_all())
            for number in range(count):
                message = await ws.recv()
                assert message == (str(number) if number % 2 else number.to_bytes(4, "big"))
            await sender

    run(main())


def test_iteration_and_recv_share_one_stream(run, server):
    async def main():
        async with librealtime.connect(server.url + "/count?to=100") as ws:
            seen = [await ws.recv()]
            async for message in ws:
                seen.append(message)
                if len(seen) == 10:
                    break
            seen.append(await ws.recv())
            seen += [message async for message in ws]
            assert seen == [str(number) for number in range(100)]

    run(main())


def test_subprotocol_headers_and_offer(run, server):
    async def main():
        async with librealtime.connect(
            server.url + "/record",
            subprotocols=["nothing", "echo", "chat"],
            additional_headers=[("X-Two", "a"), ("X-Two", "b"), ("Authorization", "Bearer ü")],
        ) as ws:
            request, subprotocol, extensions = await asyncio.to_thread(
                server.requests.get, True, 30
            )
            assert ws.subprotocol == subprotocol == "echo"
            assert request.headers.get_all("X-Two") == ["a", "b"]
            assert request.headers["Host"] == f"127.0.0.1:{server.port}"
            assert [type(extension).__name__ for extension in extensions] == ["PerMessageDeflate"]
        async with librealtime.connect(
            server.url + "/record", additional_headers={"X-One": "1"}, compression=None
        ) as ws:
            request, _, extensions = await asyncio.to_thread(server.requests.get, True, 30)
            assert ws.subprotocol is None
            assert request.headers["X-One"] == "1"
            assert extensions == []

    run(main())


def test_two_hundred_connections_on_one_loop(run, server):
    async def talk(number: int) -> None:
        async with librealtime.connect(server.url + "/echo", open_timeout=50) as ws:
            for round_ in range(5):
                await ws.send(f"{number}.{round_}")
                assert await ws.recv() == f"{number}.{round_}"

    async def main():
        await asyncio.gather(*(talk(number) for number in range(200)))

    run(main())


def test_the_await_form(run, server):
    async def main():
        ws = await librealtime.connect(server.url + "/echo")
        assert ws.state is librealtime.State.OPEN
        assert "OPEN" in repr(ws)
        await ws.close()
        assert ws.state is librealtime.State.CLOSED
        assert "CLOSED 1000" in repr(ws)

    run(main())


def test_ping_measures_the_round_trip(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo", ping_interval=None) as ws:
            assert ws.latency == 0
            latencies = [await (await ws.ping()) for _ in range(5)]
            assert all(0 < latency < 30 for latency in latencies)
            assert ws.latency == latencies[-1]
            # A pong may answer several pings, and more are sent than the library remembers.
            pongs = [await ws.ping() for _ in range(100)]
            assert len(await asyncio.gather(*pongs)) == 100

    run(main())


def test_pings_of_the_interval_set_the_latency(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo", ping_interval=0.01) as ws:
            while ws.latency == 0:
                await asyncio.sleep(0.01)

    run(main())


async def aiohttp_echo(request: aiohttp.web.Request) -> aiohttp.web.WebSocketResponse:
    ws = aiohttp.web.WebSocketResponse(protocols=("chat",), max_msg_size=0)
    await ws.prepare(request)
    async for message in ws:
        if message.type == aiohttp.WSMsgType.TEXT:
            await ws.send_str(message.data)
        else:
            await ws.send_bytes(message.data)
    return ws


async def start_aiohttp():
    application = aiohttp.web.Application()
    application.router.add_get("/echo", aiohttp_echo)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner.addresses[0][1], runner.cleanup


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=repr)
def test_aiohttp_echoes(run, compression):
    async def main(port):
        async with librealtime.connect(
            f"ws://127.0.0.1:{port}/echo", compression=compression, subprotocols=["chat"]
        ) as ws:
            assert ws.subprotocol == "chat"
            for message in MESSAGES:
                await ws.send(message)
                assert await ws.recv() == message
            await ws.close(4001, "over")
            # This server's answer to every message.
            assert ws.close_code == 1000

    with AsyncServer(start_aiohttp) as server:
        run(main(server.port))


def test_no_message_is_delivered_before_connect_returns(run, server):
    """The server's first message may arrive in one read with the handshake's response."""

    async def main():
        for _ in range(20):
            first = asyncio.get_running_loop().create_future()
            connections = []

            def on_message(message, first=first, connections=connections):
                if not first.done():
                    first.set_result(list(connections))

            ws = await librealtime.connect(server.url + "/count?to=1", on_message=on_message)
            connections.append(ws)
            assert await first == [ws]
            await ws.wait_closed()

    run(main())
