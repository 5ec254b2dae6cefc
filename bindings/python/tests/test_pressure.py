"""Back-pressure in both directions: queues are bounded, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

import librealtime

# More than the kernel buffers on both sides hold.
BLOCKS, BLOCK_SIZE = 2000, 16_384
# The most that one read may add above a limit (Engine's receive buffer full of small messages).
READ_BYTES = 1 << 20


def number_of(block: bytes) -> int:
    return int.from_bytes(block[:4], "big")


def test_a_slow_consumer_holds_up_the_server(run, server):
    async def main():
        url = f"{server.url}/blocks?to={BLOCKS}&size={BLOCK_SIZE}"
        limit = 1 << 18
        async with librealtime.connect(
            url, max_queue_bytes=limit, compression=None, ping_interval=None
        ) as ws:
            # Take nothing until the queue has been full for a while.
            while not ws._inbox.paused:
                await asyncio.sleep(0)
            held = len(ws._inbox.messages)
            for _ in range(100):
                await asyncio.sleep(0.001)
            assert len(ws._inbox.messages) == held
            assert held * BLOCK_SIZE <= limit + READ_BYTES
            numbers = []
            async for block in ws:
                assert len(block) == BLOCK_SIZE
                numbers.append(number_of(block))
                assert len(ws._inbox.messages) * BLOCK_SIZE <= limit + READ_BYTES
                if len(numbers) % 100 == 0:
                    await asyncio.sleep(0.001)
            assert numbers == list(range(BLOCKS))
            assert not ws._inbox.paused

    run(main())


@pytest.mark.parametrize("max_queue", [1, 2, 64, None])
def test_a_limit_of_messages(run, server, max_queue):
    async def main():
        count = 20_000
        url = f"{server.url}/count?to={count}"
        # A read adds whole batches; with None receiving never pauses.
        async with librealtime.connect(url, max_queue=max_queue, max_queue_bytes=None) as ws:
            numbers = [int(message) async for message in ws]
        assert numbers == list(range(count))

    run(main())


def test_a_paused_connection_can_be_closed(run, own_server):
    async def main():
        url = f"{own_server.url}/blocks?to={BLOCKS}&size={BLOCK_SIZE}"
        ws = await librealtime.connect(url, max_queue_bytes=1 << 16, compression=None)
        while not ws._inbox.paused:
            await asyncio.sleep(0)
        await ws.close(1000)
        assert ws.close_code in (1000, 1006)

    run(main())


def test_cancelling_recv_loses_no_message(run, server):
    async def main():
        count = 3000
        cancelled = 0
        received = []
        async with librealtime.connect(f"{server.url}/count?to={count}", max_queue=4) as ws:
            while len(received) < count:
                receiving = asyncio.ensure_future(ws.recv())
                for _ in range(len(received) % 4):
                    await asyncio.sleep(0)
                receiving.cancel()
                try:
                    received.append(await receiving)
                except asyncio.CancelledError:
                    cancelled += 1
                    received.append(await ws.recv())
        assert received == [str(number) for number in range(count)]
        assert cancelled > 0

    run(main())


def test_a_time_limit_around_recv_loses_no_message(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for number in range(100):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(ws.recv(), 0.0005)
                await ws.send(str(number))
                assert await ws.recv() == str(number)

    run(main())


def test_a_slow_server_holds_up_send(run, own_server):
    async def main():
        limit = 1 << 16
        async with librealtime.connect(
            own_server.url + "/late", write_limit=limit, compression=None, ping_interval=None
        ) as ws:
            sent = 0

            async def send_all():
                nonlocal sent
                while sent < BLOCKS:
                    await ws.send(sent.to_bytes(4, "big") * (BLOCK_SIZE // 4))
                    sent += 1

            sender = asyncio.ensure_future(send_all())
            last = -1
            while sent != last or not ws._is_draining:
                last = sent
                await asyncio.sleep(0.05)
            assert 0 < sent < BLOCKS
            assert limit < ws._buffered() <= limit + 2 * BLOCK_SIZE
            with pytest.raises(librealtime.BufferFull, match="write_limit"):
                ws.send_nowait("one more")
            own_server.go.set()
            await sender
            assert await (await ws.ping()) > 0
        assert [number_of(block) for block in own_server.received] == list(range(BLOCKS))

    run(main())


def test_cancelling_send_leaves_the_order_whole(run, own_server):
    async def main():
        async with librealtime.connect(
            own_server.url + "/late", write_limit=1 << 16, compression=None, ping_interval=None
        ) as ws:
            sent = 0
            while not ws._is_draining:
                sending = asyncio.ensure_future(
                    ws.send(sent.to_bytes(4, "big") * (BLOCK_SIZE // 4))
                )
                await asyncio.sleep(0)
                sent += 1
            # It was queued before it began to wait, so it is still sent.
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            own_server.go.set()
            await ws.send(sent.to_bytes(4, "big") * (BLOCK_SIZE // 4))
            assert await (await ws.ping()) > 0
        assert [number_of(block) for block in own_server.received] == list(range(sent + 1))

    run(main())


def test_senders_that_wait_hear_of_the_end(run, own_server):
    async def main():
        async with librealtime.connect(
            own_server.url + "/late",
            write_limit=1 << 16,
            compression=None,
            ping_interval=None,
            close_timeout=0.05,
        ) as ws:

            async def send_until_closed():
                while True:
                    await ws.send(bytes(BLOCK_SIZE))

            senders = [asyncio.ensure_future(send_until_closed()) for _ in range(3)]
            while not ws._is_draining:
                await asyncio.sleep(0)
            await ws.close()
            for sender in senders:
                with pytest.raises(librealtime.ConnectionClosed):
                    await sender
            own_server.go.set()

    run(main())


def test_a_full_queue_is_walked_once(monkeypatch):
    """Messages that the same read adds do not each cost a walk through the whole queue."""
    from librealtime._core.inbox import Inbox

    walks, walk = [], Inbox._low_water
    monkeypatch.setattr(Inbox, "_low_water", lambda self: walks.append(1) or walk(self))
    inbox = Inbox(100, 0)
    assert [inbox.add(number, 1) for number in range(5000)].index(True) == 99
    assert len(walks) == 1 and inbox.paused and inbox.resume_at == 25
    assert not inbox.is_beyond(51) and inbox.is_beyond(50)
    inbox.messages.clear()
    inbox.paused = False
    assert not any(inbox.add(number, 1) for number in range(99)) and inbox.add(0, 1)
