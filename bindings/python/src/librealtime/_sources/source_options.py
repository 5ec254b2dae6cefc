"""What every kind of source is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Optional, TypedDict, TypeVar, Union

from .._core.abi import rt_eventsource_state
from .._core.errors import RealtimeError
from .._core.failure import Failure
from .._core.headers import HeadersLike
from .._core.parameters import Group
from .._core.reconnect import Attempt
from .._core.shared_options import (
    HEADERS,
    QUEUE,
    ROUTE,
    SAFE_HEADERS,
    CredentialKeywords,
    HeaderKeywords,
    QueueKeywords,
    RouteKeywords,
    SafeHeaderKeywords,
)

E = TypeVar("E", bound="ErrorEvent")

OnOpen = Optional[Callable[[], object]]
OnError = Optional[Callable[["ErrorEvent"], object]]
OnRequest = Optional[Callable[[Attempt], object]]
HeaderProvider = Optional[Callable[[int], Optional[HeadersLike]]]
Credentials = Optional[Callable[[int], Union[HeadersLike, Awaitable[Optional[HeadersLike]], None]]]


class ReadyState(IntEnum):
    """Where a source stands, with the numbers of the standard's EventSource."""

    CONNECTING = rt_eventsource_state.CONNECTING
    OPEN = rt_eventsource_state.OPEN
    CLOSED = rt_eventsource_state.CLOSED


@dataclass(frozen=True)
class ErrorEvent:
    """An attempt that failed, or a stream that ended; for ``on_error``.

    :ivar error: what happened; a stream that ended in order has the status RT_ERROR_CLOSED.
    :ivar http_status: of the answer; 0 without one.
    :ivar fatal: whether the source is closed now; else it connects again.
    :ivar retry_in: seconds until the next attempt; None when there is none, or it waits for the
        network.
    :ivar attempt: the number of that attempt, from 1 since the last connection that was stable.
    """

    error: RealtimeError
    http_status: int
    fatal: bool
    retry_in: float | None
    attempt: int

    @classmethod
    def _of(cls: type[E], failure: Failure, *more: object) -> E:
        """:param more: what a subclass has besides."""
        error, http_status = failure.stream_error(), failure.http_status
        return cls(error, http_status, failure.fatal, failure.retry_in, failure.attempt, *more)


class RequestKeywords(TypedDict, total=False):
    """What is asked before and after a request.

    :param on_request: called with an ``Attempt`` before each request, whose URL and headers it may
        change; it closes the source by returning False.
    :param header_provider: called with the number of each attempt, from 1 since the last that was
        stable; the headers it returns are laid over the others for that attempt. Default None.
    :param credentials: called with the status when the server answers 401, or the proxy 407, once
        an attempt: returns headers (Proxy-Authorization for the proxy), with which the request is
        sent again, or None, which is fatal. In asyncio it may be a coroutine function. Default
        None.
    """

    on_request: OnRequest
    header_provider: HeaderProvider
    credentials: Credentials


class HTTPSourceKeywords(
    RequestKeywords,
    HeaderKeywords,
    CredentialKeywords,
    SafeHeaderKeywords,
    RouteKeywords,
    QueueKeywords,
    total=False,
):
    """All that sources have that make requests."""


# Credentials go with the headers, which such a source sets anew when they are refused.
HTTP_SOURCE = (
    Group(RequestKeywords),
    HEADERS,
    Group(CredentialKeywords),
    SAFE_HEADERS,
    ROUTE,
    QUEUE,
)
