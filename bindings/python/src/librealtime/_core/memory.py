"""What callbacks are given by address, as Python's own."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

#: All memory of this process: ``memory[address : address + length]`` is a copy as bytes, in a third
#: of the time of ``ctypes.string_at``. What is read of it is the reader's business.
memory: Any = (ctypes.c_char * sys.maxsize).from_address(0)

_view = memoryview(memory)
#: From so many bytes on, a text is decoded where it is: a copy as bytes would double its memory.
LARGE = 1 << 16


def text_at(address: int, length: int) -> str:
    """A copy as text.

    :raises UnicodeDecodeError: when it is not UTF-8.
    """
    if length < LARGE:
        text: str = memory[address : address + length].decode()
        return text
    return str(_view[address : address + length], "utf-8")
