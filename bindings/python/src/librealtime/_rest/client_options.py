"""The options of a client, and how they are set on one of C's."""

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
    ROUTE,
    SAFE_HEADERS,
    CredentialKeywords,
    HeaderKeywords,
    RouteKeywords,
    SafeHeaderKeywords,
    set_backoff,
)
from .._core.values import LONGEST_MS, milliseconds, strings, text
from .options import Params

#: A bearer token, or a user and a password; None when there are none.
Credential = Union[str, "tuple[str, str]", None]
CredentialSource = Optional[Callable[[], Union[Credential, Awaitable[Credential]]]]


class Keywords(
    HeaderKeywords,
    CredentialKeywords,
    SafeHeaderKeywords,
    RouteKeywords,
    RESTKeywords,
    total=False,
):
    """All that a client may be given.

    :param params: of the query of every request to the base URL's origin, as a request's. Default
        none.
    :param cookies: names and values of the Cookie header. None is kept from an answer. Default
        none.
    :param credential_origins: origins beside the base URL's that receive the client's own
        credential, headers, cookies and params, such as ``"https://files.example.org"``; ``"*"``
        for all. A request that names the URL of another origin sends it only headers that reveal
        nothing (see ``safe_headers``) and the request's own. Default none; a client without a base
        URL and without any of these sends them to each URL it is given.
    :param credentials: called once when they were refused with 401, however many requests wait: it
        returns a token, or user and password (with asyncio it may be a coroutine function), and the
        requests go out once more; or None when there are none, and the 401 is the answer, as it is
        when these are refused, too. A coroutine may fetch them by a request of the same client,
        best with an Authorization of its own, and with ``ordered=False``: it would wait behind an
        ordered one that was refused. Refused itself, it waits as the others do, until its deadline.
        Default None.
    :param backoff: a ``Backoff`` in the place of ``base_delay``, ``max_delay``, ``delay_factor``
        and ``jitter``; its ``max_attempts`` and ``stable_time`` are not used. Default None.
    :param max_retry_after: the longest Retry-After that is waited for; an answer that asks for more
        is given at once. Default 60; None for no limit but ``deadline``.
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
        setup.add_header(*header(name, value))
    for origin in strings(given["credential_origins"], "credential_origins"):
        setup.add_credential_origin(text(origin, "an origin", rt_status.ERROR_INVALID_URL))


def _set_attempts(setup: Setup, given: Given) -> None:
    # To C 0 is to wait for none, and nothing is no limit.
    longest, wish = LONGEST_MS, given["max_retry_after"]
    if wish is not None:
        longest = milliseconds(wish, "max_retry_after", least=0)
    setup.set_max_retry_after_ms(longest)
    set_backoff(setup, given)


OPTIONS = Options(
    Keywords,
    _set_origin,
    _set_attempts,
    shared=(HEADERS, CREDENTIAL, SAFE_HEADERS, ROUTE),
    plain=REST_OPTIONS,
    credential_origins=(),
    max_retry_after=60,
)
