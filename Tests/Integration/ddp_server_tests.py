"""The Meteor server of the tests, against clients that are not ours: python-meteor, python-ddp."""

from __future__ import annotations

import datetime
import queue
import time
from collections.abc import Callable
from typing import Any

import pytest
from ddp_server import DDPServer
from ddp_server.alea import Alea
from DDPClient import DDPClient
from harness import PATIENCE_S, expect
from MeteorClient import MeteorClient

#: These clients' threads can fail when a server goes while they reconnect.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

UTC = datetime.timezone.utc


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    ddp_server.control.collection("players")
    ddp_server.control.publication("allPlayers", cursors=[{"collection": "players"}])
    return ddp_server


class Peer:
    """A client of python-meteor, with what its collections report in a queue."""

    def __init__(self, server: DDPServer, **options: Any) -> None:
        self.client = MeteorClient(server.url, **options)
        self._events: queue.Queue[tuple[Any, ...]] = queue.Queue()
        for event in ("added", "changed", "removed", "connected", "reconnected"):
            self.client.on(event, lambda *values, event=event: self._events.put((event, *values)))
        self.client.connect()
        self.next("connected")

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def next(self, *wanted: Any) -> None:
        """The next event, which must be this one."""
        got = self._events.get(timeout=PATIENCE_S)
        expect(got == wanted, f"{got} instead of {wanted}")

    def silence(self) -> None:
        expect(self._events.empty(), "an event too many")

    def ask(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        """Calls a function with a callback, and returns what that gets."""
        answers: queue.Queue[tuple[Any, ...]] = queue.Queue()
        function(*arguments, callback=lambda *values: answers.put(values))
        return answers.get(timeout=PATIENCE_S)

    def call(self, method: str, *params: Any) -> Any:
        error, result = self.ask(self.client.call, method, list(params))
        expect(error is None, f"{method}: {error}")
        return result

    def fail(self, method: str, *params: Any) -> Any:
        error, _ = self.ask(self.client.call, method, list(params))
        expect(error is not None, f"{method} succeeded")
        return error

    def subscribe(self, name: str, *params: Any) -> Any:
        """Waits until it is ready; returns the error's reason otherwise."""
        (error,) = self.ask(self.client.subscribe, name, list(params))
        return error


# python-meteor


def test_documents_are_live(server: DDPServer) -> None:
    """What one client writes, and what the server changes, appears with another."""
    with Peer(server) as ann, Peer(server) as bo:
        server.control.insert("players", {"_id": "a", "name": "Ada"})
        expect(ann.subscribe("allPlayers") is None, "an error")
        ann.next("added", "players", "a", {"name": "Ada"})
        error, id = bo.ask(bo.client.insert, "players", {"name": "Bob", "score": 1})
        expect(error is None and len(id) == 17, f"{error}, {id}")
        ann.next("added", "players", id, {"name": "Bob", "score": 1})
        modifier = {"$inc": {"score": 2}, "$unset": {"name": 1}, "$push": {"tags": "x"}}
        error, count = bo.ask(bo.client.update, "players", {"_id": id}, modifier)
        expect((error, count) == (None, 1), f"{error}, {count}")
        ann.next("changed", "players", id, {"score": 3, "tags": ["x"]}, ["name"])
        server.control.update("players", "a", {"name": "Eve"})
        ann.next("changed", "players", "a", {"name": "Eve"}, {})
        error, count = bo.ask(bo.client.remove, "players", {"_id": id})
        expect((error, count) == (None, 1), f"{error}, {count}")
        ann.next("removed", "players", id)
        expect(ann.client.find("players") == [{"_id": "a", "name": "Eve"}], "find")


def test_an_unsubscribed_document_goes(server: DDPServer) -> None:
    server.control.insert("players", {"_id": "a", "n": 1})
    with Peer(server) as peer:
        peer.subscribe("allPlayers")
        peer.next("added", "players", "a", {"n": 1})
        peer.client.unsubscribe("allPlayers")
        peer.next("removed", "players", "a")
        server.control.update("players", "a", {"$set": {"n": 2}})
        peer.call("logout")
        peer.silence()


def test_publications_have_parameters(server: DDPServer) -> None:
    cursor = {"collection": "players", "selector": {"team": {"$param": 0}}, "fields": ["name"]}
    server.control.publication("team", cursors=[cursor], check=["string"])
    for id, team in (("a", "red"), ("b", "blue")):
        server.control.insert("players", {"_id": id, "name": id.upper(), "team": team})
    with Peer(server) as peer:
        expect(peer.subscribe("team", "red") is None, "an error")
        peer.next("added", "players", "a", {"name": "A"})
        server.control.update("players", "a", {"$set": {"team": "blue"}})
        peer.next("removed", "players", "a")
        peer.client.subscriptions.clear()
        expect(peer.subscribe("team", 7) == "Match failed", "the check")
        expect(peer.subscribe("nothing") == "Subscription 'nothing' not found", "404")


def test_methods(server: DDPServer) -> None:
    """They return, return nothing, and fail in each way."""
    pair = [{"$param": 1}, {"$param": 0}]
    for name, ops in {
        "swap": [{"op": "return", "value": pair}],
        "nothing": [{"op": "sleep", "seconds": 0}],
        "refuse": [{"op": "throw", "error": {"error": "full", "reason": "No", "details": [1]}}],
        "crash": [{"op": "crash"}],
        "strict": [{"op": "check", "kinds": ["number"]}],
    }.items():
        server.control.method(name, ops)
    with Peer(server) as peer:
        expect(peer.call("swap", 1, "two") == ["two", 1], "the result")
        expect(peer.call("nothing") is None, "a result")
        expect("result" not in server.control.log(msg="result")[-1]["message"], "a null")
        refused = {"error": "full", "reason": "No", "details": [1], "message": "No [full]"}
        error = peer.fail("refuse")
        wanted = {**refused, "isClientSafe": True, "errorType": "Meteor.Error"}
        expect(error == wanted, f"{error}")
        codes = {name: peer.fail(name, "x")["error"] for name in ("crash", "strict", "missing")}
        expect(codes == {"crash": 500, "strict": 400, "missing": 404}, f"{codes}")


def test_writes_are_refused(server: DDPServer) -> None:
    """Without an id, without permission, and to what is not there."""
    server.control.collection("locked", insert=False)
    with Peer(server) as peer:
        expect(
            peer.fail("/players/update", {"name": "a"}, {"$set": {"b": 1}})["error"] == 403,
            "by a name",
        )
        expect(peer.fail("/players/remove", {})["error"] == 403, "by no id")
        server.control.insert("players", {"_id": "a"})
        expect(peer.fail("/players/update", "a", {"$where": {"b": 1}})["error"] == 403, "$where")
        expect(peer.fail("/locked/insert", {"a": 1})["error"] == 403, "denied")
        expect(peer.fail("/users/remove", "a")["error"] == 403, "users")
        expect(peer.fail("/unknown/insert", {"a": 1})["error"] == 404, "unknown")
        expect(peer.fail("/players/insert", {"_id": "a"})["error"] == 409, "duplicate")
        expect(peer.call("/players/remove", "nobody") == 0, "a count")


def test_ejson_both_ways(server: DDPServer) -> None:
    server.control.method("echo", [{"op": "return", "value": {"$param": 0}}])
    when = datetime.datetime(2026, 11, 23, 22, 0, tzinfo=UTC)
    value = {"bytes": b"\x00\xff", "plain": {"$date": 1}, "list": [1.5, None, True]}
    with Peer(server) as peer:
        expect(peer.call("echo", value) == value, "echo")
        sent = {"$date": int(when.timestamp() * 1000)}
        server.control.insert("players", {"_id": "a", "when": sent})
        peer.subscribe("allPlayers")
        peer.next("added", "players", "a", {"when": when})


def test_login_and_logout(server: DDPServer) -> None:
    id = server.control.user(username="ann", email="ann@a.example", password="secret")
    with Peer(server) as peer:
        for name in ("ann", "ann@a.example"):
            error, result = peer.ask(peer.client.login, name, b"secret")
            expect(error is None and result["id"] == id, f"{error}, {result}")
            expect(result["tokenExpires"] > datetime.datetime.now(UTC), f"{result}")
        email = {"address": "ann@a.example", "verified": False}
        peer.next("added", "users", id, {"username": "ann", "emails": [email]})
        peer.call("logout")
        peer.next("removed", "users", id)
    with Peer(server) as peer:
        error, _ = peer.ask(peer.client.login, "ann", b"wrong")
        expect(error["error"] == 403, f"{error}")


def test_a_lost_connection_resumes_the_login(server: DDPServer) -> None:
    """python-meteor connects again, logs in with its token, and subscribes again."""
    id = server.control.user(username="ann", password="secret")
    server.control.publication(
        "mine", cursors=[{"collection": "players", "selector": {"owner": {"$user": True}}}]
    )
    server.control.insert("players", {"_id": "a", "owner": id})
    server.control.insert("players", {"_id": "b", "owner": "another"})
    with Peer(server, auto_reconnect_timeout=0) as peer:
        peer.ask(peer.client.login, "ann", b"secret")
        peer.next("added", "users", id, {"username": "ann"})
        peer.subscribe("mine")
        peer.next("added", "players", "a", {"owner": id})
        server.control.fault(point="sending", msg="connected", do="hold")
        server.control.end()
        server.control.wait_held()
        # Before this, the client takes the answer for that of a first connection.
        deadline = time.monotonic() + PATIENCE_S
        while not peer.client.ddp_client._is_reconnecting and time.monotonic() < deadline:
            time.sleep(0.001)
        server.control.release()
        peer.next("added", "users", id, {"username": "ann"})
        peer.next("reconnected")
        peer.next("added", "players", "a", {"owner": id})
    calls = server.control.log(what="in", name="login")
    expect([*calls[1]["message"]["params"][0]] == ["resume"], f"{calls[1]}")


# python-ddp


@pytest.mark.parametrize("version", ["1", "pre2", "pre1"])
def test_a_version_is_agreed_on(server: DDPServer, version: str) -> None:
    """The client offers 1 first, and connects again until the versions agree."""
    server.control.settings(versions=[version], greeting=True)
    connected: queue.Queue[str] = queue.Queue()
    for attempt in range(10):
        client = DDPClient(server.url, auto_reconnect_timeout=0)
        client.on("connected", lambda: connected.put("connected"))
        client.on("reconnected", lambda: connected.put("connected"))
        try:
            client.connect()
            break
        except AttributeError:
            # Its own thread has met the end of the connection before `connect` had returned.
            client.close()
            if attempt == 9:
                raise
    try:
        connected.get(timeout=PATIENCE_S)
        (session,) = server.control.sessions()
        expect(session["version"] == version, f"{session}")
        failures = server.control.log(what="out", msg="failed")
        # The client sometimes tries its next version before the one that the server has named.
        expect(bool(failures) == (version != "1"), f"{failures}")
        expect(all(one["message"]["version"] == version for one in failures), f"{failures}")
    finally:
        client.close()


def test_a_ping_is_answered(server: DDPServer) -> None:
    """python-ddp answers the server's pings, so that it is not dropped."""
    server.control.settings(heartbeat_interval=0.05, heartbeat_timeout=PATIENCE_S)
    client = DDPClient(server.url)
    client.connect()
    try:
        server.control.wait(count=2, what="in", msg="pong")
    finally:
        client.close()


# Random ids, with the vectors of Meteor


@pytest.mark.parametrize(
    ("seeds", "fraction", "id"),
    [
        (["0"], 0.5945264333859086, "cp9hWvhg8GSvuZ9os"),
        ([""], 0.1666577742435038, "BW2uBqqs2SbwN96pH"),
        (["my", "3", "seeds"], 0.30802189325913787, "JYRduBwQtjpeCkqP7"),
        (["1ab07143000000000000", "/collection/players"], 0.49459250713698566, "Xq6yPd8khqSxTXhw2"),
        (["6139e12b000000000000", "/collection/players"], 0.564996977802366, "bPbjuvaTitRE8Pqu7"),
        (["ключ", "/collection/日本"], 0.7922039309050888, "oasfA8aomParLGcNk"),
        (["😀"], 0.08367577847093344, "69oYRTBej43r9cWEa"),
    ],
)
def test_alea(seeds: list[str], fraction: float, id: str) -> None:
    expect(Alea(*seeds).fraction() == fraction, f"{Alea(*seeds).fraction()}")
    expect(Alea(*seeds).id() == id, Alea(*seeds).id())
