"""Numbers that no limit can be, wherever one is taken: a clear error, or no limit."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import PATIENCE_S
from optioned import NOWHERE, OBJECTS, VALUE_CLASSES
from pushers import options as pusher_options

import librealtime
from librealtime import sync
from librealtime._rest.options import RequestKeywords

ODD = {
    "inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "-1": -1,
    "1e300": 1e300,
    "2^31": 2**31,
    "2^64": 2**64,
    "10^400": 10**400,
    "10^5000": 10**5000,
    "-10^5000": -(10**5000),
    "text": "5",
    "object": object(),
}

#: Errors that say what is wrong. OverflowError and ctypes.ArgumentError are none.
CLEAR = (librealtime.RealtimeError, TypeError)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Some options name files, which are made here."""
    monkeypatch.chdir(tmp_path)


def is_clear(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except CLEAR as error:
        assert str(error)


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", OBJECTS)
def test_options(kind, value):
    options, make = OBJECTS[kind]
    for parameter in options.parameters:
        is_clear(make, **{parameter.name: value})


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_options_of_values(value):
    for cls, make in VALUE_CLASSES:
        for field in dataclasses.fields(cls):
            is_clear(lambda name, cls=cls, make=make: make(cls(**{name: value})), field.name)


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_options_of_requests(value):
    with sync.RESTClient(NOWHERE, attempts=1) as client:
        for name in RequestKeywords.__annotations__:
            is_clear(client.get, "x", **{name: value})


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_numbers_of_methods(value, server, app):
    with sync.connect(server.url + "/echo") as ws:
        is_clear(ws.close, value)
    with sync.DDPClient(app.url) as client:
        is_clear(client.subscribe, "all", wait=False, keep=value)
        is_clear(client.send, "nothing", call_timeout=value)
        is_clear(client.collection("players").find, {}, limit=value)
    pusher = sync.Pusher("key")
    is_clear(pusher.set_reconnect_limits, value, value)
    pusher.close()


NO_LIMIT = {"inf": math.inf, "1e300": 1e300, "10^400": 10**400, "None": None}


@pytest.mark.parametrize("limit", NO_LIMIT.values(), ids=NO_LIMIT)
def test_a_timeout_that_is_no_limit(limit, server, events, bots, pusher_server, app):
    with sync.connect(server.url + "/echo") as ws:
        ws.send("a")
        assert ws.recv(timeout=limit) == "a"
        ws.close()
        ws.wait_closed(timeout=limit)
    with sync.EventSource(events.url + "/three") as source:
        assert source.recv(timeout=limit).data == "1"
        source.close()
        source.wait_closed(timeout=limit)
    with sync.LongPoll(events.url + "/poll") as poll:
        assert poll.recv(timeout=limit).text == "number 1"
    with sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("echo", timeout=limit)
        bot.send_message_string("a", timeout=limit)
        assert bot.recv(timeout=limit).text == "a"
        bot.close_connection(timeout=limit)
    pusher = sync.Pusher(pusher_server.key, **pusher_options(pusher_server))
    pusher.connect(timeout=limit)
    pusher.subscribe("orders", timeout=limit).subscribed(timeout=limit)
    pusher.disconnect(timeout=limit)
    pusher.close()
    with sync.DDPClient(app.url) as client:
        client.connect(timeout=limit)
        client.subscribe("all", timeout=limit).ready(timeout=limit)
        changes = client.collection("players").find().observe()
        assert changes.recv(timeout=limit).is_initial


def waits(server, events, bots, pusher_server, app):
    """Calls that have a `timeout`, where what they wait for does not come."""
    with sync.connect(server.url + "/silent") as ws:
        yield ws.recv
        yield ws.wait_closed
        yield lambda timeout: next(iter(ws.recv_streaming(timeout)))
    with sync.EventSource(events.url + "/three") as source:
        for _ in range(3):
            source.recv(timeout=PATIENCE_S)
        yield source.recv
        yield source.wait_closed
    with sync.LongPoll(events.url + "/poll") as poll:
        for _ in range(5):
            poll.recv(timeout=PATIENCE_S)
        yield poll.recv
    with sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("deaf")
        yield bot.recv
        yield lambda timeout: bot.send_message_string("a", timeout)
    pusher = sync.Pusher(pusher_server.key, **pusher_options(pusher_server))
    pusher.connect()
    yield pusher.subscribe("orders").events().recv
    yield pusher.wait_closed
    pusher.close()
    app.control.publication("slow", cursors=[], ready=False)
    with sync.DDPClient(app.url) as client:
        yield client.collection("nothing").find().observe().recv
        yield lambda timeout: client.subscribe("slow", timeout=timeout)
        yield lambda timeout: client.load(["slow"], timeout=timeout)


@pytest.mark.parametrize("timeout", [0.01, 0, -1, Fraction(1, 100)])
def test_a_wait_that_ends(timeout, server, events, bots, pusher_server, app):
    """Its exception is Python's TimeoutError and the library's; less than 0 is 0."""
    count = 0
    for wait in waits(server, events, bots, pusher_server, app):
        with pytest.raises(librealtime.ConnectionTimeout) as raised:
            wait(timeout=timeout)
        assert isinstance(raised.value, TimeoutError)
        assert raised.value.name == "RT_ERROR_TIMEOUT"
        count += 1
    assert count == 13


@pytest.mark.parametrize("timeout", [math.nan, "5", None.__class__, True], ids=str)
def test_a_timeout_that_is_none(timeout, server, events, bots, pusher_server, app):
    for wait in waits(server, events, bots, pusher_server, app):
        with pytest.raises((librealtime.InvalidArgument, TypeError), match="timeout is"):
            wait(timeout=timeout)


def test_no_other_exception_for_time():
    """Each wait raises the exception that is both, so this checks those that the tests miss."""
    source = Path(librealtime.__file__).parent
    raises = [
        str(path) for path in source.rglob("*.py") if "raise TimeoutError" in path.read_text()
    ]
    assert raises == []
