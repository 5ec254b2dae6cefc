"""What saving objects writes to documents."""

# The annotations of models are evaluated, also by Python 3.9.
# ruff: noqa: UP045

from __future__ import annotations

import copy
import dataclasses
import math
from dataclasses import dataclass, field
from typing import Optional

import pytest
from meteor import Heard
from meteor_models import (
    PLAYERS,
    Author,
    Avatar,
    Book,
    Cover,
    Message,
    Player,
    Tag,
    box,
    oid,
)

import librealtime
from librealtime.ddp_models import DDPModelError, Reference, random_id, reference


def test_an_inserted_object_is_a_document():
    with box() as there:
        batch = there.models.save(Player("Francis Crick", 35, id="crick"), Player(id="watson"))
        assert len(batch.calls) == 2 and batch.calls[0].stub_value == "crick"
        assert there.document("players", "crick") == {"name": "Francis Crick", "score": 35}
        assert there.document("players", "watson") == {"score": 0}
        watson = there.models.get(Player, "watson")
        watson.name = "Watson"
        there.models.save(watson)
        assert there.document("players", "watson") == {"score": 0, "name": "Watson"}
        watson.name = None
        there.models.save(watson)
        assert there.document("players", "watson") == {"score": 0}


def test_only_changed_fields_are_written():
    with box(players=PLAYERS) as there:
        models = there.models
        lovelace = models.get(Player, "lovelace")
        # The server changes another field, and one that the model does not have.
        there.set("players", "lovelace", name="Ada King", rank=1)
        lovelace.score = 30
        batch = models.save(lovelace)
        assert len(batch.calls) == 1 and batch.calls[0].stub_value == 1
        wanted = {"name": "Ada King", "score": 30, "rank": 1}
        assert there.document("players", "lovelace") == wanted
        lovelace.score = 25 + 5
        assert models.save(lovelace, lovelace).calls == []


def test_copies_of_objects():
    @dataclass(frozen=True)
    class Frozen:
        __collection__ = "players"
        name: str = ""
        score: int = 0
        id: str = field(default_factory=random_id)

    with box(players=[{"_id": "a", "name": "Ada", "score": 1, "rank": 5}]) as there:
        models = there.client.models(Frozen)
        ada = models.get(Frozen, "a")
        # A successor that was not read: what differs from the document is written.
        batch = models.save(dataclasses.replace(ada, score=2))
        assert len(batch) == 1 and there.document("players", "a") == {
            "name": "Ada",
            "score": 2,
            "rank": 5,
        }
        # It was read before, and is unchanged: nothing is written.
        assert models.save(copy.copy(ada)).calls == [] and models.save(ada).calls == []
        models.save(Frozen("Bob", id="b"))
        assert there.document("players", "b") == {"name": "Bob", "score": 0}


def test_removed_objects_are_gone():
    with box(players=PLAYERS) as there:
        lovelace = there.models.get(Player, "lovelace")
        assert len(there.models.save(removed=[lovelace])) == 1
        assert there.document("players", "lovelace") is None
        assert there.models.save(removed=[lovelace]).calls == []


def test_what_cannot_be_saved():
    with box(players=PLAYERS) as there:
        models = there.models
        gauss, gone = models.get(Player, "gauss"), models.get(Player, "turing")
        there.client.collection("players").remove("turing")
        gone.score = 1
        with pytest.raises(librealtime.RealtimeError, match="Player turing is not there"):
            models.save(Player(id="new"), gone)
        # If one part cannot be saved, nothing is.
        assert models.get(Player, "new") is None and models.count(Player) == 3
        gauss.id = "other"
        with pytest.raises(librealtime.InvalidArgument, match="the id of a Player cannot be"):
            models.save(gauss)
        with pytest.raises(TypeError):
            models.save(Player(), order=1)
        assert models.count(Player) == 3


