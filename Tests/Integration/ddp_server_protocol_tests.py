"""The habits of the Meteor server of the tests, message by message."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from ddp_client import DDPClient
from ddp_server import DDPServer
from harness import expect

S = "0123456789abcdef0123"
TEAMS = ["red", "blue"]
FIELDS = ["a", "b", "team"]

Store = dict[tuple[Any, Any], dict[str, Any]]


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    ddp_server.control.collection("players")
    ddp_server.control.publication("all", cursors=[{"collection": "players"}])
    return ddp_server


def added(id: str, **fields: Any) -> dict[str, Any]:
    some = {"fields": fields} if fields else {}
    return {"msg": "added", "collection": "players", "id": id, **some}


# Connecting


def test_the_greeting(server: DDPServer) -> None:
    server.control.settings(greeting=True)
    with DDPClient(server, version="") as client:
        expect(client.read() == {"server_id": "0"}, "the greeting")
        client.connect()


@pytest.mark.parametrize(
    ("served", "version", "support", "named"),
    [
        (["1", "pre2"], "pre2", ["1", "pre2"], "1"),
        (["pre1"], "1", ["1", "pre1"], "pre1"),
        (["1", "pre2"], "9", ["9"], "1"),
        (["1"], "1", ["pre2"], "1"),
        (["1"], "1", None, "1"),
        (["1"], 1, [1], "1"),
    ],
)
def test_a_version_is_refused(
    server: DDPServer, served: list[str], version: Any, support: Any, named: str
) -> None:
    """The first of the client's versions that the server has is named, or the server's best."""
    server.control.settings(versions=served)
    with DDPClient(server, version="") as client:
        client.send("connect", version=version, support=support)
        expect(client.read() == {"msg": "failed", "version": named}, "the answer")
        expect(client.end() == 1000, "the close code")


def test_errors_name_the_message(server: DDPServer) -> None:
    with DDPClient(server, version="") as client:
        client.send("sub", id="1", name="all")
        client.next("error", reason="Must connect first")
    with DDPClient(server) as client:
        for text, reason in {
            '{"msg":"connect","version":"1","support":["1"]}': "Already connected",
            '{"msg":"disconnect"}': "Bad request",
            '{"msg":"jump","id":"1"}': "Bad request",
            "{}": "Bad request",
            "[]": "Bad request",
            "{": "Parse error",
            '{"msg":"sub","id":1,"name":"all"}': "Malformed subscription",
            '{"msg":"sub","id":"1","name":"all","params":{}}': "Malformed subscription",
            '{"msg":"method","id":"1"}': "Malformed method invocation",
            '{"msg":"method","id":"1","method":"x","randomSeed":1}': "Malformed method invocation",
        }.items():
            client.ws.send(text)
            error = client.next("error", reason=reason)
            offending = json.loads(text) if text != "{" else None
            expect(error.get("offendingMessage") == offending, f"{error}")


def test_pings(server: DDPServer) -> None:
    """A pong repeats the id. pre1 has neither."""
    with DDPClient(server) as client:
        client.send("ping")
        expect(client.read() == {"msg": "pong"}, "without id")
        client.send("ping", id="7")
        expect(client.read() == {"msg": "pong", "id": "7"}, "with id")
    server.control.settings(versions=["pre1"], heartbeat_interval=0.01)
    with DDPClient(server, version="pre1") as client:
        client.send("ping")
        client.next("error", reason="Bad request")


def test_a_silent_client_is_dropped(server: DDPServer) -> None:
    server.control.settings(heartbeat_interval=0.05, heartbeat_timeout=0.05)
    with DDPClient(server) as client:
        client.next("ping")
        expect(client.end() == 1000, "the close code")
    expect(server.control.sessions() == [], "a session")


# Subscriptions


def test_subscriptions_end_with_nosub(server: DDPServer) -> None:
    """For every unsub, for a failure, and when the publication stops."""
    server.control.insert("players", {"_id": "a", "n": 1}, {"_id": "b"})
    cursors = [{"collection": "players", "selector": "a"}]
    server.control.publication("failing", cursors=cursors, error={"error": "full"})
    server.control.publication("crashing", crash=True)
    server.control.publication("stopping", cursors=cursors, stops=True)
    with DDPClient(server) as client:
        client.send("unsub", id="unknown")
        expect(client.read() == {"msg": "nosub", "id": "unknown"}, "unknown")
        one = client.subscribe("all")
        expect(client.read() == added("a", n=1), "a")
        expect(client.read() == added("b"), "no fields")
        client.next("ready", subs=[one])
        client.subscribe("all", id=one)  # is ignored
        client.silence()
        for name, code in {"failing": "full", "crashing": 500}.items():
            id = client.subscribe(name)
            expect(client.next("nosub", id=id)["error"]["error"] == code, name)
        id = client.subscribe("stopping")
        expect(client.read() == {"msg": "nosub", "id": id}, "its own stop")
        server.control.publish("all", "stop")
        client.next("removed", id="a")
        client.next("removed", id="b")
        client.next("nosub", id=one)
        client.silence()


def test_overlapping_subscriptions_are_merged(server: DDPServer) -> None:
    """Only differences are sent, and what another one still publishes stays."""
    server.control.insert("players", {"_id": "a", "name": "Ada", "score": 1, "team": "red"})
    for name, fields in {"names": ["name", "team"], "scores": ["score", "team"]}.items():
        cursor = {"collection": "players", "fields": fields}
        server.control.publication(name, cursors=[cursor])
    with DDPClient(server) as client:
        names = client.subscribe("names")
        expect(client.read() == added("a", name="Ada", team="red"), "the first")
        client.next("ready", subs=[names])
        scores = client.subscribe("scores")
        changed = {"msg": "changed", "collection": "players", "id": "a"}
        expect(client.read() == {**changed, "fields": {"score": 1}}, "the second")
        client.next("ready", subs=[scores])
        server.control.update("players", "a", {"$set": {"team": "blue"}})
        expect(client.read() == {**changed, "fields": {"team": "blue"}}, "both")
        client.send("unsub", id=names)
        expect(client.read() == {**changed, "cleared": ["name"]}, "the first stops")
        client.next("nosub", id=names)
        server.control.update("players", "a", {"$unset": {"team": 1}, "$set": {"score": {"n": 1}}})
        expect(client.read() == {**changed, "fields": {"score": {"n": 1}}, "cleared": ["team"]}, "")
        client.send("unsub", id=scores)
        client.next("removed", id="a")
        client.next("nosub", id=scores)


def test_publications_of_their_own_documents(server: DDPServer) -> None:
    """Documents that are in no collection, with ids of all kinds."""
    server.control.publication("counts", ready=False)
    with DDPClient(server) as client:
        id = client.subscribe("counts")
        server.control.wait(what="run", name="counts")
        oid = {"$type": "oid", "$value": "0123456789abcdef01234567"}
        for value, wire in {
            "-x": "--x",
            "0123456789abcdef01234567": "-0123456789abcdef01234567",
            "": "",
        }.items():
            server.control.publish("counts", "added", "counts", value, {"n": 1})
            client.next("added", id=wire, fields={"n": 1})
        server.control.publish("counts", "added", "counts", oid, {"n": {"$date": 5}})
        client.next("added", id="0123456789abcdef01234567", fields={"n": {"$date": 5}})
        server.control.publish("counts", "added", "counts", 5)
        client.next("added", id="~5")
        server.control.publish("counts", "changed", "counts", oid, {"m": 1}, ["n"])
        client.next("changed", id="0123456789abcdef01234567", fields={"m": 1}, cleared=["n"])
        server.control.publish("counts", "ready")
        client.next("ready", subs=[id])
        server.control.publish("counts", "error", error={"error": "gone"})
        expect([client.read()["msg"] for _ in range(6)] == ["removed"] * 5 + ["nosub"], "the end")


def test_unnamed_publications(server: DDPServer) -> None:
    """They send documents without a subscription, and no `ready`."""
    server.control.publication(cursors=[{"collection": "players"}])
    server.control.insert("players", {"_id": "a"})
    with DDPClient(server) as client:
        expect(client.read() == added("a"), "the document")
        client.silence()


def apply(store: Store, message: dict[str, Any]) -> None:
    """Changes a client's documents, which are by collection and id, strictly."""
    kind, key = message["msg"], (message.get("collection"), message.get("id"))
    if kind == "added":
        expect(key not in store, f"{message}")
        store[key] = message.get("fields", {})
    elif kind == "changed":
        fields, cleared = message.get("fields", {}), message.get("cleared", [])
        same = [name for name in fields if store[key].get(name, ...) == fields[name]]
        expect(bool(fields or cleared) and not same, f"{message}")
        store[key].update(fields)
        for name in cleared:
            del store[key][name]
    elif kind == "removed":
        del store[key]


