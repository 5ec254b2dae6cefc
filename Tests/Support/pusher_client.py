"""A client of the Pusher protocol on the `websockets` library, which does only what a test says."""

from __future__ import annotations

import json
from typing import Any

from pusher_server import PusherServer
from pusher_server.signatures import channel_auth, user_auth
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

QUERY = "client=test-client&version=1.2.3&protocol=7"
#: A guard against hanging.
PATIENCE_S = 60


class PusherClient:
    """Connects, and reads the first message unless `query` or `key` say that none comes."""

    def __init__(
        self,
        server: PusherServer,
        query: str | None = None,
        key: str | None = None,
        prefix: str = "",
        **options: Any,
    ) -> None:
        self._server = server
        path = f"{prefix}/app/{key or server.key}?{QUERY if query is None else query}"
        scheme = "wss" if "ssl" in options else "ws"
        url = f"{scheme}://{server.host}:{server.port}{path}"
        self._context = connect(url, proxy=None, **options)
        self.ws = self._context.__enter__()
        self.established: dict[str, Any] = {}
        self.socket_id = ""
        if query is None and key is None:
            self.establish()

    def establish(self) -> None:
        message = self.next("pusher:connection_established")
        self.established = _value(message["data"])
        self.socket_id = self.established["socket_id"]

    def __enter__(self) -> PusherClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)

    # Receiving

    def read(self) -> dict[str, Any]:
        """The next message."""
        message = json.loads(self.ws.recv(timeout=PATIENCE_S))
        assert isinstance(message, dict), message
        return message

    def next(self, event: str, channel: str | None = None) -> dict[str, Any]:
        """The next message, which must have this event and channel."""
        message = self.read()
        got = message["event"], message.get("channel")
        assert got == (event, channel), f"{message} instead of {event}, {channel}"
        return message

    def data(self, event: str, channel: str | None = None) -> Any:
        """The value of the next message's data."""
        return _value(self.next(event, channel).get("data"))

    def silence(self) -> None:
        """Checks that the server has sent nothing more, by a ping and its answer."""
        self.send("pusher:ping", {})
        self.next("pusher:pong")

    def end(self) -> tuple[int, str]:
        """Waits for the end; returns the code and the reason, 1006 without a close frame."""
        try:
            message = self.ws.recv(timeout=PATIENCE_S)
        except ConnectionClosed as closed:
            frame = closed.rcvd
            return (frame.code, frame.reason) if frame else (1006, "")
        raise AssertionError(f"{message!r} instead of the end")

    # Sending

    def send(self, event: str, data: Any, channel: str | None = None) -> None:
        named = {} if channel is None else {"channel": channel}
        self.ws.send(json.dumps({"event": event, **named, "data": data}))

    def subscribe(self, channel: str, member: Any = None, auth: str | None = None) -> None:
        """Sends a subscription, signed if the channel needs that."""
        data: dict[str, Any] = {"channel": channel}
        text = None if member is None else json.dumps(member)
        if channel.startswith(("private-", "presence-")):
            key, secret = self._server.key, self._server.secret
            data["auth"] = auth or channel_auth(key, secret, self.socket_id, channel, text)
        if text is not None:
            data["channel_data"] = text
        self.send("pusher:subscribe", data)

    def join(self, channel: str, member: Any = None) -> Any:
        """Subscribes; returns the value of the data of the success."""
        self.subscribe(channel, member)
        return self.data("pusher_internal:subscription_succeeded", channel)

    def sign_in(self, auth: str | None = None, **user: Any) -> None:
        text = json.dumps(user)
        key, secret = self._server.key, self._server.secret
        signed = auth or user_auth(key, secret, self.socket_id, text)
        self.send("pusher:signin", {"auth": signed, "user_data": text})


def _value(data: Any) -> Any:
    return json.loads(data) if isinstance(data, str) else data
