"""One WebSocket connection: frames in and out, faults, keep-alive and the ways to end it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web
from background_server import reset

from pusher_server.faults import Fault
from pusher_server.messages import ABSENT, as_text, compact, envelope

if TYPE_CHECKING:
    from pusher_server.app import App

#: How long a client may take to answer a close frame.
CLOSE_S = 5.0
_KINDS = {WSMsgType.TEXT: "text", WSMsgType.BINARY: "binary"}
_KINDS |= {WSMsgType.PING: "ping", WSMsgType.PONG: "pong"}


class Connection:
    """The server's side of one client. `run` serves it until it ends."""

    def __init__(self, app: App, ws: web.WebSocketResponse, number: int) -> None:
        self.app = app
        self.number = number
        self.socket_id = app.new_socket_id()
        self.user_id: str | None = None  # after the sign-in
        self.user_info: Any = None
        self.watchlist: list[str] = []
        #: The channels, each with the number of subscriptions: one, except in pusher-fake.
        self.channels: dict[str, int] = {}
        self.sent_client_events: list[float] = []
        self.is_established = False
        self.has_ended = False
        self._ws = ws
        self._out: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._has_closed = False
        self._is_stalled = False
        self._uses_frames = False  # the client has sent a ping frame
        self._activity = asyncio.Event()

    async def run(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        transport = self._ws._req.transport if self._ws._req else None
        if transport is None:
            return
        self._transport: asyncio.Transport = transport
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_alive())]
        try:
            while await self._read(on_message):
                pass
        finally:
            self.has_ended = True
            for task in self._tasks:
                task.cancel()
            # Closes the socket, also if the closing handshake of aiohttp would wait.
            transport.close()
            self.app.log.add("end", connection=self.number, socket_id=self.socket_id)

    # Receiving

    async def _read(self, on_message: Callable[[dict[str, Any]], None]) -> bool:
        """Reads and processes a frame; returns whether another one may follow."""
        frame = await self._ws.receive()
        if frame.type is WSMsgType.CLOSE:
            code = frame.data if frame.data else None
            fields = {"kind": "close", "code": code, "reason": frame.extra or ""}
            self.app.log.add("in", connection=self.number, socket_id=self.socket_id, **fields)
            if fault := self.app.faults.take("received", ("(close)", None)):
                await self._perform(fault)
                await asyncio.sleep(CLOSE_S)
            elif not self._has_closed:
                await self._send_close(code, "")
            return False
        kind = _KINDS.get(frame.type)
        if kind is None:
            return False
        if self.app.settings.keep_alive != "output":
            self._activity.set()
        message = self._log_received(kind, frame.data)
        if self._has_closed:
            return True  # Frames that crossed our close frame.
        if kind == "ping":
            self._uses_frames = True
            fault = self.app.faults.take("received", ("(ping)", None))
            self._process(fault, lambda: self._pong(frame.data))
        elif kind == "text":
            if message is None:
                self._refuse_text()
            else:
                event, channel = message.get("event"), _channel_of(message)
                fault = self.app.faults.take("received", (event, channel))
                self._process(fault, lambda: on_message(message))
        return True

    def _log_received(self, kind: str, data: Any) -> dict[str, Any] | None:
        fields: dict[str, Any] = {"kind": kind}
        message = None
        if kind == "text":
            fields["text"] = data
            with contextlib.suppress(ValueError):
                value = json.loads(data)
                if isinstance(value, dict) and isinstance(value.get("event"), str):
                    message = value
                    fields.update(event=value["event"], data=value.get("data"))
                    fields["channel"] = _channel_of(value)
        else:
            fields["text"] = bytes(data).decode("latin-1")
        self.app.log.add("in", connection=self.number, socket_id=self.socket_id, **fields)
        return message

    def _process(self, fault: Fault | None, process: Callable[[], None]) -> None:
        if fault is None:
            return process()
        if fault.do in ("delay", "hold"):
            return self._later(fault, process)
        self._out.put_nowait(lambda: self._perform(fault))
        if fault.do == "send":
            process()
        return None

    def _later(self, fault: Fault, step: Callable[[], None]) -> None:
        def unless_ended() -> None:
            if not self.has_ended:
                step()

        if fault.do == "hold":
            self.app.held.append(unless_ended)
            self.app.log.changed()
        else:
            asyncio.get_running_loop().call_later(fault.seconds, unless_ended)

    def _refuse_text(self) -> None:
        if self.app.settings.not_json == "crash":
            self.app.crash()
        elif self.app.settings.not_json == "error":
            self.error(4200, "Invalid message format")

    def _pong(self, payload: bytes) -> None:
        if self.app.settings.answers_pings:
            self._out.put_nowait(lambda: self._send_frame("pong", payload))

    # Sending

    def send(
        self, event: str, channel: str | None = None, data: object = ABSENT, **more: object
    ) -> None:
        """Sends a message with data as they are; see `messages.as_text`."""
        self.send_text(envelope(event, channel, data, **more), event, channel)

    def send_text(self, text: str, event: str | None = None, channel: str | None = None) -> None:
        """Sends a message, or what a fault makes of it. The event and channel find the fault."""
        fault = self.app.faults.take("sending", (event, channel))
        if fault is not None and fault.do in ("delay", "hold"):
            return self._later(fault, lambda: self._enqueue(text, event, channel))
        if fault is not None:
            self._out.put_nowait(lambda: self._perform(fault))
        if fault is None or fault.do == "send":
            self._enqueue(text, event, channel)
        return None

    def _enqueue(self, text: str, event: str | None, channel: str | None) -> None:
        self._out.put_nowait(lambda: self._send_text(text, event, channel))
        if fault := self.app.faults.take("sent", (event, channel)):
            self._out.put_nowait(lambda: self._perform(fault))

    def error(self, code: int | None, message: str, channel: str | None = None) -> None:
        settings = self.app.settings
        data: object = {"code": code, "message": message}
        if settings.error_data == "string":
            data = compact(data)
        self.send("pusher:error", channel if settings.error_channel else None, data)

    def establish(self) -> None:
        """Sends the first message."""
        data: dict[str, object] = {"socket_id": self.socket_id}
        if self.app.settings.activity_timeout is not None:
            data["activity_timeout"] = self.app.settings.activity_timeout
        as_string = self.app.settings.established_data == "string"
        self.send("pusher:connection_established", data=as_text(data) if as_string else data)

    def send_bytes(self, kind: str, payload: bytes) -> None:
        """Sends a frame of a kind, or with the kind `raw` bytes that need not be a frame."""
        self._out.put_nowait(lambda: self._send_frame(kind, payload))

    async def _write(self) -> None:
        with contextlib.suppress(ConnectionError):
            while not self._is_stalled:
                step = await self._out.get()
                await step()

    async def _send_text(self, text: str, event: str | None, channel: str | None) -> None:
        if self._has_closed:
            return
        fields = {"kind": "text", "text": text, "event": event, "channel": channel}
        self.app.log.add("out", connection=self.number, socket_id=self.socket_id, **fields)
        if self.app.settings.keep_alive == "output":
            self._activity.set()
        if event == "pusher:connection_established":
            self.is_established = True
        await self._ws.send_str(text)

    async def _send_frame(self, kind: str, payload: bytes) -> None:
        fields = {"kind": kind, "text": payload.decode("latin-1")}
        self.app.log.add("out", connection=self.number, socket_id=self.socket_id, **fields)
        if kind == "raw":
            self._transport.write(payload)
        else:
            opcode = next(opcode for opcode, name in _KINDS.items() if name == kind)
            await self._ws.send_frame(payload, opcode)

    async def _send_close(self, code: int | None, reason: str) -> None:
        if self._has_closed:
            return
        self._has_closed = True
        fields = {"kind": "close", "code": code, "reason": reason}
        self.app.log.add("out", connection=self.number, socket_id=self.socket_id, **fields)
        payload = struct.pack("!H", code) + reason.encode() if code else b""
        await self._ws.send_frame(payload, WSMsgType.CLOSE)
        asyncio.get_running_loop().call_later(CLOSE_S, self._transport.close)

    # Ending

    def close(self, code: int | None, reason: str = "") -> None:
        """Sends a close frame after the messages that wait."""
        self._out.put_nowait(lambda: self._send_close(code, reason))

    def end(self, how: str = "end") -> None:
        """Ends the connection without a close frame, after the messages that wait."""
        self._out.put_nowait(lambda: self._perform(Fault("sent", how)))

    def abort(self) -> None:
        """Resets the connection at once."""
        reset(self._transport)

    async def _perform(self, fault: Fault) -> None:
        """The part of a fault that is the same everywhere."""
        if fault.do == "close":
            await self._send_close(fault.code or None, fault.reason)
        elif fault.do in ("replace", "send"):
            await self._send_text(fault.text, None, None)
        elif fault.do == "end":
            self._transport.close()
        elif fault.do == "reset":
            reset(self._transport)
        elif fault.do == "stall":
            self._is_stalled = True
            self._transport.pause_reading()

    # Keep-alive

    async def _keep_alive(self) -> None:
        """Asks a silent client for activity, and ends the connection if none comes."""
        while True:
            mode = self.app.settings.keep_alive
            if await self._is_active(self.app.settings.ping_after) or mode == "none":
                continue
            if mode == "output":
                break
            if mode == "events" or (mode == "mixed" and not self._uses_frames):
                self.send("pusher:ping", data="{}")
            else:
                self._out.put_nowait(lambda: self._send_frame("ping", b""))
            if not await self._is_active(self.app.settings.pong_within):
                break
        if self.app.settings.idle_end == "close":
            self.close(4201, "Pong reply not received in time")
        else:
            self.error(4201, "Pong reply not received in time")
            self.end()

    async def _is_active(self, seconds: float) -> bool:
        """Waits for activity during this time."""
        self._activity.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._activity.wait(), seconds)
        return self._activity.is_set()


def _channel_of(message: dict[str, Any]) -> str | None:
    """The channel of a message: client events have it outside of the data."""
    data = message.get("data")
    inner = data.get("channel") if isinstance(data, dict) else None
    channel = message.get("channel", inner)
    return channel if isinstance(channel, str) else None