def test_references_that_are_none():
    with box() as there:
        for fields, text in (
            ({"avatar": 5}, "avatar: an int is not a reference"),
            ({"avatar": "a"}, "avatar: a str is not a reference"),
            ({"avatar": [Reference("a")]}, "avatar: a list is not a reference"),
            ({"avatar": Reference(5)}, "avatar: a Reference with the id 5 is not a reference"),
            ({"sentMessages": Reference("a")}, "sentMessages: a Reference is not a list of"),
            ({"sentMessages": "abc"}, "sentMessages: a str is not a list of references"),
            ({"sentMessages": [None]}, "sentMessages: null is not a reference"),
        ):
            with pytest.raises(DDPModelError) as raised:
                there.models.save(Player(), Player(**fields))
            assert str(raised.value).startswith(f"Player.{text}")
            assert f"its value is {next(iter(fields.values()))!r}" in str(raised.value)
        assert there.models.count(Player) == 0


def test_saving_mends_a_document_that_does_not_fit():
    with box(
        players=[{"_id": "a", "score": "many", "rank": 1, "name": "Ada", "avatarId": "x"}],
        avatars=[{"_id": "x", "playerId": "a"}],
    ) as there:
        there.models.save(Player(score=5, id="a"))
        assert there.document("players", "a") == {"score": 5, "rank": 1}
        assert there.document("avatars", "x") == {}


@dataclass
class Place:
    x: Optional[int] = 1


@dataclass
class Lamp:
    color: Optional[str] = "red"
    place: Optional[Place] = field(default_factory=Place)
    heat: float = math.nan
    id: str = field(default_factory=random_id)


def test_none_is_null_if_the_default_is_not():
    """A missing field would have the default."""

    with box() as there:
        models, lamps = there.client.models(Lamp), there.client.collection("lamps")
        lamp = Lamp(color=None, heat=1, id="a")
        models.save(lamp)
        assert there.document("lamps", "a") == {"color": None, "place": {"x": 1}, "heat": 1}
        assert models.get(Lamp, "a") == lamp
        lamp.color, lamp.place, lamp.heat = "blue", None, math.nan
        models.save(lamp)
        read = models.get(Lamp, "a")
        assert (read.color, read.place) == ("blue", None) and math.isnan(read.heat)
        assert models.save(read).calls == []
        lamps.insert({"_id": "b", "place": {"x": 2, "other": True}, "more": 1})
        published = models.get(Lamp, "b")
        assert published.place == Place(2) and published.color == "red"
        # An object of its own is one field.
        published.place.x = 3
        models.save(published)
        assert there.document("lamps", "b") == {"place": {"x": 3}, "more": 1}


def test_a_set_is_one_notification():
    with box(players=PLAYERS) as there:
        heard = Heard()
        there.client.on_change = heard
        models = there.models
        gauss = models.get(Player, "gauss")
        gauss.score = 10
        crick = Player("Francis Crick", 35, id="crick")
        batch = models.save(gauss, crick, removed=[models.get(Player, "shannon")])
        assert len(batch.calls) == 3
        there.client.collection("players").insert({"_id": "end"})
        seen = []
        while not seen or seen[-1].id != "end":
            seen.append(heard.wait())
        seen = seen[-4:-1]
        assert [one.is_last for one in seen] == [False, False, True]
        by_id = {one.id: one for one in seen}
        assert by_id["crick"].fields == {"name": "Francis Crick", "score": 35}
        assert (by_id["gauss"].kind, by_id["gauss"].fields) == ("changed", {"score": 10})
        assert by_id["shannon"].kind == "removed"


# Relationships, two-way storage.


def test_one_to_one():
    with box(players=PLAYERS) as there:
        models = there.models
        lovelace, gauss = models.get(Player, "lovelace"), models.get(Player, "gauss")
        avatar = Avatar(id="a1")
        lovelace.avatar = reference(avatar)
        models.save(lovelace, avatar)
        assert there.document("players", "lovelace")["avatarId"] == "a1"
        assert there.document("avatars", "a1") == {"playerId": "lovelace"}
        # Another player takes it, and then gets another one from the avatar's side.
        gauss.avatar = reference(avatar)
        models.save(gauss)
        assert "avatarId" not in there.document("players", "lovelace")
        assert there.document("players", "gauss")["avatarId"] == "a1"
        assert there.document("avatars", "a1") == {"playerId": "gauss"}
        models.save(Avatar(player=Reference("gauss"), id="a2"))
        assert there.document("players", "gauss")["avatarId"] == "a2"
        assert there.document("avatars", "a1") == {}


