"""Messages of a Meteor server that are allowed, and cost much work or memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from servers.codings import deflated
from servers.ddp import CONNECTED, message, send_all
from servers.peer import Peer, attack
from servers.websockets import DEFLATE, FIN, RSV1, TEXT, compressed, frame, handshake

MIB = 1 << 20
READY = b'{"msg":"ready","subs":["1"]}'
#: Shows the victim's change callback that all before it was applied.
LAST = b'{"msg":"added","collection":"last","id":"last"}'


def opened(peer: Peer, *fields: bytes) -> None:
    handshake(peer, *fields)
    peer.drain()
    peer.send(message(CONNECTED))


def serve(peer: Peer, *parts: Iterable[bytes]) -> None:
    """Sends messages, in the end the last document, and then waits."""
    opened(peer)
    send_all(peer, itertools.chain(*parts, [LAST, READY]))
    peer.hold()


def added(number: int, fields: bytes = b"{}", collection: bytes = b"c") -> bytes:
    text = b'{"msg":"added","collection":"%s","id":"%d","fields":%s}'
    return text % (collection, number, fields)


def changed(number: int, fields: bytes) -> bytes:
    return b'{"msg":"changed","collection":"c","id":"%d","fields":%s}' % (number, fields)


# One document, many changes.


@attack
def ddp_new_fields(peer: Peer) -> None:
    """32,000 changes, each with one new field of one document."""
    serve(peer, [added(0), READY], (changed(0, b'{"field%d":1}' % n) for n in range(32_000)))


@attack
def ddp_cleared_fields(peer: Peer) -> None:
    """A document of 32,000 fields, which go one by one."""
    fields = b",".join(b'"field%d":1' % number for number in range(32_000))
    clear = b'{"msg":"changed","collection":"c","id":"0","cleared":["field%d"]}'
    serve(peer, [added(0, b"{%s}" % fields), READY], (clear % n for n in range(32_000)))


@attack
def ddp_wide_document(peer: Peer) -> None:
    """A document of 500,000 fields."""
    fields = b",".join(b'"field%d":1' % number for number in range(500_000))
    serve(peer, [added(0, b"{%s}" % fields)])


@attack
def ddp_large_value(peer: Peer) -> None:
    """A document with a value of 10 MB, whose other field changes."""
    fields = b'{"n":0,"text":"' + b"x" * 10_000_000 + b'"}'
    serve(peer, [added(0, fields), READY], (changed(0, b'{"n":%d}' % n) for n in range(1000)))


# One message that compression makes large.


def large(peer: Peer, opening: bytes, unit: bytes, closing: bytes, mebibytes: int = 60) -> None:
    opened(peer, DEFLATE)
    block = deflated(unit * (MIB // len(unit)))
    payload = deflated(opening) + block * mebibytes
    peer.send(frame(FIN | RSV1 | TEXT, payload + compressed(closing)))
    peer.send(message(LAST))
    peer.hold()


@attack
def ddp_large_text(peer: Peer) -> None:
    large(peer, b'{"msg":"added","collection":"c","id":"0","fields":{"a":"', b"x", b'"}}')


@attack
def ddp_large_list(peer: Peer) -> None:
    large(peer, b'{"msg":"added","collection":"c","id":"0","fields":{"a":[', b"1,", b"1]}}")


@attack
def ddp_large_objects(peer: Peer) -> None:
    large(peer, b'{"msg":"added","collection":"c","id":"0","fields":{"a":[', b"{},", b"{}]}}")


@attack
def ddp_large_escapes(peer: Peer) -> None:
    opening = b'{"msg":"added","collection":"c","id":"0","fields":{"a":"'
    large(peer, opening, b"\\u0041", b'"}}')


@attack
def ddp_large_unknown(peer: Peer) -> None:
    large(peer, b'{"msg":"unknown","fields":{"a":[', b"1,", b"1]}}")


@attack
def ddp_large_ready(peer: Peer) -> None:
    large(peer, b'{"msg":"ready","subs":[', b'"7",', b'"7"]}')


@attack
def ddp_large_updated(peer: Peer) -> None:
    large(peer, b'{"msg":"updated","methods":[', b'"7",', b'"7"]}')


@attack
def ddp_large_result(peer: Peer) -> None:
    large(peer, b'{"msg":"result","id":"1","result":[', b"1,", b"1]}")


@attack
def ddp_values_result(peer: Peer) -> None:
    """A message that is not too large, with values that are."""
    large(peer, b'{"msg":"result","id":"1","result":[', b"1,", b"1]}", mebibytes=8)


@attack
def ddp_large_error(peer: Peer) -> None:
    large(peer, b'{"msg":"nosub","id":"1","error":{"error":404,"details":[', b"1,", b"1]}}")


@attack
def ddp_large_cleared(peer: Peer) -> None:
    opening = b'{"msg":"changed","collection":"c","id":"0","cleared":['
    large(peer, opening, b'"a",', b'"a"]}')


# Many documents.


def documents(count: int, fields: bytes = b'{"n":%d}') -> Iterator[bytes]:
    return (added(number, fields % number) for number in range(count))


@attack
def ddp_added_before(peer: Peer) -> None:
    """Each document comes before all others."""
    text = b'{"msg":"addedBefore","collection":"c","id":"%d","fields":{"n":%d},"before":"%d"}'
    more = (text % (number, number, number - 1) for number in range(1, 100_000))
    serve(peer, [added(0), READY], more)


@attack
def ddp_moved_before(peer: Peer) -> None:
    """1,000 documents; always the last one moves to the front."""
    text = b'{"msg":"addedBefore","collection":"c","id":"%d","fields":{"n":%d},"before":null}'
    all_ = (text % (number, number) for number in range(1000))
    move = b'{"msg":"movedBefore","collection":"c","id":"%d","before":"%d"}'
    moves = (move % (n % 1000, (n + 1) % 1000) for n in range(100_000, 0, -1))
    serve(peer, all_, [READY], moves)


@attack
def ddp_removed(peer: Peer) -> None:
    """200,000 documents come and go."""
    gone = (b'{"msg":"removed","collection":"c","id":"%d"}' % number for number in range(200_000))
    serve(peer, documents(200_000), [READY], gone)


@attack
def ddp_many_changed(peer: Peer) -> None:
    """20,000 documents change again and again."""
    changes = (changed(n % 20_000, b'{"n":%d}' % (n * 7919 % 20_011)) for n in range(200_000))
    serve(peer, documents(20_000), [READY], changes)


@attack
def ddp_few_changed(peer: Peer) -> None:
    """Each change is reported with the order of all documents."""
    changes = (changed(n, b'{"n":-1}') for n in range(5000))
    serve(peer, documents(5000), [READY], changes)


@attack
def ddp_sorted(peer: Peer) -> None:
    """A query sorts 50,000 documents by a list."""
    serve(peer, documents(50_000, b'{"n":[%d,1,2,3,4,5,6,7,8,9]}'))


@attack
def ddp_sorted_objects(peer: Peer) -> None:
    serve(peer, documents(50_000, b'{"n":{"a":{"b":%d}}}'))


@attack
def ddp_expensive_texts(peer: Peer) -> None:
    """Documents with texts for which a live query's expression needs many steps."""
    fields = b'{"n":"' + b"x" * 100_000 + b'"}'
    serve(peer, (added(number, fields) for number in range(100)))


# Messages that mean nothing.


@attack
def ddp_empty_texts(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b""))


@attack
def ddp_numbers(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b"1"))


@attack
def ddp_short_unknown(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b"{}"))


@attack
def ddp_ready_flood(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(READY))


@attack
def ddp_nosub_flood(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b'{"msg":"nosub","id":"1"}'))


@attack
def ddp_result_flood(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b'{"msg":"result","id":"1","result":1}'))


@attack
def ddp_updated_flood(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b'{"msg":"updated","methods":["1"]}'))


@attack
def ddp_error_flood(peer: Peer) -> None:
    opened(peer)
    peer.flood(message(b'{"msg":"error","reason":"%s"}' % (b"x" * 50)))
