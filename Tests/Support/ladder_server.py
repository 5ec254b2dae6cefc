"""An HTTP server that answers each leg of a ladder by scripts, one after the other.

with LadderServer() as server:
    server.plan("/path", {Leg.WEBSOCKET: [status(503), socket()], Leg.POLL: [polled(b"1")]})

The last script of a leg answers all further requests; a leg without scripts gets 404.
"""

import ssl
import threading
from collections.abc import Callable, Sequence

from leg_gate import Leg
from servers import accept_key, frame
from streams import Exchange, StreamServer

Script = Callable[[Exchange], None]


def leg_of(exchange: Exchange) -> Leg:
    if exchange.method == "POST":
        return Leg.POST
    if exchange.headers.get("upgrade", "").lower() == "websocket":
        return Leg.WEBSOCKET
    return Leg.SSE if "text/event-stream" in exchange.headers.get("accept", "") else Leg.POLL


class LadderServer(StreamServer):
    def __init__(self, context: ssl.SSLContext | None = None, port: int = 0) -> None:
        super().__init__(self._answer, context, port)
        self._plans: dict[str, dict[Leg, list[Script]]] = {}
        self._state = threading.Lock()
        #: All requests, in order of arrival.
        self.seen: list[tuple[Leg, Exchange]] = []

    def plan(self, path: str, legs: dict[Leg, Sequence[Script]]) -> None:
        with self._state:
            self._plans.setdefault(path, {}).update(
                {leg: list(scripts) for leg, scripts in legs.items()}
            )

    def count(self, path: str, leg: Leg) -> int:
        with self._state:
            return sum(one is leg and of.path == path for one, of in self.seen)

    def of(self, path: str, leg: Leg) -> list[Exchange]:
        with self._state:
            return [of for one, of in self.seen if one is leg and of.path == path]

    def _answer(self, exchange: Exchange) -> None:
        leg = leg_of(exchange)
        with self._state:
            self.seen.append((leg, exchange))
            scripts = self._plans.get(exchange.path, {}).get(leg) or [status(404)]
            script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        script(exchange)


# Scripts


def status(number: int, *fields: str) -> Script:
    return lambda exchange: exchange.answer(f"{number} Said", *fields)


def nothing(exchange: Exchange) -> None:
    """Ends the connection instead of answering."""


def reset(exchange: Exchange) -> None:
    exchange.reset()


def silence(exchange: Exchange) -> None:
    exchange.hold()


def say(*pieces: bytes) -> Script:
    """Sends exactly these bytes, and ends."""
    return lambda exchange: exchange.send(*pieces)


def stream(*events: bytes, holds: bool = True) -> Script:
    """Answers with an event stream."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send(*events)
        if holds:
            exchange.hold()

    return script


def polled(body: bytes, *fields: str, kind: str = "text/plain") -> Script:
    """Answers with a message."""

    def script(exchange: Exchange) -> None:
        exchange.begin(f"Content-Length: {len(body)}", *fields, kind=kind)
        exchange.send(body)

    return script


class Socket:
    """The server's side of a WebSocket."""

    def __init__(self, exchange: Exchange, *fields: str) -> None:
        self.exchange = exchange
        accept = accept_key(exchange.headers["sec-websocket-key"].encode()).decode()
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accept}",
            *fields,
        ]
        exchange.send("\r\n".join(lines) + "\r\n\r\n")

    def send(self, payload: bytes, opcode: int = 1) -> None:
        self.exchange.send(frame(opcode, payload))

    def close(self, code: int) -> None:
        """Closes, and waits for the peer's close frame."""
        self.send(code.to_bytes(2, "big"), 8)
        while self.read()[0] != 8:
            pass

    def read(self) -> tuple[int, bytes]:
        """The next frame's opcode and payload."""
        first, second = self._take(2)
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(self._take(2), "big")
        elif length == 127:
            length = int.from_bytes(self._take(8), "big")
        mask = self._take(4)
        payload = self._take(length)
        return first & 0x0F, bytes(a ^ mask[i % 4] for i, a in enumerate(payload))

    def _take(self, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            more = self.exchange.connection.recv(count - len(taken))
            if not more:
                raise ConnectionError("the client has gone")
            taken += more
        return taken

    def serve(self, on_message: Callable[[bytes], None] = lambda payload: None) -> bytes:
        """Answers pings and the close frame; returns that frame's payload."""
        while True:
            opcode, payload = self.read()
            if opcode == 9:
                self.send(payload, 10)
            elif opcode == 8:
                self.send(payload, 8)
                return payload
            elif opcode in (1, 2):
                on_message(payload)


def socket(*payloads: bytes, close: int = 0, fields: Sequence[str] = ()) -> Script:
    """A WebSocket that sends this and then closes with a code, or keeps serving."""

    def script(exchange: Exchange) -> None:
        peer = Socket(exchange, *fields)
        for payload in payloads:
            peer.send(payload)
        if close:
            peer.close(close)
        else:
            peer.serve()

    return script


def cut_socket(*payloads: bytes) -> Script:
    """A WebSocket that ends without a closing handshake."""

    def script(exchange: Exchange) -> None:
        peer = Socket(exchange)
        for payload in payloads:
            peer.send(payload)

    return script
