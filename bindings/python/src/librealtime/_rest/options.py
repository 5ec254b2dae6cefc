"""The options of a request, as C spells them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Union
from urllib.parse import parse_qsl, urlencode

from .._core.abi import rt_rest_order
from .._core.awaiting import plain
from .._core.errors import check
from .._core.handle import Handle
from .._core.headers import (
    HeadersLike,
    checked_cookies,
    cookie_header,
    header,
    laid_over,
    with_credentials,
)
from .._core.hints import OF_REQUESTS, hint
from .._core.loader import lib
from .._core.values import (
    choice,
    encode,
    invalid,
    limit,
    number,
    pairs,
    text,
    time_limit,
)
from .call import OnProgress
from .origin import is_trusted

#: What becomes a query: a mapping, whose values may be lists, pairs, or a query as it is written.
Params = Union[Mapping[str, Any], Iterable["tuple[str, Any]"], str, bytes, None]

ORDERS: dict[Any, int] = {
    None: rt_rest_order.AUTOMATIC,
    True: rt_rest_order.ALWAYS,
    False: rt_rest_order.NEVER,
}


@dataclass(frozen=True)
class ClientOptions:
    """What a client was given that a request looks at."""

    base_url: str | None
    params: Params
    cookies: Mapping[str, str] | None
    credential_origins: list[str]


class _Default:
    """An option that was not given: None means no limit."""

    def __repr__(self) -> str:
        return "the client's"


DEFAULT: Any = _Default()


class RequestKeywords(TypedDict, total=False):
    """What a request may be given beside method and path."""

    params: Params
    headers: HeadersLike | None
    cookies: Mapping[str, str] | None
    auth: tuple[str, str] | None
    bearer_token: str | None
    json: Any
    content: Any
    data: Params
    content_type: str | None
    on_progress: OnProgress
    timeout: float | None
    deadline: float | None
    queue_ttl: float | None
    attempts: int
    ordered: bool | None
    idempotency_key: str | bool | None
    retry_unsafe: bool | None
    max_redirects: int
    max_body_size: int | None


@dataclass(frozen=True)
class RequestOptions:
    """The same, with what was left out."""

    params: Params = None
    headers: HeadersLike | None = None
    cookies: Mapping[str, str] | None = None
    auth: tuple[str, str] | None = None
    bearer_token: str | None = None
    json: Any = DEFAULT
    content: Any = None
    data: Params = None
    content_type: str | None = None
    on_progress: OnProgress = None
    timeout: float | None = DEFAULT
    deadline: float | None = DEFAULT
    queue_ttl: float | None = DEFAULT
    attempts: int = DEFAULT
    ordered: bool | None = DEFAULT
    idempotency_key: str | bool | None = None
    retry_unsafe: bool | None = None
    max_redirects: int = DEFAULT
    max_body_size: int | None = DEFAULT

    @staticmethod
    def of(options: Mapping[str, Any], function: str) -> RequestOptions:
        """
        :param function: who was given them.
        """
        known = RequestKeywords.__annotations__
        for name in options:
            if name not in known:
                said = hint(name, known, OF_REQUESTS)
                raise TypeError(f"{function}() has no option {name!r}{said}")
        return RequestOptions(**options) if options else _NONE

    def __post_init__(self) -> None:
        plain(self.on_progress, "on_progress")

    def apply(self, request: Handle, client: ClientOptions, path: str) -> None:
        """Sets everything but the body."""
        if self is _NONE and not client.params:
            return
        for name, said in self._query(client, path):
            check(lib.rt_rest_request_add_query(request, text(name, "a parameter's name"), said))
        pairs = with_credentials(self.headers, self.auth, self.bearer_token)
        if self.cookies:
            cookies = cookie_header({**(client.cookies or {}), **checked_cookies(self.cookies)})
            pairs = laid_over(pairs, [("Cookie", cookies.decode())])
        for name, value in pairs:
            check(lib.rt_rest_request_add_header(request, *header(name, value)))
        times: Iterable[tuple[Any, float | None, str]] = (
            (lib.rt_rest_request_set_attempt_timeout_ms, self.timeout, "timeout"),
            (lib.rt_rest_request_set_deadline_ms, self._deadline(), "deadline"),
            (lib.rt_rest_request_set_queue_ttl_ms, self.queue_ttl, "queue_ttl"),
        )
        for setter, time, name in times:
            if time is not DEFAULT:
                check(setter(request, time_limit(time, name)))
        if self.attempts is not DEFAULT:
            count = number(self.attempts, "attempts", 1, 1000)
            check(lib.rt_rest_request_set_attempts(request, count))
        if self.ordered is not DEFAULT:
            order = choice(self.ordered, ORDERS, "ordered")
            check(lib.rt_rest_request_set_order(request, order))
        if isinstance(self.idempotency_key, str):
            pair = header("Idempotency-Key", self.idempotency_key)
            check(lib.rt_rest_request_set_header(request, *pair))
        elif self.idempotency_key is not None:
            check(lib.rt_rest_request_set_idempotency_key(request, bool(self.idempotency_key)))
        if self.retry_unsafe is not None:
            check(lib.rt_rest_request_set_retry_unsafe(request, bool(self.retry_unsafe)))
        if self.max_redirects is not DEFAULT:
            count = number(self.max_redirects, "max_redirects", 0, 20)
            check(lib.rt_rest_request_set_max_redirects(request, count))
        if self.max_body_size is not DEFAULT:
            size = limit(self.max_body_size, "max_body_size")
            check(lib.rt_rest_request_set_max_body_bytes(request, size))

    def _query(self, client: ClientOptions, path: str) -> list[tuple[str, bytes]]:
        own = list(_pairs(self.params, "params"))
        if not client.params or not is_trusted(path, client.base_url, client.credential_origins):
            return own
        names = {name for name, _ in own}
        # As headers do, parameters of a request take the place of the client's of their names.
        return [pair for pair in _pairs(client.params, "params") if pair[0] not in names] + own

    def _deadline(self) -> float | None:
        """The client's does not limit an attempt that is to have no limit."""
        return None if self.deadline is DEFAULT and self.timeout is None else self.deadline

    def set_body(self, request: Handle) -> bool:
        """Sets a body that is known whole.

        :returns: False when `content` is something to read, or to iterate over.
        """
        content, kind = self.content, self.content_type
        if (self.json is not DEFAULT) + (content is not None) + (self.data is not None) > 1:
            raise invalid("json, data and content are all the body; give one of them")
        if self.json is not DEFAULT:
            content, kind = encode(json_text(self.json), "json"), kind or "application/json"
        elif self.data is not None:
            if isinstance(self.data, (str, bytes)):
                kind = type(self.data).__name__
                raise TypeError(f"data is a {kind}; a mapping or pairs are expected, for a form")
            content = urlencode(list(_pairs(self.data, "data"))).encode()
            kind = kind or "application/x-www-form-urlencoded"
        elif isinstance(content, str):
            content, kind = encode(content, "content"), kind or "text/plain; charset=utf-8"
        if content is None:
            return True
        if not isinstance(content, (bytes, bytearray, memoryview)):
            return False
        body = bytes(content)
        name = None if kind is None else text(kind, "content_type")
        check(lib.rt_rest_request_set_body(request, body, len(body), name))
        return True


#: Of a request that is given none, as most are.
_NONE = RequestOptions()


def json_text(value: Any) -> str:
    """As compact as it can be."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:  # NaN, an infinity, or what holds itself
        raise invalid(f"json cannot be sent as JSON: {error}") from error


def _pairs(params: Params, what: str) -> Iterator[tuple[str, bytes]]:
    """Names and values of a query or a form."""
    for name, value in _items(params, what):
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if one is not None:
                said = str(one).lower() if isinstance(one, bool) else str(one)
                yield name, text(said, f"the value of parameter {name}")


def _items(params: Params, what: str) -> list[tuple[str, Any]]:
    if isinstance(params, bytes):
        params = params.decode("utf-8", "surrogateescape")
    if isinstance(params, str):
        # What is no UTF-8 is refused where all values are looked at.
        return parse_qsl(params, keep_blank_values=True, errors="surrogateescape")
    return pairs(params, what)
