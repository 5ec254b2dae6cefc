"""Faults that a test orders: what to do instead of, or after, one step of the protocol."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

POINTS = ("handshake", "received", "sending", "sent")
ACTIONS = ("ignore", "delay", "hold", "replace", "send", "close", "end", "reset", "stall", "status")


@dataclasses.dataclass
class Fault:
    """What happens at one point of the protocol.

    point: `handshake`: a WebSocket request arrived. `received`: a message of the client was read,
    and is not processed yet. `sending`: a message is about to be sent. `sent`: it was written.
    event, channel: only for messages with these; a * in it stands for any text. The handshake has
    neither. The library's frame pings are received as the event `(ping)`, and the close frame as
    `(close)`.

    do:
    ignore     does not process, or does not send, the message; a handshake gets no response
    delay      processes or sends it after `seconds`; others may overtake it
    hold       the same, when `release` is called
    replace    sends `text` instead
    send       sends `text` as well: before the message, or after it at `sent`
    close      sends a close frame with `code` and `reason`; without code, an empty one
    end        ends the connection without a close frame
    reset      resets the TCP connection
    stall      neither reads nor writes from now on, and keeps the connection open
    status     answers the handshake with the HTTP status `code`, and `text` as body

    skip: how many matching steps pass before. times: how often it happens; None: always.
    """

    point: str
    do: str
    event: str | None = None
    channel: str | None = None
    code: int = 0
    reason: str = ""
    text: str = ""
    seconds: float = 0
    skip: int = 0
    times: int | None = 1

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise ValueError(f"point is {self.point}, one of {', '.join(POINTS)} is expected")
        if self.do not in ACTIONS:
            raise ValueError(f"do is {self.do}, one of {', '.join(ACTIONS)} is expected")

    def concerns(self, point: str, event: str | None, channel: str | None) -> bool:
        return (
            self.times != 0
            and point == self.point
            and _matches(self.event, event)
            and _matches(self.channel, channel)
        )


def _matches(pattern: str | None, text: str | None) -> bool:
    if pattern is None:
        return True
    # Not fnmatch: channel names may contain what that takes for a class of characters.
    parts = [re.escape(part) for part in pattern.split("*")]
    return text is not None and re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


class Faults:
    """The faults of an app, in the order in which they were added. The first match happens."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, **fields: Any) -> None:
        self._faults.append(Fault(**fields))

    def clear(self) -> None:
        self._faults.clear()

    def take(
        self, point: str, event: str | None = None, channel: str | None = None
    ) -> Fault | None:
        """The fault that happens now."""
        for fault in self._faults:
            if not fault.concerns(point, event, channel):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None
