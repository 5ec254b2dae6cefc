"""A client of DDP on the `websockets` library, which does only what a test says."""

from __future__ import annotations

import json
from typing import Any

from ddp_server import DDPServer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

VERSIONS = ("1", "pre2", "pre1")
#: A guard against hanging.
PATIENCE_S = 60

Message = dict[str, Any]


class DDPClient:
    """Connects, and says `connect` unless `version` is empty."""

    def __init__(
        self,
        server: DDPServer,
        version: str = "1",
        prefix: str = "",
        path: str = "/websocket",
        **fields: Any,
    ) -> None:
        url = f"ws://{server.host}:{server.port}{prefix}{path}"
        self._context = connect(url, proxy=None, max_size=None)
        self.ws = self._context.__enter__()
        self.session = ""
        self._count = 0
        if version:
            self.connect(version, **fields)

    def __enter__(self) -> DDPClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)

    def connect(self, version: str = "1", **fields: Any) -> None:
        self.send("connect", version=version, support=list(VERSIONS), **fields)
        self.session = self.next("connected")["session"]

    # Receiving

    def read(self) -> Message:
        """The next message."""
        message = json.loads(self.ws.recv(timeout=PATIENCE_S))
        assert isinstance(message, dict), message
        return message

    def next(self, msg: str, **fields: Any) -> Message:
        """The next message, which must be this one and have these fields."""
        message = self.read()
        wanted = {"msg": msg, **fields}
        got = {key: message.get(key) for key in wanted}
        assert got == wanted, f"{message} instead of {wanted}"
        return message

    def silence(self) -> None:
        """Checks that the server has sent nothing more, by a ping and its answer."""
        self.send("ping", id="silence")
        self.next("pong", id="silence")

    def end(self) -> int:
        """Waits for the end; returns the code, 1006 without a close frame."""
        try:
            message = self.ws.recv(timeout=PATIENCE_S)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006
        raise AssertionError(f"{message!r} instead of the end")

    # Sending

    def send(self, msg: str, **fields: Any) -> None:
        self.ws.send(json.dumps({"msg": msg, **fields}))

    def subscribe(self, name: str, *params: Any, id: str = "") -> str:
        """Sends a subscription; returns its id."""
        self._count += 1
        id = id or f"s{self._count}"
        self.send("sub", id=id, name=name, params=list(params))
        return id

    def start(self, method: str, *params: Any, **fields: Any) -> str:
        """Sends a method call; returns its id."""
        self._count += 1
        id = f"m{self._count}"
        self.send("method", id=id, method=method, params=list(params), **fields)
        return id

    def finish(self, id: str) -> tuple[list[Message], Message]:
        """Reads until a call's `updated` and `result`, in any order.

        Returns the other messages, and the result.
        """
        others: list[Message] = []
        result: Message | None = None
        is_updated = False
        while result is None or not is_updated:
            message = self.read()
            if message["msg"] == "result" and message["id"] == id:
                result = message
            elif message["msg"] == "updated" and message["methods"] == [id]:
                is_updated = True
            else:
                others.append(message)
        return others, result

    def call(self, method: str, *params: Any, **fields: Any) -> Any:
        """Calls a method; returns its result, which must not be an error."""
        _, result = self.finish(self.start(method, *params, **fields))
        assert "error" not in result, result
        return result.get("result")

    def fail(self, method: str, *params: Any) -> Message:
        """Calls a method; returns its error."""
        _, result = self.finish(self.start(method, *params))
        error = result["error"]
        assert isinstance(error, dict), error
        return error
