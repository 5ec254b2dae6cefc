"""What a message is given as."""

from __future__ import annotations

import json
from typing import Any, Union

from .values import encode


class Received:
    """What came as bytes, which may be text or JSON."""

    data: bytes

    @property
    def text(self) -> str:
        """The data as UTF-8; what is ill-formed is replaced."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The data read as JSON."""
        return json.loads(self.data)


Data = Union[str, bytes, bytearray, memoryview]


def payload(message: Data, text: bool | None = None) -> tuple[bool, bytes]:
    """Whether it is text, and its bytes. C copies them before the call returns.

    :param text: says otherwise than the type.
    """
    if isinstance(message, str):
        return text is not False, encode(message, "the message")
    if isinstance(message, bytes):
        return text is True, message
    if isinstance(message, (bytearray, memoryview)):
        # ctypes passes bytes alone without a look at their type.
        return text is True, bytes(message)
    raise TypeError(f"a message is a {type(message).__name__}; str or bytes are expected")


def is_data(message: object) -> bool:
    """Whether it is one message, not the pieces of one."""
    return isinstance(message, (str, bytes, bytearray, memoryview))
