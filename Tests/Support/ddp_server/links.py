"""The connections of clients: messages in and out over a WebSocket or by SockJS, with faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web
from background_server import reset

from ddp_server.ejson import parse, text_of
from ddp_server.faults import Fault

if TYPE_CHECKING:
    from ddp_server.app import App
    from ddp_server.session import Session

#: How long a client may take to answer a close frame.
CLOSE_S = 5.0
_KINDS = {WSMsgType.TEXT: "text", WSMsgType.BINARY: "binary"}
_KINDS |= {WSMsgType.PING: "ping", WSMsgType.PONG: "pong"}


class Link:
    """One connection. A subclass writes texts, and calls `receive` and `end_`."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.number = app.new_number()
        #: Set when the client and the server have agreed on a version.
        self.session: Session | None = None
        self.has_closed = False
        self.has_ended = False
        self.is_stalled = False
        self._out: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._writer: asyncio.Task[None] | None = None

    def begin(self, transport: str, request: web.Request) -> None:
        """Logs the connection, and starts to write."""
        self.app.log.add(
            "open",
            connection=self.number,
            transport=transport,
            path=request.path,
            headers=dict(request.headers),
            tls=request.secure,
        )
        self.app.links.append(self)
        self._writer = asyncio.create_task(self._write())
        if self.app.settings.greeting:
            self.send({"server_id": "0"})

    def finish(self) -> None:
        """The connection is lost."""
        if self.has_ended:
            return
        self.has_ended = True
        if self._writer:
            self._writer.cancel()
        self.app.links.remove(self)
        self.app.log.add("end", connection=self.number)
        self.app.lost(self)

    # Receiving

    def receive(self, text: str) -> None:
        """Processes a text of the client, or does what a fault says."""
        message: Any = None
        is_json = True
        try:
            message = parse(text)
        except ValueError:
            is_json = False
        found = message if isinstance(message, dict) else {}
        self.app.log.add("in", connection=self.number, text=text, **_fields(found))
        if self.has_closed:
            return
        fault = self.app.faults.take("received", found)
        if fault is None:
            return self._process(is_json, message)
        if fault.do in ("delay", "hold"):
            return self._later(fault, lambda: self._process(is_json, message))
        self._out.put_nowait(lambda: self._perform(fault))
        if fault.do == "send":
            self._process(is_json, message)
        return None

    def _process(self, is_json: bool, message: Any) -> None:
        if is_json:
            self.app.receive(self, message)
        else:
            self.error("Parse error")

    def _later(self, fault: Fault, step: Callable[[], None]) -> None:
        def unless_ended() -> None:
            if not self.has_ended:
                step()

        if fault.do == "hold":
            self.app.hold(unless_ended)
        else:
            asyncio.get_running_loop().call_later(fault.seconds, unless_ended)

    # Sending

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message, or does what a fault says."""
        fault = self.app.faults.take("sending", message)
        if fault is not None and fault.do in ("delay", "hold"):
            return self._later(fault, lambda: self._enqueue(message))
        if fault is not None:
            self._out.put_nowait(lambda: self._perform(fault))
        if fault is None or fault.do == "send":
            self._enqueue(message)
        return None

    def error(self, reason: str, offending: Any = None) -> None:
        message = {"msg": "error", "reason": reason}
        self.send(message if offending is None else {**message, "offendingMessage": offending})

    def send_text(self, text: str) -> None:
        """Sends a text that need not be a message."""
        self._out.put_nowait(lambda: self._send_text(text, {}))

    def send_frame(self, kind: str, payload: bytes) -> None:
        """Sends a frame of another kind, where the transport has frames."""
        raise ValueError("only WebSocket connections have frames")

    def _enqueue(self, message: dict[str, Any]) -> None:
        self._out.put_nowait(lambda: self._send_text(text_of(message), message))
        if fault := self.app.faults.take("sent", message):
            self._out.put_nowait(lambda: self._perform(fault))

    async def _write(self) -> None:
        with contextlib.suppress(ConnectionError):
            while not self.is_stalled:
                step = await self._out.get()
                await step()

    async def _send_text(self, text: str, message: dict[str, Any]) -> None:
        if self.has_closed:
            return
        self.app.log.add("out", connection=self.number, text=text, **_fields(message))
        await self.write(text)

    # Ending

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection after the messages that wait."""
        self._out.put_nowait(lambda: self.write_close(code, reason))

    def end(self, how: str = "end") -> None:
        """Ends the connection without a close frame, after the messages that wait."""
        if self.is_stalled and how != "stall":
            self.abort(how)
        else:
            self._out.put_nowait(lambda: self._perform(Fault("sent", how)))

    async def _perform(self, fault: Fault) -> None:
        """The part of a fault that is the same everywhere."""
        if fault.do == "close":
            await self.write_close(fault.code, fault.reason)
        elif fault.do in ("replace", "send"):
            await self._send_text(fault.text, {})
        elif fault.do in ("end", "reset"):
            self.abort(fault.do)
        elif fault.do == "stall":
            self.is_stalled = True
            self.stall()

    # For subclasses

    async def write(self, text: str) -> None:
        raise NotImplementedError

    async def write_close(self, code: int, reason: str) -> None:
        raise NotImplementedError

    def abort(self, how: str = "reset") -> None:
        """Ends the TCP connection at once: end or reset."""
        raise NotImplementedError

    def stall(self) -> None:
        """Stops reading."""
        raise NotImplementedError


