"""What an object asks its program between attempts: credentials, and whether to try again.

With asyncio, the functions that answer may be coroutine functions; the attempt waits for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import Any

from .abi import rt_credentials
from .awaiting import at_once, plain
from .endpoint import Endpoint
from .errors import check
from .handle import Handle
from .headers import Pairs, header_pairs

#: Yields what the user's functions returned, gets their results, and returns whether to try.
Steps = Generator[Any, Any, bool]


class Asking(Endpoint):
    """An object whose functions are called before an attempt and after a refusal."""

    def _check_answers(self, given: Mapping[str, Any], names: Iterable[str]) -> None:
        """Refuses coroutine functions if nobody can await them."""
        for name in names:
            self._check_answer(given[name], name)

    def _check_answer(self, function: Any, name: str) -> None:
        if not self._awaits:
            plain(function, name)

    # Before an attempt.

    def _decide(self, steps: Steps, what: str) -> bool:
        """Runs `steps` up to the first coroutine; then the attempt waits for the rest.

        :param what: the names of the functions, for messages.
        """
        answer = None
        while True:
            try:
                answer = steps.send(answer)
            except StopIteration as end:
                return bool(end.value)
            if hasattr(answer, "__await__"):
                if not self._awaits:
                    at_once(answer, what)
                check(self._kind.defer_attempt(self._require_handle()))
                self._later(_rest(steps, answer), self._decided, self._undecided)
                return True

    def _decided(self, continues: bool) -> None:
        """Called with the decision of coroutines."""
        if self._handle is not None:
            check(self._kind.attempt_ready(self._handle, continues))

    def _undecided(self, error: Exception) -> None:
        """Called with what a coroutine raised."""
        raise NotImplementedError

    # After a refusal.

    def _asks(self, http_status: int) -> int:
        if self._handlers.credentials is None:
            return rt_credentials.NONE
        try:
            answer: Any = self._handlers.credentials(http_status)
            if hasattr(answer, "__await__"):
                if not self._awaits:
                    at_once(answer, "credentials")
                self._later(answer, self._answer, self._has_none)
                return rt_credentials.LATER
            return self._take_credentials(answer)
        except Exception as error:
            self._has_none(error)
            return rt_credentials.LATER

    def _take_credentials(self, answer: Any) -> int:
        handle = self._handle
        if answer is None or handle is None:
            return rt_credentials.NONE
        self._set_credentials(handle, header_pairs(answer, "what credentials returned"))
        return rt_credentials.READY

    def _answer(self, credentials: Any) -> None:
        """Called with the credentials once they are fetched."""
        is_fresh = self._take_credentials(credentials) == rt_credentials.READY
        if self._handle is not None:
            check(self._kind.credentials_ready(self._handle, is_fresh))

    def _set_credentials(self, handle: Handle, pairs: Pairs) -> None:
        raise NotImplementedError

    def _has_none(self, error: Exception) -> None:
        """Called with what the credentials function raised."""
        raise NotImplementedError

    def _later(
        self,
        awaitable: Awaitable[Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Runs a coroutine of the caller, then calls `then` with its result.

        :param failed: receives what it, or `then`, raised instead.
        """
        raise NotImplementedError


async def _rest(steps: Steps, awaitable: Any) -> bool:
    while True:
        answer = await awaitable
        try:
            while not hasattr(answer := steps.send(answer), "__await__"):
                pass
        except StopIteration as end:
            return bool(end.value)
        awaitable = answer
