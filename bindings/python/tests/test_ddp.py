"""Meteor clients, asyncio and blocking, against a server that behaves like Meteor."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from typing import Any

import pytest
from meteor import FACES, NOWHERE, Heard, do, ended, offline, opened

import librealtime
from librealtime import DDPError, ejson, sync


@pytest.mark.parametrize("face", FACES)
def test_documents_follow_the_server(run, app, face):
    async def main():
        heard = Heard()
        async with opened(face, app, on_status=heard) as client:
            assert client.status == "connected" and client.version == "1"
            subscription = await do(client.subscribe, "all")
            assert subscription.is_ready
            players = client.collection("players")
            assert len(players) == 2 and players.get("a") == {"_id": "a", "name": "Ada"}
            assert players.get("z") is None and players.find_one({"name": "Zoe"}) is None
            found = players.find({"name": {"$gt": "A"}}, sort={"name": -1}, fields={"_id": 0})
            assert found == [{"name": "Bob"}, {"name": "Ada"}]
            assert players.find(sort=[["name", -1]], projection={"_id": 0}) == found
            with pytest.raises(librealtime.InvalidArgument):
                players.find({"name": {"$no": 1}})
            with pytest.raises(TypeError, match="'field'"):
                players.find(field={"_id": 0})
            with pytest.raises(librealtime.InvalidArgument, match=r"the field name a\.b begins"):
                await do(players.insert, {"a.b": 1})
            changes = Heard()
            live = players.observe(changes, sort={"name": 1})
            first, second = await changes.next(), await changes.next()
            assert (first.kind, first.id, first.is_initial) == ("added", "a", True)
            assert (second.fields, second.is_last) == ({"name": "Bob"}, True)
            app.control.remove("players", "a")
            third = await changes.next()
            assert (third.kind, third.id, third.is_initial) == ("removed", "a", False)
            live.stop()
            subscription.stop()
            assert not subscription.is_ready
        assert [change.status for change in heard.rest()][:2] == ["connecting", "connected"]
        assert client.status == "offline"

    run(main())


@pytest.mark.parametrize(
    "option, value",
    [("auth", ("ada", "secret")), ("bearer_token", "t")],
)
def test_credentials_are_sent(app, option, value):
    with sync.DDPClient(app.url, **{option: value}):
        sent = app.control.log(what="open")[-1]["headers"]["Authorization"]
    assert sent == ("Basic YWRhOnNlY3JldA==" if option == "auth" else "Bearer t")
    with pytest.raises(librealtime.InvalidArgument, match="give one of them"):
        sync.DDPClient(app.url, auth=("a", "b"), bearer_token="t")


@pytest.mark.parametrize("face", FACES)
def test_results_are_iterated(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.load, ["all", ("all", 1)])
            results = client.collection("players").results({"name": {"$lt": "B"}})
            is_blocking = face is sync.DDPClient
            step = functools.partial(next, results, None) if is_blocking else results.__anext__
            assert [one["_id"] for one in await do(step)] == ["a"]
            app.control.update("players", "a", {"$set": {"name": "Cleo"}})
            assert await do(step) == []
            results.close()
            if is_blocking:
                assert await do(step) is None
            else:
                with pytest.raises(StopAsyncIteration):
                    await step()

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_writes_and_failures(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            players = client.collection("players")
            insert = players.insert({"name": "Cid", "at": ejson.loads('{"$date":5}')})
            made = insert.stub_value
            assert players.get(made)["name"] == "Cid"
            players.update(made, {"$set": {"name": "Coy"}})
            assert await ended(players.remove("a", no_retry=True)) is not None
            assert [one["name"] for one in players.find(sort={"name": 1})] == ["Bob", "Coy"]
            with pytest.raises(DDPError) as raised:
                await do(client.call, "none")
            assert (raised.value.kind, raised.value.code) == ("server", "404")
            assert raised.value.code_is_number
            assert json.loads(raised.value.source)["errorType"] == "Meteor.Error"
            app.control.method(
                "refuse",
                [{"op": "throw", "error": {"error": "no", "reason": "Why?", "details": {"n": 1}}}],
            )
            with pytest.raises(DDPError, match=r"Why\? \[no\]") as raised:
                await do(client.call, "refuse")
            assert (raised.value.code, raised.value.reason) == ("no", "Why?")
            assert raised.value.details == {"n": 1} and not raised.value.code_is_number
            stopped = Heard()
            with pytest.raises(DDPError) as raised:
                await do(client.subscribe, "none", on_stopped=stopped)
            assert raised.value.code == (await stopped.next()).code == "404"
            with pytest.raises(TypeError, match="EJSON has no form for a set"):
                client.send("m", {1})
            deep: Any = []
            for _ in range(200):
                deep = [deep]
            for use in (
                lambda: client.send("m", deep),
                lambda: players.insert({"a": deep}),
                lambda: players.find({"a": deep}),
            ):
                with pytest.raises(librealtime.RealtimeError, match="nested deeper than 128"):
                    use()
            with pytest.raises(TypeError, match="a query has no option 'order'"):
                players.find_one(order=1)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_calls_of_an_open_connection_go_first(run, app, face):
    async def main():
        echo = f"echo of {face.__module__}"
        app.control.method(echo, [{"op": "return", "value": {"$param": 0}}])
        calls = []

        def on_open():
            calls.append(client.send(echo, len(calls), wait=True))

        client = face(app.url, on_open=on_open)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(client.close)
            waited = client.send(echo, "waited")
            await do(client.connect)
            assert await ended(waited) == "waited" and await ended(calls[0]) == 0
            client.reconnect()
            await do(client.connect)
            assert await ended(calls[1]) == 1
            sent = [one["message"]["params"] for one in app.control.log(what="in", name=echo)]
            assert sent == [[0], ["waited"], [1]]

            async def later():
                pass

            with pytest.raises(TypeError, match="its result is needed at once"):
                client.on_open = later
            client.on_open = None
        with pytest.raises(TypeError, match="its result is needed at once"):
            face(app.url, on_open=later)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_closing_ends_what_waits(run, face):
    async def main():
        client = face("ws://127.0.0.1:1")
        call = client.send("m")
        client.close()
        with pytest.raises(DDPError, match="the client is closed") as raised:
            await do(call.result)
        assert (raised.value.kind, raised.value.code) == ("closed", "closed")
        with pytest.raises(librealtime.RealtimeError, match="the client is closed"):
            client.send("m")
        assert client.status == "offline" and client.user_id is None

    run(main())


def test_a_call_takes_a_timeout():
    with contextlib.closing(sync.DDPClient("ws://127.0.0.1:1")) as client:
        with pytest.raises(TimeoutError):
            client.call("m", timeout=0.01)
        with pytest.raises(DDPError, match="the time limit of the call has passed") as raised:
            client.call("m", call_timeout=0.001)
        assert (raised.value.kind, raised.value.code) == ("timeout", "timeout")
        with pytest.raises(librealtime.StoreError):
            sync_client = sync.DDPClient("ws://127.0.0.1:1", token_file="/dev/null")
            with contextlib.closing(sync_client):
                sync_client.connect(wait=False)


@pytest.mark.parametrize("face", FACES)
def test_attempts_are_described(run, face):
    async def main():
        heard = Heard()
        backoff = librealtime.Backoff(initial_delay=100, max_delay=100, jitter="none")
        client = face(NOWHERE, on_status=heard, backoff=backoff)
        with contextlib.closing(client):
            assert client.retry_in is None and client.reason is None
            await do(client.connect, wait=False)
            while (await heard.next()).status != "waiting":
                pass
            assert 1 < client.retry_in <= 100 and client.reason is None
        assert client.retry_in is None and client.reason is None
        client = face(NOWHERE, on_status=heard, auto_reconnect=False)
        with contextlib.closing(client):
            for _ in range(2):  # A client that has failed says why again.
                with pytest.raises(librealtime.RealtimeError, match=r"127\.0\.0\.1"):
                    await do(client.connect)
            assert "127.0.0.1" in client.reason and client.retry_in is None

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_versions_that_are_offered(run, app, face):
    async def main():
        async with opened(face, app, versions=["pre2", "1"]) as client:
            assert client.version == "pre2"

    run(main())
    for versions, error in (
        (["2"], librealtime.InvalidArgument),
        (["1", "1"], librealtime.InvalidArgument),
        ("1", TypeError),
        ([1], TypeError),
    ):
        with pytest.raises(error, match="version"):
            sync.DDPClient(NOWHERE, versions=versions)


def test_what_is_not_a_function():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players")
        for use in (
            lambda: players.observe(5),
            lambda: players.observe(None),
            lambda: client.stub("x")(5),
            lambda: client.stub("x")(None),
            lambda: client.set_stub("x", 5),
            lambda: client.subscribe("x", wait=False, on_stopped=5),
        ):
            with pytest.raises(TypeError, match=r"is (an int|None); a function is expected"):
                use()


@pytest.mark.parametrize("face", FACES)
def test_what_cannot_be_loaded(run, face):
    async def main():
        async with offline(face) as client:
            for wrong in (5, None, (), [], (5,), {"name": 1}, b"name"):
                text = f"publications has {wrong!r}; a name, or a tuple of a name and parameters, "
                with pytest.raises(TypeError, match=re.escape(text)):
                    await do(client.load, ["all", wrong])
            for wrong, kind in (("name", "a str"), ({}, "a dict"), (5, "an int"), (None, "None")):
                text = f"publications is {kind}; a list is expected"
                with pytest.raises(TypeError, match=text):
                    await do(client.load, wrong)
            with pytest.raises(librealtime.InvalidArgument, match="contains a NUL character"):
                await do(client.load, [("a\0", 1)])
            assert not client._pending

    run(main())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"token_file": ""}, "token_file is empty; use None instead"),
        ({"document_file": ""}, "document_file is empty; use None instead"),
        ({"ca_file": ""}, "ca_file is empty; use None instead"),
        ({"token_file": 5}, "token_file is an int; a str or a path is expected"),
        ({"versions": ""}, "versions is a str; a list of str is expected"),
        ({"versions": 0}, "versions is an int; a list of str is expected"),
        (
            {"versions": [""]},
            'versions: version "" of DDP does not exist; there are 1, pre2 and pre1',
        ),
        ({"safe_headers": 0}, "safe_headers is an int; a list of str is expected"),
        ({"backoff": 1.5}, "backoff is a float; a Backoff is expected"),
    ],
)
def test_options_with_a_fault(options, text):
    with pytest.raises((TypeError, librealtime.InvalidArgument)) as raised:
        sync.DDPClient(NOWHERE, **options)
    assert str(raised.value) == text


def test_values_that_messages_cannot_contain():
    """No ConnectionError: programs try again after one."""
    deep: list[Any] = []
    for _ in range(128):
        deep = [deep]
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players")
        for value, text in ((deep, "nested deeper than 128"), (10**400, "a number is too large")):
            for use in (
                functools.partial(client.send, "a", value),
                functools.partial(client.subscribe, "a", value),
                functools.partial(client.load, [("a", value)]),
                functools.partial(players.insert, {"a": value}),
                functools.partial(players.find, {"a": value}),
            ):
                with pytest.raises(librealtime.InvalidArgument, match=text) as raised:
                    use()
                assert raised.value.name == "RT_ERROR_PROTOCOL"
                assert not isinstance(raised.value, ConnectionError)
        assert len(players) == 0 and not client._pending


def test_options_of_calls():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players")
        for options, text in (
            ({"timeout": 5}, "a call has no option 'timeout'; did you mean 'call_timeout'?"),
            ({"noretry": True}, "a call has no option 'noretry'; did you mean 'no_retry'?"),
            ({"x": 1}, "a call has no option 'x'"),
            ({"call_timeout": 0}, "call_timeout is 0; seconds above 0, up to a hundred years, "),
        ):
            for call in (
                functools.partial(client.send, "a"),
                functools.partial(players.insert, {}),
            ):
                with pytest.raises((TypeError, librealtime.InvalidArgument)) as raised:
                    call(**options)
                assert str(raised.value).startswith(text)
        assert len(players) == 0 and not client._pending


def test_fields_are_a_projection_too():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players")
        players.insert({"_id": "a", "name": "Ada", "score": 1})
        assert players.find(projection={"_id": 0, "score": 0}) == [{"name": "Ada"}]
        with pytest.raises(TypeError, match="are the same option"):
            players.find(projection={"name": 1}, fields={"name": 1})
