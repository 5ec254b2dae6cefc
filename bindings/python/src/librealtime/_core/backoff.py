"""How often and how soon something that failed is tried again."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .abi import rt_jitter, rt_status
from .errors import check
from .handle import Handle, new
from .loader import lib
from .values import invalid, limit, milliseconds

_JITTERS = {
    "none": rt_jitter.NONE,
    "equal": rt_jitter.EQUAL,
    "full": rt_jitter.FULL,
    "decorrelated": rt_jitter.DECORRELATED,
}


@dataclass(frozen=True)
class Backoff:
    """The delays between attempts: initial, initial · factor, initial · factor² … to the maximum.

    :param initial_delay: after the first failure, in seconds; 0 tries again at once. Default 1.
    :param max_delay: the longest, in seconds. Default 30.
    :param factor: by how much each is longer than the one before, 1 to 1000. Default 2.
    :param jitter: how delays are spread, so that the clients of a server that restarted do not all
        come back at once: ``"none"``; ``"equal"`` (the default), half of it and a part of the other
        half; ``"full"``, a part of it; ``"decorrelated"``, from ``initial_delay`` to three times
        the previous one.
    :param max_attempts: how many in a row may follow a failure. Default None: no limit.
    :param stable_time: how many seconds a connection must last before attempts are counted anew.
        Default 10.
    """

    initial_delay: float = 1
    max_delay: float = 30
    factor: float = 2
    jitter: Literal["none", "equal", "full", "decorrelated"] = "equal"
    max_attempts: int | None = None
    stable_time: float = 10

    def make(self) -> Handle:
        """The C interface's."""
        backoff = new(lib.rt_backoff_new, lib.rt_backoff_free)
        for setter, value, name in (
            (lib.rt_backoff_set_initial_delay_ms, self.initial_delay, "initial_delay"),
            (lib.rt_backoff_set_max_delay_ms, self.max_delay, "max_delay"),
            (lib.rt_backoff_set_stable_time_ms, self.stable_time, "stable_time"),
        ):
            check(setter(backoff, milliseconds(value, name, least=0)))
        if isinstance(self.factor, bool) or not isinstance(self.factor, (int, float)):
            raise TypeError(f"factor is a {type(self.factor).__name__}; a number is expected")
        check(lib.rt_backoff_set_factor(backoff, self.factor))
        if self.jitter not in _JITTERS:
            known = ", ".join(f'"{name}"' for name in _JITTERS)
            raise invalid(f"jitter is {self.jitter!r}; one of {known} is expected")
        check(lib.rt_backoff_set_jitter(backoff, _JITTERS[self.jitter]))
        attempts = min(limit(self.max_attempts, "max_attempts"), 2**32 - 1)
        check(lib.rt_backoff_set_max_attempts(backoff, attempts))
        return backoff

    def __iter__(self) -> Iterator[float]:
        """The delays in seconds, for attempts of your own; ends when no attempt is left."""
        backoff = self.make()
        out = ctypes.c_int64()
        while True:
            status = lib.rt_backoff_next_ms(backoff, ctypes.byref(out))
            if status == rt_status.ERROR_NOT_FOUND:
                return
            check(status)
            yield out.value / 1000
