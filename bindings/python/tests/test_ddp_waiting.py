"""Waiting for a Meteor client: what is left when the wait fails, and on which loop it is."""

from __future__ import annotations

import asyncio
import contextlib
import functools

import pytest
from meteor import FACES, NOWHERE, do, offline, opened
from patience import patiently

import librealtime
from librealtime import DDPError, sync


async def briefly(method, *arguments):
    """Calls a method that waits, and does not wait for its end."""
    if isinstance(method.__self__, sync.DDPClient):
        await do(method, *arguments, timeout=0.1)
    else:
        await asyncio.wait_for(method(*arguments), 0.1)


@pytest.mark.parametrize("face", FACES)
def test_subscriptions_whose_wait_fails_are_released(run, app, face):
    """Nobody has an object by which to release them."""

    async def main():
        control = app.control
        control.publication("slow", ready=False)
        async with opened(face, app, unused_subscription_time=0) as client:
            kept = await do(client.subscribe, "all")
            for wait, error in (
                (lambda: briefly(client.subscribe, "slow"), asyncio.TimeoutError),
                (lambda: briefly(client.load, ["all", "slow"]), asyncio.TimeoutError),
                (lambda: do(client.load, ["all", ("all", 1), "unknown"]), DDPError),
            ):
                after = max(one["number"] for one in control.log())
                with pytest.raises((error, TimeoutError)):
                    await wait()
                (ended,) = await do(
                    functools.partial(control.wait, what="in", msg="unsub", after=after)
                )
                begun = control.log(what="in", msg="sub", id=ended["id"])
                assert begun[-1]["number"] > after
                assert client._pending == {kept}
            assert kept.is_ready and len(client.collection("players")) == 2

    run(main())


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("end", ["stop", "release"])
def test_a_wait_ends_with_its_subscription(run, face, end):
    async def main():
        async with offline(face) as client:
            subscriptions = [await do(client.subscribe, name, wait=False) for name in "ab"]
            for subscription in subscriptions:
                waiting = asyncio.ensure_future(do(subscription.ready))
                while subscription is subscriptions[0] and not is_waited_for(client):
                    await asyncio.sleep(0)
                getattr(subscription, end)()
                with pytest.raises(DDPError, match="the subscription was given up") as raised:
                    await waiting
                assert raised.value.kind == "closed"
            assert not client._pending

    def is_waited_for(client):
        if isinstance(client, sync.DDPClient):
            return client._wheel.turns > 0
        return client._waiters

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_what_handlers_raise_disturbs_nothing(run, app, face):
    def fail(change):
        failed.append(change)
        raise ValueError("mine")

    failed, heard = [], []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        async with opened(face, app) as client:
            client.on_status = client.on_change = client.on_user = fail
            live = client.collection("players").observe(fail)
            for _ in range(10):
                try:
                    await do(client.subscribe, "all")
                    break
                except ValueError as error:
                    heard.append(error)
            assert len(client.collection("players")) == 2
            live.stop()
            client.on_change = client.on_status = None
            assert len(failed) > 2 and client.status == "connected"
        assert heard and {str(error) for error in heard} == {"mine"}
        heard.clear()

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_handlers_close_the_client(run, app, face):
    async def main():
        async with opened(face, app) as client:
            client.collection("players").observe(lambda change: client.close())
            with pytest.raises(DDPError, match="the client is closed") as raised:
                await do(client.subscribe, "all")
            assert raised.value.kind == "closed" and client.status == "offline"
            with pytest.raises(DDPError, match="the client is closed"):
                client.collection("players")
        client = face(app.url, on_status=lambda change: client.close())
        with pytest.raises(DDPError, match="the client is closed"):
            await do(client.connect)

    run(main())


def test_a_cancelled_iteration_continues(run):
    async def main():
        client = librealtime.DDPClient(NOWHERE)
        players = client.collection("players")
        changes = players.find().observe()
        for name in "ab":
            task = asyncio.ensure_future(changes.__anext__())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            players.insert({"_id": name})
            assert (await changes.__anext__()).id == name
        client.close()

    run(main())


def test_a_client_waits_on_its_own_loop():
    async def make():
        client = librealtime.DDPClient(NOWHERE)
        client.collection("players").insert({"_id": "a"})
        return client, client.send("m"), await client.subscribe("all", wait=False)

    async def use(client, call, subscription):
        with client.batch() as batch:
            batch.insert("players", {"_id": "b"})
        for wait in (
            call.result,
            lambda: call,
            subscription.ready,
            lambda: batch,
            client.connect,
            lambda: client.load(["all"]),
            lambda: client.log_in("ada", "secret"),
            anext_of(client.collection("players").find().observe()),
        ):
            with pytest.raises(librealtime.InvalidState, match="another asyncio loop"):
                await wait()
        # Documents are read on any.
        assert len(client.collection("players").find()) == 2
        client.close()

    def anext_of(changes):
        return changes.__anext__

    asyncio.run(use(*asyncio.run(make())))


def test_a_wait_for_a_connection_names_the_last_error():
    for attempt in patiently():
        # An attempt must fail within that time.
        with attempt as limit, contextlib.closing(sync.DDPClient(NOWHERE)) as client:
            with pytest.raises(TimeoutError, match=rf"{limit} s: .*127\.0\.0\.1:1") as raised:
                client.connect(timeout=limit)
            assert isinstance(raised.value.__cause__, librealtime.RealtimeError)


@pytest.mark.parametrize("face", FACES)
def test_waiting_for_what_has_ended_says_why(run, app, face):
    async def main():
        app.control.publication("brief", ready=True)
        async with opened(face, app) as client:
            stopped = asyncio.Event()
            loop = asyncio.get_running_loop()
            subscription = await do(
                client.subscribe,
                "brief",
                on_stopped=lambda error: loop.call_soon_threadsafe(stopped.set),
            )
            app.control.publish("brief", "stop")
            await stopped.wait()
            assert not subscription.is_ready
            with pytest.raises(DDPError, match="has ended it"):
                await do(subscription.ready)

    run(main())
