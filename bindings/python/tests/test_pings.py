"""Pings of the program, and the pongs that they wait for."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from aiohttp import WSMsgType, web
from conftest import PATIENCE_S
from servers import AsyncServer

import librealtime
from librealtime import ConnectionClosedOK
from librealtime.sync import connect


class PingServer(AsyncServer):
    """Keeps the payloads of pings; answers all but those that begin with "no"."""

    def __init__(self) -> None:
        super().__init__(self._begin)
        self.payloads: list[bytes] = []

    async def _begin(self):
        application = web.Application()
        application.router.add_get("/", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1], runner.cleanup

    async def _handle(self, request):
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.PING:
                self.payloads.append(bytes(message.data))
                if not message.data.startswith(b"no"):
                    await socket.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                await socket.close()
        return socket


@pytest.fixture
def pings():
    with PingServer() as server:
        yield server


def test_pings_with_payloads(run, pings):
    url = f"ws://127.0.0.1:{pings.port}/"

    async def main():
        async with librealtime.connect(url, ping_interval=None) as ws:
            first = await ws.ping("no pong")
            with pytest.raises(librealtime.ConcurrencyError, match="no pong"):
                await ws.ping(b"no pong")
            assert not first.done()
            # The pong of the last one answers both.
            assert await (await ws.ping(bytearray(b"payload"))) > 0
            assert await first > 0
            await (await ws.ping("é" * 62))
            with pytest.raises(librealtime.RealtimeError, match="125"):
                await ws.ping(bytes(126))
            with pytest.raises(TypeError, match="str or bytes"):
                await ws.ping(5)
            # One that nobody awaits any more does no harm.
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(await ws.ping("no 2"), 0.01)
            lost = await ws.ping("no 3")
            await ws.ping("no 4")
            await ws.send("close")
            with pytest.raises(ConnectionClosedOK):
                await lost

    run(main())
    expected = [b"no pong", b"payload", "é".encode() * 62, b"no 2", b"no 3", b"no 4"]
    assert pings.payloads == expected


def test_pings_with_payloads_in_blocking_programs(pings):
    url = f"ws://127.0.0.1:{pings.port}/"
    with connect(url, ping_interval=None) as ws:
        first = ws.ping("no pong")
        with pytest.raises(librealtime.ConcurrencyError, match="no pong"):
            ws.ping(b"no pong")
        assert not first.wait(0.01)
        assert not first.is_set()
        assert first.latency is None
        assert ws.ping(b"payload").wait(PATIENCE_S)
        assert first.is_set()
        assert first.latency > 0
        with pytest.raises(librealtime.RealtimeError, match="125"):
            ws.ping(bytes(126))
        lost = ws.ping("no 2")
        ws.send_nowait("close")
        with pytest.raises(ConnectionClosedOK):
            lost.wait(PATIENCE_S)
    assert pings.payloads == [b"no pong", b"payload", b"no 2"]


def test_a_pong_that_is_awaited_keeps_the_connection(run, pings):
    async def main():
        async def begin():
            ws = await librealtime.connect(f"ws://127.0.0.1:{pings.port}/", ping_interval=None)
            return await ws.ping("no pong"), weakref.ref(ws)

        pong, ws = await begin()
        gc.collect()
        kept = ws()
        assert kept is not None
        await (await kept.ping("pong"))
        assert await pong > 0
        await kept.close()

    run(main())
