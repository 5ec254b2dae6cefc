"""What a Meteor client reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .._core.errors import RealtimeError

Status = Literal["offline", "connecting", "connected", "waiting", "failed"]


@dataclass(frozen=True)
class DDPStatusChange:
    """A change of a client's status."""

    status: Status
    #: The number of attempts in a row that have failed.
    retry_count: int
    #: Seconds until the next attempt; None unless ``"waiting"``.
    retry_in: float | None
    #: Why the client failed; "" otherwise.
    reason: str
    #: What ended the connection; None if it ended as requested.
    error: RealtimeError | None


@dataclass(frozen=True)
class DDPChange:
    """A change of a document, or of a place in the result of a live query."""

    kind: Literal["added", "changed", "removed", "moved"]
    collection: str
    #: A str or an ``ObjectID``.
    id: Any
    #: The fields that are new or have another value.
    fields: dict[str, Any]
    #: The names of the fields that are gone.
    cleared: list[str]
    #: For a live query: the id of the document that follows an added or moved one; None at the end.
    before: Any
    #: Whether it belongs to the result that a live query began with.
    is_initial: bool
    #: Whether it is the last of those that were made together.
    is_last: bool
