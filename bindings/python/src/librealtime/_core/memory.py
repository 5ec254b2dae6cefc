"""Copies memory that callbacks receive by address into Python objects."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

#: All memory from an address on, as ``Memory.from_address(address)``. The caller must pass a valid
#: range.
Memory: Any = ctypes.c_char * sys.maxsize
#: All memory of this process: ``memory[address : address + length]`` copies bytes, in a third of
#: the time of ``ctypes.string_at``.
memory: Any = Memory.from_address(0)

_view = memoryview(memory)
#: From this size on a text is decoded in place, because a copy as bytes would double its memory.
LARGE = 1 << 16


def bytes_at(address: int, length: int) -> bytes:
    """A copy; the address of no bytes may be anything."""
    copy: bytes = memory[address : address + length] if length else b""
    return copy


def shown_at(address: int, length: int) -> str:
    """A copy as text; invalid UTF-8 is replaced."""
    return bytes_at(address, length).decode("utf-8", "replace")


def text_at(address: int, length: int) -> str:
    """A copy as text.

    :raises UnicodeDecodeError: if it is not valid UTF-8.
    """
    if length < LARGE:
        text: str = memory[address : address + length].decode()
        return text
    return str(_view[address : address + length], "utf-8")
