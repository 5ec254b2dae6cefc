"""Objects that refer to the library cannot be copied: their copies would end what both use."""

from __future__ import annotations

import copy
import pickle

import pytest
from pushers import options

import librealtime
from librealtime import sync

NOWHERE = "http://127.0.0.1:1"


def refuses(thing):
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            make(thing)


def test_a_blocking_connection(server):
    with sync.connect(server.url + "/echo") as ws:
        refuses(ws)
        refuses(ws.ping())
        ws.send("still there")
        assert ws.recv() == "still there"


def test_a_spreadbot(bots):
    with sync.Spreadbot(bots.url) as bot:
        refuses(bot)
        refuses(bot.rest)


def test_sources_and_requests(events):
    with sync.EventSource(events.url + "/three") as source:
        refuses(source)
    with sync.LongPoll(events.url + "/poll") as poll:
        refuses(poll)
    with sync.RESTClient(events.url) as client:
        refuses(client)
        with client.stream("GET", "page") as response:
            refuses(response)
        whole = client.get("page")
        assert pickle.loads(pickle.dumps(whole)).text == copy.copy(whole).text == "no stream"


def test_attempts(events):
    seen = []

    def on_request(attempt):
        try:
            refuses(attempt)
            seen.append("refused")
        except BaseException as error:
            seen.append(error)

    with sync.EventSource(events.url + "/three", on_request=on_request) as source:
        source.recv()
    assert seen == ["refused"]


def test_a_pusher_connection(pusher_server):
    seen = []

    def prepare(preparation):
        try:
            refuses(preparation)
            seen.append("refused")
        except BaseException as error:
            seen.append(error)

    pusher = sync.Pusher(pusher_server.key, **options(pusher_server, prepare_authorization=prepare))
    pusher.connect()
    channel = pusher.subscribe("private-orders")
    for thing in (pusher, channel, channel.events(), pusher.user, pusher.push):
        refuses(thing)
    pusher.close()
    assert seen == ["refused"]


def test_a_meteor_client(app):
    with sync.DDPClient(app.url) as client:
        seen = []

        @client.stub("nothing")
        def stub(call):
            refuses(call)
            refuses(call.random_stream())
            seen.append("refused")

        players = client.collection("players")
        found = players.find()
        for thing in (
            client,
            players,
            found.observe(),
            players.observe(print),
            client.batch(),
            client.subscribe("all"),
            client.load(["all"]),
            client.send("nothing"),
            client.models(),
        ):
            refuses(thing)
        assert seen == ["refused"]
        assert copy.copy(found) == list(found)


def test_asyncio(run, server, events, pusher_server, app):
    async def main():
        connecting = librealtime.connect(server.url + "/echo")
        refuses(connecting)
        async with connecting as ws:
            refuses(ws)
        async with librealtime.EventSource(events.url + "/three") as source:
            refuses(source)
        async with librealtime.RESTClient(events.url) as client:
            refuses(client)
        pusher = librealtime.Pusher(pusher_server.key, **options(pusher_server))
        refuses(pusher)
        pusher.close()
        async with librealtime.DDPClient(app.url) as client:
            refuses(client)
            refuses(client.send("nothing"))

    run(main())


def test_other_objects():
    refuses(librealtime.Reachability())
    refuses(librealtime.EventStreamParser())
    values = (librealtime.Backoff(max_delay=3), librealtime.Network(), librealtime.Deflate())
    for value in values:
        assert copy.copy(value) == copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value
