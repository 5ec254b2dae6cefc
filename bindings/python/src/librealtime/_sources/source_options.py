"""Options that every kind of source has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Optional, TypedDict, TypeVar, Union

from .._core.abi import rt_state
from .._core.errors import RealtimeError
from .._core.failure import Failure
from .._core.headers import HeadersLike
from .._core.parameters import Group
from .._core.reconnect import Attempt, CredentialSource
from .._core.shared_options import (
    HEADERS,
    QUEUE,
    REDIRECTS,
    ROUTE,
    CredentialKeywords,
    HeaderKeywords,
    QueueKeywords,
    RedirectKeywords,
    RouteKeywords,
)

E = TypeVar("E", bound="ErrorEvent")

OnOpen = Optional[Callable[[], object]]
OnError = Optional[Callable[["ErrorEvent"], object]]
OnRequest = Optional[Callable[[Attempt], object]]
HeaderProvider = Optional[
    Callable[[int], Union[HeadersLike, Awaitable[Optional[HeadersLike]], None]]
]


class ReadyState(IntEnum):
    """The state of a source, with the numbers of the standard's EventSource."""

    CONNECTING = 0
    OPEN = 1
    CLOSED = 2


#: By the states that all objects share.
READY_STATES: dict[int, ReadyState] = {
    rt_state.IDLE: ReadyState.CONNECTING,
    rt_state.CONNECTING: ReadyState.CONNECTING,
    rt_state.OPEN: ReadyState.OPEN,
    rt_state.WAITING: ReadyState.CONNECTING,
    rt_state.CLOSED: ReadyState.CLOSED,
}


@dataclass(frozen=True)
class ErrorEvent:
    """A failed attempt, the end of a stream, or a wait for a network; passed to ``on_error``.

    :ivar error: what happened; RT_ERROR_CLOSED is the status of a stream that ended normally.
    :ivar http_status: the status of the response; 0 without one.
    :ivar fatal: whether the source is closed now; otherwise it reconnects.
    :ivar retry_in: seconds until the next attempt; None if there is none, or if the source waits
        for the network.
    :ivar attempt: the number of that attempt, from 1 since the last stable connection.
    """

    error: RealtimeError
    http_status: int
    fatal: bool
    retry_in: float | None
    attempt: int

    @classmethod
    def _of(cls: type[E], failure: Failure, *more: object) -> E:
        """:param more: further fields of a subclass."""
        error, http_status = failure.stream_error(), failure.http_status
        return cls(error, http_status, failure.fatal, failure.retry_in, failure.attempt, *more)


class RequestKeywords(TypedDict, total=False):
    """Functions that are called before and after a request.

    :param on_request: called with an ``Attempt`` before each request. It may change URL and
        headers, and closes the source by returning False. With asyncio it may be a coroutine
        function; the request waits for it.
    :param header_provider: called with the number of each attempt, from 1 since the last stable
        connection. The headers it returns override the others for that attempt. With asyncio it may
        be a coroutine function. Default None.
    :param credentials: called with the status when the server answers 401, or the proxy 407, once
        an attempt. It returns headers (Proxy-Authorization for the proxy) for repeating the
        request, or None, which is fatal. With asyncio it may be a coroutine function. Default None.
    """

    on_request: OnRequest
    header_provider: HeaderProvider
    credentials: CredentialSource


class HTTPSourceKeywords(
    RequestKeywords,
    HeaderKeywords,
    CredentialKeywords,
    RedirectKeywords,
    RouteKeywords,
    QueueKeywords,
    total=False,
):
    """All options that sources with requests share."""


# Such a source sets credentials with the headers, which change when the credentials are refused.
HTTP_SOURCE = (
    Group(RequestKeywords),
    HEADERS,
    Group(CredentialKeywords),
    REDIRECTS,
    ROUTE,
    QUEUE,
)
