"""What an object raises once a time limit has ended it for good. That is never a TimeoutError: the
usual loop around ``recv(timeout=1)`` continues after one, and would never end."""

from __future__ import annotations

import asyncio

import pytest
from pushers import do
from pushers import options as pusher_options
from servers import raw_server, upgrade

import librealtime
from librealtime import ConnectionLost, ConnectionTimeout, sync
from librealtime._core.errors import final, timed_out
from librealtime._sources.source_options import ErrorEvent

FACES = [librealtime, sync]


def silent(connection, number=0):
    """Reads, and never answers."""
    while connection.recv(65536):
        pass


async def end_of(call, *arguments, **named):
    with pytest.raises(librealtime.RealtimeError) as raised:
        await do(call, *arguments, **named)
    return raised.value


def check(error, kind=ConnectionLost):
    assert type(error) is kind and not isinstance(error, TimeoutError)
    assert isinstance(error.__cause__, ConnectionTimeout)
    assert str(error) == str(error.__cause__)


async def each(items):
    """Iterates, in either face."""
    if hasattr(items, "__aiter__"):
        async for _ in items:
            pass
    else:
        await asyncio.to_thread(list, items)


async def finish(made):
    if hasattr(made, "aclose"):
        await made.aclose()
    else:
        await asyncio.to_thread(made.close)


@pytest.mark.parametrize("face", FACES, ids=["asyncio", "sync"])
@pytest.mark.parametrize("options", [{"reconnect": False}, {"method": "POST"}], ids=["GET", "POST"])
def test_an_event_source(run, serve, face, options):
    events = []

    async def main(url):
        source = face.EventSource(url, response_timeout=0.02, on_error=events.append, **options)
        for call in (source.recv, source.recv, source.wait_closed):
            check(await end_of(call))
        check(await end_of(each, source))
        await finish(source)

    run(main(serve(silent).url))
    # What handlers receive is the failure as it was.
    assert [(type(event.error), event.fatal) for event in events] == [(ConnectionTimeout, True)]


def test_the_usual_loop_ends(serve):
    """Of a blocking program that looks at something else once in a while."""
    with (
        sync.EventSource(serve(silent).url, response_timeout=0.02, reconnect=False) as source,
        pytest.raises(ConnectionLost),
    ):
        while True:
            try:
                source.recv(timeout=0.001)
            except TimeoutError:
                continue


@pytest.mark.parametrize("face", FACES, ids=["asyncio", "sync"])
def test_other_sources(run, face):
    """Nothing ends these by a time limit today; what their core reports is believed."""

    async def main():
        late = timed_out("the server is silent")
        poll = face.LongPoll("http://127.0.0.1:1/")
        bot = face.Spreadbot("http://127.0.0.1:1/")
        poll._failed(ErrorEvent(late, 0, True, None, 0))
        bot._disconnected(late)
        for call in (poll.recv, poll.wait_closed, bot.recv, bot.wait_closed):
            check(await end_of(call))
        for source in (poll, bot):
            check(await end_of(each, source))
            await finish(source)

    run(main())


@pytest.mark.parametrize("face", FACES, ids=["asyncio", "sync"])
def test_a_pusher_connection(run, pusher_server, face):
    async def main():
        await pusher_server.actions.fault(point="handshake", do="ignore", times=2)
        options = pusher_options(pusher_server, connect_timeout=0.02, auto_reconnect=False)
        pusher = face.Pusher(pusher_server.key, **options)
        events = pusher.events()
        check(await end_of(pusher.connect))
        for call in (events.recv, events.recv, pusher.wait_closed):
            check(await end_of(call))
        check(await end_of(each, events))
        check(await end_of(pusher.subscribe, "orders"))
        channel = await do(pusher.subscribe, "orders", wait=False)
        check(await end_of(channel.subscribed))
        check(await end_of(channel.events().recv))
        pusher.close()

    run(main())


@pytest.mark.parametrize("face", FACES, ids=["asyncio", "sync"])
def test_a_meteor_client(run, serve, face):
    async def main(url):
        client = face.DDPClient(url, connect_timeout=0.02, auto_reconnect=False)
        for _ in range(2):
            check(await end_of(client.connect, timeout=30))
        client.close()

    run(main(serve(silent).url))


@pytest.mark.parametrize("face", FACES, ids=["asyncio", "sync"])
def test_a_websocket(run, face):
    def serve_one(connection):
        upgrade(connection)
        silent(connection)

    async def main(url):
        options = {"ping_interval": 0.02, "ping_timeout": 0.02}
        if face is librealtime:
            ws = await face.connect(url, **options)
        else:
            ws = await asyncio.to_thread(face.connect, url, **options)
        for _ in range(2):
            check(await end_of(ws.recv), librealtime.ConnectionClosedError)
        check(await end_of(each, ws), librealtime.ConnectionClosedError)
        check(await end_of(each, ws.recv_streaming()), librealtime.ConnectionClosedError)
        check(await end_of(do, ws.send, "a"), librealtime.ConnectionClosedError)

    with raw_server(serve_one) as url:
        run(main(url))


def test_other_failures_stay():
    lost = ConnectionLost(-1, "gone")
    assert final(lost) is lost
    late = timed_out("late").with_details(None, 110)
    assert final(late).system_error == final(late).errno == 110