class WebSocketLink(Link):
    """Each message is a text frame or, below /sockjs/…/…/websocket, an element of an array."""

    def __init__(self, app: App, ws: web.WebSocketResponse, is_wrapped: bool) -> None:
        super().__init__(app)
        self._ws = ws
        self._is_wrapped = is_wrapped

    async def run(self, request: web.Request) -> None:
        """Serves the connection until it ends."""
        assert isinstance(request.transport, asyncio.Transport)
        self._transport = request.transport
        beat = None
        try:
            if self._is_wrapped:
                await self._ws.send_str("o")
                beat = asyncio.create_task(self._beat())
            self.begin("websocket", request)
            while await self._read():
                pass
        finally:
            if beat:
                beat.cancel()
            self.finish()
            # Closes the socket, also if the closing handshake of aiohttp would wait.
            self._transport.close()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.app.settings.sockjs_heartbeat)
            if not self.is_stalled:
                await self._ws.send_str("h")

    async def _read(self) -> bool:
        """Reads and processes a frame; returns whether another one may follow."""
        frame = await self._ws.receive()
        if frame.type is WSMsgType.CLOSE:
            fields = {"kind": "close", "code": frame.data or None, "reason": frame.extra or ""}
            self.app.log.add("frame", connection=self.number, **fields)
            await self.write_close(frame.data or 1000, "")
            return False
        if frame.type not in _KINDS:
            return False
        if frame.type is WSMsgType.TEXT:
            for text in self._unwrapped(frame.data):
                self.receive(text)
            return True
        kind = _KINDS[frame.type]
        self.app.log.add("frame", connection=self.number, kind=kind)
        if kind == "ping" and not self.is_stalled:
            await self._ws.send_frame(frame.data, WSMsgType.PONG)
        return True

    def _unwrapped(self, text: str) -> list[str]:
        if not self._is_wrapped:
            return [text]
        found = json.loads(text) if text else []
        return found if isinstance(found, list) else [found]

    def send_frame(self, kind: str, payload: bytes) -> None:
        """A frame of the kind binary, ping or pong; or, as `raw`, bytes that need not be one."""
        self._out.put_nowait(lambda: self._send_frame(kind, payload))

    async def _send_frame(self, kind: str, payload: bytes) -> None:
        if kind == "raw":
            self._transport.write(payload)
        else:
            opcode = next(opcode for opcode, name in _KINDS.items() if name == kind)
            await self._ws.send_frame(payload, opcode)

    async def write(self, text: str) -> None:
        await self._ws.send_str("a" + text_of([text]) if self._is_wrapped else text)

    async def write_close(self, code: int, reason: str) -> None:
        if self.has_closed:
            return
        self.has_closed = True
        with contextlib.suppress(ConnectionError):
            if self._is_wrapped:
                await self._ws.send_str("c" + text_of([3000, "Go away!"]))
            payload = struct.pack("!H", code) + reason.encode()
            await self._ws.send_frame(payload, WSMsgType.CLOSE)
        asyncio.get_running_loop().call_later(CLOSE_S, self._transport.close)

    def abort(self, how: str = "reset") -> None:
        reset(self._transport) if how == "reset" else self._transport.close()

    def stall(self) -> None:
        self._transport.pause_reading()


def _fields(message: dict[str, Any]) -> dict[str, Any]:
    """What tests search for in the log."""
    name = message.get("method", message.get("name", message.get("collection")))
    return {"msg": message.get("msg"), "id": message.get("id"), "name": name, "message": message}
