"""Queries whose result is observed as objects."""

from __future__ import annotations

import pytest
from meteor import FACES, offline
from meteor_models import PLAYERS, Author, Avatar, Box, Player, box, oid
from test_ddp_live import step
from test_ddp_model_changes import told

import librealtime
from librealtime.ddp_models import DDPModelChanges, Reference


def observed(client):
    """The observations that have not ended."""
    return [one for one in client._pending if hasattr(one, "stop")]


@pytest.mark.parametrize("face", FACES)
def test_the_result_of_a_query(run, face):
    async def main():
        async with offline(face) as client:
            there = Box(client, {"players": PLAYERS})
            changes = there.models.observe(
                Player, {"score": {"$gte": 10}}, sort={"score": -1}, limit=2
            )
            take = step(changes)
            first = await take()
            assert first.is_initial and first.ids == ["lovelace", "turing"]
            assert first.inserted[0] == Player("Ada Lovelace", 25, id="lovelace")
            assert (first.updated, first.deleted) == ([], [])
            there.set("players", "turing", score=30)
            second = await take()
            assert not second.is_initial and second.ids == ["turing", "lovelace"]
            assert [one.score for one in second.updated] == [30] and not second.inserted
            client.collection("players").remove("lovelace")
            third = await take()
            assert third.ids == ["turing", "shannon"] and third.deleted == ["lovelace"]
            assert [one.id for one in third.inserted] == ["shannon"]
            # A target comes: the object that refers to it is updated, once.
            there.models.save(Avatar(player=Reference("turing"), id="a1"))
            fourth = await take()
            assert told(fourth) == "*turing" and fourth.updated[0].avatar == Reference("a1")
            client.collection("avatars").remove("a1")
            fifth = await take()
            assert told(fifth) == "*turing" and fifth.updated[0].avatar == Reference("a1")
            changes.close()
            assert await take() is None and not observed(client)

    run(main())


def test_relationships_without_storage_are_observed():
    with box(writers=[{"_id": "ada"}, {"_id": "bob"}]) as there:
        changes = there.models.observe(Author, sort={"_id": 1})
        assert told(changes.recv(30)) == "+ada +bob"
        books = there.client.collection("books")
        books.insert({"_id": oid("1"), "authorId": "bob"})
        change = changes.recv(30)
        assert told(change) == "*bob" and change.updated[0].books == [Reference(oid("1"))]
        books.update(oid("1"), {"$set": {"authorId": "ada"}})
        assert told(changes.recv(30)) == "*ada *bob"
        books.update(oid("1"), {"$set": {"title": "T"}})
        books.remove(oid("1"))
        assert told(changes.recv(30)) == "*ada"


@pytest.mark.parametrize("face", FACES)
def test_documents_that_do_not_fit_are_left_out(run, face, caplog):
    async def main():
        async with offline(face) as client:
            documents = [{"_id": "a", "score": 1}, {"_id": "b", "score": "many"}, {"_id": "c"}]
            there = Box(client, {"players": documents})
            take = step(there.models.observe(Player))
            first = await take()
            assert told(first) == "+a +c" and first.ids == ["a", "c"] and first.is_initial
            players = client.collection("players")
            # An object that ceases to fit, one that begins to fit, and one that never does.
            with client.batch() as batch:
                batch.update(players, "a", {"$set": {"score": None}})
                batch.update(players, "b", {"$set": {"score": 2}})
                batch.insert(players, {"_id": "d", "score": []})
            second = await take()
            assert told(second) == "+b -a" and second.ids == ["b", "c"]
            # Nobody hears of what has happened to those that were left out.
            players.remove("a")
            there.set("players", "d", score={})
            there.set("players", "c", score=3)
            third = await take()
            assert told(third) == "*c" and third.ids == ["b", "c"]

    run(main())
    said = {one.partition(": ")[2] for one in caplog.messages}
    assert said >= {
        "players.a.score: null is not an int",
        "players.b.score: a str is not an int",
        "players.d.score: a list is not an int",
    }


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("documents", [[], [{"_id": "a", "score": "many"}]])
def test_a_result_that_begins_empty(run, face, documents):
    async def main():
        async with offline(face) as client:
            there = Box(client, {"players": documents})
            take = step(there.models.observe(Player))
            first = await take()
            assert first == DDPModelChanges(True, [], [], [], [])
            there.client.collection("players").insert({"_id": "b"})
            second = await take()
            assert told(second) == "+b" and not second.is_initial

    run(main())


def test_queries_with_a_fault():
    with box() as there:
        with pytest.raises(librealtime.InvalidArgument):
            there.models.observe(Player, {"a": {"$no": 1}})
        assert not observed(there.client)


def test_observations_end_with_their_iteration():
    with box(players=PLAYERS) as there:
        for _ in there.models.observe(Player):
            break
        there.models.changes()
        assert not observed(there.client)
        # Changes are still reported to the program.
        heard = []
        there.client.on_change = heard.append
        barrier = there.client.collection("players").find("end").observe()
        there.client.collection("players").insert({"_id": "end"})
        barrier.recv(30)
        assert heard[-1].id == "end"
