"""The options of a client, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Optional, Union

from .._core.abi import rt_status
from .._core.backoff import Backoff
from .._core.headers import cookie_header, header, header_pairs, laid_over
from .._core.option_tables import REST_OPTIONS, RESTKeywords
from .._core.parameters import Given, Options, Setup
from .._core.shared_options import (
    CREDENTIAL,
    HEADERS,
    REDIRECTS,
    ROUTE,
    CredentialKeywords,
    HeaderKeywords,
    RedirectKeywords,
    RouteKeywords,
    set_backoff,
)
from .._core.values import LONGEST_MS, milliseconds, texts
from .options import Params

#: A bearer token, or a user and a password, or None.
Credential = Union[str, "tuple[str, str]", None]
CredentialSource = Optional[Callable[[], Union[Credential, Awaitable[Credential]]]]


class Keywords(
    HeaderKeywords,
    CredentialKeywords,
    RedirectKeywords,
    RouteKeywords,
    RESTKeywords,
    total=False,
):
    """All options of a client.

    :param params: query parameters of every request to the base URL's origin, in the forms of a
        request's. Default none.
    :param cookies: names and values of the Cookie header. Cookies of responses are not stored.
        Default none.
    :param credential_origins: origins besides the base URL's that receive the client's own
        credential, headers, cookies and params, such as ``"https://files.example.org"``; ``"*"``
        for all. Requests to other origins carry only headers that reveal nothing (see
        ``safe_headers``) and the request's own. Default none; a client that has neither these nor a
        base URL sends them to every URL.
    :param credentials: called once when the server refuses them with 401, however many requests
        wait. It returns a token, or user and password, and the requests are sent once more. If it
        returns None, or these are refused, too, the 401 is the response. If it raises, the requests
        raise ``AuthenticationFailed`` with that as their cause. With asyncio it may be a
        coroutine function and make a request with the same client, preferably with its own
        Authorization and ``ordered=False``: otherwise it would wait for an ordered request that was
        refused. If that request is refused itself, it waits like the others, until its deadline.
        Default None.
    :param backoff: a ``Backoff`` that replaces ``base_delay``, ``max_delay``, ``delay_factor`` and
        ``jitter``; its ``max_attempts`` and ``stable_time`` are not used. Default None.
    :param max_retry_after: the longest Retry-After to wait for; a response that asks for more is
        returned at once. Default 60; None: limited only by ``deadline``.
    """

    params: Params
    cookies: Mapping[str, str] | None
    credential_origins: Iterable[str]
    credentials: CredentialSource
    backoff: Backoff | None
    max_retry_after: float | None


def _set_origin(setup: Setup, given: Given) -> None:
    pairs = header_pairs(given["headers"])
    if given["cookies"]:
        pairs = laid_over(pairs, [("Cookie", cookie_header(given["cookies"]).decode())])
    for name, value in pairs:
        setup.add_header(*header(name, value, "headers"))
    status = rt_status.ERROR_INVALID_URL
    for origin in texts(given["credential_origins"], "credential_origins", status):
        setup.add_credential_origin(origin)


def _set_attempts(setup: Setup, given: Given) -> None:
    # In C, 0 means not to wait at all, and not setting it means no limit.
    longest, wish = LONGEST_MS, given["max_retry_after"]
    if wish is not None:
        longest = milliseconds(wish, "max_retry_after", least=0)
    setup.set_max_retry_after_ms(longest)
    set_backoff(setup, given)


OPTIONS = Options(
    Keywords,
    _set_origin,
    _set_attempts,
    shared=(HEADERS, CREDENTIAL, REDIRECTS, ROUTE),
    plain=REST_OPTIONS,
    credential_origins=(),
    max_retry_after=60,
)
