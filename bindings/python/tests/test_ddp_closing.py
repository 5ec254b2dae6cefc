"""How Meteor clients end: what the server hears, and what uses of a closed client raise."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from meteor import FACES, opened

import librealtime
from librealtime import sync


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
        with pytest.raises(librealtime.DDPError, match="the client is closed"):
            subscription.ready()
    assert closed.wait(60)
    check_that_it_ended(app, connection)


def test_the_server_hears_of_the_end_by_an_exception(app):
    statuses = []
    with pytest.raises(librealtime.InvalidArgument), sync.DDPClient(app.url) as client:
        connection = connection_of(app)
        client.on_status = statuses.append
        # The exception refers to the calls in which it was raised.
        client.collection("players").find({"name": {"$no": 1}})
    check_that_it_ended(app, connection)
    assert not statuses
