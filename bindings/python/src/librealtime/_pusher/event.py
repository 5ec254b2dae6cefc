"""Events of channels."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")


#: Strict: NaN and Infinity are not JSON.
_parse = json.JSONDecoder(parse_constant=_refuse).decode
_UNPARSED: Any = object()


def parsed(text: str) -> Any:
    """The value of a JSON text; the text itself if it is not JSON."""
    try:
        return _parse(text)
    except (ValueError, RecursionError):
        return text


class PusherEvent:
    """An event.

    :ivar event: its name.
    :ivar channel: the name of its channel; None for an event of the connection.
    :ivar raw: its data as received: a text, which mostly is JSON; None without data.
    :ivar user_id: the sender of a client event on a presence channel, as the server says, so it can
        be trusted; otherwise None.
    """

    __slots__ = ("_data", "_message", "channel", "event", "raw", "user_id")

    def __init__(
        self,
        event: str,
        channel: str | None = None,
        raw: str | None = None,
        user_id: str | None = None,
        message: bytes = b"",
    ) -> None:
        self.event = event
        self.channel = channel
        self.raw = raw
        self.user_id = user_id
        self._message = message
        self._data = _UNPARSED

    @property
    def data(self) -> Any:
        """The data, parsed as JSON on first access; ``raw`` itself if that is not JSON."""
        if self._data is _UNPARSED:
            self._data = None if self.raw is None else parsed(self.raw)
        return self._data

    def property(self, name: str) -> Any:
        """A member of the whole message, parsed, such as one that is specific to a server; None if
        it has none of that name."""
        message = parsed(self._message.decode("utf-8", "replace"))
        return message.get(name) if isinstance(message, dict) else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PusherEvent):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        named = zip(("event", "channel", "raw", "user_id"), self._fields())
        pieces = [f"{name}={value!r}" for name, value in named if value is not None]
        return f"PusherEvent({', '.join(pieces)})"

    def _fields(self) -> tuple[str, str | None, str | None, str | None]:
        return self.event, self.channel, self.raw, self.user_id
