"""A server to try librealtime against: WebSocket, server-sent events, long polls, requests and
Pusher Channels.

    pip install 'librealtime[demo]'
    python -m librealtime.demo_server --port 8080

It prints its URLs, then a line for each response. It keeps messages in memory, and anyone can read
and publish them; so by default only programs on the same machine can connect.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import logging
import re
import secrets
import socket
import sys
import time
import weakref
from typing import Any, NamedTuple, TypeVar

try:
    from aiohttp import WSCloseCode, WSMsgType, web
    from aiohttp.http import HttpProcessingError
except ImportError:
    if __name__ != "__main__":
        raise
    sys.exit("demo_server: aiohttp is missing; install it by: pip install 'librealtime[demo]'")

if __package__:
    from .demo_pusher import KEY, SECRET, DemoPusher
else:  # `make serve` runs this file, because the package needs the built library.
    from demo_pusher import KEY, SECRET, DemoPusher  # type: ignore[import-not-found, no-redef]

# What Spreadbot expects of a server is in docs/spreadbot.md.
META = "ws+meta.nchan"
BATCH = "application/vnd.spreadbot.batch+json"
TEXT, BINARY = "text/plain; charset=utf-8", "application/octet-stream"

# Limits, so that memory cannot grow. The oldest messages and keys are dropped first.
MAX_BYTES = 1 << 20  # of a message or a request's body
MAX_MESSAGES = 1000  # of all channels together
MAX_HISTORY_BYTES = 32 << 20
MAX_KEYS = 1000

HOLD_S = 30.0  # how long a poll waits for a message
HEARTBEAT_S = 15.0  # how long a connection may be idle
MAX_MISSED = 60  # events that /events repeats after an interruption
MAX_SLOW_S = 60.0
CLOSE_S = 1.0  # how long clients may take to close their connections

USAGE = """\
The demo server of librealtime is ready; Ctrl-C stops it.

{ws}/echo                 a WebSocket: sends each message back
{http}/events             server-sent events: the time, every second
{http}/channel/news       publish by POST; read by Spreadbot, WebSocket, events or long polls
{http}/anything           requests: responds with the request as JSON
{http}/status/503         responds with this status; ?retry_after=2 adds Retry-After
{http}/flaky              responds twice with 503, then with 200
{http}/slow?seconds=3     responds after this time
{http}                    Pusher Channels: key {key}, secret {secret}; signs at /pusher/auth

