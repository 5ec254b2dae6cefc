"""Which objects are reported when documents change, and objects as parameters."""

# The annotations of models are evaluated, also by Python 3.9.
# ruff: noqa: RUF009, UP045

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Optional

import pytest
from meteor import FACES, NOWHERE, do, ended, offline, opened
from meteor_models import PLAYERS, Box, Message, Player, box, oid
from test_ddp_live import step

import librealtime
from librealtime import DDPError, sync
from librealtime.ddp_models import (
    Reference,
    random_id,
    reference,
    to_many,
    to_one,
)

MAIL = {
    "players": [
        {"_id": "ada", "sentMessageIds": ["m1"]},
        {"_id": "bob"},
        {"_id": "cid"},
    ],
    "messages": [{"_id": "m1", "senderId": "ada"}, {"_id": "m2"}],
    "scientists": [{"_id": "s"}],
    "writers": [{"_id": "w"}],
}


def told(changes: Any) -> str:
    """What a change says, as `+a *b -c`: inserted, updated and deleted ids, each in order."""
    if changes is None:
        return "end"
    parts = []
    for sign, found in (("+", changes.inserted), ("*", changes.updated), ("-", changes.deleted)):
        parts += sorted(f"{sign}{getattr(one, 'id', one)}" for one in found)
    return " ".join(parts)


def insert(collection, id_, **fields):
    return lambda stub: stub.insert(collection, {"_id": id_, **fields})


def put(collection, id_, **fields):
    return lambda stub: stub.update(collection, id_, {"$set": fields})


def unset(collection, id_, name):
    return lambda stub: stub.update(collection, id_, {"$unset": {name: ""}})


def remove(collection, id_):
    return lambda stub: stub.remove(collection, id_)


CASES = {
    "documents are objects": (
        "+dan *bob -cid",
        insert("players", "dan"),
        put("players", "bob", score=1),
        remove("players", "cid"),
    ),
    "both ends of a reference to one": ("*bob *m2", put("messages", "m2", senderId="bob")),
    "the old and the new end": ("*ada *bob *m1", put("messages", "m1", senderId="bob")),
    "the old end of a cleared reference": ("*ada *m1", unset("messages", "m1", "senderId")),
    "both ends of a reference to many": (
        "*bob *cid *m2",
        put("messages", "m2", receiverIds=["bob", "cid"]),
    ),
    "only the references that differ": (
        "*ada *m2",
        put("players", "ada", sentMessageIds=["m1", "m2"]),
    ),
    "an inserted object updates that to which it refers": (
        "+m3 *ada",
        insert("messages", "m3", senderId="ada"),
    ),
    "a deleted object updates both neighbours": ("*ada -m1", remove("messages", "m1")),
    "an inserted object is not updated too": (
        "+dan +m3",
        insert("players", "dan", sentMessageIds=["m3"]),
        insert("messages", "m3", senderId="dan"),
    ),
    "a deleted object is not updated too": (
        "-ada -m1",
        remove("players", "ada"),
        remove("messages", "m1"),
    ),
    "a reference to an object that is not there": (
        "*m2",
        put("messages", "m2", senderId="nobody"),
    ),
    "a change that is undone": (
        "*cid",
        put("players", "bob", score=1),
        unset("players", "bob", "score"),
        put("players", "cid", score=1),
    ),
    "a collection without a model": (
        "*cid",
        insert("scientists", "t"),
        put("scientists", "s", a=1),
        put("players", "cid", score=1),
    ),
    "one-way storage": ("+111111111111111111111111 *w", insert("books", oid("1"), authorId="w")),
}


@pytest.mark.parametrize("name", CASES)
def test_changes_of_objects(name):
    report, *writes = CASES[name]
    with box(**MAIL) as there:

        @there.client.stub("write")
        def write(stub):
            for one in writes:
                one(stub)

        changes = there.models.changes()
        there.client.send("write")
        assert told(changes.recv(30)) == report


