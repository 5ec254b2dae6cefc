"""Sends of a Spreadbot connection arrive, or their failure is reported to the sender."""

from __future__ import annotations

import asyncio
import threading

import pytest

import librealtime
from librealtime import Spreadbot, sync

QUICKLY = {"max_delay": 0.02}


def test_sends_by_the_websocket_are_confirmed(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            await bot.establish_connection("echo")
            sends = [bot.send_message_string(str(number)) for number in range(20)]
            assert await asyncio.gather(*sends) == [None] * 20
            assert await bot.send_message_binary(bytearray(b"\xff")) is None
            data = [(await bot.recv()).data for _ in range(21)]
            assert data == [b"%d" % number for number in range(20)] + [b"\xff"]

    run(main())


def test_sends_blocking(bots):
    """From several threads."""
    with sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("echo")

        def send(name):
            for number in range(10):
                bot.send_message_string(f"{name} {number}", timeout=30)

        threads = [threading.Thread(target=send, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        texts = [bot.recv(timeout=30).text for _ in range(30)]
        for thread in threads:
            thread.join(30)
        for name in "abc":
            said = [text for text in texts if text.startswith(name)]
            assert said == [f"{name} {number}" for number in range(10)]
        bot.send_message_binary(b"\xff")
        assert bot.recv().data == b"\xff"


def test_sends_by_post(run, bots):
    async def main():
        async with Spreadbot(bots.url, transports=["sse"]) as bot:
            await bot.establish_connection("events")
            answer = await bot.send_message_string("hällo")
            assert answer.status_code == 201 and answer.json() == {"stored": True}
            await bot.send_message_binary(b"\0")

    run(main())
    name, data, headers = bots.posts.get(timeout=30)
    assert (name, data.decode()) == ("events", "hällo")
    assert headers["Content-Type"] == "text/plain; charset=utf-8" and headers["Idempotency-Key"]
    assert bots.posts.get(timeout=30)[1] == b"\0"


def test_a_post_that_is_refused(run, bots):
    async def main():
        options = {"transports": ["sse"], "send_url": bots.url + "/forbidden"}
        async with Spreadbot(bots.url, **options) as bot:
            await bot.establish_connection("events")
            with pytest.raises(librealtime.HTTPStatusError) as caught:
                await bot.send_message_string("x")
            assert caught.value.response.status_code == 403
            assert caught.value.response.text == "not you"

    run(main())


def test_a_connection_that_is_lost_before_it_confirmed(run, bots):
    async def main():
        async with Spreadbot(bots.url, **QUICKLY) as bot:
            await bot.establish_connection("deaf")
            told = asyncio.get_running_loop().create_future()
            bot.send_nowait("go", told.set_result)
            with pytest.raises(librealtime.ConnectionLost):
                await bot.send_message_string("x")
            assert isinstance(await told, librealtime.ConnectionLost)

    run(main())
    with sync.Spreadbot(bots.url, **QUICKLY) as bot:
        bot.establish_connection("deaf")
        with pytest.raises(ConnectionError) as caught:
            bot.send_message_string("go")
        assert not isinstance(caught.value, librealtime.ConnectFailed)


def test_sends_that_nothing_waits_for(run, bots):
    """Before establish_connection, and when the queue is full."""

    async def main():
        async with Spreadbot(bots.url, queue_capacity=1) as bot:
            with pytest.raises(librealtime.ConnectionClosedError):
                await bot.send_message_string("x")
            network = librealtime.Reachability("manual")
            network.set_online(False)
        async with Spreadbot(bots.url, queue_capacity=1, reachability=network) as bot:
            await bot.establish_connection("echo", wait=False)
            while bot.phase != "offline":
                await asyncio.sleep(0.001)
            sends = [asyncio.ensure_future(bot.send_message_string(text)) for text in "xyz"]
            done, waiting = await asyncio.wait(sends, return_when=asyncio.FIRST_EXCEPTION)
            assert {type(send.exception()) for send in done} == {librealtime.QueueFull}
            network.set_online(True)
            for send in waiting:
                await send
            await bot.send_message_string("w")

    run(main())


def test_sends_have_a_content_type(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            with pytest.raises(TypeError):
                await bot.send_message_string(b"x")
            with pytest.raises(TypeError):
                await bot.send_message_binary("x")
            with pytest.raises(TypeError):
                bot.send_nowait(1)
            with pytest.raises(librealtime.InvalidArgument):
                await bot.send_message_string("\ud800")

    run(main())
    with sync.Spreadbot(bots.url) as bot:
        with pytest.raises(TypeError):
            bot.send_message_string(b"x")
        with pytest.raises(TypeError):
            bot.send_message_binary("x")


def test_a_send_that_is_confirmed_after_untaken_messages(run, bots):
    """It would wait forever: receiving pauses, and the confirmation comes after the messages."""

    async def main():
        async with Spreadbot(bots.url, max_queue=10) as bot:
            await bot.establish_connection("flood")
            with pytest.raises(librealtime.BufferFull):
                while True:
                    await bot.send_message_string("more")
            # The same task takes and sends.
            with pytest.raises(librealtime.BufferFull):
                async for _ in bot:
                    await bot.send_message_string("more")

            async def take():
                async for message in bot:
                    got.append(message)

            # Another task takes messages.
            got = []
            task = asyncio.create_task(take())
            await asyncio.sleep(0)
            for _ in range(20):
                await bot.send_message_string("more")
            assert got
            # That task stops while a send waits.
            failing = asyncio.create_task(sends(bot))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(librealtime.BufferFull):
                await failing

    async def sends(bot):
        while True:
            await bot.send_message_string("more")

    run(main())
    with sync.Spreadbot(bots.url, max_queue=10) as bot:
        bot.establish_connection("flood")
        with pytest.raises(librealtime.BufferFull):
            for _ in bot:
                bot.send_message_string("more")
        bot.on_message = lambda message: None
        for _ in range(5):
            bot.send_message_string("more")


@pytest.mark.parametrize("face", ["asyncio", "blocking"])
def test_an_outbox_outlives_the_sending_process(run, bots, tmp_path, face):
    network = librealtime.Reachability("manual")
    network.set_online(False)
    options = {"outbox": tmp_path / "outbox", "transports": ["sse"]}

    async def main():
        async with Spreadbot(bots.url, reachability=network, **options) as bot:
            with pytest.raises(librealtime.ConnectionClosedError):
                await bot.send_message_string("too early")
            with pytest.raises(librealtime.InvalidState):
                Spreadbot(bots.url, **options)
            await bot.establish_connection("events", wait=False)
            bot.send_nowait("1")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(bot.send_message_binary(b"2"), 0.01)
            posts = asyncio.ensure_future(bot.rest.post_data("things", {"a": 3}))
            await asyncio.sleep(0)
        with pytest.raises(librealtime.ConnectionClosedError):
            await posts

    if face == "asyncio":
        run(main())
    else:
        with sync.Spreadbot(bots.url, reachability=network, **options) as bot:
            bot.establish_connection("events", wait=False)
            bot.send_nowait("1")
            with pytest.raises(TimeoutError):
                bot.send_message_binary(b"2", timeout=0.01)
            thread = threading.Thread(target=post, args=(bot.rest,))
            thread.start()
            while len(bot._sends) < 2:
                pass
        thread.join(30)
    with sync.Spreadbot(bots.url, **options) as bot:
        bot.establish_connection("events")
        assert bot.send_message_string("4", timeout=30).status_code == 201
    posted = [bots.posts.get(timeout=30)[:2] for _ in range(4)]
    assert posted == [
        ("events", b"1"), ("events", b"2"), ("things", b'{"a":3}'), ("events", b"4"),
    ]  # fmt: skip


def post(rest):
    with pytest.raises(librealtime.ConnectionClosedError):
        rest.post_data("things", {"a": 3})
