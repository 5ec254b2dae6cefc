"""Copies the messages of one read from the library's memory into Python objects.

Each statement here runs once for each message, and each call into ctypes would cost more than all
of them. So a message is a slice of an array that is mapped over the library's buffer.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any, Union

from .._core import abi
from .._core.memory import LARGE, Memory, memory, text_at

Message = Union[str, bytes]

_ONE = struct.Struct("=QQii")
_ROW = ctypes.sizeof(abi.rt_message)
# The only byte of a row's kind that can be nonzero.
_KIND = 16 if sys.byteorder == "little" else 19
_TEXT = int(abi.rt_message_kind.TEXT)


def decode(base: int, table: Any, count: int) -> tuple[list[Message], list[int]]:
    """All messages, and their lengths in bytes."""
    if count == 1:
        offset, length, kind, _ = _ONE.unpack_from(table.contents)
        at = base + offset
        if kind == _TEXT:
            return [text_at(at, length)], [length]
        return [memory[at : at + length]], [length]
        # Slicing it returns bytes.
    here: Any = Memory.from_address(base)
    rows = ctypes.string_at(table, count * _ROW)
    kinds = rows[_KIND::_ROW]
    numbers = memoryview(rows).cast("q")
    offsets, lengths = numbers[0::3].tolist(), numbers[1::3].tolist()
    texts = kinds.count(_TEXT)
    messages: list[Message]
    if texts == 0:
        messages = [here[at : at + length] for at, length in zip(offsets, lengths)]
    elif max(lengths) >= LARGE:
        messages = [
            text_at(base + at, length) if kind == _TEXT else here[at : at + length]
            for at, length, kind in zip(offsets, lengths, kinds)
        ]
    elif texts == count:
        messages = [here[at : at + length].decode() for at, length in zip(offsets, lengths)]
    else:
        messages = [
            here[at : at + length].decode() if kind == _TEXT else here[at : at + length]
            for at, length, kind in zip(offsets, lengths, kinds)
        ]
    return messages, lengths


def message_kind(is_text: bool) -> int:
    kinds = abi.rt_message_kind
    return kinds.TEXT if is_text else kinds.BINARY
