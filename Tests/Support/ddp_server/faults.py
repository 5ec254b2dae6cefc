"""Faults that a test orders: what to do instead of, or after, one step of the protocol."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from typing import Any

POINTS = ("handshake", "received", "sending", "sent")
ACTIONS = ("ignore", "delay", "hold", "replace", "send", "close", "end", "reset", "stall", "status")


@dataclasses.dataclass
class Fault:
    """What happens at one point of the protocol.

    point: `handshake`: a request for a WebSocket or for /sockjs arrived. `received`: a message of
    the client was read, and is not processed yet. `sending`: a message is about to be sent.
    `sent`: it was written.
    msg: only for these messages; `*` stands for any text. Texts that are not messages have "".
    match: only for messages with these values, such as {"id": "3"}.

    do:
    ignore     does not process, or does not send, the message; a handshake gets no response
    delay      processes or sends it after `seconds`; others may overtake it
    hold       the same, when `release` is called
    replace    sends `text` instead
    send       sends `text` as well: before the message, or after it at `sent`
    close      closes the connection with `code` and `reason`
    end        ends the connection without a close frame
    reset      resets the TCP connection
    stall      neither reads nor writes from now on, and keeps the connection open
    status     answers the handshake with the HTTP status `code`, and `text` as body

    skip: how many matching steps pass before. times: how often it happens; None: always.
    """

    point: str
    do: str
    msg: str = "*"
    match: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    code: int = 1000
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

    def concerns(self, point: str, message: Mapping[str, Any]) -> bool:
        return (
            self.times != 0
            and point == self.point
            and fnmatch.fnmatchcase(str(message.get("msg", "")), self.msg)
            and all(message.get(key) == value for key, value in self.match.items())
        )


class Faults:
    """The faults of an app, in the order in which they were added. The first match happens."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, **fields: Any) -> None:
        self._faults.append(Fault(**fields))

    def clear(self) -> None:
        self._faults.clear()

    def take(self, point: str, message: Mapping[str, Any]) -> Fault | None:
        """The fault that happens now."""
        for fault in self._faults:
            if not fault.concerns(point, message):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None
