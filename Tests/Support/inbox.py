"""Records what a server received, by WebSocket and by POST."""

import threading

from ladder_server import Script, Socket
from streams import Exchange


class Inbox:
    """Messages that a server received in frames and requests, in one order. A repeated request with
    the same key counts once (the Idempotency-Key header, draft-ietf-httpapi)."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ways: set[str] = set()
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    def frame(self, payload: bytes) -> None:
        with self._lock:
            self.texts.append(payload.decode())
            self.ways.add("frame")

    def socket(self, exchange: Exchange) -> None:
        Socket(exchange).serve(self.frame)

    def socket_for(self, count: int) -> Script:
        """Cuts the connection after this many frames."""

        def script(exchange: Exchange) -> None:
            left = count

            def take(payload: bytes) -> None:
                nonlocal left
                self.frame(payload)
                left -= 1
                if left == 0:
                    raise ConnectionError("cut")

            Socket(exchange).serve(take)

        return script

    def take(self, exchange: Exchange) -> None:
        """Records a request without answering it."""
        key = exchange.headers["idempotency-key"]
        with self._lock:
            if key not in self._keys:
                self._keys.add(key)
                self.texts.append(exchange.body.decode())
                self.ways.add("request")

    def post(self, exchange: Exchange) -> None:
        self.take(exchange)
        exchange.answer("202 Accepted")

    def post_and_say(self, field: bytes) -> Script:
        """Answers with an invalid head."""

        def script(exchange: Exchange) -> None:
            self.take(exchange)
            exchange.send(b"HTTP/1.1 200 OK\r\n" + field + b"\r\n\r\n")

        return script

    def post_and_cut(self, exchange: Exchange) -> None:
        self.take(exchange)
        # Otherwise the client would treat it as a dead kept connection.
        exchange.send(b"HTTP/1.1 ")