def test_a_late_target_updates_what_refers_to_it():
    with box(
        messages=[
            {"_id": "m1", "senderId": "ada", "receiverIds": ["ada", "bob"]},
            {"_id": "m2", "receiverIds": ["bob"]},
        ]
    ) as there:
        changes = there.models.changes()
        players = there.client.collection("players")
        players.insert({"_id": "ada"})
        assert told(changes.recv(30)) == "+ada *m1"
        players.insert({"_id": "bob"})
        assert told(changes.recv(30)) == "+bob *m1 *m2"
        # It goes again.
        players.remove("bob")
        assert told(changes.recv(30)) == "*m1 *m2 -bob"
        # A reference that is gone is forgotten.
        there.client.collection("messages").update("m2", {"$unset": {"receiverIds": ""}})
        assert told(changes.recv(30)) == "*m2"
        players.insert({"_id": "bob"})
        assert told(changes.recv(30)) == "+bob *m1"


def test_saving_reports_once():
    with box(players=PLAYERS) as there:
        models = there.models
        changes = models.changes()
        message, gauss = Message(id="m"), models.get(Player, "gauss")
        gauss.sentMessages = [reference(message)]
        models.save(message, gauss, removed=[models.get(Player, "turing")])
        report = changes.recv(30)
        assert report.inserted == [(Message, "m")] and report.inserted[0].model is Message
        assert report.updated == [(Player, "gauss")] and report.deleted == [(Player, "turing")]


@pytest.mark.parametrize("face", FACES)
def test_a_slow_iteration_misses_no_object(run, face):
    async def main():
        async with offline(face) as client:
            there = Box(client, {"players": PLAYERS})
            changes = there.models.changes()
            barrier = there.models.changes()
            players = client.collection("players")
            players.insert({"_id": "new"})
            players.update("new", {"$set": {"score": 1}})
            players.insert({"_id": "brief"})
            players.remove("brief")
            players.update("gauss", {"$set": {"score": 1}})
            players.update("gauss", {"$set": {"score": 2}})
            players.remove("gauss")
            players.remove("turing")
            players.insert({"_id": "turing"})
            players.insert({"_id": "last"})
            while "+last" not in told(await step(barrier)()):
                pass
            assert told(await step(changes)()) == "+last +new *turing -gauss"
            waiting = asyncio.ensure_future(step(changes)())
            await asyncio.sleep(0)
            client.close()
            assert told(await waiting) == "end"

    run(main())


# With a server.


@dataclass
class TodoList:
    __collection__ = "lists"
    name: str = ""
    todos: list[Reference[Todo]] = to_many(inverse="list", storage=False)
    id: str = field(default_factory=random_id)


@dataclass
class Todo:
    text: str = ""
    done: bool = False
    due: Optional[datetime] = None
    picture: Optional[bytes] = None
    list: Optional[Reference[TodoList]] = to_one(inverse="todos")
    id: str = field(default_factory=random_id)


@pytest.fixture
def todos_app(app):
    control = app.control
    for name in ("lists", "todos"):
        control.collection(name, insert=True, update=True, remove=True)
        for document in control.find(name):
            control.remove(name, document["_id"])
    control.insert("lists", {"_id": "l", "name": "Groceries"})
    control.insert(
        "todos",
        {"_id": "t1", "text": "milk", "listId": "l", "due": {"$date": 1500}, "more": 1},
        {"_id": "t2", "text": "eggs", "listId": "l", "picture": {"$binary": "AQI="}},
    )
    control.publication("todos", cursors=[{"collection": "lists"}, {"collection": "todos"}])
    selected = {"collection": "todos", "selector": {"listId": {"$param": 0}}}
    control.publication("todosOf", cursors=[selected])
    control.method("echo", [{"op": "return", "value": [{"$param": 0}, {"$param": 1}]}])
    return app