To publish a message: curl -d hello {http}/channel/news
To publish an event:  curl -d '{event}' {http}/apps/1/events
"""
EVENT = '{"name":"new-price","channel":"orders","data":"7.10"}'

T = TypeVar("T")


class Message(NamedTuple):
    """A message of a channel."""

    id: str
    channel: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")

    @property
    def is_text(self) -> bool:
        return self.text.encode() == self.data

    def as_object(self) -> dict[str, str]:
        return {"id": self.id, "data": self.text}

    def as_event(self) -> bytes:
        # Unlike in str.splitlines, only CR, LF and CRLF end a line.
        lines = [f"data: {line}\n" for line in re.split("\r\n|\r|\n", self.text)]
        return f"id: {self.id}\n{''.join(lines)}\n".encode()

    def as_frame(self) -> bytes:
        """The frame of the subprotocol, which keeps all bytes."""
        kind = TEXT if self.is_text else BINARY
        return f"id: {self.id}\ncontent-type: {kind}\n\n".encode() + self.data


class History:
    """The latest messages of all channels, numbered in one sequence."""

    def __init__(self) -> None:
        self.count = 0
        self.news = asyncio.Event()  # set by the next message
        self._prefix = secrets.token_hex(3)  # another one in each run, so that ids stay unique
        self._messages: collections.deque[Message] = collections.deque()
        self._bytes = 0

    def add(self, channel: str, data: bytes) -> Message:
        self.count += 1
        message = Message(f"{self._prefix}-{self.count}", channel, data)
        self._messages.append(message)
        self._bytes += len(data)
        while len(self._messages) > MAX_MESSAGES or self._bytes > MAX_HISTORY_BYTES:
            self._bytes -= len(self._messages.popleft().data)
        self.news.set()
        self.news = asyncio.Event()
        return message

    def after(self, channel: str, number: int) -> list[Message]:
        """The messages of a channel after the one with this number."""
        dropped = self.count - len(self._messages)
        rest = itertools.islice(self._messages, max(0, number - dropped), None)
        return [message for message in rest if message.channel == channel]

    def number(self, message_id: str) -> int:
        """The number in an id; for unknown ids 0, which is before all messages."""
        found = re.fullmatch(rf"{self._prefix}-([0-9]{{1,18}})", message_id)
        return int(found[1]) if found and int(found[1]) <= self.count else 0


class DemoServer:
    """What the server does at each URL."""

    def __init__(self, url: str) -> None:
        ws = url.replace("http", "ws", 1)
        self.usage = USAGE.format(http=url, ws=ws, key=KEY, secret=SECRET, event=EVENT)
        self._pusher = DemoPusher(self._open_websocket)
        self._history = History()
        self._stop = asyncio.Event()
        self._sockets: weakref.WeakSet[web.WebSocketResponse] = weakref.WeakSet()
        self._accepted: dict[tuple[str, str], Message] = {}  # by channel and Idempotency-Key
        self._failures: dict[str, int] = {}  # of /flaky

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_BYTES)
        channel = "/channel/{name:[^/]{1,100}}"
        application.add_routes(
            [
                web.get("/", self.index),
                web.get("/echo", self.echo, allow_head=False),
                web.get("/events", self.events, allow_head=False),
                web.get(channel, self.read, allow_head=False),
                web.post(channel, self.publish),
                web.route("*", "/anything", self.anything),
                web.route("*", r"/status/{code:[2-5]\d\d}", self.status),
                web.route("*", "/flaky", self.flaky),
                web.route("*", "/slow", self.slow),
                *self._pusher.routes(),
            ]
        )
        application.on_response_prepare.append(log_response)
        application.on_shutdown.append(self._close)
        return application

    async def _close(self, _: web.Application) -> None:
        """Ends all responses and WebSockets, so that clients see an orderly end."""
        self._stop.set()
        self._history.news.set()
        closing = [ws.close(code=WSCloseCode.GOING_AWAY) for ws in self._sockets]
        await asyncio.gather(*closing, return_exceptions=True)

    async def _pause(self, seconds: float) -> bool:
        """Waits for a time, or until the server stops; returns whether it has stopped."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), max(0, seconds))
        return self._stop.is_set()

    async def _open_websocket(self, request: web.Request, *protocols: str) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(
            protocols=protocols, max_msg_size=MAX_BYTES, heartbeat=HEARTBEAT_S, timeout=CLOSE_S
        )
        await ws.prepare(request)
        self._sockets.add(ws)
        return ws

    async def index(self, _: web.Request) -> web.Response:
        return web.Response(text=self.usage)

    async def echo(self, request: web.Request) -> web.StreamResponse:
        """Sends each message back, compressed if the client offered that."""
        ws = await self._open_websocket(request)
        async for frame in ws:
            if frame.type is WSMsgType.TEXT:
                await ws.send_str(frame.data)
            elif frame.type is WSMsgType.BINARY:
                await ws.send_bytes(frame.data)
        return ws

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Sends the time every second. The id of an event is the second since 1970."""
        now = int(time.time())
        found = re.fullmatch("[0-9]{1,18}", last_event_id(request))
        second = min(max(int(found[0]) + 1, now - MAX_MISSED), now + 1) if found else now
        stream = await open_event_stream(request)
        while not await self._pause(second - time.time()):
            text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
            try:
                await stream.write(f"id: {second}\nevent: tick\ndata: {text}\n\n".encode())
            except ConnectionResetError:  # the client has gone meanwhile
                break
            second += 1
        return stream

    async def publish(self, request: web.Request) -> web.Response:
        """Publishes the body, unless a POST with the same Idempotency-Key has done so before."""
        channel, key = request.match_info["name"], request.headers.get("Idempotency-Key")
        data = await request.read()
        message = self._accepted.get((channel, key)) if key else None
        if message:
            return json_response({"id": message.id})
        message = self._history.add(channel, data)
        if key:
            keep(self._accepted, (channel, key), message)
        return json_response({"id": message.id}, status=201)

    async def read(self, request: web.Request) -> web.StreamResponse:
        """Sends the messages after the one that the request names, or all that are kept."""
        number = self._history.number(last_event_id(request))
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._read_by_websocket(request, number)
        if "text/event-stream" in request.headers.get("Accept", ""):
            return await self._read_by_events(request, number)
        return await self._read_by_poll(request, number)

    async def _wait(self, channel: str, number: int, seconds: float) -> tuple[int, list[Message]]:
        """Waits for messages after a number, and returns the number of the last one.

        After this time, or when the server stops, the list is empty.
        """
        deadline = time.monotonic() + seconds
        while not (found := self._history.after(channel, number)) and not self._stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._history.news.wait(), left)
        return self._history.count, found

    async def _read_by_websocket(self, request: web.Request, number: int) -> web.StreamResponse:
        """Sends messages, and publishes those of the client. Pings are answered in order."""
        channel = request.match_info["name"]
        ws = await self._open_websocket(request, META)
        sending = asyncio.ensure_future(self._send(ws, channel, number))
        try:
            async for frame in ws:
                if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    text = frame.type is WSMsgType.TEXT
                    self._history.add(channel, frame.data.encode() if text else frame.data)
                    await asyncio.sleep(0)  # Readers may run before the next message.
        finally:
            sending.cancel()
        return ws

    async def _send(self, ws: web.WebSocketResponse, channel: str, number: int) -> None:
        with contextlib.suppress(ConnectionError):
            while not self._stop.is_set():
                number, found = await self._wait(channel, number, HEARTBEAT_S)
                for message in found:
                    if ws.ws_protocol != META:
                        await ws.send_json(message.as_object())
                    elif message.is_text:
                        await ws.send_str(message.as_frame().decode())
                    else:
                        await ws.send_bytes(message.as_frame())

    async def _read_by_events(self, request: web.Request, number: int) -> web.StreamResponse:
        stream = await open_event_stream(request)
        while not self._stop.is_set():
            number, found = await self._wait(request.match_info["name"], number, HEARTBEAT_S)
            await stream.write(b"".join(message.as_event() for message in found) or b":\n\n")
        return stream

    async def _read_by_poll(self, request: web.Request, number: int) -> web.Response:
        """Responds with the next message. Its id is also the ETag, for clients without ids."""
        _, found = await self._wait(request.match_info["name"], number, HOLD_S)
        if not found:
            return web.Response(status=204)
        message = found[0]
        headers = {"Last-Event-ID": message.id, "ETag": f'"{message.id}"'}
        if not message.data:  # The body of a single message must not be empty.
            batch = {"messages": [message.as_object()]}
            return json_response(batch, headers=headers, content_type=BATCH)
        headers["Content-Type"] = TEXT if message.is_text else BINARY
        return web.Response(body=message.data, headers=headers)

    async def anything(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name: ", ".join(request.headers.getall(name)) for name in request.headers}
        answer: dict[str, Any] = {"method": request.method, "path": request.path_qs}
        answer.update(headers=headers, body=body.decode(errors="replace"))
        return json_response(answer)

    async def status(self, request: web.Request) -> web.Response:
        code, seconds = int(request.match_info["code"]), request.query.get("retry_after")
        if seconds is not None and not re.fullmatch("[0-9]{1,6}", seconds):
            raise web.HTTPBadRequest(text="retry_after is a number of seconds\n")
        headers = {} if seconds is None else {"Retry-After": seconds}
        return web.Response(status=code, headers=headers)

    async def flaky(self, request: web.Request) -> web.Response:
        """Counts by Idempotency-Key or, without one, by the client's address."""
        client = request.headers.get("Idempotency-Key") or str(request.remote)
        attempt = self._failures.pop(client, 0) + 1
        if attempt > 2:
            return web.Response(text=f"attempt {attempt} succeeds\n")
        keep(self._failures, client, attempt)
        return web.Response(status=503, text=f"attempt {attempt} fails\n")

    async def slow(self, request: web.Request) -> web.Response:
        try:
            seconds = float(request.query.get("seconds", "3"))
        except ValueError:
            seconds = -1
        if not 0 <= seconds <= MAX_SLOW_S:
            raise web.HTTPBadRequest(text=f"seconds is a number from 0 to {MAX_SLOW_S:g}\n")
        await self._pause(seconds)
        return web.Response(text=f"after {seconds:g} s\n")


