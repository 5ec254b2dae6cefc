"""Closing while the next connection is awaited ends everything as quietly as when connected."""

from __future__ import annotations

import asyncio
import threading

import pytest
from conftest import PATIENCE_S
from meteor import FACES as METEOR_FACES
from pushers import FACES as PUSHER_FACES
from pushers import options

import librealtime
from librealtime import Backoff, ConnectionClosedError, ConnectionClosedOK, StreamEnded, sync

SLOW = Backoff(initial_delay=3600, max_delay=3600, jitter="none")


def lost_connection(own_server, lost, **more):
    own_server.fates.append("drop")
    return {"uri": own_server.url + "/flaky", "reconnect": SLOW, "on_lost": lost, **more}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_connection(run, own_server, streaming):
    async def main():
        lost = asyncio.Event()
        given = lost_connection(own_server, lambda _: lost.set(), streaming=streaming)
        ws = await librealtime.connect(given.pop("uri"), **given)
        received = []

        async def receive():
            async for message in ws:
                received.append(message)

        task = asyncio.ensure_future(receive())
        await lost.wait()
        assert ws.state is librealtime.State.WAITING
        await ws.close(1000, "enough")
        await task
        assert (received, ws.close_code, ws.close_reason) == (["0 left"], 1000, "enough")
        for use in (ws.recv(), ws.send("late"), ws.ping()):
            with pytest.raises(ConnectionClosedOK) as raised:
                await use
            assert (raised.value.code, raised.value.reason) == (1000, "enough")
        assert [message async for message in ws] == []

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_blocking_connection(own_server, streaming):
    lost = threading.Event()
    given = lost_connection(own_server, lambda _: lost.set(), streaming=streaming)
    ws = sync.connect(given.pop("uri"), **given)
    received = []
    thread = threading.Thread(target=lambda: received.extend([*ws, "end"]))
    thread.start()
    assert lost.wait(PATIENCE_S)
    ws.close(1000, "enough")
    thread.join(PATIENCE_S)
    assert (received, ws.close_code, ws.close_reason) == (["0 left", "end"], 1000, "enough")
    for use in (ws.recv, lambda: ws.send("late"), ws.ping):
        with pytest.raises(ConnectionClosedOK) as raised:
            use()
        assert (raised.value.code, raised.value.reason) == (1000, "enough")
    assert list(ws) == []


def test_a_send_that_waits_for_a_connection(run, own_server):
    async def main():
        lost = asyncio.Event()
        given = lost_connection(own_server, lambda _: lost.set(), offline_queue=1)
        ws = await librealtime.connect(given.pop("uri"), **given)
        await lost.wait()
        await ws.send("queued")
        waiting = asyncio.ensure_future(ws.send("waits"))
        await asyncio.sleep(0)
        await ws.close()
        with pytest.raises(ConnectionClosedOK):
            await waiting

    run(main())


def test_the_end_of_a_with_block(run, own_server):
    """Its close has the code of an error, as when it is connected."""

    async def main():
        lost = asyncio.Event()
        given = lost_connection(own_server, lambda _: lost.set())
        with pytest.raises(ZeroDivisionError):
            async with librealtime.connect(given.pop("uri"), **given) as ws:
                await lost.wait()
                assert await ws.recv() == "0 left"
                raise ZeroDivisionError
        with pytest.raises(ConnectionClosedError) as raised:
            await ws.recv()
        assert raised.value.code == 1011

    run(main())


SOURCES = {
    "event source": lambda face, url, tell: face.EventSource(
        url + "/count", on_error=tell, reconnection_time=3600, min_reconnection_time=3600
    ),
    "long poll": lambda face, url, tell: face.LongPoll(
        "http://127.0.0.1:1/", on_error=tell, backoff=SLOW
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_sources(run, events, kind):
    async def main():
        lost = asyncio.Event()
        source = SOURCES[kind](librealtime, events.url, lambda _: lost.set())

        async def receive():
            return [item async for item in source]

        task = asyncio.ensure_future(receive())
        await lost.wait()
        source.close()
        assert isinstance(await task, list)
        with pytest.raises(StreamEnded):
            await source.recv()

    run(main())
    lost = threading.Event()
    source = SOURCES[kind](sync, events.url, lambda _: lost.set())
    ends = []
    thread = threading.Thread(target=lambda: ends.append(list(source)))
    thread.start()
    assert lost.wait(PATIENCE_S)
    source.close()
    thread.join(PATIENCE_S)
    assert len(ends) == 1
    with pytest.raises(StreamEnded):
        source.recv()


async def done(face, function, *arguments):
    if face in (sync.Spreadbot, sync.Pusher, sync.DDPClient):
        return await asyncio.to_thread(function, *arguments)
    result = function(*arguments)
    return await result if hasattr(result, "__await__") else result


async def items(face, iterable):
    """All items, in a task that has begun to wait for them."""

    async def receive():
        return [item async for item in iterable]

    blocking = face in (sync.Spreadbot, sync.Pusher, sync.DDPClient)
    return asyncio.ensure_future(asyncio.to_thread(list, iterable) if blocking else receive())


@pytest.mark.parametrize("face", [librealtime.Spreadbot, sync.Spreadbot])
def test_spreadbot(run, face):
    async def main():
        lost, loop = asyncio.Event(), asyncio.get_running_loop()
        bot = face(
            "http://127.0.0.1:1",
            max_delay=3600,
            on_error=lambda _: loop.call_soon_threadsafe(lost.set),
        )
        if face is sync.Spreadbot:
            bot.establish_connection("echo", wait=False)
        else:
            await bot.establish_connection("echo", wait=False)
        task = await items(face, bot)
        await lost.wait()
        await done(face, bot.close_connection)
        assert await task == []
        with pytest.raises(StreamEnded):
            await done(face, bot.recv)
        bot.close()

    run(main())


@pytest.mark.parametrize("face", PUSHER_FACES)
def test_pusher(run, pusher_server, face):
    async def main():
        loop, lost = asyncio.get_running_loop(), asyncio.Event()

        def changed(change):
            if change.new == "reconnecting":
                loop.call_soon_threadsafe(lost.set)

        given = options(pusher_server, on_state=changed, max_reconnect_gap=3600)
        pusher = face(pusher_server.key, **given)
        await done(face, pusher.connect)
        channel = await done(face, pusher.subscribe, "orders")
        task = await items(face, channel.events())
        await pusher_server.actions.end("reset")
        await lost.wait()
        await done(face, pusher.disconnect)
        assert await task == []
        pusher.close()

    run(main())


@pytest.mark.parametrize("face", METEOR_FACES)
def test_meteor(run, face):
    async def main():
        loop, lost = asyncio.get_running_loop(), asyncio.Event()

        def changed(change):
            if change.status == "waiting":
                loop.call_soon_threadsafe(lost.set)

        client = face("ws://127.0.0.1:1", on_status=changed)
        if face is sync.DDPClient:
            client.connect(wait=False)
        else:
            await client.connect(wait=False)
        task = await items(face, client.collection("tasks").find().observe_indexes())
        await lost.wait()
        await done(face, client.close)
        assert isinstance(await task, list)

    run(main())
