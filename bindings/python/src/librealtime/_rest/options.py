"""The options of a request, converted for C."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union
from urllib.parse import parse_qsl, urlencode

from .._core.abi import rt_status
from .._core.awaiting import check_function, plain
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
from .._core.naming import kind_of
from .._core.option_tables import REST_REQUEST_OPTIONS, RESTRequestKeywords
from .._core.values import encode, invalid, pairs, text
from .call import OnProgress, OnRetry
from .origin import is_trusted

#: A query: a mapping, whose values may be lists, pairs, or an encoded query.
Params = Union[Mapping[str, Any], Iterable["tuple[str, Any]"], str, bytes, None]


@dataclass(frozen=True)
class ClientOptions:
    """The client's options that requests use."""

    base_url: str | None
    params: Params
    cookies: Mapping[str, str] | None
    credential_origins: list[str]


#: Marks a missing body, because None is valid JSON.
NOTHING: Any = object()


class RequestKeywords(RESTRequestKeywords, total=False):
    """The options of a request besides method and path."""

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
    on_retry: OnRetry
    idempotency_key: str | bool | None


@dataclass(frozen=True)
class RequestOptions:
    """The same with defaults; ``plain`` has the plain values that were given."""

    params: Params = None
    headers: HeadersLike | None = None
    cookies: Mapping[str, str] | None = None
    auth: tuple[str, str] | None = None
    bearer_token: str | None = None
    json: Any = NOTHING
    content: Any = None
    data: Params = None
    content_type: str | None = None
    on_progress: OnProgress = None
    on_retry: OnRetry = None
    idempotency_key: str | bool | None = None
    plain: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any], function: str) -> RequestOptions:
        """
        :param function: the function that received them, for error messages.
        """
        known = RequestKeywords.__annotations__
        for name in options:
            if name not in known:
                advice = hint(name, known, OF_REQUESTS)
                raise TypeError(f"{function}() has no option {name!r}{advice}")
        if not options:
            return _NONE
        own = {name: value for name, value in options.items() if name not in REST_REQUEST_OPTIONS}
        return RequestOptions(plain=options, **own)

    def __post_init__(self) -> None:
        check_function(plain(self.on_progress, "on_progress"), "on_progress")
        check_function(plain(self.on_retry, "on_retry"), "on_retry")
        if self.content_type is not None:
            text(self.content_type, "content_type", rt_status.ERROR_INVALID_HEADER)

    def apply(self, request: Handle, client: ClientOptions, path: str) -> None:
        """Sets everything but the body."""
        if self is _NONE and not client.params:
            return
        for name, encoded_value in self._query(client, path):
            check(
                lib.rt_rest_request_add_query(
                    request, text(name, "a parameter's name in params"), encoded_value
                )
            )
        pairs = with_credentials(self.headers, self.auth, self.bearer_token)
        if self.cookies:
            cookies = cookie_header({**(client.cookies or {}), **checked_cookies(self.cookies)})
            pairs = laid_over(pairs, [("Cookie", cookies.decode())])
        for name, value in pairs:
            check(lib.rt_rest_request_add_header(request, *header(name, value, "headers")))
        REST_REQUEST_OPTIONS.apply(request, self.plain)
        if isinstance(self.idempotency_key, str):
            pair = header("Idempotency-Key", self.idempotency_key, "idempotency_key")
            check(lib.rt_rest_request_set_header(request, *pair))
        elif self.idempotency_key is not None:
            check(lib.rt_rest_request_set_idempotency_keys(request, bool(self.idempotency_key)))

    def _query(self, client: ClientOptions, path: str) -> list[tuple[str, bytes]]:
        own = list(_pairs(self.params, "params"))
        if not client.params or not is_trusted(path, client.base_url, client.credential_origins):
            return own
        names = {name for name, _ in own}
        # As with headers, a request's parameters override the client's of the same name.
        return [pair for pair in _pairs(client.params, "params") if pair[0] not in names] + own

    def set_body(self, request: Handle) -> bool:
        """Sets a body that is completely in memory.

        :returns: False if `content` has to be read or iterated.
        """
        content, kind = self.content, self.content_type
        if (self.json is not NOTHING) + (content is not None) + (self.data is not None) > 1:
            raise invalid("json, data and content all set the body; give one of them")
        if self.json is not NOTHING:
            content, kind = encode(json_text(self.json), "json"), kind or "application/json"
        elif self.data is not None:
            if isinstance(self.data, (str, bytes)):
                kind = kind_of(self.data)
                raise TypeError(f"data is {kind}; a mapping or pairs for a form are expected")
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


#: The options of a request without any, as most are.
_NONE = RequestOptions()


def json_text(value: Any) -> str:
    """JSON without unneeded spaces."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:  # NaN, an infinity, or a value that contains itself
        raise invalid(f"the value of json is not JSON: {error}") from error


def _pairs(params: Params, what: str) -> Iterator[tuple[str, bytes]]:
    """Names and values of a query or a form."""
    for name, value in _items(params, what):
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if one is not None:
                written = str(one).lower() if isinstance(one, bool) else str(one)
                yield name, text(written, f"the value of parameter {name} in {what}")


def check_params(params: Params) -> None:
    """Checks the query that a client adds to its requests."""
    for name, _ in _pairs(params, "params"):
        text(name, "a parameter's name in params")


def _items(params: Params, what: str) -> list[tuple[str, Any]]:
    if isinstance(params, bytes):
        params = params.decode("utf-8", "surrogateescape")
    if isinstance(params, str):
        # Invalid UTF-8 is rejected where all values are checked.
        return parse_qsl(params, keep_blank_values=True, errors="surrogateescape")
    return pairs(params, what)
