"""Messages of the Pusher protocol as JSON text."""

from __future__ import annotations

import json
from typing import Any


class Absent:
    """Stands for a member that a message does not have."""


ABSENT = Absent()


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def envelope(event: str, channel: str | None = None, data: object = ABSENT, **more: object) -> str:
    """A message. `data` is written as it is: encode it first where the protocol asks for that."""
    message: dict[str, Any] = {"event": event}
    if channel is not None:
        message["channel"] = channel
    if data is not ABSENT:
        message["data"] = data
    return compact({**message, **more})


def as_text(data: object) -> object:
    """Encodes data twice, as the protocol does, unless they are a text already."""
    return data if isinstance(data, (str, Absent)) else compact(data)


def as_object(data: object) -> Any:
    """The value of data that may be encoded twice."""
    if isinstance(data, str):
        try:
            return json.loads(data)
        except ValueError:
            return data
    return data