def json_response(value: object, **options: Any) -> web.Response:
    """A response that is easy to read in a terminal."""
    options = {"content_type": "application/json", **options}
    return web.Response(text=json.dumps(value, indent=2) + "\n", **options)


def keep(table: dict[T, Any], key: T, value: Any) -> None:
    """Adds an entry, and drops the oldest ones above the limit."""
    table[key] = value
    while len(table) > MAX_KEYS:
        del table[next(iter(table))]


def last_event_id(request: web.Request) -> str:
    """The last message that the client has: an id in a header or in the query, or an ETag."""
    tag = request.headers.get("If-None-Match", "").strip('"')
    return request.headers.get("Last-Event-ID") or request.query.get("last_event_id") or tag


async def open_event_stream(request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    stream = web.StreamResponse(headers=headers)
    await stream.prepare(request)
    await stream.write(b":\n\n")  # sends the head
    return stream


def log(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


async def log_response(request: web.Request, response: web.StreamResponse) -> None:
    log(f"{request.method} {request.rel_url}: {response.status}")


def log_malformed(record: logging.LogRecord) -> bool:
    """Replaces the traceback about a request that is not HTTP, such as TLS, by a line."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError):
        return True
    log(f"not an HTTP request: {error.code}")
    return False


def listen(host: str, port: int) -> socket.socket:
    """Opens a port, or ends the program."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        sys.exit(f"demo_server: cannot listen on {host}, port {port}: {error}; try --port 0")


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m librealtime.demo_server",
        description="A server to try librealtime against.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=8080, help="port to listen on (%(default)s); 0: any free one"
    )
    arguments = parser.parse_args()
    listener = listen(arguments.host, arguments.port)
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    url = f"http://{host}:{listener.getsockname()[1]}"

    async def application() -> web.Application:
        server = DemoServer(url)
        print(server.usage, flush=True)
        return server.application()

    logging.getLogger("aiohttp.server").addFilter(log_malformed)
    web.run_app(
        application(),
        sock=listener,
        print=None,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=CLOSE_S,
    )


if __name__ == "__main__":
    main()
