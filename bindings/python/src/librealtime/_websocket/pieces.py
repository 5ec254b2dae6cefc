"""Messages in pieces, sent and received."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

from .._core.abi import rt_status
from .._core.errors import RealtimeError, from_status
from .._core.naming import kind_of
from .._core.payload import Data, payload
from .batch import Message


class PieceEncoder:
    """Turns the pieces of one message into bytes; all pieces have the same type."""

    def __init__(self, text: bool | None) -> None:
        self._text = text
        self._is_str: bool | None = None
        self.is_text = False

    def encode(self, piece: Data) -> bytes:
        is_str = isinstance(piece, str)
        if self._is_str not in (None, is_str):
            raise TypeError("a message mixes pieces of str and bytes; use only one of them")
        self._is_str = is_str
        self.is_text, data = payload(piece, self._text)
        return data


class Joined:
    """Joins the pieces of a received message."""

    def __init__(self, max_size: int) -> None:
        """:param max_size: 0 means no limit."""
        self._max_size = max_size
        self._size = 0
        self._pieces: list[Any] = []

    def add(self, piece: Message) -> bool:
        """Adds a piece; False if the message becomes too large."""
        self._pieces.append(piece)
        self._size += len(piece.encode()) if isinstance(piece, str) else len(piece)
        return self._max_size == 0 or self._size <= self._max_size

    def error(self) -> RealtimeError:
        return from_status(
            rt_status.ERROR_TOO_LARGE,
            f"a message has more than {self._max_size} bytes (max_size)",
        )

    def message(self) -> Message:
        first: Any = self._pieces[0]
        joined: Message = type(first)().join(self._pieces)
        return joined


def iterable(pieces: object) -> Iterable[Data]:
    """Checks for an iterable of pieces. Refuses mappings, which are more likely a mistake."""
    if isinstance(pieces, Iterable) and not isinstance(pieces, Mapping):
        return pieces
    kind = kind_of(pieces)
    raise TypeError(f"a message is {kind}; str, bytes or an iterable of them are expected")


async def each_of(pieces: Iterable[Data] | AsyncIterable[Data]) -> AsyncIterator[Data]:
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield piece
    else:
        for piece in iterable(pieces):
            yield piece
