"""What a Meteor client reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from .._core.errors import RealtimeError

T = TypeVar("T")

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


@dataclass(frozen=True)
class DDPIndexChanges:
    """How the result of a live query changed, by positions, as a list on a screen wants to know
    it. ``apply`` does it to a list."""

    #: Whether it is the result that the query began with: all of it is inserted.
    is_initial: bool
    #: Positions in the old result, ascending.
    deleted: tuple[int, ...]
    #: Positions in the new result, ascending.
    inserted: tuple[int, ...]
    #: Old and new positions of the documents that moved, by new position.
    moved: tuple[tuple[int, int], ...]
    #: Old and new positions of the documents whose fields changed, moved or not.
    updated: tuple[tuple[int, int], ...]
    #: The ids of the new result.
    ids: tuple[Any, ...]

    def apply(self, rows: list[T], make: Callable[[Any], T]) -> None:
        """Turns the rows of the old result into those of the new one.

        :param rows: one for each document of the old result.
        :param make: called with the id of each document that was inserted or updated; returns its
            row.
        """
        coming = {new: rows[old] for old, new in self.moved}
        for old in sorted([*self.deleted, *(old for old, _ in self.moved)], reverse=True):
            del rows[old]
        coming.update((new, make(self.ids[new])) for new in self.inserted)
        for new in sorted(coming):
            rows.insert(new, coming[new])
        for _, new in self.updated:
            rows[new] = make(self.ids[new])
