"""Faults that a test orders: what a server does instead of, or after, one step of its protocol."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

POINTS = ("handshake", "received", "sending", "sent")
ACTIONS = ("ignore", "delay", "hold", "replace", "send", "close", "end", "reset", "stall", "status")

Step = TypeVar("Step")


@dataclasses.dataclass
class StepFault(Generic[Step]):
    """What happens at one point of a protocol. Each server adds which messages it concerns.

    point: `handshake`: a request for a connection arrived. `received`: a message of the client was
    read, and is not processed yet. `sending`: a message is about to be sent. `sent`: it was sent.

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

    def matches(self, step: Step) -> bool:
        """Whether it concerns this message."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=StepFault[Any])


class StepFaults(Generic[Kind]):
    """The faults of an app, in the order in which they were added. The first match happens."""

    def __init__(self, kind: type[Kind]) -> None:
        self._kind = kind
        self._faults: list[Kind] = []

    def add(self, **fields: Any) -> None:
        self._faults.append(self._kind(**fields))

    def clear(self) -> None:
        self._faults.clear()

    def take(self, point: str, step: Any) -> Kind | None:
        """The fault that happens now."""
        for fault in self._faults:
            if fault.times == 0 or fault.point != point or not fault.matches(step):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None
