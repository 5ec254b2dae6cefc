"""The contract programs' peer: a WebSocket server whose path selects what it does.

Prints its port on a line of its own and runs until its standard input ends. Paths that say "HTTP"
are answered without a WebSocket.

/echo            sends every message back
/flood           sends 64 KiB again and again
/bombs/N         sends N messages of 60 MB of zeros, each as 60 kB
/sink            reads and discards
/stall           reads nothing until somebody opens /release, then reads and discards
/release         lets the stalled connections continue
/push/N          sends N numbered text messages, then waits for the client to close
/app/push-N      Pusher: answers the first subscription, and sends N events on its channel
/close/CODE      closes at once with CODE and the reason "because"
/headers         sends the request's headers as one text, one per line
/drop            cuts the connection without a closing handshake
/refuse          answers the handshake with 404
/guarded/STATUS  like /echo with "Authorization: Bearer good"; otherwise refuses with STATUS
/explain/N       refuses any request with 403 and N bytes of JSON; with all of it if N is 0
/redirect/N      redirects to /redirect/N-1, and /redirect/0 to /echo
/away            redirects to /headers under another name of this host
/flaky/NAME/N    cuts the first N connections of this NAME, then sends every message back
/events/N        HTTP: a stream of the N events after Last-Event-ID; then it ends. Each has an id,
                 and a comment before it; those with an odd number have the type "odd"
/flood-events    HTTP: 200 MiB of events without an id, each of 1 KiB that compresses badly
/flood-events/gzip                             the same, compressed
/bomb/CODING     HTTP: 200 MiB of zeros in gzip, zstd, br, or gzip twice
/bomb/events     HTTP: 48 MiB of events of 1 KiB, in gzip
/tokens          HTTP: a stream of one event; needs "Authorization: Bearer good"
/poll/N          HTTP: the message after Last-Event-ID, up to the Nth, then nothing; needs
                 "Authorization: Bearer good"
/batch/N         HTTP: a batch of N empty messages, then nothing; cut short if N is negative
/gone            HTTP: 410
"""

from __future__ import annotations

import asyncio
import base64
import functools
import gzip
import json
import random
import struct
import sys
import zlib
from http import HTTPStatus

import zstandard
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

# 200 MiB of zeros in br.
BROTLI_BOMB = bytes.fromhex(
    "cfffff7f002400e2b14072effff9ffff0f8004401c1680eefd3fffffff01900088c302d0bdffe7ffff3f0012"
    "00715800baf7fffcffff074002200e0b40f7fe9fffffff004800c46101e8defff3ffff1f000980382c00ddfb"
    "7ffeffff032001108705a07bffcfffff7f002400e2b00074effff9ffff0f8004401c1680eefd3fffffff0190"
    "0088c302d0bdffe7ffff3f001200715800baf7fff9ffff074002200e0b40f7fe0f"
)

released = asyncio.Event()
cut: dict[str, int] = {}


def last_number(request: Request) -> int:
    """The number in Last-Event-ID; random calls also send other ids."""
    text = request.headers.get("Last-Event-ID", "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def events(connection: ServerConnection, request: Request, count: int) -> Response:
    last = last_number(request)
    text = "retry: 10\n\n"
    for number in range(last + 1, last + count + 1):
        kind = "event: odd\n" if number % 2 else ""
        text += f": {number}\nid: {number}\n{kind}data: number\ndata: {number}\n\n"
    response = connection.respond(HTTPStatus.OK, text)
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "text/event-stream"
    return response


def flood(connection: ServerConnection, *codings: str) -> Response:
    line = b"data: " + base64.b64encode(random.Random(1).randbytes(768)) + b"\n\n"
    some = line * 1024
    body = some * 200
    response = connection.respond(HTTPStatus.OK, "")
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "text/event-stream"
    if codings:
        response.headers["Content-Encoding"] = codings[0]
        body = gzip.compress(body, 0)
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(body))
    return Response(response.status_code, response.reason_phrase, response.headers, body)


