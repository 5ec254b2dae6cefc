"""Messages received and not yet taken: bounded, by telling when to pause."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue with a high-water and a low-water mark, by messages and by bytes.

    A batch comes whole, so the queue may pass its high-water mark by one batch. Sizes are kept
    by batch, since taking a message must cost next to nothing.
    """

    __slots__ = (
        "_high_bytes",
        "_high_count",
        "_size",
        "_sizes",
        "_total",
        "messages",
        "paused",
        "resume_at",
    )

    def __init__(self, high_count: int, high_bytes: int) -> None:
        """0 is no limit."""
        self.messages: deque[T] = deque()
        #: Whoever takes messages clears it and resumes, once there are `resume_at` left.
        self.paused = False
        self._high_count = high_count
        self._high_bytes = high_bytes
        # Count and size of each batch that is not wholly taken, and their sums.
        self._sizes: deque[tuple[int, int]] = deque()
        self._total = 0
        self._size = 0
        self.resume_at = 0

    def put(self, batch: list[T], size: int) -> bool:
        """Adds a batch; whether receiving must pause now."""
        sizes = self._sizes
        waiting = len(self.messages)
        while sizes and self._total - sizes[0][0] >= waiting:
            self._retire()
        self.messages.extend(batch)
        sizes.append((len(batch), size))
        self._total += len(batch)
        self._size += size
        waiting += len(batch)
        too_many = self._high_count and waiting >= self._high_count
        too_large = self._high_bytes and self._size >= self._high_bytes
        if not too_many and not too_large:
            return False
        was_paused = self.paused
        self.paused = True
        self.resume_at = self._low_water()
        return not was_paused

    def _retire(self) -> None:
        count, size = self._sizes.popleft()
        self._total -= count
        self._size -= size

    def _low_water(self) -> int:
        """How many messages may be left when receiving goes on: a quarter of the limits."""
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
