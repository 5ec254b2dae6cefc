"""Spreadbot connections against a real server, with asyncio and blocking."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys

import pytest

import librealtime
from librealtime import Spreadbot, SpreadbotMessage, sync

TOKENS = {
    "access_token": "old",
    "refresh_token": "r0",
    "base64_credentials": "Y2xpZW50OnNlY3JldA==",
}


def test_messages_of_a_websocket(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            assert (bot.state, bot.phase, bot.transport) == ("disconnected", "none", None)
            await bot.establish_connection("json")
            assert (bot.state, bot.phase, bot.transport) == ("connected", "none", "websocket")
            first, second = await bot.recv(), await bot.recv()
            assert first == SpreadbotMessage("7", "tick", b'{"a":1}', True)
            assert first.json() == {"a": 1} and first.text == '{"a":1}'
            assert second == SpreadbotMessage("7", "json", b"\xff\x00", False)
            assert second.text == "\ufffd\0"
            assert bot.last_event_id == "7"
        assert bot.state == "disconnected" and bot.last_event_id == "7"

    run(main())


def test_messages_of_a_websocket_blocking(bots):
    with sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("/json", timeout=30)
        assert bot.transport == "websocket"
        assert bot.recv(timeout=30) == SpreadbotMessage("7", "tick", b'{"a":1}', True)
        assert bot.recv().event == "/json"
        with pytest.raises(TimeoutError):
            bot.recv(timeout=0.01)
    assert "disconnected" in repr(bot)


@pytest.mark.parametrize(("path", "leg"), [("events", "sse"), ("poll", "poll")])
def test_a_lower_leg(run, bots, path, leg):
    heard = []

    async def main():
        bot = Spreadbot(
            bots.url,
            on_open=lambda *told: heard.append(told),
            on_transport=lambda leg: heard.append(leg),
            on_error=lambda event: heard.append((event.transport, event.http_status)),
            on_disconnected=lambda error: heard.append(error),
            last_event_id="1",
        )
        async with bot:
            await bot.establish_connection(path)
            ids = [(await bot.recv()).id for _ in range(3)]
            assert ids == ["2", "3", "4"] and bot.transport == leg

    run(main())
    refusals = [("websocket", 404), ("sse", 404)][: 2 if leg == "poll" else 1]
    # on_transport is called before on_open.
    assert heard == [*refusals, leg, (leg, True), None, None]


def test_transports_and_urls(run, bots):
    async def main():
        urls = {"poll": bots.url + "/poll"}
        bot = Spreadbot(bots.url, transports=["poll"], transport_urls=urls, headers={"X-A": "b"})
        async with bot:
            await bot.establish_connection("nowhere?x=y")
            message = await bot.recv()
            assert (message.event, message.text) == ("nowhere?x=y", "number 1")

    run(main())
    _, headers = bots.requests.get(timeout=30)
    assert headers["X-A"] == "b" and "Upgrade" not in headers


def test_query_parameters(run, bots):
    async def main():
        parameters = {"token_query_param": "t", "id_query_param": "i"}
        options = {**parameters, "transports": ["sse"], "last_event_id": "1", "access_token": "x"}
        async with Spreadbot(bots.url, **options) as bot:
            await bot.establish_connection("events")

    run(main())
    request, headers = bots.requests.get(timeout=30)
    assert request == "GET /events?t=x&i=1" or request == "GET /events?i=1&t=x"
    assert headers["Authorization"] == "Bearer x"


def test_tokens_are_refreshed(run, bots):
    """While connected, with the tokens set last, and on_tokens is called before they are used."""
    told = []

    async def keep(access, refresh):
        await asyncio.sleep(0)
        told.append((access, refresh))

    async def main():
        options = {"auth_url": bots.url + "/auth", "on_tokens": keep, "transports": ["sse"]}
        async with Spreadbot(bots.url, **TOKENS, **options) as bot:
            assert (bot.access_token, bot.refresh_token) == ("old", "r0")
            await bot.establish_connection("guarded")
            assert (bot.access_token, bot.refresh_token) == ("a1", "r1")
            assert (await bot.recv()).id == "1"
            bots.token = "another"
            assert (await bot.send_message_string("x")).status_code == 201
            assert bot.access_token == "a2"
            bot.set_tokens("mine", "r2")
            assert (await bot.rest.get_data("secret")).json() == {"secret": 42}
            assert bot.rest.access_token == bot.access_token == "a3"
            assert bot.rest.refresh_token == "r3"
        assert (bot.access_token, bot.refresh_token) == ("a3", "r3")

    run(main())
    assert told == [("a1", "r1"), ("a2", "r2"), ("a3", "r3")]


def test_tokens_that_are_refused(run, bots):
    bots.refusal = 400

    async def main():
        async with Spreadbot(bots.url, auth_url=bots.url + "/auth", **TOKENS) as bot:
            with pytest.raises(librealtime.AuthenticationFailed):
                await bot.establish_connection("guarded")
            with pytest.raises(librealtime.AuthenticationFailed):
                await bot.recv()
            with pytest.raises(librealtime.AuthenticationFailed):
                await bot.wait_closed()

    run(main())


def test_fatal_errors_are_raised(run, bots):
    async def main():
        events, ends = [], []
        options = {"on_error": events.append, "on_disconnected": ends.append}
        async with Spreadbot(bots.url, transports=["sse"], **options) as bot:
            with pytest.raises(librealtime.StreamRefused) as caught:
                await bot.establish_connection("refused")
            assert caught.value.http_status == 403
            assert [event.fatal for event in events] == [True] and events[0].retry_in is None
            assert ends == [caught.value] and bot.state == "disconnected"
            with pytest.raises(librealtime.StreamRefused):
                async for _ in bot:
                    pass
            # It may be established again.
            await bot.establish_connection("events")
            assert (await bot.recv()).text == "number 1"

    run(main())
    with sync.Spreadbot(bots.url, transports=["sse"]) as bot:
        with pytest.raises(librealtime.StreamRefused):
            bot.establish_connection("refused", timeout=30)
        with pytest.raises(librealtime.StreamRefused):
            bot.wait_closed()


def test_closed_and_established_again(run, bots):
    async def main():
        async with Spreadbot(bots.url) as bot:
            await bot.establish_connection("events")
            assert (await bot.recv()).id == "1"
            while bot.last_event_id != "3":
                await asyncio.sleep(0.001)
            await bot.close_connection()
            await bot.close_connection()
            # Messages already received can still be taken; then it ends normally.
            assert [message.id async for message in bot] == ["2", "3"]
            with pytest.raises(librealtime.StreamEnded):
                await bot.recv()
            await bot.wait_closed()
            await bot.establish_connection("events")
            assert (await bot.recv()).id == "4"
            await bot.establish_connection("poll")
            while (await bot.recv()).event != "poll":
                pass

    run(main())


def test_established_again_by_a_handler(run, bots):
    """A running iteration continues."""

    async def main():
        bot = Spreadbot(bots.url, transports=["sse"], max_reconnects=0)

        async def again(error):
            await bot.establish_connection("events")

        async with bot:
            bot.on_disconnected = again
            await bot.establish_connection("events")
            assert (await bot.recv()).id == "1"
            bot.on_disconnected = None

    run(main())


def test_rounds_of_the_ladder(run, bots):
    """All legs fail, twice; the first time another round follows."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    told = []

    async def main():
        options = {"transports": ["poll"], "max_reconnects": 0, "max_delay": 0.02}
        async with Spreadbot(url, max_rounds=2, on_error=told.append, **options) as bot:
            with pytest.raises(librealtime.ReconnectsExhausted):
                await bot.establish_connection("events")
        assert [event.fatal for event in told] == [False, True]
        assert all(isinstance(event.error, librealtime.ReconnectsExhausted) for event in told)
        assert 0 < told[0].retry_in <= 0.02 and told[1].retry_in is None
        Spreadbot(url, max_rounds=None).close()
        for rounds in (-1, 2**32):
            with pytest.raises(ValueError, match="max_rounds"):
                Spreadbot(url, max_rounds=rounds)

    run(main())


