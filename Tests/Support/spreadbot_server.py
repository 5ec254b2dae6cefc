"""A Spreadbot server, written from docs/spreadbot.md alone. All clients receive what one sends."""

import argparse
import asyncio
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

from aiohttp import WSMsgType, web

META, BATCH = "ws+meta.nchan", "application/vnd.spreadbot.batch+json"
TEXT, BINARY = "text/plain; charset=utf-8", "application/octet-stream"
KEPT_SECONDS, KEPT_MESSAGES, KEPT_BYTES = 600.0, 1000, 32 << 20  # the history of a path
MAX_BYTES, KEY_SECONDS, HEARTBEAT = 8 << 20, 86_400.0, 15.0
Messages = AsyncIterator[list["Message"]]


class Message(NamedTuple):
    """A message of a path. Its fields are the id, and the event if there is one."""

    fields: dict[str, str]
    data: bytes
    kind: str  # BINARY: the data are not UTF-8. Frames of ws+meta.nchan and polls keep them.

    def as_object(self) -> dict[str, str]:
        """Return the object of a plain WebSocket frame, or of an element of a batch."""
        return {**self.fields, "data": self.data.decode(errors="replace")}

    def as_lines(self, *more: str) -> bytes:
        """Return a line for each field, more lines, and an empty one."""
        return "\n".join([*(f"{k}: {v}" for k, v in self.fields.items()), *more, "", ""]).encode()

    def as_event(self) -> bytes:
        """Return the event of a stream. Only CR and LF end a line, unlike in str.splitlines."""
        lines = re.split("\r\n|\r|\n", self.data.decode(errors="replace"))
        return self.as_lines(*(f"data: {line}" for line in lines))


class Server:
    """The messages of all paths, the tokens, and the keys of the POSTs that were accepted."""

    def __init__(self, without: list[str], hold: float, token: str | None, life: float) -> None:
        self.without, self.hold, self.life = without, hold, life
        self.prefix, self.count = secrets.token_hex(4), 0  # an id has the prefix and a number
        self.history: dict[str, dict[int, Message]] = {}
        self.news = asyncio.Event()  # wakes all tasks that wait for a message
        self.keys: set[tuple[str, str]] = set()
        self.refresh, self.access = token, {token: time.monotonic() + life} if token else {}

    def check(self, request: web.Request) -> float:
        """Return when the token of a request ends, or refuse it."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        end = self.access.get(token, 0.0) if self.access else float("inf")
        if end <= time.monotonic():
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        return end

    async def grant(self, request: web.Request) -> web.Response:
        """Exchange the refresh token, which is spent by this, for two new tokens (RFC 6749 §6)."""
        form = await request.post()
        if form.get("grant_type") != "refresh_token" or form.get("refresh_token") != self.refresh:
            return web.json_response({"error": "invalid_grant"}, status=400)
        access, self.refresh = secrets.token_hex(), secrets.token_hex()
        self.access = {access: time.monotonic() + self.life}
        tokens = {"access_token": access, "refresh_token": self.refresh, "token_type": "Bearer"}
        return web.json_response({**tokens, "expires_in": int(self.life)})

    def publish(self, path: str, data: bytes, event: str = "") -> None:
        """Make data a message of a path, and wake all. An event has no control characters."""
        self.count += 1
        fields = {"id": f"{self.prefix}:{self.count}"} | ({"event": event} if event else {})
        kind = TEXT if data.decode(errors="replace").encode() == data else BINARY
        kept = self.history.setdefault(path, {})
        kept[self.count] = Message(fields, data, kind)
        while len(kept) > KEPT_MESSAGES or sum(len(m.data) for m in kept.values()) > KEPT_BYTES:
            del kept[next(iter(kept))]
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.expire, path, self.count)
        self.news.set()
        self.news.clear()

    def expire(self, path: str, number: int) -> None:
        """Forget a message, and its path if it was the last one."""
        self.history.get(path, {}).pop(number, None)
        if not self.history.get(path, True):
            del self.history[path]

    async def follow(self, path: str, number: int, end: float, idle: float) -> Messages:
        """Yield the messages after a number, or none after an idle time, until the end."""
        while (left := end - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, idle)):
                    while next(reversed(self.history.get(path, {})), 0) <= number:
                        await self.news.wait()
            found = [m for n, m in self.history.get(path, {}).items() if n > number]
            number = self.count
            yield found

    async def post(self, request: web.Request) -> web.Response:
        """Accept the body as a message, unless a POST with this key was accepted before."""
        self.check(request)
        data, key = await request.read(), request.headers.get("Idempotency-Key", "")
        if not key or (request.path, key) not in self.keys:  # Nothing is awaited from here on.
            self.publish(request.path, data)
            self.keys.add(taken := (request.path, key))
            asyncio.get_running_loop().call_later(KEY_SECONDS, self.keys.discard, taken)
        return web.Response(status=204)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Answer on the transport that the headers ask for, after the id that they name."""
        end, accept = self.check(request), request.headers.get("Accept", "")
        upgrade = request.headers.get("Upgrade", "").lower() == "websocket"
        kind = "websocket" if upgrade else "sse" if "text/event-stream" in accept else "poll"
        if kind in self.without:
            raise web.HTTPNotFound
        last_id = request.headers.get("Last-Event-ID") or f"{self.prefix}:{self.count}"
        known = re.fullmatch(f"{self.prefix}:([0-9]{{1,18}})", last_id)
        number = int(known[1]) if known and int(known[1]) <= self.count else 0
        messages = self.follow(request.path, number, end, HEARTBEAT)
        if kind == "websocket":
            return await self.websocket(request, messages)
        if kind == "poll":
            if not request.headers.get("Last-Event-ID"):  # No message, but a cursor.
                return web.json_response({"messages": [{"id": last_id}]}, content_type=BATCH)
            messages = self.follow(request.path, number, end, self.hold)
            return poll_answer(await anext(messages, []))
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(f"id: {self.prefix}:{number}\n\n".encode())  # No message, but a cursor.
        async for found in messages:
            await stream.write(b"".join(message.as_event() for message in found) or b":\n")
        return stream

    async def websocket(self, request: web.Request, messages: Messages) -> web.WebSocketResponse:
        """Receive frames while a task sends messages. Pings are answered in the loop, in order."""
        protocols = () if "subprotocol" in self.without else (META,)
        ws = web.WebSocketResponse(protocols=protocols, max_msg_size=MAX_BYTES, compress=False)
        await ws.prepare(request)
        sender = asyncio.create_task(send(ws, messages))
        try:
            async for frame in ws:
                if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    data: str | bytes = frame.data
                    self.publish(request.path, data.encode() if isinstance(data, str) else data)
                    await asyncio.sleep(0)  # Let others send it before it can leave the history.
        finally:
            sender.cancel()
        return ws


