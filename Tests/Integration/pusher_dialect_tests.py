"""The Pusher server of the tests: its rules and limits, and the dialects of other servers."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from harness import PATIENCE_S, expect
from pusher_client import PusherClient
from pusher_server import PusherServer
from pusher_server.settings import DIALECTS
from websockets.exceptions import ConnectionClosed

FAKE = "pusher-fake"
LOBBY, SECRET = "presence-lobby", "private-orders"
SUCCEEDED = "pusher_internal:subscription_succeeded"


@pytest.fixture
def server(pusher_server: PusherServer) -> PusherServer:
    return pusher_server


@pytest.fixture(params=DIALECTS)
def dialect(server: PusherServer, request: pytest.FixtureRequest) -> str:
    server.control.settings(dialect=request.param, client_event_window=600)
    return str(request.param)


def pick(dialect: str, usual: Any, **others: Any) -> Any:
    """What this dialect does."""
    return others.get(dialect.replace("-", "_"), usual)


# Connections


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("client=a-b&version=1.0", 4008),
        ("client=a-b&version=1.0&protocol=8", 4007),
        ("client=a-b&version=one&protocol=7", 4006),
        ("client=ab&version=1.0&protocol=7", 4006),
        ("version=1.0&protocol=7", 4006),
    ],
)
def test_query_is_checked(server: PusherServer, query: str, code: int) -> None:
    with PusherClient(server, query=query) as client:
        expect(client.end()[0] == code, f"{client.ws.close_code}")


def test_query_is_accepted(server: PusherServer) -> None:
    """Also by servers that do not check it, and below a path."""
    with PusherClient(server, query="flash=false&protocol=5&client=a-b&version=1.2.3-beta") as one:
        one.establish()
    with PusherClient(server, prefix="/some/path") as one:
        expect(one.established["activity_timeout"] == 120, f"{one.established}")
    server.control.settings(dialect="soketi")
    with PusherClient(server, query="") as one:
        one.establish()


def test_unknown_key(server: PusherServer, dialect: str) -> None:
    with PusherClient(server, key="unknown") as client:
        if dialect == FAKE:
            return client.establish()
        if dialect in ("soketi", "reverb"):
            data = client.next("pusher:error")["data"]
            expect(isinstance(data, str) == (dialect == "reverb"), f"{data}")
        expect(client.end()[0] == pick(dialect, 4001, reverb=1006), f"{client.ws.close_code}")
    return None


def test_tls_only_and_over_capacity(server: PusherServer) -> None:
    server.control.settings(max_connections=1)
    with PusherClient(server), PusherClient(server, query=None, key=server.key) as second:
        expect(second.end()[0] == 4100, f"{second.ws.close_code}")
    server.control.settings(tls_only=True)
    with PusherClient(server, key=server.key) as client:
        expect(client.end()[0] == 4000, f"{client.ws.close_code}")


def test_first_message(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        wanted = pick(dialect, 120, soketi=30, reverb=30)
        expect(client.established["activity_timeout"] == wanted, f"{client.established}")
    server.control.settings(activity_timeout=0.5, established_data="object")
    with PusherClient(server) as client:
        expect(client.established["activity_timeout"] == 0.5, f"{client.established}")
    server.control.settings(activity_timeout=None)
    with PusherClient(server) as client:
        expect(list(client.established) == ["socket_id"], f"{client.established}")


def test_unauthorized_connections_are_closed(server: PusherServer) -> None:
    server.control.settings(authorized_within=600)
    with PusherClient(server) as member:
        member.join(SECRET)
        server.control.settings(authorized_within=0.1)
        with PusherClient(server) as idle:
            expect(idle.end()[0] == 4009, f"{idle.ws.close_code}")
        member.silence()


def test_text_that_is_not_json(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        for text in ("no JSON", "[]", '{"event":1}'):
            client.ws.send(text)
            if dialect == FAKE:
                return expect(client.end()[0] == 1006, f"{client.ws.close_code}")
            if dialect == "reverb":
                expect(client.data("pusher:error")["code"] == 4200, "code")
        client.ws.send(b"binary")
        client.silence()
    return None


# Keep-alive


def test_silent_clients_are_closed(server: PusherServer, dialect: str) -> None:
    server.control.settings(ping_after=0.1, pong_within=0.1)
    if dialect == "pusher":
        # The library answers pings by itself.
        server.control.settings(keep_alive="events")
    with PusherClient(server) as client:
        if dialect == FAKE:
            return client.silence()
        if dialect != "soketi":
            client.next("pusher:ping")
        if dialect == "reverb":
            expect(client.data("pusher:error")["code"] == 4201, "code")
        expect(client.end()[0] == pick(dialect, 4201, reverb=1006), f"{client.ws.close_code}")
    return None


@pytest.mark.parametrize("dialect", ["pusher", "reverb", "sockudo"], indirect=True)
def test_answers_keep_connections(server: PusherServer, dialect: str) -> None:
    server.control.settings(ping_after=0.05, pong_within=PATIENCE_S)
    with PusherClient(server) as client:
        if dialect == "pusher":
            server.control.wait(what="in", kind="pong", count=3)
            expect(server.control.log(what="out", event="pusher:ping") == [], "pings")
            return client.silence()
        for _ in range(3):
            client.next("pusher:ping")
            client.send("pusher:pong", {})
    return None


def test_frame_pings_do_not_count_for_soketi(server: PusherServer) -> None:
    server.control.settings(dialect="soketi", ping_after=0.2)
    end = time.monotonic() + PATIENCE_S
    with PusherClient(server) as client, contextlib.suppress(ConnectionClosed):
        while time.monotonic() < end:
            client.ws.ping().wait(0.01)
    expect(client.ws.close_code == 4201, f"{client.ws.close_code}")
    expect(server.control.log(what="in", kind="ping") != [], "pings")


def test_reverb_pings_as_the_client_does(server: PusherServer) -> None:
    server.control.settings(dialect="reverb", ping_after=0.05)
    with PusherClient(server) as client:
        client.ws.ping()
        server.control.wait(what="in", kind="pong")
        expect(server.control.log(what="out", event="pusher:ping") == [], "pings")


# Channels


def test_success_data(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        for name in ("chat", SECRET):
            client.subscribe(name)
            data = client.next(SUCCEEDED, name).get("data")
            public = "{}" if name == "chat" else None
            expect(data == pick(dialect, public, soketi=None, reverb="{}", sockudo="{}",
                                pusher_fake="{}"), f"{name}: {data}")  # fmt: skip


@pytest.mark.parametrize("name", [SECRET, LOBBY, "private-encrypted-ledger"])
def test_wrong_signature(server: PusherServer, dialect: str, name: str) -> None:
    with PusherClient(server) as client:
        client.subscribe(name, {"user_id": "u-1"}, auth=f"{server.key}:00")
        message = client.read()
        data = message["data"]
        if dialect == "soketi":
            expect(message["event"] == "pusher:subscription_error", f"{message}")
            expect((data["status"], data["type"]) == (401, "AuthError"), f"{data}")
        elif dialect == FAKE:
            wanted = {"event": "pusher_internal:subscription_error", "channel": name, "data": {}}
            expect(message == wanted, f"{message}")
        else:
            expect(message["event"] == "pusher:error", f"{message}")
            expect(("channel" in message) == (dialect == "sockudo"), f"{message}")
        if dialect in ("pusher", "sockudo"):
            expect(data["code"] == pick(dialect, None, sockudo=4009), f"{data}")
        if dialect == "reverb":
            wanted = {"code": 4009, "message": "Connection is unauthorized"}
            expect(json.loads(data) == wanted and set(message) == {"event", "data"}, f"{message}")
        client.silence()


@pytest.mark.parametrize("name", ["a" * 201, "a b", "", "#chat#"])
def test_wrong_name(server: PusherServer, dialect: str, name: str) -> None:
    with PusherClient(server) as client:
        client.subscribe(name)
        message = client.read()
        event = pick(dialect, "pusher:error", reverb=SUCCEEDED, pusher_fake=SUCCEEDED,
                     soketi="pusher:subscription_error")  # fmt: skip
        expect(message["event"] == event, f"{message}")
        if dialect == "soketi":
            expect(message["data"]["status"] == 4009 and "type" not in message["data"], "data")


def test_second_subscription(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        client.join("chat")
        client.subscribe("chat")
        if dialect == "pusher":
            error = client.data("pusher:error")
            expect(error["code"] is None and "Existing subscription" in error["message"], "error")
        else:
            client.next(SUCCEEDED, "chat")
        server.control.publish("chat", "hello", "you")
        client.next("hello", "chat")
        if dialect == FAKE:
            client.next("hello", "chat")
        client.send("pusher:unsubscribe", {"channel": "chat"})
        client.silence()
        server.control.publish("chat", "hello", "you")
        client.silence()


def test_unsubscribing_what_is_not_subscribed(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        client.send("pusher:unsubscribe", {"channel": "chat"})
        if dialect == "pusher":
            expect("No current subscription" in client.data("pusher:error")["message"], "text")
        client.silence()


def test_cache_channels(server: PusherServer, dialect: str) -> None:
    name, missed = "private-cache-scores", "pusher:cache_miss"
    with PusherClient(server) as client:
        client.join(name)
        data = client.next(missed, name).get("data")
        expect(data == pick(dialect, None, reverb="{}", sockudo="null"), f"{data}")
        server.control.publish(name, "score", [1])
        server.control.publish(name, "score", [2])
    with PusherClient(server) as client:
        client.join(name)
        expect(client.data("score", name) == [2], "the last event")
        client.send("client-score", [3], name)
        server.control.settings(cache_ttl=0)
        server.control.publish(name, "score", [4])
        expect(client.data("score", name) == [4], "the published event")
        with PusherClient(server) as later:
            later.join(name)
            later.next(missed, name)


def test_subscription_count(server: PusherServer) -> None:
    event = "pusher_internal:subscription_count"
    server.control.settings(subscription_count=True)
    with PusherClient(server) as first:
        first.join("chat")
        expect(first.data(event, "chat") == {"subscription_count": 1}, "alone")
        with PusherClient(server) as second:
            second.join("chat")
            expect(first.data(event, "chat") == {"subscription_count": 2}, "two")
        expect(first.data(event, "chat") == {"subscription_count": 1}, "alone again")
        server.control.settings(count_always=0, count_every=0.1)
        with PusherClient(server) as second:
            second.join("chat")
            # The first count may come before or after the end of the second subscription.
            while first.data(event, "chat") != {"subscription_count": 2}:
                pass


# Presence


def test_members(server: PusherServer, dialect: str) -> None:
    """A second connection of a user is a member of its own only in pusher-fake."""
    added, removed = "pusher_internal:member_added", "pusher_internal:member_removed"
    with PusherClient(server) as ann, PusherClient(server) as first:
        table = ann.join(LOBBY, {"user_id": 1})["presence"]
        wanted = {"count": 1, "ids": [1], "hash": {"1": None}}
        if dialect == FAKE:
            del wanted["ids"]
        expect(table == wanted, f"{table}")
        bo = {"user_id": "bo", "user_info": {"name": "Bo"}}
        expect(first.join(LOBBY, bo)["presence"]["count"] == 2, "two users")
        expect(ann.data(added, LOBBY) == bo, "added")
        with PusherClient(server) as second:
            table = second.join(LOBBY, bo)["presence"]
            expect(table["count"] == pick(dialect, 2, pusher_fake=3), f"{table}")
        if dialect == FAKE:
            for client in (ann, first):
                client.next(added, LOBBY)
                client.next(removed, LOBBY)
        server.control.wait_connections(2)
        first.send("pusher:unsubscribe", {"channel": LOBBY})
        expect(ann.data(removed, LOBBY) == {"user_id": "bo"}, "removed")


def test_limits_of_members(server: PusherServer) -> None:
    server.control.settings(max_members=1)
    long_info = {"user_id": "u", "user_info": "i" * 1025}
    wrong = [long_info, {"user_id": "u" * 129}, {"user_id": True}, {}, [], "text"]
    with PusherClient(server) as client, PusherClient(server) as other:
        for member in wrong:
            client.subscribe(LOBBY, member)
            client.next("pusher:error")
        client.subscribe(LOBBY)
        client.next("pusher:error")
        client.join(LOBBY, {"user_id": "u" * 128})
        other.subscribe(LOBBY, {"user_id": "another"})
        expect("too many" in other.data("pusher:error")["message"], "text")
        other.join(LOBBY, {"user_id": "u" * 128})


# Client events


def test_client_events(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as ann, PusherClient(server) as bo:
        ann.join(LOBBY, {"user_id": "ann"})
        bo.join(LOBBY, {"user_id": "bo"})
        bo.send("client-typing", {"on": True}, LOBBY)
        ann.next("pusher_internal:member_added", LOBBY)
        message = ann.next("client-typing", LOBBY)
        text = pick(dialect, {"on": True}, pusher='{"on":true}', pusher_fake='{"on":true}')
        expect(message["data"] == text, f"{message}")
        expect(message.get("user_id") == pick(dialect, "bo", pusher_fake=None), f"{message}")
        bo.silence()
        ann.send("client-typing", {}, "chat")
        ann.next("pusher:error")
        for client in (ann, bo):
            client.join("chat")
        ann.send("client-typing", {}, "chat")
        if dialect == "reverb":
            bo.next("client-typing", "chat")
            return
        message = ann.next("pusher:error", pick(dialect, None, soketi="chat", sockudo="chat"))
        expect(message["data"]["code"] is None, f"{message}")
    return None


def test_rate_of_client_events(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        client.join(SECRET)
        for _ in range(11):
            client.send("client-typing", {}, SECRET)
        if dialect not in ("reverb", FAKE):
            name = pick(dialect, None, soketi=SECRET, sockudo=SECRET)
            expect(client.data("pusher:error", name)["code"] == 4301, "code")
        client.silence()


def test_limits_of_client_events(server: PusherServer) -> None:
    with PusherClient(server) as client:
        client.join(SECRET)
        client.send("client-" + "n" * 200, {}, SECRET)
        expect(client.data("pusher:error")["code"] == 4301, "the name")
        client.send("client-big", "x" * 10241, SECRET)
        expect(client.data("pusher:error")["code"] == 4301, "the data")
        server.control.settings(client_events=False)
        client.send("client-typing", {}, SECRET)
        expect(client.data("pusher:error")["code"] is None, "not enabled")


# Users


def test_sign_in(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        client.sign_in(id="u-1")
        if dialect == FAKE:
            return client.silence()
        if dialect == "reverb":
            expect(client.data("pusher:error")["code"] == 4200, "code")
            return client.silence()
        data = client.next("pusher:signin_success")["data"]
        expect(isinstance(data, dict) == (dialect == "soketi"), f"{data}")
        client.join("#server-to-user-u-1")
        server.control.publish("#server-to-user-u-1", "note", {"text": "hello"})
        client.next("note", "#server-to-user-u-1")
        client.subscribe("#server-to-user-u-2")
        expect(client.read()["event"] != SUCCEEDED, "another user's channel")
        # A signed-in user needs no channel data.
        expect(client.join(LOBBY)["presence"]["hash"] == {"u-1": None}, "member")
    return None


@pytest.mark.parametrize("dialect", ["pusher", "soketi", "sockudo"], indirect=True)
def test_wrong_sign_in(server: PusherServer, dialect: str) -> None:
    with PusherClient(server) as client:
        client.sign_in(id="u-1", auth="demo:00")
        expect(client.next("pusher:error")["data"]["code"] == 4009, "code")
        if dialect == "soketi":
            return expect(client.end()[0] == 4009, f"{client.ws.close_code}")
        client.sign_in(id=1)
        client.next("pusher:error")
    return None


@pytest.mark.parametrize("bare", [False, True])
def test_watchlist(server: PusherServer, bare: bool) -> None:
    server.control.settings(dialect="sockudo" if bare else "pusher")

    def expect_change(client: PusherClient, **lists: list[str]) -> None:
        if bare:
            for event, ids in lists.items():
                expect(client.data(event) == {"user_ids": ids}, f"{lists}")
        else:
            wanted = [{"name": event, "user_ids": ids} for event, ids in lists.items()]
            events = client.data("pusher_internal:watchlist_events")["events"]
            expect(events == wanted, f"{events}")

    with PusherClient(server) as ann, PusherClient(server) as first:
        first.sign_in(id="bo")
        first.next("pusher:signin_success")
        ann.sign_in(id="ann", watchlist=["bo", "cy"])
        ann.next("pusher:signin_success")
        expect_change(ann, online=["bo"], offline=["cy"])
        with PusherClient(server) as second:
            second.sign_in(id="bo")
            second.next("pusher:signin_success")
        server.control.wait_connections(2)
        ann.silence()
        first.ws.close()
        expect_change(ann, offline=["bo"])
        with PusherClient(server) as third:
            third.sign_in(id="bo")
            expect_change(ann, online=["bo"])


def test_limit_of_watchlists(server: PusherServer) -> None:
    with PusherClient(server) as client:
        client.sign_in(id="u-1", watchlist=[str(number) for number in range(101)])
        client.next("pusher:signin_success")
        expect(client.data("pusher:error")["code"] == 4302, "code")
        client.silence()
