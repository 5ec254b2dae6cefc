"""A server of access tokens that rotates refresh tokens (RFC 6749 §6) and records requests.

with TokenServer("s3cret") as server:
    server.allows(head)         # whether a request carries the current token
    server.expire()             # the current token expires
    server.plan(script)         # replaces the response to the next request
"""

import collections
import json
import re
import threading
import urllib.parse
from collections.abc import Callable

from streams import Exchange, StreamServer


class TokenServer(StreamServer):
    """Its token requests are in `bodies`; its context fails at the end if one was invalid.

    word: part of every credential.
    """

    def __init__(self, word: str) -> None:
        super().__init__(self._answer)
        self.word = word
        # Clients must send exactly this text: decoding and encoding it again would change it.
        self.basic = f"{word}-Verbatim/+=="
        self.bodies: list[bytes] = []
        self._plans: collections.deque[Callable[[Exchange], None]] = collections.deque()
        self._number = 0
        self._holds = True
        self._spent: list[str] = []
        self._state = threading.Lock()

    @property
    def access(self) -> str:
        return f"{self.word}-a{self._number}"

    @property
    def refresh(self) -> str:
        # Contains characters that a form encodes (RFC 6749 appendix B).
        return f"{self.word}-r{self._number}&+/=%"

    @property
    def options(self) -> dict[str, object]:
        """For a client that starts with the current tokens."""
        return {"auth": f"{self.url('/token')},{self.basic}", "tokens": self.pair}

    @property
    def pair(self) -> str:
        return f"{self.access},{self.refresh}"

    @property
    def refreshes(self) -> int:
        return self._number

    @property
    def holds(self) -> bool:
        with self._state:
            return self._holds

    def expire(self) -> None:
        with self._state:
            self._holds = False

    def plan(self, *scripts: Callable[[Exchange], None]) -> None:
        self._plans.extend(scripts)

    def allows(self, head: bytes) -> bool:
        shown = re.search(rb"^authorization: *bearer (.*?)\r$", head, re.I | re.M)
        with self._state:
            return self._holds and shown is not None and shown[1].decode() == self.access

    def _answer(self, exchange: Exchange) -> None:
        self.bodies.append(exchange.body)
        headers, form = exchange.headers, urllib.parse.parse_qs(exchange.body.decode())
        assert exchange.method == "POST", exchange.method
        assert headers["authorization"] == f"Basic {self.basic}", headers
        assert headers["content-type"] == "application/x-www-form-urlencoded", headers
        assert headers["accept"] == "application/json", headers
        assert "idempotency-key" not in headers, headers
        assert sorted(form) == ["grant_type", "refresh_token"], form
        assert form["grant_type"] == ["refresh_token"], form
        if self._plans:
            return self._plans.popleft()(exchange)
        self.give(exchange, form["refresh_token"][0])

    def give(self, exchange: Exchange, refresh_token: str = "", **further: object) -> None:
        """Accepts this refresh token, and answers with the next tokens."""
        spent = refresh_token or urllib.parse.parse_qs(exchange.body.decode())["refresh_token"][0]
        with self._state:
            assert spent not in self._spent, f"{spent} is spent twice"
            assert spent == self.refresh, f"{spent} instead of {self.refresh}"
            self._spent.append(spent)
            self._number += 1
            self._holds = True
            answer = {"access_token": self.access, "refresh_token": self.refresh}
        say(exchange, "200 OK", {**answer, "token_type": "bEaReR", **further})


def say(exchange: Exchange, status: str, value: object, *fields: str) -> None:
    """Answers with JSON."""
    body = json.dumps(value).encode()
    length = f"Content-Length: {len(body)}"
    exchange.begin(length, *fields, status=status, kind="application/json")
    exchange.send(body)
