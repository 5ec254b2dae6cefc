"""Messages sent while there is no connection."""

from __future__ import annotations

import asyncio

import pytest

import librealtime
from librealtime import Backoff, BufferFull, State
from librealtime.sync import connect

#: Retries at once.
AT_ONCE = Backoff(initial_delay=0, max_attempts=20)


def waiting_connection(own_server, lost, **options):
    """A lost connection that waits an hour for its next attempt."""
    own_server.fates.append("drop")
    slow = Backoff(initial_delay=3600, max_delay=3600, jitter="none")
    return librealtime.connect(
        own_server.url + "/flaky", reconnect=slow, on_lost=lost.put_nowait, **options
    )


def test_sending_while_it_is_down(run, own_server):
    async def main():
        lost = asyncio.Queue()
        async with waiting_connection(own_server, lost) as ws:
            assert await ws.recv() == "0 left"
            assert (await lost.get()).delay == 3600
            assert ws.state is State.WAITING
            with pytest.raises(librealtime.InvalidState, match="lost"):
                await ws.send("nobody hears")
            with pytest.raises(librealtime.InvalidState):
                await ws.ping()
            with pytest.raises(librealtime.InvalidState):
                await ws.send(["in", "pieces"])
        assert ws.state is State.CLOSED

    run(main())


async def is_waiting(sending):
    """Whether it still waits after everything that was ready has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not sending.done()


def test_sending_waits_while_the_queue_is_full(run, own_server):
    """Limited by the number of messages, and by their bytes."""

    async def main(kept, culprit, **options):
        lost = asyncio.Queue()
        async with waiting_connection(own_server, lost, **options) as ws:
            await lost.get()
            for message in kept:
                ws.send_nowait(message)
            with pytest.raises(BufferFull, match=culprit):
                ws.send_nowait("more")
            sending = [asyncio.ensure_future(ws.send("more")) for _ in range(3)]
            assert await is_waiting(sending[0])
            # At most one of the waiting sends is queued; then there is no room for another.
            assert ws._buffered() <= sum(map(len, kept)) + 4 + 14 * (len(kept) + 1)
            assert not any(task.done() for task in sending)
        for task in sending:
            with pytest.raises(librealtime.ConnectionClosed):
                await task

    run(main(["first", "second"], "offline_queue", offline_queue=2))
    run(main(["first"], "write_limit", offline_queue=100, write_limit=4))


def test_sending_continues_with_the_connection(run, own_server):
    """Failed attempts make no room for further messages, and the order is kept."""

    async def main():
        own_server.fates.append("drop")
        lost, sending, were_waiting = asyncio.Queue(), None, []

        def comes_back(attempt):
            if sending is not None:
                were_waiting.append(not sending.done())
            is_dead = attempt.number < 4
            attempt.set_url("ws://127.0.0.1:1/" if is_dead else own_server.url + "/flaky")

        async def send_all(ws):
            for number in range(50):
                await ws.send(str(number))

        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=Backoff(initial_delay=0.01, factor=1, jitter="none"),
            offline_queue=2,
            on_lost=lost.put_nowait,
            on_reconnect=comes_back,
        ) as ws:
            assert await ws.recv() == "0 left"
            await lost.get()
            sending = asyncio.ensure_future(send_all(ws))
            assert [await ws.recv() for _ in range(51)] == ["0 left", *map(str, range(50))]
            await sending
        assert were_waiting.count(True) >= 3

    run(main())


def test_blocking_sending_waits_too(own_server):
    own_server.fates.append("drop")
    with connect(
        own_server.url + "/flaky",
        reconnect=Backoff(initial_delay=0.3, factor=1, jitter="none"),
        offline_queue=2,
        write_limit=100,
    ) as ws:
        assert ws.recv() == "0 left"
        while ws.state is not State.WAITING:
            with pytest.raises(TimeoutError):
                ws.recv(timeout=0.001)
        for number in range(50):
            ws.send(str(number))
        assert [ws.recv() for _ in range(51)] == ["0 left", *map(str, range(50))]


def test_messages_wait_while_it_is_down(run, own_server):
    own_server.fates.append("drop")

    async def resumes():
        lost, go = asyncio.Queue(), []
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            offline_queue=10,
            on_lost=lambda loss: go.extend(map(ws.send_nowait, ("a", "b"))),
        ) as ws:
            assert [await ws.recv() for _ in range(4)] == ["0 left", "0 left", "a", "b"]
        assert lost.empty()

    run(resumes())
