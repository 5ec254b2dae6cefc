"""Events of an event stream, with the names of httpx-sse."""

from __future__ import annotations

import json
from typing import Any


class ServerSentEvent:
    """One event.

    :ivar event: its type; ``"message"`` if the stream named none.
    :ivar data: its data; lines are joined by newlines.
    :ivar id: the last event id, which stays until the stream sends another; ``""`` before.
    :ivar retry: the reconnection time in milliseconds if the stream has sent one since the previous
        event, else None.
    :ivar had_id: whether an event of an event source had its own id.
    """

    __slots__ = ("data", "event", "had_id", "id", "retry")

    def __init__(
        self,
        event: str = "message",
        data: str = "",
        id: str = "",  # noqa: A002
        retry: int | None = None,
        had_id: bool = False,
    ) -> None:
        self.event = event
        self.data = data
        self.id = id
        self.retry = retry
        self.had_id = had_id

    def json(self) -> Any:
        """The data parsed as JSON."""
        return json.loads(self.data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerSentEvent):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        named = zip(("event", "data", "id"), self._fields())
        pieces = [f"{name}={value!r}" for name, value in named if value]
        if self.retry is not None:
            pieces.append(f"retry={self.retry}")
        return f"ServerSentEvent({', '.join(pieces)})"

    def _fields(self) -> tuple[str, str, str, int | None]:
        return self.event, self.data, self.id, self.retry
