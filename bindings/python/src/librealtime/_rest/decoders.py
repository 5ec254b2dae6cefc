"""Splits a body anew: at sizes, between characters, into lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from .._core.values import number


class SizeDecoder:
    """Pieces of `size` bytes and a rest; as they arrive if `size` is None."""

    def __init__(self, size: int | None) -> None:
        self._size = None if size is None else number(size, "chunk_size", 1)
        self._rest = bytearray()

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._size is None:
            if data:
                yield data
            return
        self._rest += data
        at = 0
        while len(self._rest) - at >= self._size:
            yield bytes(self._rest[at : at + self._size])
            at += self._size
        del self._rest[:at]

    def flush(self) -> Iterator[bytes]:
        if self._rest:
            yield bytes(self._rest)


class TextDecoder:
    """Pieces that end between characters; U+FFFD replaces invalid bytes."""

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def decode(self, data: bytes) -> Iterator[str]:
        if piece := self._decoder.decode(data):
            yield piece

    def flush(self) -> Iterator[str]:
        if piece := self._decoder.decode(b"", True):
            yield piece


class LineDecoder:
    """Lines without their ends; LF or CR LF ends a line."""

    def __init__(self) -> None:
        # A line may arrive in many pieces: joining them each time would take quadratic time.
        self._begun: list[str] = []

    def decode(self, text: str) -> Iterator[str]:
        first, *more = text.split("\n")
        self._begun.append(first)
        for piece in more:
            yield "".join(self._begun).removesuffix("\r")
            self._begun = [piece]

    def flush(self) -> Iterator[str]:
        if rest := "".join(self._begun):
            yield rest
