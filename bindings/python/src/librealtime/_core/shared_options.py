"""Parameters that several objects share, each defined once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict

from .abi import rt_status
from .backoff import Backoff
from .headers import HeadersLike
from .naming import kind_of
from .network import Network, chosen_network
from .parameters import Given, Group, Setup
from .reachability import Reachability, on_loop
from .values import StrPath, invalid, limit, text, texts, user_and_password

_HEADER = rt_status.ERROR_INVALID_HEADER


class RouteKeywords(TypedDict, total=False):
    """How connections are made.

    :param network: a ``Network``: TLS, proxies, addresses, sockets. Default None: its defaults.
    :param ca_file: a PEM file of certificates to trust instead of the system's; overrides the
        network's. Default None.
    :param proxy: the URL of a proxy, or None for no proxy; overrides the network's. Default True:
        as in the network.
    :param reachability: a ``Reachability``: while the server cannot be reached, no attempt is made,
        not even the first, unless a failed one would not be repeated; none is counted. Default
        None: as the kernel reports.
    """

    network: Network | None
    ca_file: StrPath | None
    proxy: str | Literal[True] | None
    reachability: Reachability | None


def _set_route(setup: Setup, given: Given) -> None:
    network = chosen_network(given["network"], given["ca_file"], given["proxy"])
    if network is not None:
        setup.set_network(network.make())
    if given["reachability"] is not None:
        setup.set_reachability(on_loop(given["reachability"], setup.loop))


ROUTE = Group(RouteKeywords, _set_route, proxy=True)


class CredentialKeywords(TypedDict, total=False):
    """Credentials.

    :param auth: user and password for a basic Authorization header. Default None.
    :param bearer_token: for an Authorization header. Default None.
    """

    auth: tuple[str, str] | None
    bearer_token: str | None


def _set_credential(setup: Setup, given: Given) -> None:
    auth, token = given["auth"], given["bearer_token"]
    if auth is not None and token is not None:
        raise invalid("auth and bearer_token set the same header; give one of them")
    if auth is not None:
        setup.set_basic_auth(*user_and_password(auth))
    if token is not None:
        setup.set_bearer_token(text(token, "bearer_token", _HEADER))


CREDENTIAL = Group(CredentialKeywords, _set_credential)


class RedirectKeywords(TypedDict, total=False):
    """What redirects to other origins carry.

    :param safe_headers: names of headers that are also sent to another origin. Default ().
    :param redirect_origins: origins that a redirect may lead to as if they were the URL's own, such
        as ``"https://files.example.org"``, or ``"*"`` for all. They receive everything: headers,
        credentials, bodies and messages. A redirect to any other origin raises ``SecurityError`` if
        a body would be sent there, or the messages of a WebSocket. Default ().
    """

    safe_headers: Iterable[str]
    redirect_origins: Iterable[str]


def _set_redirects(setup: Setup, given: Given) -> None:
    for name in texts(given["safe_headers"], "safe_headers", _HEADER):
        setup.add_safe_header(name)
    for origin in texts(given["redirect_origins"], "redirect_origins", rt_status.ERROR_INVALID_URL):
        setup.add_redirect_origin(origin)


REDIRECTS = Group(RedirectKeywords, _set_redirects, safe_headers=(), redirect_origins=())


class HeaderKeywords(TypedDict, total=False):
    """Headers of each request.

    :param headers: of every request: a mapping or pairs. Default None.
    """

    headers: HeadersLike | None


HEADERS = Group(HeaderKeywords)


class QueueKeywords(TypedDict, total=False):
    """Limits of the queue of received items.

    :param max_queue: how many may be queued before receiving pauses. Default 1024.
    :param max_queue_bytes: the same, by size. Default 8 MiB.
    """

    max_queue: int | None
    max_queue_bytes: int | None


QUEUE = Group(QueueKeywords, max_queue=1024, max_queue_bytes=2**23)


def queue_limits(given: Given) -> tuple[int, int]:
    """Count and size; 0 means no limit."""
    size = limit(given["max_queue_bytes"], "max_queue_bytes")
    return limit(given["max_queue"], "max_queue"), size


def set_backoff(setup: Setup, given: Given) -> None:
    backoff = given["backoff"]
    if backoff is not None:
        if not isinstance(backoff, Backoff):
            raise TypeError(f"backoff is {kind_of(backoff)}; a Backoff is expected")
        setup.set_backoff(backoff.make())
