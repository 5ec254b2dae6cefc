"""Handlers that are coroutine functions, for every object: awaited one after the other."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

import librealtime
from librealtime import EventSource, LongPoll, RESTClient, connect, sync


class Taker:
    """A handler that checks that it handles one item at a time."""

    def __init__(self, wanted, of=lambda item: item):
        self.got, self.busy, self.done = [], False, asyncio.Event()
        self._wanted, self._of = wanted, of

    async def take(self, item):
        assert not self.busy
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False
        self.got.append(self._of(item))
        if len(self.got) == self._wanted:
            self.done.set()


def test_of_a_websocket(run, server):
    """Sends more messages than may be queued, so that the server has to wait."""

    async def main():
        taker = Taker(100)
        async with connect(server.url + "/echo", on_message=taker.take, max_queue=4) as ws:
            for number in range(100):
                await ws.send(str(number))
            await taker.done.wait()
        assert taker.got == [str(number) for number in range(100)]

    run(main())


def test_of_a_websocket_in_batches(run, server):
    async def main():
        got, done = [], asyncio.Event()

        async def take(messages):
            await asyncio.sleep(0)
            got.extend(messages)
            if len(got) == 50:
                done.set()

        async with connect(server.url + "/echo", on_messages=take, max_queue=4) as ws:
            for number in range(50):
                await ws.send(str(number))
            await done.wait()
        assert got == [str(number) for number in range(50)]

    run(main())


def test_a_websocket_that_ended_has_its_messages_handled(run, server):
    async def main():
        entered, may_go_on, got = asyncio.Event(), asyncio.Event(), []

        async def take(message):
            entered.set()
            await may_go_on.wait()
            got.append(message)

        ws = await connect(server.url + "/count?to=3", on_message=take)
        await entered.wait()
        while ws.state is not librealtime.State.CLOSED:
            await asyncio.sleep(0.01)
        waits = asyncio.ensure_future(ws.wait_closed())
        await asyncio.sleep(0)
        assert not waits.done()
        may_go_on.set()
        await waits
        assert len(got) == 3

    run(main())


def test_a_handler_may_close_its_websocket(run, server):
    """The rest of that handler is awaited; handlers of further messages never begin."""

    async def main():
        began, ended = [], []

        async def take(message):
            began.append(message)
            await asyncio.wait_for(ws.close(3000, "enough"), 30)
            ended.append(message)

        ws = await connect(server.url + "/echo", on_message=take)
        for text in "abc":
            await ws.send(text)
        await ws.wait_closed()
        assert (began, ended, ws.close_code) == (["a"], ["a"], 3000)

    run(main())


def test_a_handler_may_end_its_object_by_another_task(run, bots):
    """That task does not wait for the handler, and is not cancelled with it."""

    async def main():
        ended = asyncio.Event()

        async def take(message):
            await asyncio.wait_for(asyncio.ensure_future(bot.aclose()), 30)
            ended.set()

        bot = librealtime.Spreadbot(bots.url, on_message=take)
        await bot.establish_connection("flood")
        await ended.wait()
        await bot.wait_closed()

    run(main())


def test_a_handler_sends_by_another_task(run, bots):
    """The handler waits for that task, so no messages are taken: the send would wait forever."""

    async def main():
        refused = asyncio.Event()

        async def take(message):
            try:
                await asyncio.wait_for(asyncio.ensure_future(bot.send_message_string("more")), 30)
            except librealtime.BufferFull:
                refused.set()
            except librealtime.ConnectionClosedError:
                assert refused.is_set()

        async with librealtime.Spreadbot(bots.url, on_message=take, max_queue=10) as bot:
            await bot.establish_connection("flood")
            await refused.wait()

    run(main())


def test_an_object_closed_before_a_handler_begins_is_collected(run, bots):
    async def main():
        bot = librealtime.Spreadbot(bots.url)
        await bot.establish_connection("deaf")
        # The handler of its end is called inside close.
        bot.send_nowait("x", coroutine)
        bot.close()
        reference = weakref.ref(bot)
        del bot
        while reference() is not None:
            await asyncio.sleep(0.001)
            gc.collect()

    run(main())


def test_of_an_event_source(run, events):
    async def main():
        calls = []

        async def opened():
            calls.append("open")

        async def told(event):
            await asyncio.sleep(0)
            calls.append(f"{event.event} {event.data}")

        async def erred(event):
            calls.append(event.error.name)

        source = EventSource(
            events.url + "/count", on_open=opened, on_any=told, on_error=erred, reconnect=False
        )
        source.add_event_listener("odd", told)
        await source.wait_closed()
        return calls

    odd, even = ["odd number 1"] * 2, ["message number 2"]
    end = ["odd number 3"] * 2 + ["RT_ERROR_CLOSED"]
    assert run(main()) == ["open", *odd, *even, *end]


def test_the_end_of_with_waits_for_the_handler_that_runs(run, events):
    async def main():
        entered, ended = asyncio.Event(), []

        async def take(event):
            entered.set()
            await asyncio.sleep(0.01)
            ended.append(event.data)

        async with EventSource(events.url + "/three", on_message=take):
            await entered.wait()
        return ended

    assert run(main()) == ["1"]


@pytest.mark.parametrize("kind", ["WebSocket", "EventSource", "Spreadbot"])
def test_a_hanging_handler_ends_with_the_task_that_waits_for_it(run, server, events, bots, kind):
    async def main():
        entered, ended = asyncio.Event(), []

        async def take(item):
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(item)

        async def use():
            if kind == "WebSocket":
                async with connect(server.url + "/echo", on_message=take) as ws:
                    await ws.send("a")
                    await entered.wait()
            elif kind == "EventSource":
                async with EventSource(events.url + "/three", on_message=take):
                    await entered.wait()
            else:
                async with librealtime.Spreadbot(bots.url, on_message=take) as bot:
                    await bot.establish_connection("flood")
                    await entered.wait()

        task = asyncio.ensure_future(use())
        await entered.wait()
        await asyncio.wait([task], timeout=0.1)
        assert not task.done() and not ended
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert len(ended) == 1

    run(main())


@pytest.mark.parametrize("kind", ["WebSocket", "EventSource", "Spreadbot"])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_exception_in_with_ends_the_handler_that_runs(
    run, server, events, bots, kind, is_cancelled
):
    async def main():
        entered, ended, is_left = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def take(item):
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def fail():
            await entered.wait()
            is_left.set()
            if is_cancelled:
                await asyncio.Event().wait()
            raise LookupError

        async def use():
            if kind == "WebSocket":
                async with connect(server.url + "/echo", on_message=take) as ws:
                    await ws.send("a")
                    await fail()
            elif kind == "EventSource":
                async with EventSource(events.url + "/three", on_message=take):
                    await fail()
            else:
                async with librealtime.Spreadbot(bots.url, on_message=take) as bot:
                    await bot.establish_connection("flood")
                    await fail()

        task = asyncio.ensure_future(use())
        await is_left.wait()
        if is_cancelled:
            task.cancel()
        with pytest.raises(asyncio.CancelledError if is_cancelled else LookupError):
            # If this stopped the taker, it would wait.
            await asyncio.wait_for(asyncio.shield(task), 20)
        await asyncio.wait_for(ended.wait(), 20)

    run(main())


def test_close_is_the_end_of_the_handler_that_runs(run, events):
    async def main():
        entered, cancelled = asyncio.Event(), []

        async def take(event):
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(event.data)
                raise

        source = EventSource(events.url + "/three", on_message=take)
        await entered.wait()
        source.close()
        await source.wait_closed()
        return cancelled

    assert run(main()) == ["1"]


def test_an_event_whose_handler_did_not_end_is_repeated(run, events, tmp_path):
    async def main(wanted):
        got, enough = [], asyncio.Event()

        async def take(event):
            got.append(event.id)
            if len(got) == wanted:
                enough.set()
                await asyncio.Event().wait()

        source = EventSource(events.url + "/count", on_any=take, id_file=tmp_path / "ids")
        await enough.wait()
        source.close()
        return got

    assert run(main(2)) == ["1", "2"]
    assert run(main(1)) == ["2"]


def test_of_a_long_poll(run, events):
    async def main():
        taker = Taker(5, of=lambda message: message.text)
        async with LongPoll(events.url + "/poll", on_message=taker.take, max_queue=1):
            await taker.done.wait()
        return taker.got

    assert run(main()) == [f"number {number}" for number in range(1, 6)]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_handler_set_later_receives_queued_messages(run, events, is_awaited):
    async def main():
        taker, got = Taker(4, of=lambda message: message.text), []
        async with LongPoll(events.url + "/poll", max_queue=2) as poll:
            first = await poll.recv()
            # Resumes with two left, or with one if the queue was full before the first was taken.
            while not poll._inbox.paused:
                await asyncio.sleep(0.01)
            if is_awaited:
                poll.on_message = taker.take
                await taker.done.wait()
                return [first.text, *taker.got]
            poll.on_message = lambda message: got.append(message.text)
            while len(got) < 4:
                await asyncio.sleep(0.01)
            return [first.text, *got]

    assert run(main()) == [f"number {number}" for number in range(1, 6)]


def test_a_handler_set_later_blocking(events):
    got = []
    with sync.LongPoll(events.url + "/poll") as poll:
        first = poll.recv().text
        while len(poll._inbox.messages) < 2:
            poll._until(lambda: len(poll._inbox.messages) >= 2)
        poll.on_message = lambda message: got.append(message.text)
        poll._until(lambda: len(got) == 4)
    assert [first, *got] == [f"number {number}" for number in range(1, 6)]


async def coroutine(*_):
    """Python would warn about a coroutine that is not awaited."""


@pytest.mark.parametrize("name", ["on_request", "header_provider"])
@pytest.mark.parametrize("kind", [sync.EventSource, sync.LongPoll])
def test_an_answer_that_is_needed_at_once(kind, name):
    with pytest.raises(TypeError, match=f"{name} is a coroutine function"):
        kind("http://127.0.0.1:1/", **{name: coroutine})


@pytest.mark.parametrize("name", ["on_request", "header_provider"])
def test_an_answer_that_is_a_coroutine_in_the_end(events, name):
    source = sync.EventSource(events.url + "/count", **{name: lambda attempt: coroutine()})
    words = "on_request or header_provider returned a coroutine"
    with pytest.raises(librealtime.RealtimeError, match=words):
        source.wait_closed(timeout=30)


@pytest.mark.parametrize("name", ["on_reconnect", "credentials"])
def test_an_answer_that_a_connection_needs_at_once(name):
    with pytest.raises(TypeError, match=f"{name} is a coroutine function"):
        sync.connect("ws://127.0.0.1:1/", reconnect=librealtime.Backoff(), **{name: coroutine})


def test_process_exception_must_be_a_plain_function():
    with pytest.raises(TypeError, match="process_exception is a coroutine function"):
        connect("ws://127.0.0.1:1/", process_exception=coroutine)


@pytest.mark.parametrize("name", ["on_progress", "on_retry"])
def test_handlers_of_requests_must_be_plain_functions(run, name):
    match = f"{name} is a coroutine function"

    async def main():
        async with RESTClient("http://127.0.0.1:1/") as client:
            with pytest.raises(TypeError, match=match):
                await client.get("x", **{name: coroutine})

    run(main())
    with sync.RESTClient("http://127.0.0.1:1/") as client, pytest.raises(TypeError, match=match):
        client.get("x", **{name: coroutine})


@pytest.mark.parametrize("kind", ["WebSocket", "EventSource", "LongPoll"])
def test_blocking_handlers_are_plain(server, events, kind):
    if kind == "WebSocket":
        taker = sync.connect(server.url + "/count?to=1", on_message=coroutine)
    elif kind == "EventSource":
        taker = sync.EventSource(events.url + "/three", on_message=coroutine)
    else:
        taker = sync.LongPoll(events.url + "/poll", on_message=coroutine)
    with pytest.raises(TypeError, match="plain function"):
        taker.wait_closed(timeout=30)
    if kind == "EventSource":
        # Each of its events fails.
        taker.on_message = None
    taker.close()
