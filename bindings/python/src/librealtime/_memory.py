"""What callbacks are given by address, as Python's own."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

#: All memory of this process: ``memory[address : address + length]`` is a copy as bytes, in a third
#: of the time of ``ctypes.string_at``. What is read of it is the reader's business.
memory: Any = (ctypes.c_char * sys.maxsize).from_address(0)