def repeated(unit: bytes, count: int) -> bytes:
    """The unit repeated, as one gzip member made of copies of its deflate blocks."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    blocks = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(count):
        checksum = zlib.crc32(unit, checksum)
    trailer = struct.pack("<II", checksum, len(unit) * count)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + blocks * count + b"\x03\0" + trailer


@functools.cache
def packed(kind: str) -> bytes:
    if kind == "events":
        return repeated((b"data: " + b"x" * 1016 + b"\n\n") * 1024, 48)
    if kind == "zstd":
        return zstandard.ZstdCompressor(write_content_size=False).compress(bytes(200 << 20))
    if kind == "br":
        return BROTLI_BOMB
    body = repeated(bytes(1 << 20), 200)
    return gzip.compress(body) if kind == "gzip,gzip" else body


def bomb(connection: ServerConnection, request: Request, kind: str) -> Response:
    body = packed(kind)
    response = connection.respond(HTTPStatus.OK, "")
    for name in ("Content-Type", "Content-Length"):
        del response.headers[name]
    is_stream = request.headers.get("Accept") == "text/event-stream"
    response.headers["Content-Type"] = "text/event-stream" if is_stream else "text/plain"
    response.headers["Content-Encoding"] = "gzip" if kind == "events" else kind
    response.headers["Content-Length"] = str(len(body))
    return Response(response.status_code, response.reason_phrase, response.headers, body)


def polled(connection: ServerConnection, request: Request, count: int) -> Response:
    number = last_number(request) + 1
    if number > count:
        return connection.respond(HTTPStatus.NO_CONTENT, "")
    response = connection.respond(HTTPStatus.OK, f"message {number}")
    response.headers["Last-Event-ID"] = str(number)
    return response


def batch(connection: ServerConnection, request: Request, count: int) -> Response:
    if "Last-Event-ID" in request.headers:
        return connection.respond(HTTPStatus.NO_CONTENT, "")
    end = "--b--\r\n" if count >= 0 else ""
    response = connection.respond(HTTPStatus.OK, "--b\r\n\r\n\r\n" * abs(count) + end)
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "multipart/mixed; boundary=b"
    response.headers["Last-Event-ID"] = "7"
    return response


def explain(connection: ServerConnection, count: int) -> Response:
    text = '{"error": "no seat is free"}'
    response = connection.respond(HTTPStatus.FORBIDDEN, text.ljust(count))
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json"
    response.headers["X-Why"] = "full"
    return response


def refuse(connection: ServerConnection, request: Request) -> Response | None:
    _, action, *rest = request.path.partition("?")[0].split("/")
    if action == "refuse":
        return connection.respond(HTTPStatus.NOT_FOUND, "not here\n")
    if action == "explain":
        return explain(connection, int(rest[0]))
    if action == "guarded" and request.headers.get("Authorization") != "Bearer good":
        return connection.respond(HTTPStatus(int(rest[0])), "a token is needed\n")
    if action == "events":
        return events(connection, request, int(rest[0]))
    if action == "flood-events":
        return flood(connection, *rest)
    if action == "bomb":
        return bomb(connection, request, rest[0])
    if action == "batch":
        return batch(connection, request, int(rest[0]))
    if action == "gone":
        return connection.respond(HTTPStatus.GONE, "")
    if action in ("tokens", "poll"):
        if request.headers.get("Authorization") != "Bearer good":
            return connection.respond(HTTPStatus.UNAUTHORIZED, "a token is needed\n")
        if action == "poll":
            return polled(connection, request, int(rest[0]))
        return events(connection, request, 1)
    location = None
    if action == "redirect":
        left = int(rest[0])
        location = f"/redirect/{left - 1}" if left else "/echo"
    elif action == "away":
        location = f"http://localhost:{connection.local_address[1]}/headers"
    if location is None:
        return None
    response = connection.respond(HTTPStatus.FOUND, "")
    response.headers["Location"] = location
    return response


def zeros_frame() -> bytes:
    """A frame of 60 kB, compressed by hand: 60 MB of zeros (RFC 7692 §7.2.1)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflate.compress(bytes(60_000_000)) + deflate.flush(zlib.Z_SYNC_FLUSH)
    data = data[:-4]
    return b"\xc2\x7e" + len(data).to_bytes(2, "big") + data


async def push_events(connection: ServerConnection, count: int) -> None:
    greeting = json.dumps({"socket_id": "1.2", "activity_timeout": 120})
    await connection.send(json.dumps({"event": "pusher:connection_established", "data": greeting}))
    channel = json.loads(await connection.recv())["data"]["channel"]
    subscribed = {"event": "pusher_internal:subscription_succeeded", "channel": channel}
    await connection.send(json.dumps(subscribed | {"data": "{}"}))
    for number in range(count):
        data = json.dumps({"number": number, "text": "a\u00e9 \n"})
        await connection.send(json.dumps({"event": "new", "channel": channel, "data": data}))


async def answer(connection: ServerConnection) -> None:
    assert connection.request is not None
    _, action, *rest = connection.request.path.split("/")
    if action == "push":
        for number in range(int(rest[0])):
            await connection.send(str(number))
    elif action == "app":
        await push_events(connection, int(rest[0].partition("?")[0].removeprefix("push-")))
    elif action == "bombs":
        connection.transport.write(zeros_frame() * int(rest[0]))
    elif action == "headers":
        headers = connection.request.headers.raw_items()
        await connection.send("".join(f"{name}: {value}\n" for name, value in headers))
    elif action == "close":
        await connection.close(int(rest[0]), "because")
    elif action == "drop":
        connection.transport.abort()
    elif action == "flaky":
        name, count = rest[0], int(rest[1])
        cut[name] = cut.get(name, 0) + 1
        if cut[name] <= count:
            connection.transport.abort()
    elif action == "flood":
        while True:
            await connection.send(bytes(64 << 10))
    elif action == "sink":
        async for _ in connection:
            pass
    elif action == "stall":
        await released.wait()
        async for _ in connection:
            pass
    elif action == "release":
        # Releases the connections that stall now; later ones wait again.
        released.set()
        released.clear()
    async for message in connection:
        await connection.send(message)


async def handle(connection: ServerConnection) -> None:
    try:
        await answer(connection)
    except ConnectionClosed:
        pass  # Tests include clients that disconnect without a close frame.


async def main() -> None:
    async with serve(handle, "127.0.0.1", 0, process_request=refuse, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
