"""A source that makes one request after another: an event source or a long poll."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Generic

from .._core.abi import rt_credentials
from .._core.awaiting import at_once, handlers_of, plain
from .._core.errors import check
from .._core.headers import Pairs, header_pairs, laid_over, with_credentials
from .._core.kind import ON_CREDENTIALS, ON_ERROR, ON_OPEN, ON_REQUEST, Callback
from .._core.parameters import Given
from .._core.reconnect import Attempt
from .._core.values import shown
from .source_base import BaseSource, T
from .source_options import ReadyState


class HTTPSource(BaseSource[T], Generic[T]):
    """What such sources share: requests that handlers may change, and credentials."""

    def _handlers_of(self, given: Given) -> SimpleNamespace:
        plain(given["on_request"], "on_request")
        plain(given["header_provider"], "header_provider")
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
        return ReadyState(state)

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
        handle, kind = self._handle, self._kind
        if handle is None:
            return False
        try:
            if self._handlers.header_provider is not None:
                fresh = header_pairs(
                    at_once(self._handlers.header_provider(attempt), "header_provider")
                )
                kind.set_headers(handle, laid_over(self._headers, fresh))
            on_request = self._handlers.on_request
            if on_request is not None:
                answer = on_request(Attempt(handle, attempt, kind))
                if at_once(answer, "on_request") is False:
                    self.close()
        except Exception as error:
            self._give_up("on_request or header_provider failed", error)
        return not self._is_closed

    def _asks(self, http_status: int) -> int:
        if self._handlers.credentials is None:
            return rt_credentials.NONE
        try:
            answer: Any = self._handlers.credentials(http_status)
            if hasattr(answer, "__await__"):
                self._later(answer, self._answer)
                return rt_credentials.LATER
            return self._take_credentials(answer)
        except Exception as error:
            self._give_up("fetching credentials failed", error)
            return rt_credentials.LATER

    def _take_credentials(self, answer: Any) -> int:
        handle = self._handle
        if answer is None or handle is None:
            return rt_credentials.NONE
        self._headers = laid_over(self._headers, header_pairs(answer))
        self._kind.set_headers(handle, self._headers)
        return rt_credentials.READY

    def _answer(self, credentials: Any) -> None:
        """Called with the credentials once they are fetched."""
        is_fresh = self._take_credentials(credentials) == rt_credentials.READY
        if self._handle is not None:
            self._kind.credentials_ready(self._handle, is_fresh)

    def _describe(self) -> str:
        return f"{self.ready_state.name} {shown(self._url)}"
