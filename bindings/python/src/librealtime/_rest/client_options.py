"""The options of a client, and how they are set on one of C's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal, Optional, Union

from .._core.abi import rt_jitter, rt_status
from .._core.backoff import Backoff
from .._core.headers import cookie_header, header, header_pairs, laid_over
from .._core.option_tables import REST_OPTIONS, REST_REQUEST_OPTIONS, RESTKeywords
from .._core.parameters import Given, Options, Setup
from .._core.shared_options import (
    CREDENTIAL,
    HEADERS,
    OVERFLOW,
    ROUTE,
    SAFE_HEADERS,
    CredentialKeywords,
    HeaderKeywords,
    OverflowKeywords,
    RouteKeywords,
    SafeHeaderKeywords,
    set_backoff,
)
from .._core.values import LONGEST_MS, choice, milliseconds, names_of, strings, text
from .options import Params

#: A bearer token, or a user and a password; None when there are none.
Credential = Union[str, "tuple[str, str]", None]
CredentialSource = Optional[Callable[[], Union[Credential, Awaitable[Credential]]]]


class Keywords(
    HeaderKeywords,
    CredentialKeywords,
    OverflowKeywords,
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
    :param base_delay: before the second attempt, of which a random half to whole is waited.
        Default 1.
    :param delay_factor: by how much each further delay is longer. Default 2.
    :param max_delay: the longest of them. Default 30.
    :param jitter: ``"equal"`` (the default), ``"full"``, ``"decorrelated"`` or ``"none"``.
    :param backoff: a ``Backoff`` in the place of these four; its ``max_attempts`` and
        ``stable_time`` are not used. Default None.
    :param max_retry_after: the longest Retry-After that is waited for; an answer that asks for more
        is given at once. Default 60; None for no limit but ``deadline``.
    :param ordered: whether requests are sent one after the other. Default None: all but GET and
        HEAD.
    """

    params: Params
    cookies: Mapping[str, str] | None
    credential_origins: Iterable[str]
    credentials: CredentialSource
    base_delay: float
    delay_factor: float
    max_delay: float
    jitter: Literal["none", "equal", "full", "decorrelated"]
    backoff: Backoff | None
    max_retry_after: float | None
    ordered: bool | None


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
    setup.set_order(REST_REQUEST_OPTIONS["ordered"].encode(given["ordered"]))
    set_backoff(setup, given)
    if given["backoff"] is None:
        setup.set_base_delay_ms(milliseconds(given["base_delay"], "base_delay", least=0))
        setup.set_max_delay_ms(milliseconds(given["max_delay"], "max_delay", least=0))
        setup.set_delay_factor(float(given["delay_factor"]))
        setup.set_jitter(choice(given["jitter"], names_of(rt_jitter), "jitter"))


OPTIONS = Options(
    Keywords,
    _set_origin,
    _set_attempts,
    shared=(HEADERS, CREDENTIAL, OVERFLOW, SAFE_HEADERS, ROUTE),
    plain=REST_OPTIONS,
    credential_origins=(),
    base_delay=1,
    delay_factor=2,
    max_delay=30,
    jitter="equal",
    max_retry_after=60,
)