def test_messages_by_a_handler(run, bots):
    """A handler also receives the messages that arrived before it was set."""

    async def main():
        got = asyncio.Queue()
        async with Spreadbot(bots.url) as bot:
            await bot.establish_connection("events")
            while bot.last_event_id != "3":
                await asyncio.sleep(0.001)
            bot.on_message = lambda message: got.put_nowait(message.id)
            assert [await got.get() for _ in range(3)] == ["1", "2", "3"]
            await bot.establish_connection("echo")
            bot.send_nowait("x")
            await got.get()

    run(main())
    got = []
    with sync.Spreadbot(bots.url, on_message=lambda message: got.append(message.text)) as bot:
        bot.on_open = lambda *_: bot.send_nowait("1", lambda error: bot.close_connection())
        bot.establish_connection("echo", wait=False)
        bot.wait_closed(timeout=30)
    assert got == ["1"]


def test_coroutines_as_handlers(run, bots):
    """One after the other, each after the previous one has finished."""
    got = []

    async def main():
        done = asyncio.Event()

        async def take(message):
            await asyncio.sleep(0)
            got.append(int(message.text))
            if len(got) == 200:
                done.set()
            elif len(got) % 50 == 0:
                await bot.send_message_string("more")

        async with Spreadbot(bots.url, on_message=take) as bot:
            await bot.establish_connection("flood")
            await done.wait()

    run(main())
    assert got == list(range(200))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not say that it is cancelled")