def test_one_to_many():
    with box(players=PLAYERS) as there:
        models = there.models
        lovelace, gauss = models.get(Player, "lovelace"), models.get(Player, "gauss")
        one, two = Message(id="m1"), Message(id="m2")
        lovelace.sentMessages = [reference(one), reference(two), reference(one)]
        models.save(lovelace, one, two)
        assert there.document("messages", "m1") == {"senderId": "lovelace"}
        assert there.document("messages", "m2") == {"senderId": "lovelace"}
        assert there.document("players", "lovelace")["sentMessageIds"] == ["m1", "m2"]
        # A message has one sender: it leaves the old one. Objects stand for references.
        gauss.sentMessages = [two]
        models.save(gauss)
        assert there.document("messages", "m2") == {"senderId": "gauss"}
        assert there.document("players", "lovelace")["sentMessageIds"] == ["m1"]
        # And the same from the message's side.
        first = models.get(Message, "m1")
        first.sender = Reference("gauss")
        models.save(first)
        assert "sentMessageIds" not in there.document("players", "lovelace")
        assert there.document("players", "gauss")["sentMessageIds"] == ["m2", "m1"]


def test_many_to_many():
    with box(players=PLAYERS) as there:
        models = there.models
        lovelace, gauss = models.get(Player, "lovelace"), models.get(Player, "gauss")
        one, two = Message(id="m1"), Message(id="m2")
        lovelace.receivedMessages = [reference(one), reference(two)]
        gauss.receivedMessages = [reference(two)]
        models.save(lovelace, gauss, one, two)
        assert there.document("messages", "m1") == {"receiverIds": ["lovelace"]}
        assert there.document("messages", "m2") == {"receiverIds": ["lovelace", "gauss"]}
        assert there.document("players", "gauss")["receivedMessageIds"] == ["m2"]
        message = models.get(Message, "m2")
        del message.receivers[0]
        models.save(message)
        assert there.document("players", "lovelace")["receivedMessageIds"] == ["m1"]
        assert there.document("messages", "m2") == {"receiverIds": ["gauss"]}


def test_no_references_have_no_field():
    with box(
        players=[{"_id": "a", "avatarId": "a1", "sentMessageIds": ["m1"]}],
        avatars=[{"_id": "a1", "playerId": "a"}],
        messages=[{"_id": "m1", "senderId": "a"}],
    ) as there:
        player = there.models.get(Player, "a")
        player.avatar, player.sentMessages = None, []
        there.models.save(player)
        assert there.document("players", "a") == {}
        assert there.document("avatars", "a1") == {} == there.document("messages", "m1")


def test_new_objects_refer_to_each_other():
    with box() as there:
        sender = Player(id="p")
        there.models.save(Message(sender=reference(sender), id="m"), sender)
        assert there.document("messages", "m") == {"senderId": "p"}
        assert there.document("players", "p") == {"score": 0, "sentMessageIds": ["m"]}


def test_the_other_end_may_be_missing():
    """Its document may not have come yet."""
    with box() as there:
        there.models.save(Message(sender=Reference("p"), id="m"))
        assert there.document("messages", "m") == {"senderId": "p"}
        assert there.document("players", "p") is None


def test_the_order_of_references_is_the_callers():
    with box(players=[{"_id": "a", "sentMessageIds": ["m1", "m2", "m3"]}]) as there:
        player = there.models.get(Player, "a")
        player.sentMessages.reverse()
        assert len(there.models.save(player)) == 1
        assert there.document("players", "a") == {"sentMessageIds": ["m3", "m2", "m1"]}


def test_a_removed_object_is_forgotten():
    with box(
        players=[{"_id": "a", "avatarId": "a1", "sentMessageIds": ["m1", "m2"]}],
        avatars=[{"_id": "a1", "playerId": "a"}],
        messages=[{"_id": "m1", "senderId": "a"}, {"_id": "m2", "senderId": "a"}],
    ) as there:
        there.models.save(removed=[Avatar(id="a1"), Message(id="m1")])
        assert there.document("players", "a") == {"sentMessageIds": ["m2"]}
        there.models.save(removed=(Player(id="a"),))
        assert there.document("messages", "m2") == {}


