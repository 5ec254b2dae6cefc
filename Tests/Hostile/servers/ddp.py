"""Attacks by a Meteor server: DDP messages over WebSocket, and SockJS."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from servers.http1 import CHUNKED, answer, chunk, head
from servers.peer import Gone, Peer, attack
from servers.websockets import CLOSE, FIN, TEXT, flood, frame, handshake

CONNECTED = b'{"msg":"connected","session":"s"}'
#: How many messages are sent at a time where each one differs.
BATCH = 10_000


def message(text: bytes) -> bytes:
    return frame(FIN | TEXT, text)


def confirmed(peer: Peer, text: bytes) -> None:
    """Confirms the connection, and floods with a message."""
    flood(peer, message(text), message(CONNECTED))


def send_all(peer: Peer, texts: Iterator[bytes]) -> None:
    """Sends messages that all differ, until the client closes the connection."""
    while batch := list(itertools.islice(texts, BATCH)):
        peer.send(b"".join(map(message, batch)))


def received(peer: Peer) -> Iterator[dict[str, Any]]:
    """The client's messages, until it closes the connection."""
    while True:
        first, length = peer.read(2)
        size = length & 0x7F
        if size >= 126:
            size = int.from_bytes(peer.read(2 if size == 126 else 8), "big")
        mask = peer.read(4)
        payload = peer.read(size)
        if first & 0xF == CLOSE:
            raise Gone
        if first & 0xF == TEXT:
            repeated = itertools.cycle(mask)
            yield json.loads(bytes(a ^ b for a, b in zip(payload, repeated, strict=False)))


# What is not a message, or has no meaning.


@attack
def ddp_malformed(peer: Peer) -> None:
    confirmed(peer, b'{"msg":"added","collection":"c","id":"a","fields":{"a":1}')


@attack
def ddp_unknown_messages(peer: Peer) -> None:
    confirmed(peer, b'{"msg":"unknown","id":"a","fields":{"a":1}}')


@attack
def ddp_unknown_ids(peer: Peer) -> None:
    """What is said about subscriptions and calls that the client never made."""
    unit = (
        message(b'{"msg":"nosub","id":"unknown","error":{"error":404}}')
        + message(b'{"msg":"ready","subs":["unknown"]}')
        + message(b'{"msg":"result","id":"99","result":1}')
        + message(b'{"msg":"updated","methods":["99","unknown"]}')
    )
    flood(peer, unit, message(CONNECTED))


@attack
def ddp_confirms_again(peer: Peer) -> None:
    """Confirms one connection again and again, each time with two sessions."""
    flood(peer, message(CONNECTED) + message(CONNECTED.replace(b'"s"', b'"t"')))


@attack
def ddp_nested(peer: Peer) -> None:
    """Fields nested deeper than 128 levels."""
    nested(peer, 200)


@attack
def ddp_nested_deep(peer: Peer) -> None:
    nested(peer, 200_000)


def nested(peer: Peer, depth: int) -> None:
    value = b"[" * depth + b"]" * depth
    confirmed(peer, b'{"msg":"added","collection":"c","id":"a","fields":{"a":' + value + b"}}")


@attack
def ddp_pings(peer: Peer) -> None:
    confirmed(peer, b'{"msg":"ping","id":"' + b"p" * 100 + b'"}')


@attack
def ddp_pings_unread(peer: Peer) -> None:
    """The server does not read the pongs."""
    handshake(peer)
    peer.send(message(CONNECTED))
    peer.flood(message(b'{"msg":"ping","id":"' + b"p" * 100 + b'"}'))


# Documents.


def small(number: int) -> bytes:
    return b'{"msg":"added","collection":"c","id":"%d","fields":{"n":%d}}' % (number, number)


@attack
def ddp_same_document(peer: Peer) -> None:
    """A document of a collection that the program does not know changes all the time."""
    one = b'{"msg":"changed","collection":"unknown","id":"a","fields":{"n":%d}}'
    flood(peer, message(one % 1) + message(one % 2), message(CONNECTED))


@attack
def ddp_small_documents(peer: Peer) -> None:
    """Ever new small documents."""
    handshake(peer)
    peer.drain()
    peer.send(message(CONNECTED))
    send_all(peer, map(small, itertools.count()))


@attack
def ddp_collections(peer: Peer) -> None:
    """Each document is in a collection of its own."""
    handshake(peer)
    peer.drain()
    peer.send(message(CONNECTED))
    send_all(
        peer,
        (b'{"msg":"added","collection":"c%d","id":"a"}' % number for number in itertools.count()),
    )


@attack
def ddp_large_documents(peer: Peer) -> None:
    handshake(peer)
    peer.drain()
    peer.send(message(CONNECTED))
    one = b'{"msg":"added","collection":"c","id":"%d","fields":{"text":"' + b"x" * 100_000 + b'"}}'
    for number in itertools.count():
        peer.send(message(one % number))


