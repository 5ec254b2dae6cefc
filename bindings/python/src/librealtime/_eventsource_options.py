"""The options of an event source, and how they are set on one of C's."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union
from urllib.parse import urlsplit

from ._abi import rt_status
from ._loader import lib
from ._network import Network
from ._options import HeadersLike
from ._reachability import Reachability
from ._reconnect import Attempt, header
from ._registry import Handle
from ._values import StrPath, encode, invalid, limit, milliseconds, number, path, strings, text
from .exceptions import check

Pairs = list[tuple[str, str]]
OnRequest = Optional[Callable[[Attempt], object]]
HeaderProvider = Optional[Callable[[int], Optional[HeadersLike]]]
Credentials = Optional[Callable[[int], Union[HeadersLike, Awaitable[Optional[HeadersLike]], None]]]
OnStore = Optional[Callable[[str, str], object]]

#: Statuses that pass, of servers behind proxies that restart; for ``retry_statuses=``.
RESILIENT = frozenset((408, 425, 429, 500, 502, 503, 504))


def basic_auth(user: str, password: str) -> str:
    """The value of an Authorization header for basic credentials (RFC 7617).

    :raises InvalidArgument: for a user name with a colon.
    """
    name, word = text(user, "the user"), text(password, "the password")
    if b":" in name:
        raise invalid("the user name has a colon, which ends it (RFC 7617 §2)")
    return "Basic " + base64.b64encode(name + b":" + word).decode()


@dataclass(frozen=True)
class Request:
    """What the requests say, and how far they are redirected."""

    method: str
    content: str | bytes | None
    headers: HeadersLike | None
    auth: tuple[str, str] | None
    bearer_token: str | None
    max_redirects: int
    allow_insecure_redirects: bool
    safe_headers: Iterable[str]

    def pairs(self) -> Pairs:
        """Its headers, those of the credentials among them."""
        pairs = header_pairs(self.headers)
        if self.auth is not None and self.bearer_token is not None:
            raise invalid("auth and bearer_token are the same header; give one of them")
        if self.auth is not None:
            user, password = self.auth
            return laid_over(pairs, [("Authorization", basic_auth(user, password))])
        if self.bearer_token is not None:
            if not self.bearer_token:
                raise invalid('bearer_token is ""')
            return laid_over(pairs, [("Authorization", f"Bearer {self.bearer_token}")])
        return pairs

    def apply(self, source: Handle) -> None:
        check(lib.rt_eventsource_set_method(source, text(self.method, "method")))
        if self.content is not None:
            content = self.content
            body = encode(content, "content") if isinstance(content, str) else bytes(content)
            check(lib.rt_eventsource_set_body(source, body, len(body)))
        redirects = number(self.max_redirects, "max_redirects", 0, 20)
        check(lib.rt_eventsource_set_max_redirects(source, redirects))
        if self.allow_insecure_redirects:
            check(lib.rt_eventsource_set_allow_insecure_redirects(source, True))
        for name in strings(self.safe_headers, "safe_headers"):
            name_ = text(name, "a safe header", rt_status.ERROR_INVALID_HEADER)
            check(lib.rt_eventsource_add_safe_header(source, name_))


@dataclass(frozen=True)
class Ids:
    """Which id the first request sends, and where ids are kept."""

    last_event_id: str | None
    id_query_param: str | None
    id_file: StrPath | None
    store_key: str | None

    def apply(self, source: Handle) -> None:
        if self.last_event_id is not None:
            id_ = text(self.last_event_id, "last_event_id")
            check(lib.rt_eventsource_set_last_event_id(source, id_))
        if self.id_query_param is not None:
            name = text(self.id_query_param, "id_query_param")
            check(lib.rt_eventsource_set_id_query_parameter(source, name))
        if self.id_file is not None:
            key = None if self.store_key is None else text(self.store_key, "store_key")
            check(lib.rt_eventsource_set_id_file(source, path(self.id_file, "id_file"), key))
        elif self.store_key is not None:
            raise invalid("store_key needs an id_file")


@dataclass(frozen=True)
class Retrying:
    """When it comes back. Durations in seconds."""

    reconnect: bool
    max_reconnects: int | None
    reconnection_time: float
    max_delay: float
    stable_time: float
    retry_statuses: Iterable[int]

    def apply(self, source: Handle) -> None:
        check(lib.rt_eventsource_set_reconnect(source, bool(self.reconnect)))
        count = min(limit(self.max_reconnects, "max_reconnects"), 2**32 - 1)
        check(lib.rt_eventsource_set_max_reconnects(source, count))
        for setter, value, name in (
            (
                lib.rt_eventsource_set_reconnection_time_ms,
                self.reconnection_time,
                "reconnection_time",
            ),
            (lib.rt_eventsource_set_max_delay_ms, self.max_delay, "max_delay"),
            (lib.rt_eventsource_set_stable_time_ms, self.stable_time, "stable_time"),
        ):
            if value is None:
                raise TypeError(f"{name} is None; seconds are expected")
            check(setter(source, milliseconds(value, name, least=0)))
        for status in self.retry_statuses:
            wanted = number(status, "a status of retry_statuses", 400, 599)
            check(lib.rt_eventsource_add_retry_status(source, wanted))


@dataclass(frozen=True)
class Timing:
    """Time limits in seconds; None for none."""

    connect_timeout: float | None
    response_timeout: float | None
    idle_timeout: float | None

    def apply(self, source: Handle) -> None:
        for setter, value, name in (
            (lib.rt_eventsource_set_connect_timeout_ms, self.connect_timeout, "connect_timeout"),
            (lib.rt_eventsource_set_response_timeout_ms, self.response_timeout, "response_timeout"),
            (lib.rt_eventsource_set_idle_timeout_ms, self.idle_timeout, "idle_timeout"),
        ):
            check(setter(source, milliseconds(value, name)))


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, counts of events; None for no limit."""

    max_line_size: int | None
    max_event_size: int | None
    max_queue: int | None
    max_queue_bytes: int | None

    def apply(self, source: Handle) -> None:
        size = limit(self.max_line_size, "max_line_size")
        check(lib.rt_eventsource_set_max_line_bytes(source, size))
        size = limit(self.max_event_size, "max_event_size")
        check(lib.rt_eventsource_set_max_event_bytes(source, size))


