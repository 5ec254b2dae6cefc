"""Faults that a test orders, with the messages of DDP that they concern."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from typing import Any

from step_faults import StepFault


@dataclasses.dataclass
class Fault(StepFault[Mapping[str, Any]]):
    """The handshake is also a request below /sockjs.

    msg: only for these messages; `*` stands for any text. Texts that are not messages have "".
    match: only for messages with these values, such as {"id": "3"}.
    """

    msg: str = "*"
    match: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def matches(self, step: Mapping[str, Any]) -> bool:
        is_named = fnmatch.fnmatchcase(str(step.get("msg", "")), self.msg)
        return is_named and all(step.get(key) == value for key, value in self.match.items())
