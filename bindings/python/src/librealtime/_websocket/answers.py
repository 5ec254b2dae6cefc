"""What a connection asks its program before another attempt, and after a refusal."""

from __future__ import annotations

from collections.abc import Callable

from .._core.abi import rt_status
from .._core.asking import Asking, Steps
from .._core.errors import RealtimeError, check, from_status
from .._core.handle import Handle
from .._core.headers import Pairs, header
from .._core.naming import said_by
from .._core.reconnect import Attempt
from .callbacks import WEBSOCKET


class Answers(Asking):
    """The answers of ``on_reconnect`` and ``credentials``."""

    _kind = WEBSOCKET

    # Why there are no credentials.
    _denial: RealtimeError | None = None

    def _tries_again(self, attempt: int) -> bool:
        handle, on_reconnect = self._handle, self._handlers.on_reconnect
        if on_reconnect is None or handle is None:
            return True
        steps = _steps(on_reconnect, Attempt(handle, attempt, WEBSOCKET))
        return self._decide(steps, "on_reconnect")

    def _undecided(self, error: Exception) -> None:
        self._keep(error)
        self._decided(False)

    def _set_credentials(self, handle: Handle, pairs: Pairs) -> None:
        given = set()
        for name, value in pairs:
            pair = header(name, value)
            # The first one replaces the earlier headers of its name, and the others join it.
            put = WEBSOCKET.add_header if name.lower() in given else WEBSOCKET.set_header
            check(put(handle, *pair))
            given.add(name.lower())

    def _has_none(self, error: Exception) -> None:
        self._denial = from_status(
            rt_status.ERROR_CANCELLED, f"fetching credentials failed: {said_by(error)}"
        )
        self._denial.__cause__ = error
        if self._handle is not None:
            check(WEBSOCKET.credentials_ready(self._handle, False))


def _steps(on_reconnect: Callable[[Attempt], object], attempt: Attempt) -> Steps:
    return (yield on_reconnect(attempt)) is not False
