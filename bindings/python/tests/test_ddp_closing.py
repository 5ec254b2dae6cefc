"""How Meteor clients end: what the server hears, and what uses of a closed client raise."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import time

import pytest
from meteor import FACES, NOWHERE, do, opened

import librealtime
from librealtime import DDPError, sync


def connection_of(app):
    """The number of the latest connection."""
    return app.control.log(what="in", msg="connect")[-1]["connection"]


def check_that_it_ended(app, connection):
    """A server that keeps sessions must forget this one."""
    app.control.wait(what="in", msg="disconnect", connection=connection)
    app.control.wait(what="frame", kind="close", connection=connection)


@pytest.mark.parametrize("face", FACES)
def test_the_server_hears_of_the_end(run, app, face):
    async def main():
        async with opened(face, app):
            connection = connection_of(app)
        await asyncio.to_thread(check_that_it_ended, app, connection)

    run(main())


def test_the_server_hears_of_the_end_while_nobody_waits(app):
    client = sync.DDPClient(app.url)
    client.connect()
    connection = connection_of(app)
    while client._keeper._dispatched is None:
        time.sleep(0.001)
    client.close()
    check_that_it_ended(app, connection)


def test_the_server_hears_of_the_end_while_another_thread_waits(app):
    client = sync.DDPClient(app.url)
    client.connect()
    connection = connection_of(app)
    changes = client.collection("nothing").find().observe()
    ended = []
    waiting = threading.Thread(target=lambda: ended.append(list(changes)))
    waiting.start()
    turns = client._wheel.turns
    while client._wheel.turns == turns:
        time.sleep(0.001)
    client.close()
    check_that_it_ended(app, connection)
    waiting.join()
    assert ended == [[]]


@pytest.mark.parametrize("waits", [True, False])
def test_the_server_hears_of_the_end_in_a_handler(app, waits):
    closed = threading.Event()

    def end(change):
        client.close()
        closed.set()

    client = sync.DDPClient(app.url)
    client.connect()
    connection = connection_of(app)
    client.collection("players").observe(end)
    subscription = client.subscribe("all", wait=False)
    if waits:
        with pytest.raises(DDPError, match="the client is closed"):
            subscription.ready()
    assert closed.wait(60)
    check_that_it_ended(app, connection)


def test_the_server_hears_of_the_end_after_an_exception(app):
    statuses = []
    with pytest.raises(librealtime.InvalidArgument), sync.DDPClient(app.url) as client:
        connection = connection_of(app)
        client.on_status = statuses.append
        # The exception refers to the calls in which it was raised, and they to the client.
        client.collection("players").find({"name": {"$no": 1}})
    gc.collect()
    check_that_it_ended(app, connection)
    assert not statuses


@pytest.mark.parametrize("face", FACES)
def test_nothing_is_reported_after_the_end(run, face):
    """Also the other changes of those that were made together."""

    async def main():
        heard = []

        def end(change):
            heard.append(change.id)
            client.close()

        client = face(NOWHERE)
        client.on_change = end
        with client.batch() as batch:
            for name in ("a", "b", "c"):
                batch.insert("players", {"_id": name})
        # It ends with the turn in which the handler closes the client.
        with pytest.raises(DDPError, match="the client is closed"):
            await do(client.connect)
        assert heard == ["a"]

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_subscription_can_end_at_once(run, app, face):
    async def main():
        async with opened(face, app) as client:
            subscription = await do(client.subscribe, "all", keep=0)
            connection = connection_of(app)
            subscription.release()
            wait = functools.partial(app.control.wait, what="in", msg="unsub")
            await asyncio.to_thread(wait, connection=connection)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_what_a_closed_client_raises(run, face):
    async def main():
        client = face(NOWHERE)
        players = client.collection("players")
        call = client.send("m")
        subscription = await do(client.subscribe, "all", wait=False)
        connecting = asyncio.ensure_future(do(client.connect))
        while not client._is_on:
            await asyncio.sleep(0.001)
        changes = players.find().observe()
        client.close()
        with pytest.raises(DDPError, match="the client is closed") as raised:
            await connecting
        assert (raised.value.kind, raised.value.code) == ("closed", "closed")
        assert raised.value.name == "RT_ERROR_CLOSED"
        uses = [client.disconnect, client.reconnect, lambda: client.network_changed(True)]
        uses += [client.retry_now]
        uses += [client.enter_background, client.enter_foreground, lambda: len(players)]
        uses += [lambda: client.send("m"), lambda: players.insert({}), lambda: players.get("a")]
        uses += [players.find, players.find_one, lambda: players.observe(print), players.results]
        uses += [lambda: client.collection("other"), lambda: client.set_stub("m", None)]
        uses += [lambda: client.set_user_id("u")]
        for use in uses:
            with pytest.raises(DDPError, match="the client is closed") as raised:
                use()
            assert raised.value.kind == "closed"
        for wait in (
            client.connect,
            subscription.ready,
            call.result,
            functools.partial(client.subscribe, "all"),
            functools.partial(client.load, ["all"]),
            functools.partial(client.call, "m"),
            functools.partial(client.log_in, "ada", "secret"),
            client.log_out,
        ):
            with pytest.raises(DDPError, match="the client is closed") as raised:
                await do(wait)
            assert raised.value.kind == "closed"
        # Iterations end, as they do when they are closed themselves.
        if face is sync.DDPClient:
            assert list(changes) == []
            with pytest.raises(librealtime.StreamEnded):
                changes.recv()
        else:
            assert [change async for change in changes] == []
        client.close()

    run(main())


def test_what_a_thread_raises_that_uses_a_client_while_it_is_closed():
    def use():
        try:
            while True:
                players.insert({})
                client.subscribe("all", wait=False)
                client.connect(wait=False)
        except DDPError as error:
            raised.append(error.kind)

    raised = []
    for count in range(1, 101):
        client = sync.DDPClient(NOWHERE)
        players = client.collection("players")
        thread = threading.Thread(target=use)
        thread.start()
        client.close()
        thread.join()
        assert raised == ["closed"] * count


@pytest.mark.parametrize("face", FACES)
def test_what_was_called_before_the_end_is_sent(run, app, face):
    async def main():
        async with opened(face, app) as client:
            for name in ("one", "two"):
                client.collection(name).insert({})
        for name in ("one", "two"):
            await asyncio.to_thread(
                app.control.wait, what="in", msg="method", name=f"/{name}/insert"
            )

    run(main())
