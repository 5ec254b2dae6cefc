"""Stubs of a Meteor client's methods."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time

import pytest
from meteor import FACES, NOWHERE, do, ended, offline, opened

import librealtime
from librealtime import DDPError, sync
from librealtime._ddp import stub as stubs


@pytest.fixture
def logged():
    """What is logged. No record is kept: it would keep the objects of a traceback alive."""
    heard = []
    logger = logging.getLogger("librealtime")

    def hear(record):
        heard.append(record.getMessage())
        return False

    logger.addFilter(hear)
    yield heard
    logger.removeFilter(hear)


@pytest.mark.parametrize("face", FACES)
def test_stubs_run_before_the_call_returns(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            players = client.collection("players")
            ran = []

            @client.stub("rename")
            def rename(stub, who, name):
                ran.append((who, name, stub.user_id, stub))
                assert stub.update("players", {"_id": who}, {"$set": {"name": name}}) == 1
                made = stub.insert("players", {"name": "Eve"})
                assert stub.find("players", {"name": "Eve"})[0]["_id"] == made
                assert stub.remove("players", "b") == 1
                assert stub.is_simulation
                assert stub.call("inner", 1) == [1]
                with pytest.raises(DDPError, match="It is broken"):
                    stub.call("broken")
                return "renamed"

            client.set_stub("inner", lambda stub, *params: list(params))

            @client.stub("broken")
            def broken(stub):
                raise DDPError("no", "It is broken.", {"at": 1})

            app.control.method(
                "rename",
                [
                    {
                        "op": "update",
                        "collection": "players",
                        "id": "a",
                        "modifier": {"$set": {"name": "Cleo"}},
                    },
                    {"op": "return", "value": 5},
                ],
            )
            client.set_user_id("me")
            call = client.send("rename", "a", "Cleo")
            assert ran[0][:3] == ("a", "Cleo", "me") and call.stub_value == "renamed"
            assert sorted(one["name"] for one in players.find()) == ["Cleo", "Eve"]
            assert await do(call.result) == 5 and await ended(call) == 5
            assert players.find(fields={"_id": 0}) == [{"name": "Cleo"}, {"name": "Bob"}]
            with pytest.raises(librealtime.InvalidState, match="has ended"):
                ran[0][3].remove("players", "a")
            with pytest.raises(DDPError, match="It is broken") as raised:
                client.send("broken", throw_stub_errors=True)
            assert (raised.value.kind, raised.value.code) == ("stub", "no")
            assert raised.value.details == {"at": 1} and raised.value.source == ""
            client.set_stub("broken", None)

    run(main())


def test_the_decorator_needs_a_name():
    client = sync.DDPClient(NOWHERE)
    with pytest.raises(TypeError, match="method"):

        @client.stub
        def rename(stub):
            pass

    client.close()


@pytest.mark.parametrize("face", FACES)
def test_stubs_draw_what_the_server_draws(run, app, face):
    async def main():
        drawn = []

        def draw(stub):
            mine, default = stub.random_stream("mine"), stub.random_stream()
            drawn.extend([mine.id(), mine.hex_string(24), mine.fraction(), mine.id(5)])
            drawn.extend([default.id(), default.hex_string(7)])
            assert mine.id(0) == mine.hex_string(0) == ""
            assert len(default.secret()) == 43 and len(default.secret(100)) == 100
            assert default.choice("x") == "x" and default.choice([7]) == 7
            assert {default.choice(["a", "b"]) for _ in range(100)} == {"a", "b"}
            with pytest.raises(librealtime.InvalidArgument, match="the sequence is empty"):
                default.choice([])
            with pytest.raises(librealtime.InvalidArgument, match="n is -1"):
                mine.id(-1)
            with pytest.raises(TypeError, match="a whole number is expected"):
                mine.hex_string("5")
            drawn.append(default)

        app.control.method(
            "draw",
            [
                {"op": "random", "stream": stream, "kind": kind, "n": n, "save": f"v{index}"}
                for index, (stream, kind, n) in enumerate(
                    [
                        ("mine", "id", 17),
                        ("mine", "hex", 24),
                        ("mine", "fraction", None),
                        ("mine", "id", 5),
                        ("default", "id", 17),
                        ("default", "hex", 7),
                    ]
                )
            ]
            + [{"op": "return", "value": [{"$var": f"v{index}"} for index in range(6)]}],
        )
        async with opened(face, app) as client:
            client.set_stub("draw", draw)
            assert await do(client.call, "draw") == drawn[:6]
        with pytest.raises(librealtime.InvalidState, match="has ended"):
            drawn[6].fraction()
        with pytest.raises(librealtime.InvalidState, match="has ended"):
            drawn[6].id(0)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_failed_operations_have_codes(run, face):
    async def main():
        async with offline(face) as client:
            client.collection("players").insert({"_id": "a"})

            @client.stub("write")
            def write(stub):
                with pytest.raises(DDPError, match="is there already") as raised:
                    stub.insert("players", {"_id": "a"})
                assert (raised.value.kind, raised.value.code) == ("stub", "409")
                with pytest.raises(DDPError) as raised:
                    stub.insert("players", {"_id": {"not": "an id"}})
                assert raised.value.code == "400"
                for name in ("$[b]", "$" + 2000 * "é"):
                    with pytest.raises(DDPError) as raised:
                        stub.remove("players", {"a": {name: 1}})
                    assert raised.value.code == "stub-failed"
                    assert raised.value.reason.startswith(f"invalid selector: {name[:400]}")
                stub.insert("players", {"_id": "a"})

            with pytest.raises(DDPError) as raised:
                client.send("write", throw_stub_errors=True)
            assert (raised.value.code, raised.value.kind) == ("409", "stub")
            assert raised.value.reason == "a document with this _id is there already"

    run(main())


def test_the_text_of_another_failure(monkeypatch):
    """A finalizer may call C at any time."""
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        client.collection("players").insert({"_id": "a"})
        monkeypatch.setattr(stubs.lib, "rt_last_error", lambda: b"handle is NULL")

        @client.stub("write")
        def write(stub):
            stub.insert("players", {"_id": "a"})

        with pytest.raises(DDPError) as raised:
            client.send("write", throw_stub_errors=True)
        assert (raised.value.code, raised.value.reason) == ("stub-failed", None)


def test_what_a_stub_raises(logged):
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:

        def raising(error):
            def stub(_):
                raise error

            return stub

        class Unprintable(Exception):
            def __str__(self):
                return "a\0\ud800"

        class Silent(Exception):
            def __str__(self):
                raise ValueError

        for error, reason in (
            (ValueError("why"), "why"),
            (KeyError(), "KeyError()"),
            (Unprintable(), "a?"),
            (Silent(), "Silent"),
        ):
            client.set_stub("fail", raising(error))
            with pytest.raises(DDPError) as raised:
                client.send("fail", throw_stub_errors=True)
            assert (raised.value.code, raised.value.reason) == ("error", reason)
            assert raised.value.__cause__ is error
        assert logged == ["a stub failed"] * 4
        client.set_stub("fail", raising(DDPError("no", details={1})))
        with pytest.raises(DDPError, match="EJSON has no form for a set") as raised:
            client.send("fail", throw_stub_errors=True)
        assert raised.value.code == "no"
        lines = []
        client.on_debug = lines.append
        for error, code, said in (
            (DDPError("n\0o", "why\0", {"at": 5}), "no", "why [no]"),
            (DDPError("no"), "no", "no [no]"),
        ):
            client.set_stub("fail", raising(error))
            with pytest.raises(DDPError) as raised:
                client.send("fail", throw_stub_errors=True)
            assert (raised.value.code, raised.value.details) == (code, error.details)
            assert str(raised.value) == said and raised.value.__cause__ is None
            # Otherwise the call is sent, and the debug log has the text.
            client.send("fail")
            wait_until(lambda said=said: f"[DDP] the stub of fail failed: {said}" in lines)
        # What is not meant for the stub reaches the caller.
        client.set_stub("fail", raising(KeyboardInterrupt()))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                client.send("fail")
        client.set_stub("fail", lambda stub: 5)
        assert client.send("fail").stub_value == 5


def wait_until(condition):
    while not condition():
        time.sleep(0.001)


def test_coroutine_functions_in_asyncio(run, logged):
    async def main():
        async with offline(librealtime.DDPClient) as client:
            players = client.collection("players")

            @client.stub("rename")
            async def rename(stub, name):
                await asyncio.sleep(0) if name == "waits" else await change(stub, name)
                return name

            async def change(stub, name):
                stub.insert("players", {"_id": "a", "name": name})

            assert client.send("rename", "Ada").stub_value == "Ada"
            assert players.get("a")["name"] == "Ada"
            with pytest.raises(DDPError, match="a stub cannot wait"):
                client.send("rename", "waits", throw_stub_errors=True)

            async def refuse(stub):
                raise DDPError("no")

            client.set_stub("refuse", refuse)
            with pytest.raises(DDPError, match=r"no \[no\]"):
                client.send("refuse", throw_stub_errors=True)
            assert logged == ["a stub failed"]

    async def waits(stub):
        raise AssertionError

    run(main())
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client, pytest.raises(TypeError):
        client.set_stub("rename", waits)


def test_endless_recursion_in_a_stub(logged):
    """It ends the call, and neither the process nor the next call."""
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:

        @client.stub("calls itself")
        def calls_itself(stub, depth):
            deepest.append(depth)
            return stub.call("calls itself", depth + 1)

        @client.stub("recurs")
        def recurs(stub):
            return recurs(stub)

        @client.stub("fine")
        def fine(stub, depth):
            return depth if depth == 20 else stub.call("fine", depth + 1)

        for limit in (sys.getrecursionlimit(), 100_000):
            deepest = []
            before = sys.getrecursionlimit()
            sys.setrecursionlimit(limit)
            try:
                with pytest.raises(DDPError, match="run inside each other") as raised:
                    client.send("calls itself", 0, throw_stub_errors=True)
            finally:
                sys.setrecursionlimit(before)
            assert raised.value.code == "too-deep" and len(deepest) == 50
        with pytest.raises(DDPError, match="maximum recursion depth") as raised:
            client.send("recurs", throw_stub_errors=True)
        assert raised.value.code == "error"
        assert logged == ["a stub failed"]
        assert client.send("fine", 0).stub_value == 20


def test_the_end_of_the_stack_in_callbacks(logged, capfd):
    """What they raised inside C would be lost: the call would look as if nothing had happened."""
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        document = {"_id": "a", "deep": {"a": [1, {"b": 2}]}}
        client.collection("players").insert(document)

        @client.stub("reads")
        def reads(stub):
            assert stub.find("players") == [document]
            return reads(stub)

        with pytest.raises(DDPError, match="maximum recursion depth"):
            client.send("reads", throw_stub_errors=True)
        client.set_stub("five", lambda stub: 5)

        def at(depth):
            if depth:
                return at(depth - 1)
            return client.send("five", throw_stub_errors=True).stub_value

        outcomes = set()
        for depth in range(sys.getrecursionlimit() - 300, sys.getrecursionlimit()):
            try:
                outcomes.add(at(depth))
            except RecursionError:
                outcomes.add("no room")
        assert outcomes == {5, "no room"} and logged == ["a stub failed"]
    assert "Exception ignored" not in capfd.readouterr().err
