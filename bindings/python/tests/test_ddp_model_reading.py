"""Documents as objects of dataclasses: reading."""

# The annotations of models are evaluated, also by Python 3.9.

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from meteor_models import PLAYERS, Author, Avatar, Book, Cover, Message, Player, Tag, box, oid

import librealtime
from librealtime._ddp import models as ddp_models
from librealtime.ddp_models import (
    DDPModelError,
    Reference,
    reference,
)


def test_all_objects_of_a_model():
    with box(players=PLAYERS) as there:
        models = there.models
        found = models.all(Player)
        assert [one.id for one in found] == ["lovelace", "gauss", "shannon", "turing"]
        assert found[0] == Player(id="lovelace", name="Ada Lovelace", score=25)
        assert models.count(Player) == 4 and models.count(Player, {"score": {"$lt": 10}}) == 1
        assert models.all(Avatar) == []
        lowest = models.all(Player, {"score": {"$lt": 25}}, sort={"score": 1}, skip=1, limit=1)
        assert [one.id for one in lowest] == ["shannon"]
        assert models.get(Player, "turing").name == "Alan Turing"
        assert models.get(Player, "unknown") is None
        with pytest.raises(librealtime.InvalidArgument):
            models.all(Player, {"a": {"$no": 1}})


def test_fields_that_documents_lack():
    created = datetime(2024, 1, 2, tzinfo=timezone.utc)
    with box(
        players=[{"_id": "a", "other": True}, {"_id": "b", "name": None}],
        messages=[{"_id": "m", "createdAt": created}],
    ) as there:
        assert there.models.get(Player, "a") == Player(id="a", name=None, score=0)
        assert there.models.get(Player, "b").name is None
        assert there.models.get(Message, "m").creation_date == created


def test_fields_of_another_kind():
    with box(players=[{"_id": "a", "score": "many"}], books=[{"_id": "no ObjectID"}]) as there:
        with pytest.raises(DDPModelError, match=r"^players\.a\.score: a str is not an int$"):
            there.models.get(Player, "a")
        assert isinstance(DDPModelError(0, ""), (ValueError, librealtime.RealtimeError))
        there.set("players", "a", score=None)
        with pytest.raises(DDPModelError, match="null is not an int"):
            there.models.get(Player, "a")
        with pytest.raises(DDPModelError, match=r"books\..*\.id: a str is not an ObjectID"):
            there.models.get(Book, "no ObjectID")


def test_others_are_read_if_a_document_does_not_fit(caplog):
    documents = [{"_id": "a"}, {"_id": "b", "score": "many"}, {"_id": "c", "avatarId": "x"}]
    avatars = [{"_id": "x", "url": 5, "playerId": "c"}]
    with box(players=documents, avatars=avatars) as there:
        models = there.models
        for _ in range(2):
            assert [one.id for one in models.all(Player)] == ["a", "c"]
        assert [one.id for one in models.follow(Player, [Reference(one) for one in "abc"])] == [
            "a",
            "c",
        ]
        assert models.count(Player) == 3
        with pytest.raises(DDPModelError, match=r"^avatars\.x\.url: an int is not a str$"):
            models.follow(Avatar, models.get(Player, "c").avatar)
        # Each is logged once until it changes.
        there.set("players", "b", score=1)
        assert len(models.all(Player)) == 3
        there.set("players", "b", score=None)
        assert len(models.all(Player)) == 2
        there.set("players", "b", score="many")
        assert len(models.all(Player)) == 2
    said = "a document does not fit its model, and is left out: players.b.score: "
    whys = ["a str is not an int", "null is not an int", "a str is not an int"]
    assert caplog.messages == [said + why for why in whys]
    assert {(one.name, one.levelname) for one in caplog.records} == {("librealtime", "WARNING")}


def test_what_leads_nowhere():
    with box(players=PLAYERS) as there:
        follow = there.models.follow
        assert follow(Player, Reference("nobody")) is None and follow(Player, []) == []
        # Objects stand for references.
        assert follow(Player, Player(id="gauss")).score == 5
        assert [one.score for one in follow(Player, (Player(id="gauss"),))] == [5]
        for wrong in ("gauss", 5, ["gauss"]):
            with pytest.raises(TypeError, match=r"^follow takes a Reference or a list of them"):
                follow(Player, wrong)


