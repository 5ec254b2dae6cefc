"""The head of an HTTP response to a handshake, and details of the connection that opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .abi import rt_opened
from .memory import memory

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Headers(Mapping[str, str]):
    """Headers by case-insensitive name; repeated ones are joined by ", " (RFC 9110 §5.3)."""

    __slots__ = ("_lines", "_parsed")

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        self._lines = b""
        self._parsed: tuple[tuple[str, str], ...] | None = tuple(items)

    @classmethod
    def of_lines(cls, lines: bytes) -> Headers:
        """Takes the headers as the C interface passes them, one "Name: value" a line.

        They are parsed on first access, because most responses are read without their headers.
        """
        made = cls()
        made._lines = lines
        made._parsed = None
        return made

    @property
    def _items(self) -> tuple[tuple[str, str], ...]:
        if self._parsed is None:
            pairs = (decoded(line).partition(": ") for line in self._lines.split(b"\n") if line)
            self._parsed = tuple((name, value) for name, _, value in pairs)
        return self._parsed

    def get_all(self, name: str) -> list[str]:
        """All values of a header, separately."""
        wanted = name.lower()
        return [value for name, value in self._items if name.lower() == wanted]

    def raw_items(self) -> Iterator[tuple[str, str]]:
        """Names and values as they were received."""
        return iter(self._items)

    def __getitem__(self, name: str) -> str:
        values = self.get_all(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._items))

    def __len__(self) -> int:
        return len(set(self))

    def __repr__(self) -> str:
        return f"Headers({list(self._items)!r})"


@dataclass(frozen=True)
class Response:
    """The server's response to the request that opens a connection.

    :ivar status_code: for example 403.
    :ivar reason_phrase: for example ``Forbidden``.
    :ivar headers: a case-insensitive mapping.
    :ivar body: the beginning of a refusal's body, at most 64 KiB.
    """

    status_code: int
    reason_phrase: str
    headers: Headers
    body: bytes = b""

    @staticmethod
    def parse(status_code: int, reason: bytes, lines: bytes, body: bytes) -> Response:
        """Parses what the C interface passes."""
        return Response(status_code, decoded(reason), Headers.of_lines(lines), body)


@dataclass(frozen=True)
class Opened:
    """The server's response that opened a connection, and details of that connection.

    :ivar response: the response, without a body; None for a long poll whose first request the
        server still holds.
    :ivar http_version: ``"HTTP/1.1"`` or ``"HTTP/2"``; ``""`` without a response.
    :ivar subprotocol: the one that the server selected; ``""`` for none.
    :ivar extensions: the response's Sec-WebSocket-Extensions; ``""`` for none.
    :ivar remote_address: the other end of the connection, or the proxy if there is one:
        ``"192.0.2.1:443"``, ``"[::1]:443"`` or the path of a Unix socket.
    :ivar local_address: this end of the connection, in the same form.
    :ivar tls_version: such as ``"TLSv1.3"``; ``""`` without TLS.
    :ivar tls_cipher: the cipher suite; ``""`` without TLS.
    """

    response: Response | None
    http_version: str
    subprotocol: str
    extensions: str
    remote_address: str
    local_address: str
    tls_version: str
    tls_cipher: str

    @staticmethod
    def at(address: int) -> Opened:
        """Copies the ``rt_opened`` at this address."""
        view = rt_opened.from_address(address)
        response = None
        if view.http_status:
            lines = view.headers
            response = Response.parse(
                view.http_status, view.http_reason, memory[lines : lines + view.headers_length], b""
            )
        return Opened(
            response,
            version_name(view.http_version),
            view.subprotocol.decode(),
            decoded(view.extensions),
            os.fsdecode(view.remote_address),
            os.fsdecode(view.local_address),
            view.tls_version.decode(),
            view.tls_cipher.decode(),
        )


def version_name(number: int) -> str:
    """The name of an HTTP version."""
    if number in (10, 11):
        return f"HTTP/1.{number - 10}"
    return f"HTTP/{number // 10}" if number else ""


def visible(text: str) -> str:
    """Escapes control characters, which a terminal would obey, for messages."""
    return _CONTROLS.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def decoded(data: bytes) -> str:
    """Decodes text from a server: as UTF-8 or, if it is invalid, as ISO-8859-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
