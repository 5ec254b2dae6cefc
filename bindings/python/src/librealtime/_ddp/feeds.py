"""Changes of a live query that an iteration has not taken yet. C keeps and merges them: an
iteration that is slow misses nothing, see ``rt_ddp_feed_new``."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from .._core import abi
from .._core.abi import rt_ddp_feed_parts, rt_status
from .._core.handle import Handle, new
from .._core.loader import lib
from .._core.values import text
from .callbacks import DDP, FEED, Batch, Step, batch_at
from .calls import Awaited
from .checking import as_closed, check
from .objects import DDPChange, DDPIndexChanges
from .query import query

T = TypeVar("T")


class Feed(Generic[T]):
    """What an iteration takes from, on any thread."""

    def take(self) -> T | None:
        """The next item; None if there is none yet."""
        raise NotImplementedError

    @property
    def is_filled(self) -> bool:
        """Whether ``take`` is worth a try."""
        raise NotImplementedError


class Source(Awaited):
    """A live query whose changes wait in C.

    :ivar is_filled: whether ``take`` is worth a try.
    """

    is_filled = True
    _handle: Handle | None = None

    def __init__(
        self, client: Any, question: tuple[str, Any, Any], parts: int, models: Handle | None = None
    ) -> None:
        """
        :param question: the name of a collection, or with `models` of one of them; a selector; the
            options.
        :param parts: what its changes consist of, a sum of ``rt_ddp_feed_parts``.
        """
        super().__init__(client)
        name, selector, options = question
        owner, make = models, DDP.models_feed_new
        try:
            arguments = (text(name, "collection"), *query(selector, options))
            if models is None:
                owner, make = client._require_handle(), DDP.feed_new
            handle = as_closed(lambda: new(make, DDP.feed_free, owner, *arguments, parts))
            self._registration.set(DDP.feed_on_change, handle, FEED)
        except BaseException:
            self._finish()
            raise
        self._handle = handle

    def take(self) -> Batch | None:
        """All changes since the last call; None if there are none yet."""
        handle = self._handle
        if handle is None or not self.is_filled:
            return None
        # Before: C reports what comes afterwards.
        self.is_filled = False
        batch = ctypes.POINTER(abi.rt_ddp_batch)()
        status = DDP.feed_receive(handle, 0, ctypes.byref(batch))
        if status in (rt_status.ERROR_TIMEOUT, rt_status.ERROR_CLOSED):
            return None
        check(status)
        try:
            return batch_at(batch.contents)
        finally:
            lib.rt_ddp_batch_free(batch)

    def stop(self) -> None:
        """Ends the query."""
        self._finish()
        self._handle = None

    def _was_filled(self) -> None:
        self.is_filled = True
        self._client._changed()

    def _missed(self) -> None:
        self.is_filled = True


class QueryFeed(Feed[T]):
    """Makes items of what waits in C."""

    #: What it needs of changes.
    parts = 0
    source: Source

    def __init__(self) -> None:
        #: One thread takes at a time.
        self._lock = threading.Lock()

    def _made(self, batch: Batch) -> T | None:
        raise NotImplementedError

    def take(self) -> T | None:
        with self._lock:
            batch = self.source.take()
            return None if batch is None else self._made(batch)

    @property
    def is_filled(self) -> bool:
        return self.source.is_filled


class DocumentFeed(QueryFeed[DDPChange]):
    """Changes document by document."""

    parts = rt_ddp_feed_parts.FIELDS

    def __init__(self, collection: str) -> None:
        super().__init__()
        self._collection = collection
        #: The rest of the last batch.
        self._queue: deque[DDPChange] = deque()

    def _made(self, batch: Batch) -> DDPChange | None:
        made = [(step.id, one) for step in batch.steps for one in _observed(step)]
        for number, (id_, (kind, fields, cleared, before)) in enumerate(made, 1):
            is_last = number == len(made)
            self._queue.append(
                DDPChange(
                    kind,
                    self._collection,
                    id_,
                    fields,
                    cleared,
                    before,
                    batch.is_initial,
                    is_last,
                )
            )
        return self._queue.popleft() if self._queue else None

    def take(self) -> DDPChange | None:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        return super().take()

    @property
    def is_filled(self) -> bool:
        return bool(self._queue) or super().is_filled


class IndexFeed(QueryFeed[DDPIndexChanges]):
    """Changes by positions."""

    def __init__(self) -> None:
        super().__init__()
        self._ids: list[Any] = []

    def _made(self, batch: Batch) -> DDPIndexChanges:
        place(batch.steps, self._ids)
        kept = [step for step in batch.steps if step.old >= 0 and step.new >= 0]
        return DDPIndexChanges(
            batch.is_initial,
            tuple(step.old for step in batch.steps if step.new < 0),
            tuple(step.new for step in batch.steps if step.old < 0),
            tuple((step.old, step.new) for step in kept if step.moved),
            tuple((step.old, step.new) for step in kept if step.changed),
            tuple(self._ids),
        )


class LatestFeed(QueryFeed[T]):
    """Whether something has changed, for iterations that read the present state."""

    def __init__(self, read: Callable[[], T]) -> None:
        super().__init__()
        self._read = read

    def _made(self, batch: Batch) -> T:
        return self._read()


def _observed(step: Step) -> Iterator[tuple[Any, dict[str, Any], list[str], Any]]:
    """A step in the form of Meteor's ``observe``: kind, fields, cleared fields, successor."""
    if step.new < 0:
        yield "removed", {}, [], None
    elif step.old < 0:
        yield "added", step.fields, [], step.before
    else:
        if step.changed:
            yield "changed", step.fields, step.cleared, None
        if step.moved:
            yield "moved", {}, [], step.before


def place(steps: list[Step], ids: list[Any]) -> None:
    """Turns the ids of the old result into those of the new one."""
    leaving = [step.old for step in steps if step.old >= 0 and (step.moved or step.new < 0)]
    for old in sorted(leaving, reverse=True):
        del ids[old]
    for step in steps:
        if step.new >= 0 and (step.moved or step.old < 0):
            ids.insert(step.new, step.id)
