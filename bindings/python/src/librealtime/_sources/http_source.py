"""A source that makes one request after another: an event source or a long poll."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Generic

from .._core.asking import Asking, Steps
from .._core.awaiting import handlers_of
from .._core.errors import check
from .._core.handle import Handle
from .._core.headers import Pairs, header_pairs, laid_over, with_credentials
from .._core.kind import ON_CREDENTIALS, ON_ERROR, ON_OPEN, ON_REQUEST, Callback
from .._core.parameters import Given
from .._core.reconnect import Attempt
from .._core.values import shown
from .source_base import BaseSource, T
from .source_options import READY_STATES, ReadyState


class HTTPSource(Asking, BaseSource[T], Generic[T]):
    """What such sources share: requests that handlers may change, and credentials."""

    def _handlers_of(self, given: Given) -> SimpleNamespace:
        self._check_answers(given, ("on_request", "header_provider"))
        names = (*self._options.handlers, "header_provider", "credentials")
        return handlers_of(given, names)

    def _pairs(self, given: Given) -> Pairs:
        return with_credentials(given["headers"], given["auth"], given["bearer_token"])

    def _callbacks(self) -> list[Callback]:
        handlers = self._handlers
        callbacks = [ON_OPEN, ON_ERROR]
        if handlers.on_request is not None or handlers.header_provider is not None:
            callbacks.append(ON_REQUEST)
        if handlers.credentials is not None:
            callbacks.append(ON_CREDENTIALS)
        return callbacks

    # State.

    @property
    def ready_state(self) -> ReadyState:
        """OPEN after the server has responded; CONNECTING before, and after a failure."""
        handle = self._handle
        if handle is None:
            return ReadyState.CLOSED
        state = self._kind.get_state(handle)
        check(state)
        return READY_STATES[state]

    @property
    def url(self) -> str:
        """The URL as given, without user and password."""
        return self._url

    # Methods.

    def restart(self) -> None:
        """Drops the connection and reconnects at once; this does not count as an attempt.

        :raises StreamEnded: if it is closed.
        """
        check(self._kind.restart(self._require_handle()))

    # Called by the trampolines.

    def _requests(self, attempt: int) -> bool:
        handle = self._handle
        if handle is None:
            return False
        try:
            if not self._decide(self._steps(handle, attempt), "on_request or header_provider"):
                self.close()
        except Exception as error:
            self._undecided(error)
        return not self._is_closed

    def _steps(self, handle: Handle, attempt: int) -> Steps:
        """Calls the functions before an attempt."""
        if self._handlers.header_provider is not None:
            given = yield self._handlers.header_provider(attempt)
            fresh = header_pairs(given, "what header_provider returned")
            self._kind.set_headers(handle, laid_over(self._headers, fresh))
        if self._handlers.on_request is not None:
            answer = yield self._handlers.on_request(Attempt(handle, attempt, self._kind))
            return answer is not False
        return True

    def _decided(self, continues: bool) -> None:
        if continues:
            super()._decided(True)
        else:
            self.close()

    def _undecided(self, error: Exception) -> None:
        self._give_up("on_request or header_provider failed", error)

    def _set_credentials(self, handle: Handle, pairs: Pairs) -> None:
        self._headers = laid_over(self._headers, pairs)
        self._kind.set_headers(handle, self._headers)

    def _has_none(self, error: Exception) -> None:
        self._give_up("fetching credentials failed", error)

    def _describe(self) -> str:
        return f"{self.ready_state.name} {shown(self._url)}"
