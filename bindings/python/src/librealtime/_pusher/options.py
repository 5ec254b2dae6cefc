"""The options of a Pusher connection, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional, TypedDict, Union

from .._core.abi import rt_status
from .._core.headers import HeadersLike, header, header_pairs
from .._core.naming import kind_of
from .._core.option_tables import PUSHER_OPTIONS, PusherKeywords
from .._core.parameters import Given, Group, Options, Setup
from .._core.shared_options import (
    CREDENTIAL,
    QUEUE,
    REDIRECTS,
    ROUTE,
    CredentialKeywords,
    QueueKeywords,
    RedirectKeywords,
    RouteKeywords,
)
from .._core.values import invalid, milliseconds, number, pairs, text
from .authorization import Authorizer, PrepareAuthorization
from .errors import PusherError, SignInError, SubscriptionError, TriggerError
from .event import PusherEvent
from .objects import PusherMember, PusherPushResult, PusherStateChange, PusherWatchlistEvent

OnState = Optional[Callable[[PusherStateChange], object]]
OnError = Optional[Callable[[PusherError], object]]
OnSubscribed = Optional[Callable[[Any], object]]
OnSubscriptionFailed = Optional[Callable[[SubscriptionError], object]]
OnMember = Optional[Callable[[Any, PusherMember], object]]
OnCount = Optional[Callable[[Any, int], object]]
OnTriggerFailed = Optional[Callable[[TriggerError], object]]
OnDecryptionFailed = Optional[Callable[[PusherEvent], object]]
OnSignedIn = Optional[Callable[[Any], object]]
OnSignInFailed = Optional[Callable[[SignInError], object]]
OnWatchlist = Optional[Callable[[PusherWatchlistEvent], object]]
OnPush = Optional[Callable[[PusherPushResult], object]]
OnDebug = Optional[Callable[[str], object]]
#: Names oneself: an id, or a member with information.
UserData = Optional[Callable[[], Union[str, PusherMember, None]]]


class AuthorizationKeywords(TypedDict, total=False):
    """How private and presence channels, and sign-ins, are authorized.

    :param auth_endpoint: a URL that authorizes channels. It receives a form with ``socket_id`` and
        ``channel_name``, and answers with a JSON object. Default None.
    :param user_auth_endpoint: a URL that authorizes sign-ins. Default None.
    :param auth_headers: headers of these requests: a mapping or pairs. Default None.
    :param auth_params: further parameters of their forms: a mapping or pairs. Default None.
    :param prepare_authorization: called with a ``PusherPreparation`` before each of these requests,
        to set headers or add parameters that change. Returning False, or raising, fails the
        authorization. With asyncio it may be a coroutine function, for which ``auth_timeout``
        counts, too; nothing can interrupt a plain function. Default None.
    :param authorizer: called with a ``PusherAuthorization``, instead of requests. It returns the
        answer of an authorization server, or None to answer that object later, on any thread. With
        asyncio it may be a coroutine function. Default None.
    :param secret: signs in this process. Only for development: everybody who has the program can
        read the application's secret. Default None.
    :param encryption_master_key: 32 bytes from which the keys of encrypted channels are derived if
        ``secret`` signs. Default None.
    :param user_data: names oneself on presence channels, and in sign-ins, if ``secret`` signs: a
        function that returns a user id or a ``PusherMember``. Default None: the socket id is the
        user id.
    """

    auth_endpoint: str | None
    user_auth_endpoint: str | None
    auth_headers: HeadersLike | None
    auth_params: Mapping[str, str] | None
    prepare_authorization: PrepareAuthorization
    authorizer: Authorizer
    secret: str | None
    encryption_master_key: bytes | None
    user_data: UserData


def _set_authorization(setup: Setup, given: Given) -> None:
    for name in ("auth_endpoint", "user_auth_endpoint"):
        if given[name] is not None:
            setter = getattr(setup, f"set_{name}")
            setter(text(given[name], name, rt_status.ERROR_INVALID_URL))
    for name, value in header_pairs(given["auth_headers"], "auth_headers"):
        setup.set_auth_header(*header(name, value, "auth_headers"))
    for name, value in pairs(given["auth_params"], "auth_params"):
        key = text(name, "a parameter's name in auth_params")
        what = f"the value of parameter {name} in auth_params"
        setup.set_auth_parameter(key, text(value, what))
    if given["secret"] is not None:
        setup.set_secret(text(given["secret"], "secret"))
    key = given["encryption_master_key"]
    if key is not None:
        if not isinstance(key, (bytes, bytearray, memoryview)):
            kind = kind_of(key)
            raise TypeError(f"encryption_master_key is {kind}; bytes are expected")
        setup.set_encryption_master_key(bytes(key), len(key))


AUTHORIZATION = Group(AuthorizationKeywords, _set_authorization)


class Keywords(
    AuthorizationKeywords,
    CredentialKeywords,
    RedirectKeywords,
    RouteKeywords,
    QueueKeywords,
    PusherKeywords,
    total=False,
):
    """All options of a Pusher connection.

    :param cluster: the application's cluster, such as ``"eu"``. Default None: Pusher's first, mt1.
    :param host: the name of another server, without scheme, port and path. Default None: Pusher.
    :param headers: of the WebSocket's handshake: a mapping or pairs. Default None.
    :param max_reconnects: how many reconnects in a row may fail. Default None: no limit.
    :param max_reconnect_gap: the longest delay between attempts; None means no limit. The delay
        before attempt n is n² seconds. Default 120.
    :param push_url: the service of ``push``. Default None: that of Pusher.
    :param on_state: called with each ``PusherStateChange``. A wait for a network is reported once,
        by the failure that led to it or by an RT_ERROR_CONNECT; `new` is then reconnecting, and
        `old` may be, too.
    :param on_error: called with a ``PusherError`` that the server reports; the connection stays.
    :param on_subscribed: called with the channel when it is subscribed, also after a reconnect.
    :param on_subscription_failed: called with a ``SubscriptionError``.
    :param on_member_added: called with the channel and a ``PusherMember`` that joins.
    :param on_member_removed: called with the channel and a ``PusherMember`` that left.
    :param on_subscription_count: called with the channel and its number of subscribers.
    :param on_decryption_failed: called with a ``PusherEvent`` that could not be decrypted and is
        dropped; its data is as it was received.
    :param on_trigger_failed: called with a ``TriggerError`` when a client event is dropped.
    :param on_signed_in: called with the user after each sign-in.
    :param on_sign_in_failed: called with a ``SignInError``.
    :param on_watchlist: called with a ``PusherWatchlistEvent``.
    :param on_push: called with a ``PusherPushResult`` for each call of ``push``.
    :param on_debug: called with a line for each frame, ping and attempt; without secrets and
        signatures.
    """

    cluster: str | None
    host: str | None
    headers: HeadersLike | None
    max_reconnects: int | None
    max_reconnect_gap: float | None
    push_url: str | None
    on_state: OnState
    on_error: OnError
    on_subscribed: OnSubscribed
    on_subscription_failed: OnSubscriptionFailed
    on_member_added: OnMember
    on_member_removed: OnMember
    on_subscription_count: OnCount
    on_decryption_failed: OnDecryptionFailed
    on_trigger_failed: OnTriggerFailed
    on_signed_in: OnSignedIn
    on_sign_in_failed: OnSignInFailed
    on_watchlist: OnWatchlist
    on_push: OnPush
    on_debug: OnDebug


def _set_connection(setup: Setup, given: Given) -> None:
    if given["cluster"] is not None and given["host"] is not None:
        raise invalid("cluster and host both name the server; give one of them")
    if given["cluster"] is not None:
        setup.set_cluster(text(given["cluster"], "cluster"))
    if given["host"] is not None:
        setup.set_host(text(given["host"], "host"))
    if given["push_url"] is not None:
        setup.set_push_url(text(given["push_url"], "push_url", rt_status.ERROR_INVALID_URL))
    setup.set_reconnect_limits(
        *reconnect_limits(given["max_reconnects"], given["max_reconnect_gap"])
    )


def reconnect_limits(attempts: int | None, gap: float | None) -> tuple[int, int]:
    """The limits for C."""
    most = -1 if attempts is None else number(attempts, "max_reconnects", 0, 2**31 - 1)
    return most, 0 if gap is None else milliseconds(gap, "max_reconnect_gap")


OPTIONS = Options(
    Keywords,
    _set_connection,
    shared=(AUTHORIZATION, CREDENTIAL, REDIRECTS, ROUTE, QUEUE),
    plain=PUSHER_OPTIONS,
    max_reconnect_gap=120,
)

#: The user's functions.
FUNCTIONS = (*OPTIONS.handlers, "authorizer", "prepare_authorization", "user_data")


def encoded_user(named: object) -> tuple[bytes, bytes | None] | None:
    """What ``user_data`` returned, for C."""
    from .._rest.options import json_text

    if named is None:
        return None
    if isinstance(named, str):
        return text(named, "the user's id"), None
    if not isinstance(named, PusherMember):
        kind = kind_of(named)
        raise TypeError(f"user_data returned {kind}; a str or a PusherMember is expected")
    info = None if named.info is None else text(json_text(named.info), "the user's information")
    return text(named.id, "the user's id"), info
