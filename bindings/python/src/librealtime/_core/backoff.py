"""How often and how soon a failed attempt is retried."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

from .abi import rt_status
from .errors import check
from .handle import Handle, new
from .loader import lib
from .option_kinds import describe
from .option_tables import BACKOFF_OPTIONS, BackoffOptions


@dataclass(frozen=True)
class Backoff(BackoffOptions):
    """The delays between attempts: initial, initial · factor, initial · factor² … up to a maximum.

    Times are in seconds.
    """

    def make(self) -> Handle:
        """Creates its handle in the C interface."""
        backoff = new(lib.rt_backoff_new, lib.rt_backoff_free)
        BACKOFF_OPTIONS.apply(backoff, vars(self))
        return backoff

    def __iter__(self) -> Iterator[float]:
        """Yields the delays in seconds, for your own attempts; ends when no attempt is left."""
        backoff = self.make()
        out = ctypes.c_int64()
        while True:
            status = lib.rt_backoff_next_ms(backoff, ctypes.byref(out))
            if status == rt_status.ERROR_NOT_FOUND:
                return
            check(status)
            yield out.value / 1000


describe(Backoff, BACKOFF_OPTIONS)
