"""A queue of received messages, which says when receiving must pause."""

from __future__ import annotations

import sys
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


#: At most this many messages are added before the sizes of taken messages are accounted for.
_LOOK_AT = 1024


class Inbox(Generic[T]):
    """A queue with a high-water and a low-water mark, by messages and by bytes.

    A batch is added as a whole, so the queue may exceed its high-water mark by one batch. Sizes are
    kept per batch, because taking a message must cost next to nothing.
    """

    __slots__ = (
        "_high_bytes",
        "_high_count",
        "_look_at_bytes",
        "_look_at_count",
        "_size",
        "_sizes",
        "_total",
        "messages",
        "paused",
        "resume_at",
    )

    def __init__(self, high_count: int, high_bytes: int) -> None:
        """0 means no limit."""
        self.messages: deque[T] = deque()
        #: The consumer clears it and resumes receiving once `resume_at` messages are left.
        self.paused = False
        self._high_count = high_count
        self._high_bytes = high_bytes
        # Below both values no limit can be reached, whatever was taken in the meantime.
        self._look_at_count = min(high_count or _LOOK_AT, _LOOK_AT)
        self._look_at_bytes = high_bytes or sys.maxsize
        # Count and size of each batch not yet known to be completely taken, and their sums.
        self._sizes: deque[tuple[int, int]] = deque()
        self._total = 0
        self._size = 0
        self.resume_at = 0

    def put(self, batch: list[T], size: int) -> bool:
        """Adds a batch; returns whether receiving must pause now."""
        self.messages.extend(batch)
        self._sizes.append((len(batch), size))
        self._total += len(batch)
        self._size += size
        return self._look()

    def add(self, message: T, size: int) -> bool:
        """``put`` for a single message, in half the time."""
        self.messages.append(message)
        self._sizes.append((1, size))
        self._total = total = self._total + 1
        self._size = size = self._size + size
        if total < self._look_at_count and size < self._look_at_bytes:
            return False
        return self._look()

    def is_beyond(self, factor: int) -> bool:
        """Whether a full queue exceeds this multiple of a limit."""
        too_many = self._high_count and len(self.messages) >= factor * self._high_count
        too_large = self._high_bytes and self._size >= factor * self._high_bytes
        return bool(too_many or too_large)

    def _look(self) -> bool:
        """Discards the sizes of taken batches; returns whether the rest exceeds a limit."""
        sizes = self._sizes
        waiting = len(self.messages)
        while sizes and self._total - sizes[0][0] >= waiting:
            count, size = sizes.popleft()
            self._total -= count
            self._size -= size
        too_many = self._high_count and waiting >= self._high_count
        too_large = self._high_bytes and self._size >= self._high_bytes
        if not too_many and not too_large:
            return False
        if self.paused:
            # What comes after the pause, from the same read, changes little. To look at the whole
            # queue each time would take a time that grows with its square.
            return False
        self.paused = True
        self.resume_at = self._low_water()
        return True

    def _low_water(self) -> int:
        """How many messages may be left when receiving resumes: a quarter of the limits."""
        left = self._total
        count_goal = self._high_count // 4 if self._high_count else left
        size_goal = self._high_bytes // 4 if self._high_bytes else self._size
        size = self._size
        for count, batch_size in self._sizes:
            if left <= count_goal and size <= size_goal:
                break
            left -= count
            size -= batch_size
        else:
            return 0
        return left
