"""Spreadbot connections that are misused, waited for, closed, dropped and forked."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref

import pytest

import librealtime
from librealtime import Spreadbot, sync
from librealtime._sources.source_base import BaseSource
from librealtime._spreadbot.callbacks import SPREADBOT

NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"access_token": "a\nb"}, librealtime.InvalidArgument),
        ({"access_token": None}, TypeError),
        ({"auth_url": "ftp://a/"}, librealtime.InvalidURI),
        ({"auth_url": "http://a/", "base64_credentials": "a\nb"}, librealtime.InvalidArgument),
        ({"transports": []}, librealtime.InvalidArgument),
        ({"transports": ["sse", "sse"]}, librealtime.InvalidArgument),
        ({"transports": ["telex"]}, librealtime.InvalidArgument),
        ({"transports": "sse"}, TypeError),
        ({"transport_urls": {"telex": NOWHERE}}, librealtime.InvalidArgument),
        ({"transport_urls": {"sse": "nowhere"}}, librealtime.InvalidURI),
        ({"send_url": ""}, librealtime.InvalidURI),
        ({"headers": {"Authorization": "x"}}, librealtime.InvalidArgument),
        ({"last_event_id": "a\nb"}, librealtime.InvalidArgument),
        ({"max_reconnects": -1}, librealtime.InvalidArgument),
        ({"max_delay": -1}, librealtime.InvalidArgument),
        ({"max_delay": None}, TypeError),
        ({"upgrade_interval": 0}, librealtime.InvalidArgument),
        ({"max_upgrade_interval": None}, TypeError),
        ({"answer_timeout": 0}, librealtime.InvalidArgument),
        ({"queue_capacity": -1}, librealtime.InvalidArgument),
        ({"queue_overflow": "explode"}, librealtime.InvalidArgument),
        ({"max_redirects": 21}, librealtime.InvalidArgument),
        ({"safe_headers": ["a b"]}, librealtime.InvalidArgument),
        ({"safe_headers": "abc"}, TypeError),
        ({"max_size": 0}, librealtime.InvalidArgument),
        ({"max_queue": -1}, librealtime.InvalidArgument),
        ({"network": "none"}, TypeError),
        ({"reachability": True}, TypeError),
    ],
)
def test_invalid_options_are_reported_at_once(run, no_linger, options, kind):
    async def main():
        with pytest.raises(kind):
            Spreadbot(NOWHERE, **options)

    run(main())
    with pytest.raises(kind):
        sync.Spreadbot(NOWHERE, **options)


@pytest.mark.parametrize("url", ["", "x", "ws://a/", "http://", "http://a\0b/"])
def test_bad_urls(run, url):
    async def main():
        with pytest.raises(librealtime.InvalidArgument):
            Spreadbot(url)

    run(main())


def test_a_bad_path_changes_nothing(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            await bot.establish_connection("echo")
            for path in ("a\0b", "a b\n"):
                with pytest.raises(librealtime.InvalidArgument):
                    await bot.establish_connection(path)
            with pytest.raises(TypeError):
                await bot.establish_connection(None)
            assert bot.state == "connected"
            await bot.send_message_string("x")
            assert (await bot.recv()).text == "x"

    run(main())


def test_it_is_established_before_anything_is_waited_for(run):
    """Otherwise it would wait forever."""

    async def main():
        async with Spreadbot(NOWHERE) as bot:
            for use in (bot.recv(), bot.wait_closed(), bot.__aiter__().__anext__()):
                with pytest.raises(librealtime.InvalidState, match="establish_connection"):
                    await use
            await bot.close_connection()
        with pytest.raises(librealtime.StreamEnded):
            await bot.recv()
        with pytest.raises(librealtime.StreamEnded):
            await bot.establish_connection("x")
        assert [message async for message in bot] == []

    run(main())
    with sync.Spreadbot(NOWHERE) as bot:
        with pytest.raises(librealtime.InvalidState):
            bot.recv()
        with pytest.raises(librealtime.InvalidState):
            next(iter(bot))


def test_it_needs_a_running_loop():
    with pytest.raises(RuntimeError):
        Spreadbot(NOWHERE)


async def waiters(bot):
    """One of each kind."""

    async def iterate():
        return [message async for message in bot]

    waits = [bot.recv(), iterate(), bot.wait_closed(), bot.send_message_string("x")]
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("how", ["close", "aclose", "close_connection"])
def test_the_end_wakes_all_waiting_threads(run, bots, how):
    async def main():
        network = librealtime.Reachability("manual")
        network.set_online(False)
        bot = Spreadbot(bots.url, reachability=network)
        opens = asyncio.ensure_future(bot.establish_connection("deaf"))
        await asyncio.sleep(0)
        tasks = [opens, *await waiters(bot)]
        end = getattr(bot, how)()
        if end is not None:
            await end
        results = await asyncio.gather(*tasks, return_exceptions=True)
        ended, closed = librealtime.StreamEnded, librealtime.ConnectionClosedError
        kinds = [type(result) for result in results]
        assert kinds == [ended, ended, list, type(None), closed]
        bot.close()

    run(main())


def test_the_end_wakes_threads_that_wait(bots):
    ends = []

    def wait(call, *arguments):
        try:
            ends.append(call(*arguments))
        except librealtime.RealtimeError as error:
            ends.append(type(error))

    network = librealtime.Reachability("manual")
    network.set_online(False)
    bot = sync.Spreadbot(bots.url, reachability=network)
    bot.establish_connection("echo", wait=False)
    calls = [(bot.recv,), (bot.wait_closed,), (bot.send_message_string, "x"), (list, bot)]
    calls += [(bot.rest.get_data, "secret")]
    threads = [threading.Thread(target=wait, args=call) for call in calls]
    for thread in threads:
        thread.start()
    while not bot._sends or not bot.rest._calls:
        pass
    bot.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    closed = librealtime.ConnectionClosedError
    expected = [librealtime.StreamEnded, None, closed, [], closed]
    assert sorted(map(str, ends)) == sorted(map(str, expected))


def test_a_send_during_a_close(bots, monkeypatch):
    """Another thread closes the connection between a send's submission and its wait."""
    bot = sync.Spreadbot(bots.url)
    bot.establish_connection("deaf")
    send = SPREADBOT.send_text

    def meet(*arguments):
        status = send(*arguments)
        BaseSource.close(bot)
        return status

    monkeypatch.setattr(SPREADBOT, "send_text", meet)
    ends = []

    def wait():
        try:
            bot.send_message_string("x")
        except librealtime.ConnectionClosedError as error:
            ends.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(30)
    assert len(ends) == 1


