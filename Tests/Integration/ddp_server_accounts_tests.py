"""The accounts of the Meteor server of the tests."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest
from ddp_client import DDPClient
from ddp_server import DDPServer
from harness import expect


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    ddp_server.control.settings(logins=0)
    return ddp_server


@pytest.fixture
def ann(server: DDPServer) -> str:
    """The id of a user."""
    id = server.control.user(username="ann", email="ann@a.example", password="secret")
    assert isinstance(id, str)
    return id


def hashed(password: str) -> dict[str, str]:
    digest = hashlib.sha256(password.encode()).hexdigest()
    return {"digest": digest, "algorithm": "sha-256"}


def options(password: str = "secret", **user: str) -> dict[str, Any]:
    return {"user": user or {"username": "ann"}, "password": hashed(password)}


def test_creating_a_user_logs_in(server: DDPServer) -> None:
    with DDPClient(server) as client:
        user = {"username": "eve", "email": "eve@a.example", "profile": {"n": 1}}
        id = client.start("createUser", {**user, "password": hashed("x")})
        others, result = client.finish(id)
        found = result["result"]
        life = found["tokenExpires"]["$date"] / 1000 - time.time()
        expect(found["type"] == "password" and 89 < life / 86400 <= 90, f"{found}")
        (document,) = others
        emails = [{"address": "eve@a.example", "verified": False}]
        wanted = {"username": "eve", "emails": emails, "profile": {"n": 1}}
        expect(document["id"] == found["id"] and document["fields"] == wanted, f"{document}")
        expect(client.fail("createUser", {**user, "password": "x"})["error"] == 403, "twice")
        expect(client.fail("createUser", {"password": "x"})["error"] == 400, "no name")
        server.control.settings(signups=False)
        error = client.fail("createUser", {"username": "bo", "password": "x"})
        expect(error["reason"] == "Signups forbidden", f"{error}")


@pytest.mark.parametrize("how", ["username", "email", "id", "plain", "token", "service"])
def test_logging_in(server: DDPServer, ann: str, how: str) -> None:
    server.control.login_service("pin", "1234", "ann")
    with DDPClient(server) as client:
        ways = {
            "username": options(username="ann"),
            "email": options(email="ann@a.example"),
            "id": options(id=ann),
            "plain": {"user": {"username": "ann"}, "password": "secret"},
            "service": {"pin": "1234"},
        }
        if how == "token":
            with DDPClient(server) as other:
                ways[how] = {"resume": other.call("login", options())["token"]}
        result = client.call("login", ways[how])
        kind = {"token": "resume", "service": "pin"}.get(how, "password")
        expect((result["id"], result["type"]) == (ann, kind), f"{result}")
        (session,) = (one for one in server.control.sessions() if one["connection"])
        expect(session["user_id"] == ann, f"{session}")


def test_a_refused_login_changes_nothing(server: DDPServer, ann: str) -> None:
    server.control.login_service("pin", "1234", "ann")
    with DDPClient(server) as client:
        client.call("login", options())
        for wrong, code in (
            (options("wrong"), 403),
            (options(username="nobody"), 403),
            ({"resume": "unknown"}, 403),
            ({"pin": "1"}, 403),
            ({"unknown": 1}, 400),
            (1, 400),
        ):
            expect(client.fail("login", wrong)["error"] == code, f"{wrong}")
        (session,) = server.control.sessions()
        expect(session["user_id"] == ann, f"{session}")


def test_a_second_factor(server: DDPServer) -> None:
    server.control.user(username="bo", password="secret", code="123456")
    with DDPClient(server) as client:
        bo = options(username="bo")
        expect(client.fail("login", bo)["error"] == "no-2fa-code", "without")
        expect(client.fail("login", {**bo, "code": "1"})["error"] == "invalid-2fa-code", "wrong")
        client.call("login", {**bo, "code": "123456"})


def test_a_login_method_of_its_own(server: DDPServer, ann: str) -> None:
    login = {"op": "login", "username": {"$param": 0}, "save": "result"}
    server.control.method("enter", [login, {"op": "return", "value": {"$var": "result"}}])
    with DDPClient(server) as client:
        result = client.call("enter", "ann")
        expect(result["token"] in server.control.tokens("ann"), f"{result}")


def test_a_change_of_user_sends_differences(server: DDPServer, ann: str) -> None:
    """All publications run again; documents that stay are not sent again."""
    mine = {"$in": ["all", {"$user": True}]}
    cursor = {"collection": "notes", "selector": {"for": mine}}
    server.control.publication("notes", cursors=[cursor])
    server.control.insert("notes", {"_id": "a", "for": "all"}, {"_id": "b", "for": ann})
    with DDPClient(server) as client:
        id = client.subscribe("notes")
        client.next("added", id="a")
        client.next("ready", subs=[id])
        others, _ = client.finish(client.start("login", options()))
        seen = [(one["msg"], one.get("id")) for one in others]
        expect(seen == [("added", "b"), ("added", ann), ("ready", None)], f"{seen}")
        others, _ = client.finish(client.start("logout"))
        seen = [(one["msg"], one.get("id")) for one in others]
        expect(seen == [("removed", "b"), ("removed", ann), ("ready", None)], f"{seen}")


def test_the_users_document_may_be_late(server: DDPServer, ann: str) -> None:
    server.control.settings(late_user_document=True)
    with DDPClient(server) as client:
        others, _ = client.finish(client.start("login", options()))
        expect(others == [], f"{others}")
        client.next("added", collection="users", id=ann)


def test_tokens_expire(server: DDPServer, ann: str) -> None:
    with DDPClient(server) as client:
        token = client.call("login", options())["token"]
        server.control.settings(token_life=0)
        error = client.fail("login", {"resume": token})
        expect(error["error"] == 403 and "expired" in error["reason"], f"{error}")


def test_a_logged_out_token_ends_its_connections(server: DDPServer, ann: str) -> None:
    """All of them except the one that logs out."""
    with DDPClient(server) as one, DDPClient(server) as other:
        token = one.call("login", options())["token"]
        other.call("login", {"resume": token})
        one.call("logout")
        expect(other.end() == 1000, "the close code")
        expect(one.fail("login", {"resume": token})["error"] == 403, "the token")
        one.call("login", options())
        server.control.remove_tokens("ann")
        expect(one.end() == 1000, "the close code")


def test_changing_the_password(server: DDPServer, ann: str) -> None:
    """Logs out all other connections."""
    with DDPClient(server) as one, DDPClient(server) as other:
        expect(one.fail("changePassword", hashed("secret"), "x")["error"] == 401, "no user")
        for client in (one, other):
            client.call("login", options())
        expect(one.fail("changePassword", hashed("x"), hashed("new"))["error"] == 403, "wrong")
        changed = one.call("changePassword", hashed("secret"), hashed("new"))
        expect(changed == {"passwordChanged": True}, f"{changed}")
        expect(other.end() == 1000, "the close code")
        expect(one.fail("login", options())["error"] == 403, "the old password")
        one.call("login", options("new"))


def test_a_forgotten_password(server: DDPServer, ann: str) -> None:
    with DDPClient(server) as client:
        expect(client.fail("forgotPassword", {"email": "x@a.example"})["error"] == 403, "unknown")
        expect(client.call("forgotPassword", {"email": "ann@a.example"}) is None, "a result")
        (mail,) = server.control.mails()
        expect((mail["kind"], mail["user"]) == ("resetPassword", ann), f"{mail}")
        result = client.call("resetPassword", mail["token"], hashed("new"))
        expect(result["id"] == ann, f"{result}")
        error = client.fail("resetPassword", mail["token"], hashed("new"))
        expect(error["reason"] == "Token expired", f"{error}")
        client.call("login", options("new"))


def test_verifying_an_address(server: DDPServer, ann: str) -> None:
    server.control.verify("ann", "ann@a.example")
    (mail,) = server.control.mails()
    with DDPClient(server) as client:
        others, result = client.finish(client.start("verifyEmail", mail["token"]))
        expect(result["result"]["id"] == ann, f"{result}")
        verified = [{"address": "ann@a.example", "verified": True}]
        expect(others[0]["fields"]["emails"] == verified, f"{others}")
        error = client.fail("verifyEmail", mail["token"])
        expect(error["error"] == 403, f"{error}")


def test_logging_out_other_clients(server: DDPServer, ann: str) -> None:
    """A new token, which is as old as ours, and then the end of all others."""
    with DDPClient(server) as one, DDPClient(server) as other:
        expect(one.fail("getNewToken")["error"] == "You are not logged in.", "no user")
        old = one.call("login", options())
        other.call("login", {"resume": old["token"]})
        new = one.call("getNewToken")
        expect(new["token"] != old["token"], "the same token")
        expect(new["tokenExpires"] == old["tokenExpires"], f"{old}, {new}")
        one.call("removeOtherTokens")
        expect(other.end() == 1000, "the close code")
        expect(server.control.tokens("ann") == [new["token"]], "the tokens")


def test_logins_are_limited(server: DDPServer, ann: str) -> None:
    """Five in some time for a connection, by default in ten seconds."""
    settings = server.control.settings(logins=5)
    expect(settings["logins_window"] == 10, f"{settings}")
    # They all fall into it, however long the client takes.
    server.control.settings(logins_window=600)
    with DDPClient(server) as client, DDPClient(server) as other:
        for _ in range(5):
            client.fail("login", options("wrong"))
        error = client.fail("login", options())
        expect(error["error"] == "too-many-requests", f"{error}")
        expect(0 < error["details"]["timeToReset"] <= 600_000, f"{error}")
        other.call("login", options())
        server.control.settings(logins_window=0)
        client.call("login", options())
