"""The part of the demo server that speaks the protocol of Pusher Channels.

It has public, private and presence channels, client events, and an endpoint that authorizes
everyone. Servers publish with the HTTP API of Pusher; the demo does not check their signatures.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Awaitable
from typing import Any, Callable

from aiohttp import WSMsgType, web

KEY, SECRET, APP_ID = "demo", "demo-secret", "1"

# Limits, so that memory cannot grow.
MAX_CHANNELS = 100  # of a connection, and of a published event
MAX_DEPTH = 100  # of nested JSON
MAX_WAITING = 4 << 20  # characters that a client has not read; it is disconnected above that

Open = Callable[[web.Request], Awaitable[web.WebSocketResponse]]


class Client:
    """A connection and its channels, with the member on presence channels."""

    def __init__(self, ws: web.WebSocketResponse, abort: Callable[[], None]) -> None:
        self.socket_id = f"{secrets.randbelow(10**6)}.{secrets.randbelow(10**9)}"
        self.channels: dict[str, dict[str, Any] | None] = {}
        self._ws = ws
        self._abort = abort
        self._waiting: collections.deque[str] = collections.deque()
        self._length = 0
        self._news = asyncio.Event()

    def send(self, event: str, data: object, channel: str = "", **more: object) -> None:
        """Sends a message whose data become a string."""
        message = {"event": event, **({"channel": channel} if channel else {}), **more}
        self._queue({**message, "data": data if isinstance(data, str) else compact(data)})

    def error(self, message: str) -> None:
        self._queue({"event": "pusher:error", "data": {"code": None, "message": message}})

    def _queue(self, message: dict[str, Any]) -> None:
        text = compact(message)
        self._waiting.append(text)
        self._length += len(text)
        self._news.set()
        if self._length > MAX_WAITING:
            self._abort()

    async def write(self) -> None:
        """Sends the queued messages."""
        with contextlib.suppress(ConnectionError):
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    text = self._waiting.popleft()
                    self._length -= len(text)
                    await self._ws.send_str(text)


class DemoPusher:
    """One app. `open_websocket` accepts a connection."""

    def __init__(self, open_websocket: Open) -> None:
        self._open = open_websocket
        self._clients: list[Client] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/app/{key}", self.connect, allow_head=False),
            web.post(f"/apps/{APP_ID}/events", self.publish),
            web.post("/pusher/auth", self.authorize),
        ]

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        ws = await self._open(request)
        if request.match_info["key"] != KEY:
            await ws.close(code=4001, message=b"the app key of the demo is demo")
            return ws
        assert request.transport
        client = Client(ws, request.transport.abort)
        self._clients.append(client)
        writing = asyncio.ensure_future(client.write())
        handshake = {"socket_id": client.socket_id, "activity_timeout": 120}
        client.send("pusher:connection_established", handshake)
        try:
            async for frame in ws:
                if frame.type is WSMsgType.TEXT:
                    self._receive(client, frame.data)
        finally:
            writing.cancel()
            self._clients.remove(client)
            for name in list(client.channels):
                self._leave(client, name)
        return ws

    async def publish(self, request: web.Request) -> web.Response:
        """Publishes an event: `{"name": …, "channel": …, "data": …}`, or with `channels`."""
        try:
            event = parsed(await request.text())
            name, data = event["name"], event["data"]
            channels = event.get("channels") or [event["channel"]]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise web.HTTPBadRequest(text="name, channel and data are expected\n") from None
        names = [name, *channels] if isinstance(channels, list) else [None]
        if not all(isinstance(each, str) for each in names) or len(channels) > MAX_CHANNELS:
            raise web.HTTPBadRequest(text=f"one name, up to {MAX_CHANNELS} channels\n")
        for channel in channels:
            for client in self._subscribers(channel):
                if client.socket_id != event.get("socket_id"):
                    client.send(name, data, channel)
        return web.json_response({})

    async def authorize(self, request: web.Request) -> web.Response:
        """Signs a subscription. The form may have a user_id, and a user_info as JSON."""
        try:
            form = {name: str(value) for name, value in (await request.post()).items()}
            socket_id, channel = form["socket_id"], form["channel_name"]
            member: dict[str, Any] = {"user_id": form.get("user_id", f"guest {socket_id}")}
            if "user_info" in form:
                member["user_info"] = parsed(form["user_info"])
        except (KeyError, ValueError):
            text = "socket_id and channel_name are expected, and JSON as user_info\n"
            raise web.HTTPBadRequest(text=text) from None
        if not channel.startswith("presence-"):
            return web.json_response({"auth": sign(socket_id, channel)})
        data = compact(member)
        answer = {"auth": sign(socket_id, channel, data), "channel_data": data}
        return web.json_response(answer)

    def _receive(self, client: Client, text: str) -> None:
        try:
            message = parsed(text)
            event, data = str(message["event"]), message.get("data")
        except (ValueError, TypeError, KeyError, AttributeError):
            return client.error("a message must be a JSON object with an event")
        if event == "pusher:ping":
            return client.send("pusher:pong", "{}")
        if event == "pusher:subscribe" and isinstance(data, dict):
            return self._subscribe(client, data)
        if event == "pusher:unsubscribe" and isinstance(data, dict):
            return self._leave(client, str(data.get("channel")))
        if event.startswith("client-"):
            return self._relay(client, message)
        return None if event == "pusher:pong" else client.error(f"unknown event {event}")

    def _subscribe(self, client: Client, data: dict[str, Any]) -> None:
        name, text = str(data.get("channel")), data.get("channel_data")
        if not re.fullmatch("[-A-Za-z0-9_=@,.;]{1,164}", name):
            return client.error(f"invalid channel name: {name}")
        if name in client.channels or len(client.channels) >= MAX_CHANNELS:
            return client.error(f"Existing subscription to channel {name}, or too many of them")
        signed = [client.socket_id, name, *([text] if isinstance(text, str) else [])]
        if name.startswith(("private-", "presence-")) and data.get("auth") != sign(*signed):
            return client.error(f"Invalid signature for {name}")
        member, result = None, {}
        if name.startswith("presence-"):
            try:
                member = parsed(text or "")
                user_id = str(member["user_id"])
            except (ValueError, TypeError, KeyError):
                return client.error(f"channel_data without user_id for {name}")
            if user_id not in self._members(name):
                self._tell(client, name, "pusher_internal:member_added", member)
        client.channels[name] = member
        if member:
            members = self._members(name)
            table = {user: each.get("user_info") for user, each in members.items()}
            result = {"presence": {"count": len(table), "ids": list(table), "hash": table}}
        return client.send("pusher_internal:subscription_succeeded", result, name)

    def _leave(self, client: Client, name: str) -> None:
        member = client.channels.pop(name, None)
        # A user stays a member until the last of its connections has left.
        if member and str(member["user_id"]) not in self._members(name):
            left = {"user_id": member["user_id"]}
            self._tell(client, name, "pusher_internal:member_removed", left)

    def _relay(self, client: Client, message: dict[str, Any]) -> None:
        """Sends a client event to the others on a private or presence channel."""
        name = str(message.get("channel"))
        if name not in client.channels or not name.startswith(("private-", "presence-")):
            return client.error(f"Client event rejected: no private subscription to {name}")
        member = client.channels[name]
        sender = {"user_id": member["user_id"]} if member else {}
        return self._tell(client, name, message["event"], message.get("data"), **sender)

    def _tell(self, client: Client, channel: str, event: str, data: Any, **more: Any) -> None:
        for other in self._subscribers(channel):
            if other is not client:
                other.send(event, data, channel, **more)

    def _subscribers(self, channel: str) -> list[Client]:
        return [client for client in self._clients if channel in client.channels]

    def _members(self, channel: str) -> dict[str, dict[str, Any]]:
        """The users of a presence channel, by id."""
        members = (client.channels[channel] for client in self._subscribers(channel))
        return {str(member["user_id"]): member for member in members if member}


def sign(*parts: str) -> str:
    """The authorization of a subscription: the key, and a signature of the parts."""
    text = ":".join(parts).encode()
    return f"{KEY}:{hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()}"


def parsed(text: str) -> Any:
    """The JSON value, if it can be written again.

    :raises ValueError: also if it is nested too deeply, or has text that UTF-8 cannot express.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, (dict, list))
        )
        level = [child for part in parts for child in part]
    if level:
        raise ValueError("nested too deeply")
    compact(value).encode()
    return value


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
