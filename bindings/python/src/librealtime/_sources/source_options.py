"""What every kind of source is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Generic, Optional, TypeVar, Union

from .._core.abi import rt_eventsource_state, rt_status
from .._core.awaiting import check_functions, plain
from .._core.backoff import Backoff
from .._core.errors import RealtimeError, check
from .._core.handle import Handle
from .._core.headers import HeadersLike, Pairs, header_pairs, with_credentials
from .._core.kind import Kind
from .._core.network import Network
from .._core.option_kinds import Table
from .._core.reachability import Reachability, on_loop
from .._core.reconnect import Attempt
from .._core.values import limit, strings, text

T = TypeVar("T")

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


@dataclass
class SourceHandlers(Generic[T]):
    """The caller's functions, all called inside a dispatch."""

    on_open: OnOpen
    on_error: OnError
    on_message: Callable[[T], object] | None

    def __post_init__(self) -> None:
        check_functions(self)

    @property
    def take_items(self) -> bool:
        """Whether there is one that what comes may be handed to."""
        return self.on_message is not None

    @property
    def call_back(self) -> bool:
        """Whether there is one that tells somebody, though nobody refers to the source."""
        return self.take_items or self.on_open is not None or self.on_error is not None


@dataclass
class HTTPSourceHandlers(SourceHandlers[T]):
    """And those of one that makes requests."""

    on_request: OnRequest
    header_provider: HeaderProvider
    credentials: Credentials

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self.on_request, "on_request")
        plain(self.header_provider, "header_provider")


@dataclass(frozen=True)
class SourceOptions:
    """What a source was given, the same for both faces."""

    #: Those that are plain values.
    table: ClassVar[Table]

    url: str
    headers: HeadersLike | None
    plain: Mapping[str, Any]
    network: Network | None
    reachability: Reachability | None
    backoff: Backoff | None
    max_queue: int | None
    max_queue_bytes: int | None

    def pairs(self) -> Pairs:
        """Its headers."""
        return header_pairs(self.headers)

    def queue_limits(self) -> tuple[int, int]:
        return limit(self.max_queue, "max_queue"), limit(self.max_queue_bytes, "max_queue_bytes")

    def apply(self, kind: Kind, source: Handle, loop: Handle) -> None:
        """Sets everything but the headers on a source that was not started."""
        self.table.apply(source, self.plain)
        if self.network is not None:
            check(kind.set_network(source, self.network.make()))
        if self.backoff is not None:
            check(kind.set_backoff(source, self.backoff.make()))
        if self.reachability is not None:
            check(kind.set_reachability(source, on_loop(self.reachability, loop)))


@dataclass(frozen=True)
class HTTPSourceOptions(SourceOptions):
    """And what one that makes requests was given."""

    auth: tuple[str, str] | None
    bearer_token: str | None
    safe_headers: Iterable[str]

    def pairs(self) -> Pairs:
        return with_credentials(self.headers, self.auth, self.bearer_token)

    def apply(self, kind: Kind, source: Handle, loop: Handle) -> None:
        super().apply(kind, source, loop)
        for name in strings(self.safe_headers, "safe_headers"):
            safe = text(name, "a safe header", rt_status.ERROR_INVALID_HEADER)
            check(kind.add_safe_header(source, safe))
