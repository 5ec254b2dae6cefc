"""Objects that the program does not keep live as long as they have handlers."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import pytest
from conftest import PATIENCE_S
from pushers import options

import librealtime
from librealtime import Backoff, sync

AT_ONCE = Backoff(initial_delay=0, max_attempts=20)


def collect(condition):
    """Collects until `condition`: a thread that ends a call may still refer to an object."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:
        gc.collect()
        time.sleep(0)
    assert condition()


class Called:
    """A handler; `wait` returns after its next call."""

    def __init__(self):
        self._calls = threading.Semaphore(0)

    def __call__(self, *arguments):
        self._calls.release()

    def wait(self):
        assert self._calls.acquire(timeout=PATIENCE_S)


def connection(servers, called):
    ws = sync.connect(servers("server").url + "/echo", on_message=called)
    return ws, lambda ws: ws.send_nowait("hello"), "on_message"


def batches(servers, called):
    ws = sync.connect(servers("server").url + "/echo")
    ws.on_messages = called
    return ws, lambda ws: ws.send_nowait("hello"), "on_messages"


def losses(servers, called):
    url = servers("own_server").url + "/echo"
    ws = sync.connect(url, reconnect=AT_ONCE, on_lost=called)
    return ws, lambda ws: None, "on_lost"


def events(servers, called):
    return sync.EventSource(servers("events").url + "/held", on_message=called), None, "on_message"


def any_event(servers, called):
    source = sync.EventSource(servers("events").url + "/held")
    source.on_any = called
    return source, None, "on_any"


def errors(servers, called):
    source = sync.EventSource(servers("events").url + "/count", on_error=called)
    source.recv()
    return source, None, "on_error"


def polls(servers, called):
    return sync.LongPoll(servers("events").url + "/poll", on_message=called), None, "on_message"


def bot(servers, called):
    bot = sync.Spreadbot(servers("bots").url, on_message=called)
    bot.establish_connection("echo")
    return bot, lambda bot: bot.send_nowait("hello"), "on_message"


def pusher(servers, called):
    server = servers("pusher_server")
    pusher = sync.Pusher(server.key, **options(server))
    pusher.on_subscribed = called
    pusher.connect()
    return pusher, lambda pusher: pusher.subscribe("orders", wait=False), "on_subscribed"


def documents(servers, called):
    client = sync.DDPClient(servers("app").url, on_change=called)
    client.connect()
    return client, lambda client: client.subscribe("all", wait=False), "on_change"


KINDS = [
    connection, batches, losses, events, any_event, errors, polls, bot, pusher, documents
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_handlers_keep_an_object(request, kind):
    called = Called()
    made, act, handler = kind(request.getfixturevalue, called)
    thing = weakref.ref(made)
    del made
    gc.collect()
    if act is not None:
        act(thing())
    if kind is not losses:
        called.wait()
    gc.collect()
    assert thing() is not None
    # Without handlers, nothing refers to it.
    with pytest.warns(ResourceWarning, match="unclosed") as warned:
        setattr(thing(), handler, None)
        collect(lambda: warned.list)
    # A warning refers to its object.
    warned.clear()
    collect(lambda: thing() is None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_closed_object_is_not_kept(request, kind):
    called = Called()
    made, _, _ = kind(request.getfixturevalue, called)
    thing = weakref.ref(made)
    made.close()
    del made
    collect(lambda: thing() is None)


def test_a_listener_keeps_a_source(events):
    called = Called()
    source = sync.EventSource(events.url + "/held")
    listener = source.add_event_listener("message", called)
    thing = weakref.ref(source)
    del source
    gc.collect()
    called.wait()
    with pytest.warns(ResourceWarning, match="unclosed") as warned:
        thing().remove_event_listener(listener)
        collect(lambda: warned.list)
    # A warning refers to its object.
    warned.clear()
    collect(lambda: thing() is None)


def test_a_bound_handler_keeps_a_connection(pusher_server):
    called = Called()
    pusher = sync.Pusher(pusher_server.key, **options(pusher_server))
    pusher.connect()
    pusher.subscribe("orders").bind("a", called)
    thing = weakref.ref(pusher)
    del pusher
    gc.collect()
    pusher_server.control.publish("orders", "a")
    called.wait()
    with pytest.warns(ResourceWarning, match="unclosed") as warned:
        thing().disconnect()
        collect(lambda: warned.list)
    # A warning refers to its object.
    warned.clear()
    collect(lambda: thing() is None)


def test_a_stream_keeps_a_client(app):
    called = Called()
    client = sync.DDPClient(app.url)
    client.connect()
    client.set_stream("players", called)
    thing = weakref.ref(client)
    del client
    gc.collect()
    thing().subscribe("all", wait=False)
    called.wait()
    gc.collect()
    with pytest.warns(ResourceWarning, match="unclosed") as warned:
        thing().set_stream("players", None)
        collect(lambda: warned.list)
    # A warning refers to its object.
    warned.clear()
    collect(lambda: thing() is None)


def test_handlers_of_live_queries_and_subscriptions_keep_a_client(app):
    for stop_by in ("stop", "release"):
        called = Called()
        client = sync.DDPClient(app.url)
        client.connect()
        live = client.collection("players").observe(called)
        used = client.subscribe("all", on_stopped=called)
        called.wait()
        thing = weakref.ref(client)
        kept = [weakref.ref(live), weakref.ref(used)]
        del client, live, used
        gc.collect()
        assert thing() is not None
        kept[0]().stop()
        gc.collect()
        assert thing() is not None
        with pytest.warns(ResourceWarning, match="unclosed") as warned:
            getattr(kept[1](), stop_by)()
            collect(lambda: warned.list)
        # A warning refers to its object.
        warned.clear()
        collect(lambda thing=thing: thing() is None)


def test_the_same_in_asyncio(run, server, app, no_linger):
    """What is not part of the tests of each object."""

    async def main():
        ws = await librealtime.connect(
            server.url + "/echo", reconnect=AT_ONCE, on_lost=lambda lost: None
        )
        client = librealtime.DDPClient(app.url)
        await client.connect()
        live = client.collection("players").observe(lambda change: None)
        things = [weakref.ref(ws), weakref.ref(client), weakref.ref(live)]
        del ws, client, live
        gc.collect()
        await asyncio.sleep(0)
        gc.collect()
        ws, client, live = (thing() for thing in things)
        ws.on_lost = None
        live.stop()
        with pytest.warns(ResourceWarning, match="unclosed"):
            del ws, client, live
            gc.collect()
        assert [thing() for thing in things] == [None] * 3

    run(main())
