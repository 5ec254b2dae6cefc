"""A clock of one thread, which stands still while another process has its processor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


class own_clock:  # noqa: N801
    """Seconds of this thread's own clock, see Tests/Hostile/victim.c, and of the monotonic one.

    with own_clock() as now:
        own, wall = now()
    """

    def __enter__(self) -> Callable[[], tuple[float, float]]:
        try:
            self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except FileNotFoundError:
            self._schedstat = -1
        return self._now

    def __exit__(self, *_: object) -> None:
        if self._schedstat >= 0:
            os.close(self._schedstat)

    def _now(self) -> tuple[float, float]:
        delay = self._delay()
        while True:
            before, wall = delay, time.monotonic()
            # Another process may have had the processor meanwhile.
            delay = self._delay()
            if delay == before:
                return wall - delay / 1e9, wall

    def _delay(self) -> int:
        """How long the thread has waited for a processor, in nanoseconds; 0 if the kernel does not
        say."""
        return int(os.pread(self._schedstat, 128, 0).split()[1]) if self._schedstat >= 0 else 0