def test_cancelling_withdraws_what_was_not_sent(run, bots):
    async def main():
        network = librealtime.Reachability("manual")
        network.set_online(False)
        async with Spreadbot(bots.url, reachability=network, transports=["sse"]) as bot:
            await bot.establish_connection("events", wait=False)
            while bot.phase != "offline":
                await asyncio.sleep(0.001)
            kept = asyncio.ensure_future(bot.send_message_string("kept"))
            for text in ("gone", "gone, too"):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(bot.send_message_string(text), 0.01)
            network.set_online(True)
            await kept
            await bot.send_message_string("last")
        assert [bots.posts.get(timeout=30)[1] for _ in range(2)] == [b"kept", b"last"]

    run(main())
    with sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("deaf")
        with pytest.raises(TimeoutError):
            bot.send_message_string("x", timeout=0.01)


def test_cancelling_a_wait_ends_nothing(run, bots):
    async def main():
        async with Spreadbot(bots.url, transports=["sse"]) as bot:
            opens = asyncio.ensure_future(bot.establish_connection("events"))
            await asyncio.sleep(0)
            opens.cancel()
            assert (await bot.recv()).id == "1"
            with pytest.raises(asyncio.TimeoutError):
                for _ in range(3):
                    await asyncio.wait_for(bot.recv(), 0.05)
            bot.send_nowait("x")
            await bot.establish_connection("events")
            assert (await bot.recv()).id == "4"

    run(main())


def test_use_on_another_asyncio_loop_raises(run, bots):
    """Nothing would arrive there."""
    kept = []

    async def first():
        bot = Spreadbot(bots.url)
        kept.append(bot)
        await bot.establish_connection("echo")
        assert (await bot.rest.get("nowhere")).status_code == 404

    async def second():
        bot = kept.pop()
        uses = (
            bot.recv(), bot.wait_closed(), bot.establish_connection("echo"),
            bot.send_message_string("x"), bot.close_connection(), bot.rest.get("secret"),
        )  # fmt: skip
        for use in uses:
            with pytest.raises(librealtime.InvalidState, match="asyncio"):
                await use
        await bot.aclose()

    run(first())
    run(second())


