"""The Pusher server of the tests, against clients and libraries that are not ours."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import queue
import random
import time
from typing import Any

import pusher
import pysher
import pytest
import requests
from harness import PATIENCE_S, expect
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from pusher.errors import PusherBadAuth, PusherBadRequest, PusherBadStatus
from pusher_server import PusherServer
from pusher_server.signatures import channel_auth, encrypt, shared_secret, sign, user_auth

SUCCEEDED = "pusher_internal:subscription_succeeded"


@pytest.fixture
def server(pusher_server: PusherServer) -> PusherServer:
    return pusher_server


def publisher(server: PusherServer, secret: str = "") -> pusher.Pusher:
    """The official library for servers."""
    return pusher.Pusher(
        app_id=server.app_id,
        key=server.key,
        secret=secret or server.secret,
        host=server.host,
        port=server.port,
        ssl=False,
        encryption_master_key_base64=base64.b64encode(server.master_key).decode(),
    )


class Listener:
    """A client of `pysher`, with the events of its channels in a queue."""

    def __init__(self, server: PusherServer, **options: Any) -> None:
        self._server = server
        # pysher's name has no platform, which the protocol's description asks for.
        server.control.settings(checks_client_name=False)
        self._events: queue.Queue[tuple[str, str, Any]] = queue.Queue()
        self.client = pysher.Pusher(
            server.key,
            secure=False,
            custom_host=server.host,
            port=server.port,
            **options,
        )
        connected: queue.Queue[str] = queue.Queue()
        self.client.connection.bind("pusher:connection_established", connected.put)
        self.client.connect()
        self.socket_id = json.loads(connected.get(timeout=PATIENCE_S))["socket_id"]

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        # Its daemon thread notices the end up to 100 s later.
        self.client.disconnect(timeout=0)

    def subscribe(self, name: str, *events: str) -> pysher.channel.Channel:
        # pysher knows the channel, and we can bind, only after it has sent its message.
        self._server.control.fault(point="received", event="pusher:subscribe", do="hold")
        channel = self.client.subscribe(name)
        for event in [SUCCEEDED, *events]:
            channel.bind(event, lambda data, event=event: self._events.put((name, event, data)))
        self._server.control.wait_held()
        self._server.control.release()
        return channel

    def next(self, channel: str, event: str) -> Any:
        """The value of the next event, which must be this one."""
        got = self._events.get(timeout=PATIENCE_S)
        expect(got[:2] == (channel, event), f"{got[:2]} instead of {channel}, {event}")
        return json.loads(got[2]) if got[2] else got[2]


def decrypt(key: bytes, data: dict[str, str]) -> str:
    sealed, nonce = (base64.b64decode(data[name]) for name in ("ciphertext", "nonce"))
    return SecretBox(key).decrypt(sealed, nonce).decode()


# The two libraries together


def test_pysher_receives_public_events(server: PusherServer) -> None:
    with Listener(server) as listener:
        listener.subscribe("chat", "new-price")
        listener.next("chat", SUCCEEDED)
        publisher(server).trigger("chat", "new-price", {"price": "7.10"})
        expect(listener.next("chat", "new-price") == {"price": "7.10"}, "data")


def test_pysher_exchanges_client_events(server: PusherServer) -> None:
    """On a private channel; one client signs, the other asks the endpoint."""
    endpoint = {"auth_endpoint": f"{server.http}/pusher/auth"}
    with Listener(server, secret=server.secret) as ann, Listener(server, **endpoint) as bo:
        channel = ann.subscribe("private-orders", "client-typing")
        ann.next("private-orders", SUCCEEDED)
        bo.subscribe("private-orders", "client-typing")
        bo.next("private-orders", SUCCEEDED)
        channel.trigger("client-typing", {"on": True})
        expect(bo.next("private-orders", "client-typing") == {"on": True}, "data")
        publisher(server).trigger("private-orders", "client-typing", [1], socket_id=bo.socket_id)
        expect(ann.next("private-orders", "client-typing") == [1], "Ann's own event came back")
    (request,) = server.control.log(what="auth")
    wanted = {"channel_name": "private-orders", "socket_id": bo.socket_id}
    expect(request["form"] == wanted, f"form {request['form']}")


def test_pysher_refuses_a_wrong_signature(server: PusherServer) -> None:
    with Listener(server, secret="another") as listener:
        listener.subscribe("private-orders")
        (error,) = server.control.wait(what="out", event="pusher:error")
        expect(json.loads(error["text"])["data"]["code"] is None, error["text"])


def test_pysher_sees_members(server: PusherServer) -> None:
    """A user with two connections is added once, and removed with the last of them."""
    name, added, removed = (
        "presence-lobby",
        "pusher_internal:member_added",
        "pusher_internal:member_removed",
    )

    def join(user_id: str, user_name: str) -> Listener:
        data = {"user_id": user_id, "user_info": {"name": user_name}}
        return Listener(server, secret=server.secret, user_data=data)

    with join("u-1", "Ann") as ann:
        ann.subscribe(name, added, removed)
        ann.next(name, SUCCEEDED)
        with join("u-2", "Zoë") as first:
            first.subscribe(name, added, removed)
            table = first.next(name, SUCCEEDED)["presence"]
            people = {"u-1": {"name": "Ann"}, "u-2": {"name": "Zoë"}}
            expect(table == {"count": 2, "ids": ["u-1", "u-2"], "hash": people}, f"{table}")
            wanted = {"user_id": "u-2", "user_info": {"name": "Zoë"}}
            expect(ann.next(name, added) == wanted, "the added member")
            with join("u-2", "Zoë") as second:
                second.subscribe(name, added, removed)
                expect(second.next(name, SUCCEEDED)["presence"] == table, "the second table")
                users = publisher(server).users_info(name)["users"]
                expect(users == [{"id": "u-1"}, {"id": "u-2"}], f"{users}")
            server.control.wait_connections(2)
            publisher(server).trigger(name, added, {"marks": "the end of one connection"})
            expect("marks" in ann.next(name, added), "the user was added or removed")
            expect("marks" in first.next(name, added), "the user was added or removed")
        expect(ann.next(name, removed) == {"user_id": "u-2"}, "the removed member")


# The official library for servers


def test_publishing_needs_the_secret(server: PusherServer) -> None:
    with pytest.raises(PusherBadAuth, match="Invalid signature"):
        publisher(server, secret="another").trigger("chat", "hello", "you")
    publisher(server).trigger("chat", "hello", "you")
    expect([one["status"] for one in server.control.log(what="publish")] == [401, 200], "log")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, "{}"),
        ({"auth_key": "another"}, "auth_key"),
        ({"auth_version": "2.0"}, "auth_version"),
        ({"auth_timestamp": "1"}, "Timestamp"),
        ({"auth_timestamp": "soon"}, "auth_timestamp"),
        ({"body_md5": "00"}, "body_md5"),
        ({"more": "1"}, "{}"),
    ],
)
def test_each_part_of_a_signature(server: PusherServer, change: dict[str, str], text: str) -> None:
    path, body = "/apps/1/events", b'{"name":"hello","channel":"chat","data":"you"}'
    query = {
        "auth_key": server.key,
        "auth_version": "1.0",
        "auth_timestamp": str(int(time.time())),
        "body_md5": hashlib.md5(body).hexdigest(),
        **change,
    }
    signed = "&".join(f"{name}={value}" for name, value in sorted(query.items()))
    query["auth_signature"] = sign(server.secret, f"POST\n{path}\n{signed}")
    answer = requests.post(server.http + path, body, params=query, timeout=PATIENCE_S)
    expect(answer.status_code == (200 if text == "{}" else 401), answer.text)
    expect(text in answer.text, answer.text)


def test_publishing_checks_its_input(server: PusherServer) -> None:
    with pytest.raises(PusherBadStatus, match="413"):
        publisher(server).trigger("chat", "hello", "x" * 10241)
    with pytest.raises(PusherBadRequest, match="user_count"):
        publisher(server).channel_info("chat", ["user_count"])


def test_batches_and_information(server: PusherServer) -> None:
    with Listener(server, secret=server.secret, user_data={"user_id": "u-1"}) as listener:
        for name in ("chat", "presence-lobby"):
            listener.subscribe(name, "hello")
            listener.next(name, SUCCEEDED)
        api = publisher(server)
        names = ["chat", "presence-lobby"]
        api.trigger_batch([{"channel": name, "name": "hello", "data": name} for name in names])
        for name in names:
            expect(server.control.wait(what="out", event="hello", channel=name) != [], name)
        channels = api.channels_info("presence-", ["user_count"])["channels"]
        expect(channels == {"presence-lobby": {"user_count": 1}}, f"{channels}")
        info = api.channel_info("chat", ["subscription_count"])
        expect(info == {"occupied": True, "subscription_count": 1}, f"{info}")


def test_encrypted_events(server: PusherServer) -> None:
    """The library encrypts with the key that the endpoint gives to clients."""
    name = "private-encrypted-ledger"
    with Listener(server, secret=server.secret) as listener:
        listener.subscribe(name, "paid")
        listener.next(name, SUCCEEDED)
        form = {"socket_id": listener.socket_id, "channel_name": name}
        answer = requests.post(f"{server.http}/pusher/auth", form, timeout=PATIENCE_S).json()
        key = base64.b64decode(answer["shared_secret"])
        publisher(server).trigger(name, "paid", {"note": "Grüße"})
        text = decrypt(key, listener.next(name, "paid"))
        expect(json.loads(text) == {"note": "Grüße"}, text)
        server.control.publish(name, "paid", {"amount": 12})
        expect(decrypt(key, listener.next(name, "paid")) == '{"amount":12}', "our own event")


def test_users_get_events_and_are_terminated(server: PusherServer) -> None:
    name = "#server-to-user-u-1"
    with Listener(server) as listener:
        data = '{"id":"u-1"}'
        auth = user_auth(server.key, server.secret, listener.socket_id, data)
        listener.client.connection.send_event("pusher:signin", {"auth": auth, "user_data": data})
        server.control.wait(what="out", event="pusher:signin_success")
        listener.subscribe(name, "note")
        listener.next(name, SUCCEEDED)
        publisher(server).trigger(name, "note", {"text": "hello"})
        expect(listener.next(name, "note") == {"text": "hello"}, "data")
        publisher(server).terminate_user_connections("u-1")
        (close,) = server.control.wait(what="out", kind="close")
        expect(close["code"] == 4009, f"{close}")


# Signatures and encryption


def test_vectors_of_the_specification() -> None:
    """Those of the authorization and of encrypted channels."""
    key, secret, socket_id = "9f1c2ab34d5e6f708192", "5ecret-Key-0f-example", "4711.90210"
    lobby = '{"user_id":"u-17","user_info":{"name":"Zoë"}}'
    wanted = {
        channel_auth(key, secret, socket_id, "private-orders"): "ecc7347d9e661f62",
        channel_auth(key, secret, socket_id, "presence-lobby", lobby): "0906a6d5c9a5175f",
        channel_auth(
            key, secret, socket_id, "presence-lobby", '{"user_id":"u-17"}'
        ): "03dfd270ac7fc4fb",
        user_auth(
            key, secret, socket_id, '{"id":"u-17","watchlist":["u-3","u-9"]}'
        ): "ea9a53f41f3d1b6a",
    }
    for auth, start in wanted.items():
        expect(auth.startswith(f"{key}:{start}"), auth)
    master = base64.b64decode("8QtOksU0XPlmeKk+Z8GMsHUSB9O51fyoqQ9YIEaVFt4=")
    shared = shared_secret(master, "private-encrypted-ledger")
    expect(base64.b64encode(shared) == b"Kac8DG5/eTTzqfIZZ9HXAmnm6v4eMLUPYDHQdMHwBl4=", "key")
    sealed = json.loads(encrypt(shared, '{"amount":12,"note":"Grüße"}', bytes(range(24))))
    expect(sealed["nonce"] == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", sealed["nonce"])
    text = "DhyZvi1J2HACvtrFpT+c+kw4vAf12CcEtKEAhWVJiv7kl3qtF4ZyBhesP1r7jA=="
    expect(sealed["ciphertext"] == text, sealed["ciphertext"])


@pytest.mark.parametrize("seed", range(20))
def test_signatures_are_those_of_the_library(server: PusherServer, seed: int) -> None:
    draw = random.Random(seed)
    library = publisher(server)
    socket_id = f"{draw.randrange(10**6)}.{draw.randrange(10**6)}"
    letters = "abcXYZ019_-=@,.;"
    tail = "".join(draw.choice(letters) for _ in range(draw.randrange(1, 100)))
    user = {"id": tail, "text": "".join(chr(draw.randrange(32, 0x2FF)) for _ in range(20))}
    for prefix in ("private-", "presence-", "private-encrypted-"):
        data = {"user_id": tail} if prefix == "presence-" else None
        theirs = library.authenticate(prefix + tail, socket_id, data)
        ours = channel_auth(
            server.key, server.secret, socket_id, prefix + tail, theirs.get("channel_data")
        )
        expect(ours == theirs["auth"], prefix + tail)
        if prefix == "private-encrypted-":
            shared = shared_secret(server.master_key, prefix + tail)
            expect(base64.b64encode(shared) == theirs["shared_secret"], tail)
            expect(decrypt(shared, json.loads(encrypt(shared, tail))) == tail, tail)
            with pytest.raises(CryptoError):
                decrypt(os.urandom(32), json.loads(encrypt(shared, tail)))
    theirs = library.authenticate_user(socket_id, user)
    ours = user_auth(server.key, server.secret, socket_id, theirs["user_data"])
    expect(ours == theirs["auth"], f"{user}")
