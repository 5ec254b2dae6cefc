"""Connections with callbacks: messages are passed to handlers during the dispatch."""

from __future__ import annotations

import asyncio

import pytest

import librealtime
from librealtime._core import reactor


def test_messages_come_in_order_and_with_their_kind(run, server):
    async def main():
        messages = ["text", b"bytes", "", b"", "é" * 70_000, b"\xff" * 70_000]
        received = []
        everything = asyncio.get_running_loop().create_future()

        def on_message(message):
            received.append(message)
            if len(received) == len(messages):
                everything.set_result(None)

        async with librealtime.connect(server.url + "/echo", on_message=on_message) as ws:
            for message in messages:
                await ws.send(message)
            await everything
        assert received == messages
        assert [type(message) for message in received] == [type(message) for message in messages]

    run(main())


def test_a_callback_answers_and_closes(run, server):
    async def main():
        count = 0
        closing = []

        def on_message(message):
            nonlocal count
            count += 1
            if count < 100:
                ws.send_nowait(message)
            else:
                closing.append(asyncio.ensure_future(ws.close(3000, "enough")))

        ws = await librealtime.connect(server.url + "/echo", on_message=on_message)
        await ws.send("round and round")
        await ws.wait_closed()
        assert (count, ws.close_code) == (100, 3000)

    run(main())


def test_callback_exceptions_go_to_the_loops_handler(run, server):
    async def main():
        loop = asyncio.get_running_loop()
        contexts = []
        loop.set_exception_handler(lambda _, context: contexts.append(context))
        received = []

        def on_message(message):
            received.append(message)
            if message == "bad":
                raise ValueError("no such message")

        async with librealtime.connect(server.url + "/echo", on_message=on_message) as ws:
            for message in ("good", "bad", "good"):
                await ws.send(message)
            while len(received) < 3:
                await asyncio.sleep(0)
            assert await (await ws.ping()) > 0
        assert received == ["good", "bad", "good"]
        assert [repr(context["exception"]) for context in contexts] == [
            "ValueError('no such message')"
        ]
        assert contexts[0]["connection"] is ws

    run(main())


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_exceptions_that_end_the_program_end_it(server, fatal):
    async def main():
        def on_message(message):
            raise fatal

        async with librealtime.connect(server.url + "/echo", on_message=on_message) as ws:
            await ws.send("go")
            await ws.wait_closed()

    with pytest.raises(fatal):
        asyncio.run(main())


def test_no_message_comes_after_close(run, server):
    async def main():
        received = []
        url = server.url + "/count?to=100000"

        def on_message(message):
            received.append(message)
            if len(received) == 10:
                ws._begin_close(1000, "")

        ws = await librealtime.connect(url, on_message=on_message)
        await ws.wait_closed()
        assert received == [str(number) for number in range(10)]

    run(main())


def test_a_connection_with_a_callback_needs_no_reference(run, no_linger, server):
    async def main():
        received = []
        ended = asyncio.get_running_loop().create_future()

        def on_message(message):
            received.append(message)
            if len(received) == 100 and not ended.done():
                ended.set_result(None)

        await librealtime.connect(server.url + "/count?to=100", on_message=on_message)
        await ended
        assert received == [str(number) for number in range(100)]
        # The server closes; then the loop has no more connections.
        while hasattr(asyncio.get_running_loop(), reactor._ATTRIBUTE):
            await asyncio.sleep(0)

    run(main())


def test_handlers_may_be_set_at_any_time(run, server):
    async def main():
        told = []
        everything = asyncio.get_running_loop().create_future()

        def first(message):
            told.append(("first", message))
            if len(told) == 10:
                ws.on_message = second

        def second(message):
            told.append(("second", message))
            if len(told) == 20:
                ws.on_messages = third

        def third(messages):
            told.extend(("third", message) for message in messages)
            if len(told) == 500:
                everything.set_result(None)

        ws = await librealtime.connect(server.url + "/count?to=500", on_message=first)
        await everything
        names = ["first"] * 10 + ["second"] * 10 + ["third"] * 480
        assert told == [(name, str(number)) for number, name in enumerate(names)]
        await ws.close()

    run(main())


def test_messages_go_to_recv_and_to_a_handler_in_turn(run, server):
    async def main():
        told = []
        came = asyncio.Event()

        def on_message(message):
            told.append(message)
            came.set()

        async with librealtime.connect(server.url + "/echo") as ws:
            receiving = asyncio.ensure_future(ws.recv())
            await ws.send("1")
            assert await receiving == "1"
            receiving = asyncio.ensure_future(ws.recv())
            await asyncio.sleep(0)
            ws.on_message = on_message
            assert ws.on_message is on_message
            with pytest.raises(librealtime.InvalidState):
                await receiving
            await ws.send("2")
            await came.wait()
            ws.on_message = None
            await ws.send("3")
            assert await ws.recv() == "3"
            assert told == ["2"]
            with pytest.raises(TypeError):
                ws.on_message = "no function"
            with pytest.raises(librealtime.InvalidArgument, match="on_lost needs reconnect"):
                ws.on_lost = print

    run(main())


def test_queued_messages_do_not_hold_up_a_handler(run, server):
    async def main():
        told = []
        came = asyncio.Event()

        def on_message(message):
            told.append(message)
            if message == "99999":
                came.set()

        # More than one read contains.
        ws = await librealtime.connect(server.url + "/count?to=100000", max_queue=4)
        waiting = [await ws.recv()]
        while not ws._inbox.paused:
            await asyncio.sleep(0)
        ws.on_message = on_message
        await came.wait()
        while ws._inbox.messages:
            waiting.append(await ws.recv())
        assert waiting + told == [str(number) for number in range(100_000)]
        await ws.close()

    run(main())