@pytest.mark.parametrize("face", FACES)
def test_objects_of_the_server(run, todos_app, face):
    async def main():
        async with opened(face, todos_app) as client:
            models = client.models(Todo)
            await do(client.subscribe, "todos")
            (groceries,) = models.all(TodoList)
            milk, eggs = models.follow(Todo, groceries.todos)
            assert (milk.text, milk.due) == ("milk", datetime.fromtimestamp(1.5, timezone.utc))
            assert eggs.picture == b"\x01\x02" and milk.picture is None and not eggs.done
            assert models.follow(TodoList, milk.list) == groceries
            milk.done = True
            bread = Todo("bread", list=reference(groceries), id="t3")
            batch = models.save(milk, bread, removed=[eggs])
            assert [one.text for one in models.all(Todo)] == ["milk", "bread"]
            assert await ended(batch) == ["t3", 1, 1]
            assert todos_app.control.find("todos") == [
                {
                    "_id": "t1",
                    "text": "milk",
                    "listId": "l",
                    "due": {"$date": 1500},
                    "more": 1,
                    "done": True,
                },
                {"_id": "t3", "text": "bread", "done": False, "listId": "l"},
            ]
            sent = todos_app.control.log(what="in", name="/todos/update")[-1]["message"]
            assert sent["params"] == [{"_id": "t1"}, {"$set": {"done": True}}]

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_what_the_server_refuses_is_undone(run, todos_app, face):
    async def main():
        todos_app.control.collection("lists", update=False)
        async with opened(face, todos_app) as client:
            models = client.models(TodoList)
            await do(client.subscribe, "todos")
            take = step(models.observe(TodoList))
            assert [one.name for one in (await take()).inserted] == ["Groceries"]
            (groceries,) = models.all(TodoList)
            groceries.name = "Shopping"
            batch = models.save(groceries, Todo("tea", id="t3"))
            with pytest.raises(DDPError) as raised:
                await ended(batch)
            assert raised.value.code == "403"
            assert models.get(TodoList, "l").name == "Groceries"
            assert models.get(Todo, "t3").text == "tea"

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_objects_as_parameters(run, todos_app, face):
    @dataclass
    class Point:
        x: float
        label: Optional[str] = None
        todo: Optional[Todo] = None

    async def main():
        async with opened(face, todos_app) as client:
            with pytest.raises(TypeError, match="EJSON has no form for an object"):
                client.send("echo", object())
            models = client.models(Todo)
            groceries, milk = TodoList(id="l"), Todo("milk", id="t1")
            assert await do(client.call, "echo", groceries, [milk, {"a": milk}]) == [
                "l",
                ["t1", {"a": "t1"}],
            ]
            assert await do(client.call, "echo", reference(milk), milk.list) == ["t1", None]
            # An object of another class is an object.
            assert await do(client.call, "echo", Point(1.5), (Point(2, "p", milk),)) == [
                {"x": 1.5},
                [{"x": 2, "label": "p", "todo": "t1"}],
            ]
            await do(client.subscribe, "todosOf", TodoList(id="other"))
            assert models.all(Todo) == []
            subscription = await do(client.subscribe, "todosOf", groceries)
            assert models.count(Todo) == 2
            subscription.stop()
            await do(client.load, [("todosOf", groceries)])
            assert models.count(Todo) == 2
            with pytest.raises(TypeError, match="EJSON has no form for a set"):
                client.send("echo", [{1}])

    run(main())


def test_models_of_a_closed_client():
    client = sync.DDPClient(NOWHERE)
    with contextlib.closing(client):
        models = client.models(Todo)
    for use in (
        lambda: models.all(Todo),
        lambda: models.get(Todo, "a"),
        lambda: models.save(Todo()),
        lambda: models.observe(Todo),
        models.changes,
        lambda: client.models(Todo),
    ):
        with pytest.raises(librealtime.RealtimeError, match="the client is closed"):
            use()