def test_what_was_logged_is_forgotten(caplog, monkeypatch):
    """So that it takes no memory without a limit."""
    monkeypatch.setattr(ddp_models, "_MOST_LOGGED", 2)
    with box(players=[{"_id": one, "score": ""} for one in "abc"]) as there:
        assert there.models.all(Player) == []
        assert len(there.models._logged) == 1 and len(caplog.messages) == 3


MAIL = {
    "players": [
        {"_id": "lovelace", "avatarId": "avatar1", "sentMessageIds": ["m1", "m2"]},
        {"_id": "gauss", "sentMessageIds": ["m3"], "receivedMessageIds": ["m2", "m1"]},
    ],
    "avatars": [{"_id": "avatar1", "playerId": "lovelace"}],
    "messages": [
        {"_id": "m1", "senderId": "lovelace", "receiverIds": ["gauss"]},
        {"_id": "m2", "senderId": "lovelace", "receiverIds": ["gauss", "turing"]},
        {"_id": "m3", "senderId": "gauss"},
    ],
}


def test_relationships_with_two_way_storage():
    with box(**MAIL) as there:
        models = there.models
        lovelace, gauss = models.all(Player)
        assert models.follow(Avatar, lovelace.avatar).id == "avatar1"
        assert models.follow(Player, models.get(Avatar, "avatar1").player) == lovelace
        assert gauss.avatar is None and models.follow(Avatar, gauss.avatar) is None
        assert [one.id for one in models.follow(Message, lovelace.sentMessages)] == ["m1", "m2"]
        received = models.follow(Message, gauss.receivedMessages)
        assert [one.id for one in received] == ["m2", "m1"]
        assert models.follow(Player, models.get(Message, "m1").sender) == lovelace


def test_objects_that_are_not_there():
    with box(**MAIL) as there:
        models, players = there.models, there.client.collection("players")
        # Its other receiver has not come yet.
        message = models.get(Message, "m2")
        assert message.receivers == [Reference("gauss"), Reference("turing")]
        assert [one.id for one in models.follow(Player, message.receivers)] == ["gauss"]
        there.client.collection("avatars").remove("avatar1")
        lovelace = models.get(Player, "lovelace")
        assert lovelace.avatar == Reference("avatar1")
        assert models.follow(Avatar, lovelace.avatar) is None
        players.insert({"_id": "turing"})
        assert [one.id for one in models.follow(Player, message.receivers)] == ["gauss", "turing"]


def test_null_means_no_references():
    with box(
        players=[
            {"_id": "a", "avatarId": None, "sentMessageIds": None},
            {"_id": "b", "sentMessageIds": [], "avatarId": ["x"], "receivedMessageIds": "y"},
            {"_id": "c", "sentMessageIds": [5, "m"], "avatarId": 5},
        ]
    ) as there:
        a, b, c = there.models.all(Player)
        assert a.avatar is None and a.sentMessages == []
        assert b.avatar is None and b.sentMessages == []
        assert c.sentMessages == [Reference("m")] and c.avatar is None


LIBRARY = {
    "books": [
        {"_id": oid("1"), "authorId": "ada", "labels": ["math", "new"], "coverId": "red"},
        {"_id": oid("2"), "authorId": "ada", "labels": ["math"], "previousId": oid("1")},
    ],
    "writers": [{"_id": "ada"}, {"_id": "bob"}],
    "covers": [{"_id": "red"}, {"_id": "blue"}],
    "tags": [{"_id": "math"}, {"_id": "new"}],
}


def test_relationships_with_one_way_storage():
    with box(**LIBRARY) as there:
        models = there.models
        one, two = models.all(Book)
        authors = models.all(Author)
        assert [writer.books for writer in authors] == [[reference(one), reference(two)], []]
        assert [len(tag.books) for tag in models.all(Tag)] == [2, 1]
        assert [cover.book for cover in models.all(Cover)] == [reference(one), None]
        assert len(models.get(Author, "ada").books) == 2
        assert models.follow(Author, one.author).id == "ada"
        assert [tag.id for tag in models.follow(Tag, one.tags)] == ["math", "new"]
        assert models.follow(Cover, two.cover) is None
        assert models.follow(Book, two.previous) == one
