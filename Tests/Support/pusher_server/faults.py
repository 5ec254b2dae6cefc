"""Faults that a test orders, with the messages of Pusher that they concern."""

from __future__ import annotations

import dataclasses
import re

from step_faults import StepFault

#: A message: its event and its channel, if it has them.
Step = tuple[str | None, str | None]


@dataclasses.dataclass
class Fault(StepFault[Step]):
    """Without `code`, `close` sends an empty close frame.

    event, channel: only for messages with these; a * in it stands for any text. The handshake has
    neither. The library's frame pings are received as the event `(ping)`, and the close frame as
    `(close)`.
    """

    code: int = 0
    event: str | None = None
    channel: str | None = None

    def matches(self, step: Step) -> bool:
        return _matches(self.event, step[0]) and _matches(self.channel, step[1])


def _matches(pattern: str | None, text: str | None) -> bool:
    if pattern is None:
        return True
    # Not fnmatch: channel names may contain what that takes for a class of characters.
    parts = [re.escape(part) for part in pattern.split("*")]
    return text is not None and re.fullmatch(".*".join(parts), text, re.DOTALL) is not None