# Relationships, one-way storage.

LIBRARY = {
    "books": [{"_id": oid("1")}, {"_id": oid("2")}],
    "writers": [{"_id": "ada"}],
    "covers": [{"_id": "red"}, {"_id": "blue"}],
    "tags": [{"_id": "math"}, {"_id": "new"}],
}


def test_the_end_with_storage_is_written():
    with box(**LIBRARY) as there:
        models = there.models
        one, two = models.all(Book)
        ada, math_, red = (
            models.get(Author, "ada"),
            models.get(Tag, "math"),
            models.get(Cover, "red"),
        )
        ada.books = [reference(one), reference(two)]
        math_.books = [reference(two)]
        red.book = reference(one)
        models.save(ada)
        models.save(math_)
        models.save(red)
        assert there.document("books", oid("1")) == {"authorId": "ada", "coverId": "red"}
        assert there.document("books", oid("2")) == {"authorId": "ada", "labels": ["math"]}
        assert there.document("writers", "ada") == {} == there.document("covers", "red")
        # The cover of a book is replaced from both ends, and an author loses a book.
        one.cover = Reference("blue")
        models.save(one)
        assert [cover.book for cover in models.all(Cover)] == [None, reference(one)]
        blue = models.get(Cover, "blue")
        blue.book = reference(two)
        models.save(blue)
        assert there.document("books", oid("1")) == {"authorId": "ada"}
        ada = models.get(Author, "ada")
        ada.books.remove(reference(one))
        models.save(ada)
        assert there.document("books", oid("1")) == {}
        assert there.document("books", oid("2")) == {
            "authorId": "ada",
            "labels": ["math"],
            "coverId": "blue",
        }


def test_many_changes_of_the_end_without_storage():
    """Each book has one cover, and only books know: every change must see those before it."""
    with box(**LIBRARY) as there:
        models = there.models
        one, two = models.all(Book)
        red, blue = models.all(Cover)
        red.book = reference(one)
        blue.book = reference(one)
        again = models.get(Cover, "red")
        again.book = reference(two)
        green = Cover(book=reference(two), id="green")
        models.save(red, blue, again, green, removed=[one])
        assert there.document("books", oid("1")) is None
        assert there.document("books", oid("2")) == {"coverId": "green"}
        assert [cover.book for cover in models.all(Cover)] == [None, None, reference(two)]


def test_a_new_object_without_storage():
    with box(**LIBRARY) as there:
        book = Book("New", id=oid("3"))
        there.models.save(Author([reference(book)], id="bob"), book)
        assert there.document("books", oid("3")) == {"title": "New", "authorId": "bob"}
        text = "Book 444444444444444444444444 is not there, and only it could contain a reference"
        with pytest.raises(librealtime.InvalidArgument, match=text):
            there.models.save(Tag([Reference(oid("4"))], id="t"))
        assert there.document("tags", "t") is None


def test_removing_with_one_way_storage():
    """Nobody is asked to forget an object that only its own document knows."""
    with box(**LIBRARY) as there:
        there.set("books", oid("1"), authorId="ada")
        assert len(there.models.save(removed=[Author(id="ada")])) == 1
        book = there.models.get(Book, oid("1"))
        assert book.author == Reference("ada")
        assert there.models.follow(Author, book.author) is None


def test_saving_in_a_stub():
    with box(players=PLAYERS) as there:
        models = there.models

        @there.client.stub("promote")
        def promote(stub):
            gauss = models.get(Player, "gauss")
            gauss.score += 100
            models.save(gauss, Message("Well done.", id="m"))

        there.client.send("promote")
        assert models.get(Player, "gauss").score == 105
        assert there.document("messages", "m") == {"body": "Well done."}


def test_objects_with_slots():
    """They cannot keep what was read: what differs from the document is written."""

    @dataclass
    class Slotted:
        __slots__ = ("id", "score")
        id: str
        score: int

    with box() as there:
        models = there.client.models(Slotted)
        one = Slotted("s", 1)
        models.save(one)
        one.score = 2
        assert len(models.save(one)) == 1 and there.document("slotteds", "s") == {"score": 2}