@dataclass(frozen=True)
class Options:
    """What an event source was given, the same for both faces."""

    url: str
    request: Request
    ids: Ids
    retrying: Retrying
    timing: Timing
    limits: Limits
    compression: bool
    http2: bool
    network: Network | None
    reachability: Reachability | None

    def apply(self, source: Handle, loop: Handle) -> None:
        """Sets everything but the headers on an event source that was not started."""
        self.request.apply(source)
        self.ids.apply(source)
        self.retrying.apply(source)
        self.timing.apply(source)
        self.limits.apply(source)
        check(lib.rt_eventsource_set_compression(source, bool(self.compression)))
        check(lib.rt_eventsource_set_http2(source, bool(self.http2)))
        if self.network is not None:
            check(lib.rt_eventsource_set_network(source, self.network.make()))
        if self.reachability is not None:
            if not isinstance(self.reachability, Reachability):
                kind = type(self.reachability).__name__
                raise TypeError(f"reachability is a {kind}; a Reachability is expected")
            check(lib.rt_eventsource_set_reachability(source, self.reachability.on(loop)))


def header_pairs(headers: Any) -> Pairs:
    """From a mapping or pairs."""
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())


def laid_over(below: Pairs, above: Pairs) -> Pairs:
    """Headers in the place of those of their names."""
    names = {name.lower() for name, _ in above}
    return [pair for pair in below if pair[0].lower() not in names] + above


def set_headers(source: Handle, pairs: Pairs) -> None:
    """Sets these headers in the place of all."""
    check(lib.rt_eventsource_clear_headers(source))
    for name, value in pairs:
        check(lib.rt_eventsource_add_header(source, *header(name, value)))


def without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
