"""Meteor clients, asyncio and blocking, against a server that behaves like Meteor."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pushers import Heard, do

import librealtime
from librealtime import DDPError, ejson, sync

sys.path.append(str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from ddp_server import DDPServer

FACES = [librealtime.DDPClient, sync.DDPClient]


@pytest.fixture(scope="module")
def server():
    with DDPServer() as server:
        yield server


@pytest.fixture
def app(server):
    server.control.collection("players")
    for document in server.control.find("players"):
        server.control.remove("players", document["_id"])
    server.control.insert("players", {"_id": "a", "name": "Ada"}, {"_id": "b", "name": "Bob"})
    server.control.publication("all", cursors=[{"collection": "players"}])
    return server


@contextlib.asynccontextmanager
async def opened(face: Any, server: Any, **options: Any) -> AsyncIterator[Any]:
    client = face(server.url, **options)
    try:
        await do(client.connect)
        yield client
    finally:
        await do(client.__exit__ if face is sync.DDPClient else client.__aexit__, None, None, None)


async def ended(call: Any) -> Any:
    """Waits for the end of a call."""
    return await (asyncio.to_thread(call.completed) if hasattr(call, "completed") else call)


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
            with pytest.raises(librealtime.InvalidArgument):
                players.find({"name": {"$no": 1}})
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
            while await do(step):
                pass
            results.close()
            if is_blocking:
                assert await do(step) is None
            else:
                with pytest.raises(StopAsyncIteration):
                    await step()

    run(main())


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
                assert len(stub.draw_id("mine")) == 17 and 0 <= stub.draw_fraction("mine") < 1
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
            assert raised.value.details == {"at": 1}
            client.set_stub("broken", None)

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
            stopped = Heard()
            with pytest.raises(DDPError) as raised:
                await do(client.subscribe, "none", on_stopped=stopped)
            assert raised.value.code == (await stopped.next()).code == "404"
            with pytest.raises(TypeError, match="EJSON has no form for a set"):
                client.send("m", {1})
            with pytest.raises(TypeError, match="unexpected keyword argument 'order'"):
                players.find_one(order=1)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_users_stay_logged_in(run, app, face, tmp_path):
    async def main():
        options = {"token_file": str(tmp_path / "tokens")}
        users = Heard()
        name = f"ada-{face.__module__.rpartition('.')[2]}"
        async with opened(face, app, on_user=users, **options) as client:
            made = await do(client.create_user, "secret", name=name, email=f"{name}@example.org")
            assert client.user_id == made["id"] == await users.next() and not client.is_logging_in
            await do(client.change_password, "secret", "new")
            await do(client.forgot_password, f"{name}@example.org")
            await do(client.log_out_others)
            async with opened(face, app, **options) as second:
                assert second.user_id == made["id"]
            await do(client.log_out)
            assert client.user_id is None
            await do(client.log_in, name, "new")
            with pytest.raises(DDPError):
                await do(client.log_in_with_token, "wrong")
            with pytest.raises(DDPError):
                await do(client.reset_password, "wrong", "new")
            with pytest.raises(DDPError):
                await do(client.verify_email, "wrong")
            with pytest.raises(DDPError):
                await do(client.log_in_by, "login", {"resume": "wrong"})

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_tokens_kept_by_the_program(run, app, face):
    async def main():
        kept = []
        options = {"store_token": kept.append, "load_token": lambda: kept[-1] if kept else None}
        async with opened(face, app, **options) as client:
            made = await do(
                client.create_user, "secret", name=f"bob-{face.__module__.rpartition('.')[2]}"
            )
        async with opened(face, app, **options) as client:
            assert client.user_id == made["id"]
            await do(client.log_out)
            assert kept[-1] is None

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_closing_ends_what_waits(run, face):
    async def main():
        client = face("ws://127.0.0.1:1")
        call = client.send("m")
        client.close()
        with pytest.raises(librealtime.RealtimeError, match="the client is closed"):
            await do(call.result)
        with pytest.raises(librealtime.RealtimeError, match="the client is closed"):
            client.send("m")
        assert client.status == "offline" and client.user_id is None

    run(main())


def test_a_call_takes_a_timeout():
    with contextlib.closing(sync.DDPClient("ws://127.0.0.1:1")) as client:
        with pytest.raises(TimeoutError):
            client.call("m", timeout=0.01)
        with pytest.raises(librealtime.StoreError):
            sync_client = sync.DDPClient("ws://127.0.0.1:1", token_file="/dev/null")
            with contextlib.closing(sync_client):
                sync_client.connect(wait=False)