def test_a_handler_whose_own_task_is_cancelled(run, bots):
    """That counts as the handler's failure, and later messages are still delivered."""
    got, failures = [], []

    async def main():
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: failures.append(context["exception"]))

        async def take(message):
            got.append(message.data)
            if len(got) == 20:
                done.set()
            if len(got) == 3:
                waits = asyncio.create_task(asyncio.sleep(60))
                asyncio.get_running_loop().call_soon(waits.cancel)
                await waits

        async with Spreadbot(bots.url, on_message=take) as bot:
            await bot.establish_connection("flood")
            await done.wait()

    run(main())
    assert len(got) >= 20
    assert [type(failure) for failure in failures] == [asyncio.CancelledError]


def test_a_handler_that_fails(run, bots):
    async def main():
        loop, failures = asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda loop, context: failures.append(context["exception"]))

        async def opened(transport, resumed):
            raise ZeroDivisionError

        def used(transport):
            raise KeyError

        async with Spreadbot(bots.url, on_open=opened, on_transport=used) as bot:
            await bot.establish_connection("echo")
        assert [type(failure) for failure in failures] == [KeyError, ZeroDivisionError, KeyError]

    run(main())
    with sync.Spreadbot(bots.url) as bot:
        bot.on_open = lambda *_: 1 / 0
        with pytest.raises(ZeroDivisionError):
            bot.establish_connection("echo")
    bot = sync.Spreadbot(bots.url)

    async def coroutine(*_):
        pass

    bot.on_open = coroutine
    with pytest.raises(TypeError):
        bot.establish_connection("echo")
    bot.on_open = None
    bot.close()


def test_a_configuration_by_the_names_of_the_original(run, bots):
    config = {
        "baseURL": bots.url,
        "authURL": bots.url + "/auth",
        "accessToken": "old",
        "refreshToken": "r0",
        "base64Credentials": "Y2xpZW50OnNlY3JldA==",
        "log": False,
    }

    async def main():
        async with Spreadbot.from_config(config, transports=["sse"]) as bot:
            await bot.establish_connection("guarded")
            assert bot.access_token == "a1"
        for wrong in ({}, {"baseURL": ""}, {**config, "baseUrl": "x"}):
            with pytest.raises(librealtime.InvalidArgument):
                Spreadbot.from_config(wrong)
        for wrong in ({"baseURL": 1}, {"baseURL": "x", "log": "yes"}, ["baseURL"]):
            with pytest.raises(TypeError):
                Spreadbot.from_config(wrong)

    run(main())
    sparse = {"baseURL": bots.url, "accessToken": "old", "authURL": None, "log": None}
    with sync.Spreadbot.from_config(sparse, access_token="new") as bot:
        bot.establish_connection("echo")
        assert bot.access_token == "new"


def test_the_log(run, bots, caplog):
    caplog.set_level(logging.INFO, "librealtime")

    async def main():
        async with Spreadbot(bots.url, log=True) as bot:
            await bot.establish_connection("echo")

    try:
        run(main())
    finally:
        librealtime.set_log_level(None)
    assert any("connected by WebSocket" in line for line in caplog.messages)
