"""Calls of asyncio objects that take a `timeout`: the same values, the same exceptions and the same
calls as in blocking programs."""

from __future__ import annotations

import contextlib
import inspect
import math
import pkgutil
from fractions import Fraction

import pytest
from pushers import options as pusher_options

import librealtime
from librealtime import sync

#: For these, ``asyncio.timeout`` is enough: cancelling them loses nothing, or they end by
#: themselves.
CANCELLED = {
    "close_connection",
    "disconnect",
    "recv",
    "recv_streaming",
    "wait_closed",
}


def calls_of(kind):
    """The names of the public methods of a class that take a `timeout`."""
    return {
        name
        for name, function in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        and not isinstance(function, type)
        and "timeout" in inspect.signature(function).parameters
    }


def pairs():
    """The classes that have the same name in both faces, also those that are not exported."""
    for name in sync.__all__:
        blocking, other = getattr(sync, name), getattr(librealtime, name, None)
        if isinstance(blocking, type) and isinstance(other, type) and blocking is not other:
            yield blocking, other
    for name in (
        "_ddp.{}_collection.DDPBatch",
        "_ddp.{}_client.DDPCall",
        "_pusher.{}_push.PusherPush",
    ):
        yield tuple(
            pkgutil.resolve_name("librealtime." + name.format(face)) for face in ("sync", "asyncio")
        )


def test_each_call_that_has_a_twin():
    found = 0
    for blocking, other in pairs():
        wanted = calls_of(blocking) - CANCELLED
        assert wanted <= calls_of(other), (other, wanted - calls_of(other))
        found += len(wanted)
    assert found > 25


async def waits(stack, bots, pusher_server, serve):
    """Calls that have a `timeout`, where what they wait for does not come."""
    client = stack.enter_context(contextlib.closing(librealtime.DDPClient("ws://127.0.0.1:1/")))
    call = client.send("a")
    subscription = await client.subscribe("a", wait=False)
    with client.batch() as batch:
        batch.insert("players", {"_id": "z"})
    yield call.result
    yield call.completed
    yield subscription.ready
    yield batch.completed
    yield client.connect
    yield lambda timeout: client.subscribe("b", timeout=timeout)
    yield lambda timeout: client.load(["b"], timeout=timeout)
    yield lambda timeout: client.call("b", timeout=timeout)
    yield lambda timeout: client.log_in("a", "b", timeout=timeout)
    yield lambda timeout: client.log_in_with_token("a", timeout=timeout)
    yield lambda timeout: client.log_in_by("a", 1, timeout=timeout)
    yield lambda timeout: client.create_user("a", name="b", timeout=timeout)
    yield lambda timeout: client.change_password("a", "b", timeout=timeout)
    yield lambda timeout: client.forgot_password("a", timeout=timeout)
    yield lambda timeout: client.reset_password("a", "b", timeout=timeout)
    yield lambda timeout: client.verify_email("a", timeout=timeout)
    yield lambda timeout: client.new_token(timeout=timeout)
    yield lambda timeout: client.log_out(timeout=timeout)
    yield lambda timeout: client.log_out_others(timeout=timeout)

    bot = stack.enter_context(contextlib.closing(librealtime.Spreadbot(bots.url)))
    await bot.establish_connection("deaf")
    yield lambda timeout: bot.send_message_string("a", timeout)
    yield lambda timeout: bot.send_message_binary(b"a", timeout)
    away = stack.enter_context(contextlib.closing(librealtime.Spreadbot("http://127.0.0.1:1/")))
    yield lambda timeout: away.establish_connection("x", timeout=timeout)

    options = pusher_options(pusher_server, push_url=serve(silent).url)
    pusher = librealtime.Pusher(pusher_server.key, **options)
    stack.enter_context(contextlib.closing(pusher))
    await pusher_server.actions.fault(event="pusher:*", point="received", do="ignore", times=9)
    await pusher.connect()
    channel = await pusher.subscribe("orders", wait=False)
    yield channel.subscribed
    yield lambda timeout: pusher.subscribe("orders", timeout=timeout)
    yield pusher.sign_in
    yield lambda timeout: pusher.push.register(b"t", timeout=timeout)
    yield lambda timeout: pusher.push.subscribe("a", timeout=timeout)
    yield lambda timeout: pusher.push.unsubscribe("a", timeout=timeout)
    yield lambda timeout: pusher.push.set_subscriptions(["a"], timeout=timeout)
    far = librealtime.Pusher("key", host="127.0.0.1", port=1, use_tls=False)
    stack.enter_context(contextlib.closing(far))
    yield far.connect


