"""The data of messages, sent and received."""

from __future__ import annotations

import json
from typing import Any, Union

from .naming import kind_of
from .values import encode


class Received:
    """Received bytes, which may be text or JSON."""

    data: bytes

    @property
    def text(self) -> str:
        """The data as text; invalid UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The data parsed as JSON."""
        return json.loads(self.data)


Data = Union[str, bytes, bytearray, memoryview]


def payload(message: Data, text: bool | None = None) -> tuple[bool, bytes]:
    """Whether a message is text, and its bytes. C copies them before the call returns.

    :param text: overrides what the type says.
    """
    if isinstance(message, str):
        return text is not False, encode(message, "the message")
    if isinstance(message, bytes):
        return text is True, message
    if isinstance(message, (bytearray, memoryview)):
        # ctypes passes only bytes without inspecting their type.
        return text is True, bytes(message)
    raise TypeError(f"a message is {kind_of(message)}; str or bytes are expected")


def is_data(message: object) -> bool:
    """Whether this is one message, not an iterable of its pieces."""
    return isinstance(message, (str, bytes, bytearray, memoryview))