@pytest.mark.parametrize("seed", range(20))
def test_clients_have_what_is_published(server: DDPServer, seed: int) -> None:
    """After random subscriptions, writes and logins. Only differences were sent."""
    draw = random.Random(seed)
    server.control.settings(logins=0)
    user = server.control.user(username="ann", password="x")
    for name, cursor in {
        "red": {"selector": {"team": "red"}, "fields": ["a", "team"]},
        "b": {"fields": ["b"]},
        "mine": {"selector": {"a": {"$user": True}}},
    }.items():
        server.control.publication(name, cursors=[{"collection": "players", **cursor}])
    store: Store = {}
    steps: dict[str, Callable[[], list[Any]]] = {
        "login": lambda: [{"user": {"username": "ann"}, "password": "x"}],
        "logout": list,
        "/players/insert": lambda: [{"_id": draw.choice("abc"), "team": draw.choice(TEAMS)}],
        "/players/update": lambda: [
            draw.choice("abc"),
            {draw.choice(["$set", "$unset"]): {draw.choice(FIELDS): draw.choice([user, *TEAMS])}},
        ],
        "/players/remove": lambda: [draw.choice("abc")],
    }
    with DDPClient(server) as client:
        for step in range(60):
            if draw.random() < 0.3:
                client.subscribe(draw.choice(["all", "red", "b", "mine"]), id=f"x{step}")
            elif draw.random() < 0.3:
                client.send("unsub", id=f"x{draw.randrange(step + 1)}")
            else:
                method = draw.choice(list(steps))
                for message in client.finish(client.start(method, *steps[method]()))[0]:
                    apply(store, message)
        for message in client.finish(client.start("missing"))[0]:
            apply(store, message)
        (session,) = server.control.sessions()
    published = {
        (collection, id): fields
        for collection, found in session["documents"].items()
        for id, fields in found.items()
    }
    expect(store == published, f"{store} instead of {published}")