#: How many they are.
COUNT = 30


def silent(connection, number):
    while connection.recv(65536):
        pass


@pytest.mark.parametrize("timeout", [0.01, 0, -1, -math.inf, Fraction(1, 100)], ids=str)
def test_a_wait_that_ends(run, timeout, bots, pusher_server, serve):
    async def main():
        count = 0
        with contextlib.ExitStack() as stack:
            async for wait in waits(stack, bots, pusher_server, serve):
                with pytest.raises(librealtime.ConnectionTimeout) as raised:
                    await wait(timeout=timeout)
                assert raised.value.name == "RT_ERROR_TIMEOUT"
                count += 1
        assert count == COUNT

    run(main())


@pytest.mark.parametrize("timeout", [math.nan, "5", None.__class__, True], ids=str)
def test_a_timeout_that_is_none(run, timeout, bots, pusher_server, serve):
    async def main():
        count = 0
        with contextlib.ExitStack() as stack:
            async for wait in waits(stack, bots, pusher_server, serve):
                with pytest.raises((librealtime.InvalidArgument, TypeError), match="timeout is"):
                    await wait(timeout=timeout)
                count += 1
        assert count == COUNT

    run(main())


@pytest.mark.parametrize("timeout", [math.inf, 10**400, None], ids=["inf", "10^400", "None"])
def test_a_timeout_that_is_no_limit(run, timeout, bots, pusher_server, app):
    async def main():
        async with librealtime.DDPClient(app.url) as client:
            await client.connect(timeout=timeout)
            await (await client.subscribe("all", timeout=timeout)).ready(timeout=timeout)
            assert len(client.collection("players").find()) == 2
        async with librealtime.Spreadbot(bots.url) as bot:
            await bot.establish_connection("echo", timeout=timeout)
            await bot.send_message_string("a", timeout=timeout)
            assert (await bot.recv()).text == "a"
        async with librealtime.Pusher(pusher_server.key, **pusher_options(pusher_server)) as pusher:
            await pusher.connect(timeout=timeout)
            await (await pusher.subscribe("orders", timeout=timeout)).subscribed(timeout=timeout)

    run(main())


def test_a_bad_timeout_does_nothing(run, pusher_server, bots):
    """It is refused before anything is sent."""

    async def main():
        async with librealtime.Pusher(pusher_server.key, **pusher_options(pusher_server)) as pusher:
            with pytest.raises(librealtime.InvalidArgument):
                await pusher.subscribe("orders", timeout=math.nan)
            assert pusher.channels == []
        async with librealtime.Spreadbot(bots.url) as bot:
            with pytest.raises(TypeError):
                await bot.establish_connection("echo", timeout="5")
            assert bot.state == "disconnected"
        client = librealtime.DDPClient("ws://127.0.0.1:1/")
        with pytest.raises(TypeError):
            await client.log_in("a", "b", timeout=True)
        assert client._pending == set()
        client.close()

    run(main())


def test_a_send_that_is_late_is_withdrawn(run, bots):
    async def main():
        async with librealtime.Spreadbot(bots.url) as bot:
            await bot.establish_connection("deaf")
            with pytest.raises(TimeoutError, match=r"did not confirm the send within 0\.01 s"):
                await bot.send_message_string("a", timeout=0.01)
            assert len(bot._sends) == 0
            bot.close()

    run(main())


def test_the_last_error_of_a_connection_that_is_late(run):
    async def main():
        client = librealtime.DDPClient("ws://127.0.0.1:1/")
        with pytest.raises(TimeoutError, match=r"0\.2 s: .*127\.0\.0\.1:1") as raised:
            await client.connect(timeout=0.2)
        assert isinstance(raised.value.__cause__, librealtime.RealtimeError)
        client.close()

    run(main())
