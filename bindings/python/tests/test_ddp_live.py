"""Live queries as iterations."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import gc
import pickle
import threading

import pytest
from meteor import FACES, NOWHERE, Heard, do, offline, opened

import librealtime
from librealtime import DDPChange, DDPIndexChanges, sync


class Result:
    """A query's result, as changes have made it."""

    def __init__(self):
        self.documents, self.order = {}, []

    def apply(self, change):
        key = change.id
        if change.kind in ("removed", "moved"):
            self.order.remove(key)
        if change.kind in ("added", "moved"):
            before = change.before
            place = len(self.order) if before is None else self.order.index(before)
            self.order.insert(place, key)
        if change.kind == "removed":
            del self.documents[key]
        elif change.kind == "added":
            assert key not in self.documents
            self.documents[key] = change.fields
        elif change.kind == "changed":
            document = {**self.documents[key], **change.fields}
            for name in change.cleared:
                del document[name]
            self.documents[key] = document


def step(changes):
    """What takes the next change; None at the end."""
    if hasattr(changes, "__next__"):
        return functools.partial(do, functools.partial(next, changes, None))

    async def take():
        async for change in changes:
            return change
        return None

    return take


@pytest.mark.parametrize("face", FACES)
def test_changes_document_by_document(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            players = client.collection("players")
            found = players.find({"name": {"$lt": "X"}}, sort={"name": 1})
            assert found == [{"_id": "a", "name": "Ada"}, {"_id": "b", "name": "Bob"}]
            assert isinstance(found, list) and len(found) == 2
            plain = copy.deepcopy(found)
            assert plain == found == pickle.loads(pickle.dumps(found)) and type(plain) is list
            changes = found.observe()
            take = step(changes)
            first, second = await take(), await take()
            assert (first.kind, first.id, first.before) == ("added", "a", None)
            assert first.is_initial and not first.is_last and second.is_last
            app.control.update("players", "b", {"$set": {"name": "Aa"}})
            assert (await take()) == DDPChange(
                "changed", "players", "b", {"name": "Aa"}, [], None, False, False
            )
            assert (await take()) == DDPChange("moved", "players", "b", {}, [], "a", False, True)
            app.control.update("players", "a", {"$set": {"name": "Zoe"}})
            assert (await take()).kind == "removed"
            app.control.insert("players", {"_id": "c", "name": "A"})
            added = await take()
            assert (added.id, added.before, added.fields) == ("c", "b", {"name": "A"})
            changes.close()
            assert await take() is None and await take() is None

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_changes_by_positions(run, app, face):
    async def main():
        async with opened(face, app) as client:
            await do(client.subscribe, "all")
            players = client.collection("players")
            changes = players.find(sort={"name": 1}).observe_indexes()
            take, rows = step(changes), []

            def name(key):
                return players.get(key)["name"]

            first = await take()
            assert first == DDPIndexChanges(True, (), (0, 1), (), (), ("a", "b"))
            first.apply(rows, name)
            assert rows == ["Ada", "Bob"]
            app.control.insert("players", {"_id": "c", "name": "Aaron"})
            change = await take()
            assert (change.inserted, change.ids, change.is_initial) == (
                (0,),
                ("c", "a", "b"),
                False,
            )
            change.apply(rows, name)
            with client.batch() as batch:
                batch.update("players", "c", {"$set": {"name": "Zoe"}})
                batch.remove("players", "a")
            change = await take()
            assert (change.deleted, change.ids) == ((1,), ("b", "c"))
            assert change.updated == ((0, 1),) and len(change.moved) == 1
            change.apply(rows, name)
            assert rows == ["Bob", "Zoe"]

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_results_that_begin_empty(run, face):
    async def main():
        async with offline(face) as client:
            players = client.collection("players")
            one_by_one, by_indexes = players.find().observe(), players.find().observe_indexes()
            results = players.results()
            assert await step(by_indexes)() == DDPIndexChanges(True, (), (), (), (), ())
            assert await step(results)() == []
            players.insert({"_id": "a"})
            first = await step(one_by_one)()
            assert (first.id, first.is_initial, first.is_last) == ("a", False, True)

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_a_slow_iteration_misses_nothing(run, face):
    """What waits for it becomes a difference."""

    async def main():
        async with offline(face) as client:
            players = client.collection("players")
            for name in "abc":
                players.insert({"_id": name, "n": 0})
            one_by_one = players.find(sort={"n": 1}).observe()
            by_indexes = players.find(sort={"n": 1}).observe_indexes()
            take = step(one_by_one)
            known = Result()
            for _ in range(3):
                known.apply(await take())
            rows, take_indexes = [], step(by_indexes)
            (await take_indexes()).apply(rows, lambda key: key)
            # The last change is heard after all others.
            done = threading.Event()
            barrier = players.observe(lambda change: done.set(), "end")
            for n in range(2000):
                players.update("b", {"$set": {"n": n}})
            players.remove("c")
            players.insert({"_id": "d", "n": 1000})
            players.insert({"_id": "end", "n": 5000})
            await asyncio.to_thread(done.wait)
            count = 0
            while len(known.order) < 4 or "c" in known.documents:
                known.apply(await take())
                count += 1
            assert known.order == ["a", "d", "b", "end"] and count == 4
            assert known.documents["b"] == {"n": 1999}
            (await take_indexes()).apply(rows, lambda key: key + "!")
            assert rows == ["a", "d!", "b!", "end!"]
            barrier.stop()

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_iterations_end(run, face):
    async def main():
        async with offline(face) as client:
            players = client.collection("players")
            players.insert({"_id": "a"})
            before = len(client._pending)  # the call
            for observe in (
                players.find().observe,
                players.find().observe_indexes,
                players.results,
            ):
                changes = observe()
                assert len(client._pending) == before + 1
                assert await step(changes)() is not None
                # The last reference ends it, as leaving a loop does.
                del changes
                # The thread that took the change may still be letting go of it.
                while len(client._pending) > before:
                    gc.collect()
                    await asyncio.sleep(0)
            if face is librealtime.DDPClient:
                async for _ in players.find().observe():
                    break
                changes = players.find().observe()
                assert len(client._pending) == before + 1
                await changes.aclose()
            else:
                for _ in players.find().observe():
                    break
                with contextlib.closing(players.find().observe()) as changes:
                    assert len(client._pending) == before + 1
            assert len(client._pending) == before and await step(changes)() is None
            # Closing the client ends all.
            changes = players.find("a").observe()
            take = step(changes)
            await take()
            waiting = asyncio.ensure_future(take())
            await asyncio.sleep(0)
            client.close()
            assert await waiting is None and await take() is None

    run(main())


def test_blocking_iterations_take_a_timeout():
    with contextlib.closing(sync.DDPClient(NOWHERE)) as client:
        players = client.collection("players")
        changes = players.find().observe()
        with pytest.raises(TimeoutError, match="nothing has changed"):
            changes.recv(0.01)
        players.insert({"_id": "a"})
        assert changes.recv(10).id == "a"
        changes.close()
        with pytest.raises(librealtime.StreamEnded):
            changes.recv()
        for options in ({"order": 1}, {"sort": "name"}):
            with pytest.raises((TypeError, librealtime.InvalidArgument)):
                players.results(**options)
        with pytest.raises(librealtime.InvalidArgument):
            players.find({"name": {"$no": 1}})
        assert not [one for one in client._pending if hasattr(one, "stop")]


@pytest.mark.parametrize("face", FACES)
def test_a_query_that_takes_too_long_ends(run, face):
    async def main():
        ends = Heard()
        async with offline(face, on_query_end=lambda *end: ends(end)) as client:
            players = client.collection("players")
            selector = {"name": {"$regex": "(x+x+)+y"}}
            changes, results = players.find(selector).observe(), players.results(selector)
            take, take_result = step(changes), step(results)
            assert await take_result() == []
            query = players.observe(lambda change: None, selector)
            other = players.observe(lambda change: None)
            with client.batch() as batch:
                for _ in range(8):
                    batch.insert(players, {"name": "x" * 300_000})
            for one in (take, take_result):
                with pytest.raises(librealtime.InvalidArgument, match="steps"):
                    await one()
            told = [await ends.next() for _ in range(3)]
            assert {name for name, _ in told} == {"players"}
            assert isinstance(query.error, librealtime.InvalidArgument) and other.error is None
            # The client lives on.
            assert len(players) == 8 and client.status == "offline"

    run(main())