def held_back(peer: Peer, first: Iterable[bytes] = ()) -> bytes:
    """Makes the client hold documents back: it was connected before, and waits until its
    subscription is ready again and its call is done. Returns the messages that end this.

    :param first: what the first connection brings.
    """
    handshake(peer)
    session = CONNECTED if peer.number == 1 else CONNECTED.replace(b'"s"', b'"t"')
    peer.send(message(session))
    messages = received(peer)
    number = next(one["id"] for one in messages if one["msg"] == "sub")
    ready = message(b'{"msg":"ready","subs":["%s"]}' % number.encode())
    if peer.number == 1:
        send_all(peer, iter(first))
        # The answer shows that the client has read this.
        peer.send(ready + message(b'{"msg":"ping"}'))
        next(one for one in messages if one["msg"] == "pong")
        peer.finish()
        raise Gone
    peer.drain()
    return ready + message(b'{"msg":"updated","methods":["1"]}')


@attack
def ddp_before_ready(peer: Peer) -> None:
    """Small documents without end, which the client holds back."""
    held_back(peer)
    send_all(peer, map(small, itertools.count()))


@attack
def ddp_late_ready(peer: Peer) -> None:
    """200,000 small documents, which the client holds back, and then applies."""
    ready = held_back(peer)
    send_all(peer, map(small, range(200_000)))
    peer.send(ready)
    peer.hold()


@attack
def ddp_reconnect(peer: Peer) -> None:
    """200,000 small documents, and as many others on the next connection."""
    ready = held_back(peer, map(small, range(200_000)))
    send_all(peer, map(small, range(100_000, 300_000)))
    peer.send(message(b'{"msg":"added","collection":"last","id":"last"}') + ready)
    peer.hold()


# Connections.


@attack
def ddp_drops(peer: Peer) -> None:
    """Each connection is confirmed and lost."""
    handshake(peer)
    peer.send(message(CONNECTED))
    peer.finish()


@attack
def ddp_versions(peer: Peer) -> None:
    """The server wants another version than the one it wanted last."""
    handshake(peer)
    wanted = b"pre2" if peer.number % 2 else b"1"
    peer.send(message(b'{"msg":"failed","version":"' + wanted + b'"}'))
    peer.hold()


# SockJS, which follows when the WebSocket is refused.


#: What polls of a session are answered with, by the part of the path that names it.
_frames: dict[bytes, Iterator[bytes]] = {}


def sockjs(peer: Peer, body: bytes, *before: bytes) -> None:
    """Answers the polls of each session, first with the frames `before`, and then with `body`."""
    while True:
        session, action = request(peer)
        if action == b"xhr":
            endless = itertools.chain(before, itertools.repeat(body))
            answer(peer, next(_frames.setdefault(session, endless)))
        else:
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")


def request(peer: Peer) -> list[bytes]:
    """Reads a request, and refuses WebSockets. Returns the session's path, and the last part."""
    while True:
        method, target, _ = peer.request().split(b" ", 2)
        if method == b"POST":
            return target.rsplit(b"/", 1)
        answer(peer, b"", status=b"403 Forbidden")


OPEN = b"o\n"
CONFIRMED = b"a" + json.dumps([CONNECTED.decode()]).encode() + b"\n"


@attack
def sockjs_garbage(peer: Peer) -> None:
    sockjs(peer, b"\xff\x00garbage")


@attack
def sockjs_bad_array(peer: Peer) -> None:
    sockjs(peer, b'a["{\\"msg\\":\n', OPEN, CONFIRMED)


@attack
def sockjs_nested(peer: Peer) -> None:
    sockjs(peer, b"a" + b"[" * 200_000 + b"]" * 200_000 + b"\n", OPEN, CONFIRMED)


@attack
def sockjs_nothing(peer: Peer) -> None:
    """Answers without a frame."""
    sockjs(peer, b"", OPEN, CONFIRMED)


@attack
def sockjs_no_messages(peer: Peer) -> None:
    """Frames without messages, at once."""
    sockjs(peer, b"a[]\n", OPEN, CONFIRMED)


@attack
def sockjs_heartbeats(peer: Peer) -> None:
    sockjs(peer, b"h\n", OPEN, CONFIRMED)


@attack
def sockjs_messages(peer: Peer) -> None:
    """Frames with a message that has no meaning, at once."""
    sockjs(peer, b'a["{}"]\n', OPEN, CONFIRMED)


@attack
def sockjs_opens(peer: Peer) -> None:
    sockjs(peer, OPEN)


@attack
def sockjs_endless(peer: Peer) -> None:
    """A frame that does not end."""
    request(peer)
    peer.send(head(peer, CHUNKED) + chunk(b'a["'))
    peer.flood(chunk(b"x" * 1000))