def test_a_dropped_one_is_collected(run, bots):
    async def main():
        bot = Spreadbot(bots.url)
        await bot.establish_connection("echo")
        await bot.send_message_string("x")
        here = weakref.ref(bot)
        with pytest.warns(ResourceWarning, match="unclosed Spreadbot connection"):
            del bot
            gc.collect()
        assert here() is None

    run(main())
    bot = sync.Spreadbot(bots.url)
    bot.establish_connection("echo")
    with pytest.warns(ResourceWarning):
        del bot
        gc.collect()


def test_one_with_handlers_is_kept(run, bots):
    """It is kept until it has ended."""

    async def main():
        got, over = asyncio.Queue(), asyncio.Event()

        def begin():
            bot = Spreadbot(bots.url, on_message=got.put_nowait)
            bot.on_disconnected = lambda error: over.set()
            bot.on_open = lambda transport, resumed: bot.send_nowait("x")
            return bot.establish_connection("echo", wait=False), weakref.ref(bot)

        establish, here = begin()
        await establish
        del establish
        gc.collect()
        assert (await got.get()).text == "x"
        bot = here()
        await bot.close_connection()
        assert over.is_set()
        bot.close()

    run(main())


def test_closed_in_a_handler(run, bots):
    async def main():
        bot = Spreadbot(bots.url, on_message=lambda message: bot.close())
        await bot.establish_connection("flood", wait=False)
        await bot.wait_closed()

        async def end(message):
            await again.aclose()

        again = Spreadbot(bots.url, on_message=end)
        await again.establish_connection("flood", wait=False)
        await again.wait_closed()

    run(main())
    bot = sync.Spreadbot(bots.url, on_message=lambda message: bot.close())
    bot.establish_connection("flood", wait=False)
    bot.wait_closed(timeout=30)


def test_closing_does_not_wait_for_a_backlog(run, bots):
    """Coroutines of message handlers are dropped, those of on_tokens and the end are awaited."""

    async def main():
        told, begun = [], asyncio.Event()

        async def take(message):
            begun.set()
            await asyncio.sleep(0.01)
            bot.send_nowait("more")

        async def over(error):
            with pytest.raises(librealtime.StreamEnded):
                await bot.establish_connection("flood")
            await asyncio.sleep(0.01)
            told.append(error)

        bot = Spreadbot(bots.url, on_message=take, on_disconnected=over)
        async with bot:
            await bot.establish_connection("flood")
            await begun.wait()
            while len(bot._awaited.messages) < 1000:
                bot.send_nowait("more")
                await asyncio.sleep(0.001)
            was = len(bot._awaited.messages)
            await bot.aclose()
            assert told == [None] and was >= 1000 and not bot._awaited.messages
            with pytest.raises(librealtime.StreamEnded):
                await bot.establish_connection("flood")

    run(main())


def test_waiting_in_a_handler_is_refused(bots):
    def wait(*_):
        for call in (
            lambda: bot.send_message_string("x"),
            lambda: bot.establish_connection("echo"),
        ):
            try:
                call()
            except librealtime.InvalidState as error:
                told.append(error.name)

    told = []
    with sync.Spreadbot(bots.url, on_open=wait) as bot:
        bot.establish_connection("echo")
    assert told == ["RT_ERROR_REENTRANT"] * 2


def test_a_failed_loop_is_reported_like_other_errors(run, bots):
    async def main():
        told = []
        bot = Spreadbot(bots.url, on_error=told.append)
        await bot.establish_connection("echo")
        failure = librealtime.InvalidState(librealtime._core.abi.rt_status.ERROR_FORKED, "forked")
        bot._reactor._fail(failure)
        (event,) = told
        assert type(event) is librealtime.SpreadbotError
        assert (event.error, event.fatal, event.transport) == (failure, True, None)
        with pytest.raises(librealtime.InvalidState):
            await bot.recv()

    run(main())


def test_use_in_a_forked_process_raises(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            await bot.establish_connection("echo")
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    bot.send_nowait("x")
                except librealtime.InvalidState as error:
                    os.write(write, error.name.encode())
                finally:
                    os._exit(0)
            os.close(write)
            os.waitpid(child, 0)
            assert os.read(read, 100) == b"RT_ERROR_FORKED"
            os.close(read)
            await bot.send_message_string("x")

    run(main())
