"""Attacks by a Pusher server, and by an endpoint that authorizes subscriptions."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator

from servers.codings import deflated
from servers.ddp import received
from servers.http1 import answer
from servers.peer import Peer, attack
from servers.websockets import DEFLATE, FIN, RSV1, TEXT, compressed, frame, handshake

MIB = 1 << 20
ESTABLISHED = rb'{"event":"pusher:connection_established","data":"{\"socket_id\":\"1.1\"}"}'
#: The key of all encrypted channels.
SECRET = base64.b64encode(b"s" * 32).decode()


def message(text: bytes) -> bytes:
    return frame(FIN | TEXT, text)


def opened(peer: Peer, *fields: bytes) -> None:
    handshake(peer, *fields)
    peer.send(message(ESTABLISHED))


def event(name: str, channel: str, data: str) -> bytes:
    return message(json.dumps({"event": name, "channel": channel, "data": data}).encode())


def send_all(peer: Peer, messages: Iterator[bytes]) -> None:
    while batch := list(itertools.islice(messages, 1000)):
        peer.send(b"".join(batch))


# What the client answers.


def pusher(peer: Peer, text: bytes) -> None:
    """Floods with a message, and never reads the answers."""
    opened(peer)
    peer.flood(message(text))


@attack
def pusher_pings(peer: Peer) -> None:
    pusher(peer, b'{"event":"pusher:ping","data":"{}"}')


@attack
def pusher_successes(peer: Peer) -> None:
    """Confirms a channel that was not subscribed, so that the client unsubscribes it."""
    confirm(peer, b"x" * 164)


@attack
def pusher_long_successes(peer: Peer) -> None:
    confirm(peer, b"x" * 60_000)


def confirm(peer: Peer, channel: bytes) -> None:
    text = b"pusher_internal:subscription_succeeded"
    pusher(peer, b'{"event":"' + text + b'","channel":"' + channel + b'","data":"{}"}')


# Messages that mean nothing.


def flooded(peer: Peer, text: bytes) -> None:
    opened(peer)
    peer.drain()
    peer.flood(message(text))


@attack
def pusher_empty_texts(peer: Peer) -> None:
    flooded(peer, b"")


@attack
def pusher_numbers(peer: Peer) -> None:
    flooded(peer, b"1")


@attack
def pusher_errors(peer: Peer) -> None:
    flooded(peer, b'{"event":"pusher:error","data":{"code":null,"message":"no"}}')


@attack
def pusher_unknown_events(peer: Peer) -> None:
    flooded(peer, b'{"event":"e","channel":"unknown","data":"{}"}')


@attack
def pusher_internal_events(peer: Peer) -> None:
    flooded(peer, b'{"event":"pusher_internal:unknown","channel":"presence-a","data":"{}"}')


# Large messages.


def large(peer: Peer, opening: bytes, unit: bytes, closing: bytes, mebibytes: int = 15) -> None:
    """One message that compression makes large, again and again."""
    opened(peer, DEFLATE)
    peer.drain()
    block = deflated(unit * (MIB // len(unit)))
    payload = deflated(opening) + block * mebibytes + compressed(closing)
    peer.flood(frame(FIN | RSV1 | TEXT, payload))


@attack
def pusher_large_data(peer: Peer) -> None:
    """Data that is not a text, which is kept as JSON."""
    large(peer, b'{"event":"e","channel":"open","data":[', b"1,", b"1]}")


@attack
def pusher_large_objects(peer: Peer) -> None:
    large(peer, b'{"event":"e","channel":"open","data":[', b"{},", b"{}]}")


@attack
def pusher_large_escapes(peer: Peer) -> None:
    large(peer, b'{"event":"e","channel":"open","data":"', b"\\u0041", b'"}')


@attack
def pusher_large_watchlist(peer: Peer) -> None:
    opening = b'{"event":"pusher_internal:watchlist_events","data":{"events":['
    unit = b'{"name":"online","user_ids":["1"]},'
    large(peer, opening, unit, b'{"name":"online","user_ids":[]}]}}')


@attack
def pusher_large_error(peer: Peer) -> None:
    large(peer, b'{"event":"pusher:error","data":{"message":"', b"x", b'"}}')


# Channels that need an authorization: the same server gives it.


def authorizes(peer: Peer) -> None:
    """Answers requests for authorizations, until the client wants a WebSocket."""
    number = itertools.count()
    while True:
        head = peer.request()
        if b"upgrade: websocket" in head.lower():
            return peer.unread(head)
        data = json.dumps({"user_id": f"u{next(number)}", "user_info": {}})
        body = {"auth": "key:" + "a" * 64, "shared_secret": SECRET, "channel_data": data}
        answer(peer, json.dumps(body).encode())


def subscribed(peer: Peer, channel: str, data: str = "{}") -> None:
    """Confirms the channel that the client subscribes to."""
    confirmed(peer, 1)
    peer.send(event("pusher_internal:subscription_succeeded", channel, data))


def confirmed(peer: Peer, count: int) -> list[str]:
    """Waits for subscriptions. Returns their channels."""
    authorizes(peer)
    opened(peer)
    messages = (one for one in received(peer) if one["event"] == "pusher:subscribe")
    channels = [one["data"]["channel"] for one in itertools.islice(messages, count)]
    peer.drain()
    return channels


@attack
def pusher_members(peer: Peer) -> None:
    """Members without end, with ids and infos of 1 MB."""
    subscribed(peer, "presence-a", '{"presence":{"count":0,"ids":[],"hash":{}}}')
    for number in itertools.count():
        member = {"user_id": f"{number}" + "i" * MIB, "user_info": {"name": "n" * MIB}}
        data = json.dumps(member)
        peer.send(event("pusher_internal:member_added", "presence-a", data))


@attack
def pusher_small_members(peer: Peer) -> None:
    subscribed(peer, "presence-a", '{"presence":{"count":0,"ids":[],"hash":{}}}')
    text = '{"user_id":"%d","user_info":{"name":"n"}}'
    name = "pusher_internal:member_added"
    send_all(peer, (event(name, "presence-a", text % number) for number in itertools.count()))


@attack
def pusher_ids(peer: Peer) -> None:
    """A list of a million members."""
    ids = [str(number) for number in range(1_000_000)]
    presence = {"count": len(ids), "ids": ids, "hash": {}}
    subscribed(peer, "presence-a", json.dumps({"presence": presence}))
    peer.hold()


@attack
def pusher_hash(peer: Peer) -> None:
    """700,000 members with their infos."""
    infos: dict[str, object] = {str(number): {} for number in range(700_000)}
    presence = {"count": len(infos), "ids": [], "hash": infos}
    subscribed(peer, "presence-a", json.dumps({"presence": presence}))
    peer.hold()


@attack
def pusher_undecryptable(peer: Peer) -> None:
    """Events of 300 encrypted channels that no key decrypts."""
    channels = confirmed(peer, 300)
    name = "pusher_internal:subscription_succeeded"
    peer.send(b"".join(event(name, channel, "{}") for channel in channels))
    box = json.dumps({"nonce": "A" * 32, "ciphertext": "A" * 40_000})
    while True:
        for channel in channels:
            peer.send(event("e", channel, box))


@attack
def pusher_large_box(peer: Peer) -> None:
    """One encrypted event of 10 MB, again and again."""
    subscribed(peer, "private-encrypted-0")
    box = json.dumps({"nonce": "A" * 32, "ciphertext": "A" * 10_000_000})
    peer.flood(event("e", "private-encrypted-0", box))
