"""Several writes to a Meteor server as one."""

from __future__ import annotations

import contextlib
import functools

import pytest
from meteor import FACES, NOWHERE, Heard, do, ended, offline, opened

import librealtime
from librealtime import DDPError, ejson, sync


@pytest.mark.parametrize("face", FACES)
def test_writes_are_one_notification(run, app, face):
    async def main():
        heard = Heard()
        async with opened(face, app, on_change=heard) as client:
            await do(client.subscribe, "all")
            while not (await heard.next()).is_last:
                pass
            players = client.collection("players")
            with client.batch() as batch:
                cid = batch.insert(players, {"name": "Cid"})
                ada = batch.update("players", "a", {"$set": {"name": "Abe"}})
                bob = batch.remove("players", "b")
                assert len(players) == 2 and len(batch) == 3 and batch.calls == [cid, ada, bob]
                with pytest.raises(librealtime.InvalidState, match="has not been written"):
                    await do(cid.result)
            made = cid.stub_value
            assert (len(made), ada.stub_value, bob.stub_value) == (17, 1, 1)
            assert players.find(fields={"_id": 0}) == [{"name": "Abe"}, {"name": "Cid"}]
            changes = [await heard.next() for _ in range(3)]
            assert [one.is_last for one in changes] == [False, False, True]
            assert {(one.kind, one.id) for one in changes} == {
                ("added", made),
                ("changed", "a"),
                ("removed", "b"),
            }
            assert await ended(batch) == [made, 1, 1] and await do(cid.result) == made
            assert app.control.find("players") == [
                {"_id": "a", "name": "Abe"},
                {"_id": made, "name": "Cid"},
            ]
            with pytest.raises(librealtime.InvalidState, match="has ended"):
                batch.remove("players", "a")
            assert heard.rest() == []

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_an_exception_writes_nothing(run, face):
    async def main():
        async with offline(face) as client:
            with pytest.raises(ZeroDivisionError), client.batch() as batch:
                call = batch.insert("players", {"_id": "a"})
                raise ZeroDivisionError
            with pytest.raises(TypeError, match="EJSON has no form"), client.batch() as other:
                other.insert("players", {"_id": "b"})
                other.insert("players", {"_id": "c", "tags": {1}})
            assert len(client.collection("players")) == 0 and call.stub_value is None
            for waiting in (ended(batch), do(call.result)):
                with pytest.raises(librealtime.InvalidState, match="has not been written"):
                    await waiting
            # A fault of one write is found by the library: nothing is written either.
            deep = functools.reduce(lambda value, _: [value], range(200), [])
            faulty = pytest.raises(librealtime.RealtimeError, match="nested deeper")
            with faulty, client.batch() as batch:
                batch.insert("players", {"_id": "a"})
                call = batch.insert("players", {"_id": "b", "deep": deep})
            assert len(client.collection("players")) == 0 and not client._pending
            with pytest.raises(librealtime.RealtimeError, match="nested deeper"):
                await do(call.result)
            with client.batch() as empty:
                pass
            assert await ended(empty) == []

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_the_server_refuses_one_write(run, app, face):
    async def main():
        app.control.collection("players", update=False)
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            with client.batch() as batch:
                first = batch.update("players", "a", {"$set": {"name": "Abe"}})
                batch.insert("players", {"_id": "c"})
            with pytest.raises(DDPError) as raised:
                await ended(batch)
            assert raised.value.code == "403"
            assert client.collection("players").get("a")["name"] == "Ada"
            assert [one["_id"] for one in app.control.find("players")] == ["a", "b", "c"]
            with pytest.raises(DDPError):
                await ended(first)
            assert await ended(batch.calls[1]) == "c" and not client._pending & set(batch.calls)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_write_that_fails_here(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            batch = client.batch(throw_stub_errors=True, no_retry=True)
            with pytest.raises(DDPError, match="is there already"), batch:
                batch.insert("players", {"_id": "a"})
                batch.insert("players", {"_id": "c"})
            assert await ended(batch.calls[1]) == "c"
            with pytest.raises(DDPError) as raised:
                await ended(batch)
            assert (raised.value.code, raised.value.kind) == ("409", "stub")
            sent = [
                one["message"]["params"]
                for one in app.control.log(what="in", name="/players/insert")
            ]
            assert sent[-1] == [{"_id": "c"}] and [{"_id": "a"}] not in sent

    app.control.clear()
    run(main())


def test_batches_in_a_stub():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players", object_ids=True)

        @client.stub("promote")
        def promote(stub):
            with client.batch() as batch:
                call = batch.insert(players, {"name": "Cid"})
            assert players.get(call.stub_value)["name"] == "Cid"
            return call.stub_value

        made = client.send("promote").stub_value
        assert isinstance(made, ejson.ObjectID) and players.find() == [{"_id": made, "name": "Cid"}]


def test_misuse_of_batches():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        with pytest.raises(TypeError):
            client.batch(order=1)
        with pytest.raises(TypeError, match="collection is an int"):
            client.batch().insert(5, {})
        with client.batch() as batch:
            call = batch.insert("players", {})
        with pytest.raises(TimeoutError):
            batch.completed(0.01)
    with pytest.raises(DDPError, match="the client is closed"):
        call.result()
    with pytest.raises(DDPError, match="the client is closed"), client.batch() as batch:
        batch.insert("players", {})