# Methods


def test_random_ids_are_the_same_as_the_clients(server: DDPServer) -> None:
    """The vectors of Meteor's own server."""
    insert = {"op": "insert", "collection": "players", "doc": {}, "save": "id"}
    back = {"op": "return", "value": {"$var": "id"}}
    inner = {"op": "call", "name": "anotherMethod", "save": "id"}
    server.control.method("insertPlayer", [insert, back])
    server.control.method("anotherMethod", [insert, back])
    server.control.method("outer", [inner, back])
    server.control.collection("oids", ids="objectId")
    with DDPClient(server) as client:
        for method, id in {
            "insertPlayer": "qA9DjhKDzrcYQ3Pvz",
            "outer": "NYSoL3pWmYTap4ioR",
        }.items():
            got = client.call(method, randomSeed=S)
            expect(got == id, f"{method}: {got}")
        oid = {"$type": "oid", "$value": "de0d251f840c70858de4a9fa"}
        expect(client.call("/oids/insert", {}, randomSeed=S) == oid, "an ObjectID")
        documents = server.control.find("oids")
        expect(documents == [{"_id": oid}], f"{documents}")
        client.call("/oids/update", {"_id": oid}, {"a": {"$date": 1}})
        documents = server.control.find("oids")
        expect(documents == [{"_id": oid, "a": {"$date": 1}}], f"{documents}")
        expect(len(client.call("insertPlayer")) == 17, "without a seed")


@pytest.mark.parametrize("order", ["updated", "result"])
def test_the_order_of_the_answers(server: DDPServer, order: str) -> None:
    server.control.settings(order=order)
    other = "result" if order == "updated" else "updated"
    with DDPClient(server) as client:
        client.subscribe("all")
        client.next("ready")
        client.start("/players/insert", {"_id": "a"})
        expect(client.read() == added("a"), "data")
        client.next(order)
        client.next(other)
        client.start("missing")
        client.next("result")
        client.next("updated")


def test_methods_run_in_order_unless_unblocked(server: DDPServer) -> None:
    server.control.method("slow", [{"op": "hold"}])
    server.control.method("free", [{"op": "unblock"}, {"op": "hold"}])
    server.control.method("quick", [{"op": "return", "value": 1}])
    with DDPClient(server) as client:
        slow, quick = client.start("slow"), client.start("quick")
        server.control.wait_held()
        client.silence()
        server.control.release()
        client.finish(slow)
        client.finish(quick)
        free, quick = client.start("free"), client.start("quick")
        client.finish(quick)
        server.control.release()
        client.finish(free)


def test_nested_calls(server: DDPServer) -> None:
    """Their errors end the caller, and they send no answers of their own."""
    server.control.method("fail", [{"op": "throw", "error": {"error": "inner"}}])
    server.control.method("outer", [{"op": "call", "name": "fail"}])
    server.control.method("lost", [{"op": "call", "name": "missing"}])
    with DDPClient(server) as client:
        expect(client.fail("outer")["error"] == "inner", "the error")
        expect(client.fail("lost")["error"] == 404, "the missing method")


def test_modifiers(server: DDPServer) -> None:
    server.control.insert("players", {"_id": "a", "list": [1], "o": {"n": 1}})
    with DDPClient(server) as client:
        modifier = {
            "$set": {"o.m": 2, "list.1": 2, "p.q": {"$date": 1}},
            "$inc": {"o.n": 2.5},
            "$push": {"tags": {"$each": [1, 2]}},
        }
        expect(client.call("/players/update", "a", modifier) == 1, "the count")
        wanted = {"list": [1, 2], "o": {"n": 3.5, "m": 2}, "p": {"q": {"$date": 1}}, "tags": [1, 2]}
        expect(server.control.find("players") == [{"_id": "a", **wanted}], "the document")
        for modifier in ({"$inc": {"list": 1}}, {"$push": {"o": 1}}, {"$set": {"_id": "b"}}):
            expect(client.fail("/players/update", "a", modifier)["error"] == 409, f"{modifier}")
        expect(client.call("/players/update", "b", {"a": 1}) == 0, "nobody")
        expect(client.call("/players/updateAsync", "a", {"a": 1}) == 1, "replaced")
        expect(server.control.find("players") == [{"_id": "a", "a": 1}], "the new document")
