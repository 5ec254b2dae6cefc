"""A record of what a server received and sent, for assertions."""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import Callable
from typing import Any

#: The oldest entries are dropped above this number.
MAX_ENTRIES = 200_000

Entry = dict[str, Any]


class Log:
    """Its entries are dictionaries with a `number`, a kind of event as `what`, and its fields."""

    def __init__(self) -> None:
        self.entries: collections.deque[Entry] = collections.deque(maxlen=MAX_ENTRIES)
        self._count = 0
        self._news = asyncio.Event()

    def add(self, what: str, **fields: Any) -> None:
        self._count += 1
        self.entries.append({"number": self._count, "what": what, **fields})
        self.changed()

    def changed(self) -> None:
        """Checks the conditions of `until` again."""
        self._news.set()
        self._news = asyncio.Event()

    def find(self, after: int = 0, **fields: object) -> list[Entry]:
        """The entries with these fields, after the one with this number."""
        dropped = self._count - len(self.entries)
        return [
            entry
            for entry in itertools.islice(self.entries, max(0, after - dropped), None)
            if all(entry.get(key) == value for key, value in fields.items())
        ]

    async def wait(
        self, count: int = 1, timeout: float = 30, after: int = 0, **fields: object
    ) -> list[Entry]:
        """Waits until so many entries have these fields, and returns them."""
        found: list[Entry] = []

        def is_complete() -> bool:
            nonlocal after
            found.extend(self.find(after, **fields))
            after = self._count
            return len(found) >= count

        try:
            await self.until(is_complete, timeout)
        except TimeoutError as error:
            text = f"{len(found)} of {count} entries with {fields}: {error}"
            raise TimeoutError(text) from None
        return found

    async def until(self, condition: Callable[[], bool], timeout: float) -> None:
        """Waits for a condition, which is checked after each change."""
        deadline = asyncio.get_running_loop().time() + timeout
        while not condition():
            left = deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self._news.wait(), max(0, left))
            except asyncio.TimeoutError:
                raise TimeoutError(f"not within {timeout:g} s") from None