async def send(ws: web.WebSocketResponse, messages: Messages) -> None:
    """Send messages over a WebSocket, and close it when its token has ended."""
    with suppress(ConnectionError):
        async for message in (m async for found in messages for m in found):
            if ws.ws_protocol == META:
                frame = message.as_lines(f"content-type: {message.kind}") + message.data
                opcode = WSMsgType.TEXT if message.kind == TEXT else WSMsgType.BINARY
                await ws.send_frame(frame, opcode)
            else:
                await ws.send_json(message.as_object())
        await ws.close(code=4401)


def poll_answer(found: list[Message]) -> web.Response:
    """Answer with nothing, one message with its bytes as they are, or a batch of texts."""
    if not found:
        return web.Response(status=204)
    if found[0].kind == BINARY:
        headers = {"Content-Type": BINARY, "Last-Event-ID": found[0].fields["id"]}
        return web.Response(body=found[0].data, headers=headers)
    batch = [message.as_object() for message in takewhile(lambda m: m.kind == TEXT, found)]
    return web.json_response({"messages": batch}, content_type=BATCH)


def main() -> None:
    """Read the command line and serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="A Spreadbot server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--without", default="", help="of websocket,sse,poll,subprotocol")
    parser.add_argument("--hold", type=float, default=30.0, help="seconds to hold a poll")
    parser.add_argument("--token", help="the first access token, and the first refresh token")
    parser.add_argument("--token-life", type=float, default=3600.0, help="seconds")
    args = parser.parse_args()
    server = Server(args.without.split(","), args.hold, args.token, args.token_life)
    app, anything = web.Application(client_max_size=MAX_BYTES), "/{path:.*}"
    routes = [web.get(anything, server.get, allow_head=False), web.post(anything, server.post)]
    app.add_routes([web.post("/token", server.grant), *routes] if args.token else routes)
    listener = socket.create_server((args.host, args.port))
    print(f"listening on http://{args.host}:{listener.getsockname()[1]}", flush=True)
    web.run_app(app, sock=listener, print=None, handler_cancellation=True, shutdown_timeout=1.0)


if __name__ == "__main__":
    main()
