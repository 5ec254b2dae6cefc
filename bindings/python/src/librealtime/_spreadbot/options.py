"""The options of a Spreadbot connection, and the objects that it passes to handlers."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Literal, Optional, TypedDict, TypeVar, Union

from .._core.abi import rt_spreadbot_phase, rt_spreadbot_transport, rt_state, rt_status
from .._core.backoff import Backoff
from .._core.errors import RealtimeError
from .._core.log import set_log_level
from .._core.naming import article, kind_of
from .._core.option_tables import SPREADBOT_OPTIONS, SpreadbotKeywords
from .._core.parameters import Given, Group, Options, Setup
from .._core.payload import Received
from .._core.shared_options import (
    HEADERS,
    QUEUE,
    REDIRECTS,
    ROUTE,
    HeaderKeywords,
    QueueKeywords,
    RedirectKeywords,
    RouteKeywords,
    set_backoff,
)
from .._core.values import StrPath, choice, invalid, names_of, pairs, path, strings, text
from .._sources.source_options import ErrorEvent

Self = TypeVar("Self")

#: A transport of messages.
Transport = Literal["websocket", "sse", "poll"]
State = Literal["connecting", "connected", "disconnected"]
Phase = Literal["none", "dialing", "backoff", "offline", "auth"]

TRANSPORTS: dict[Transport, int] = names_of(rt_spreadbot_transport)
del TRANSPORTS["none"]  # type: ignore[arg-type]
STATES: dict[int, State] = {
    rt_state.IDLE: "disconnected",
    rt_state.CONNECTING: "connecting",
    rt_state.OPEN: "connected",
    rt_state.WAITING: "connecting",
    rt_state.CLOSING: "disconnected",
    rt_state.CLOSED: "disconnected",
}
PHASES: dict[int, Phase] = {value: name for name, value in names_of(rt_spreadbot_phase).items()}


def transport_name(transport: int) -> Transport | None:
    return next((name for name, value in TRANSPORTS.items() if value == transport), None)


@dataclass(frozen=True)
class SpreadbotMessage(Received):
    """A message, received by any transport.

    :ivar id: the position in the sequence of messages; ``""`` before the server sent one. It can be
        passed as ``last_event_id``.
    :ivar event: the server's name for it, or the path.
    :ivar data: its bytes.
    :ivar had_id: whether it has its own id.
    """

    id: str
    event: str
    data: bytes
    had_id: bool = False


@dataclass(frozen=True)
class SpreadbotError(ErrorEvent):
    """A transport that failed or was lost, or tokens that were refused; passed to ``on_error``.

    ``retry_in`` is the time until the next attempt, by this transport or another. ``attempt``
    counts attempts in a row by this transport; 0 if it is not counted.

    :ivar transport: None if the error concerns no transport, such as the wait for a network.
    """

    transport: Transport | None


#: The result of a handler; with asyncio handlers may be coroutine functions.
Handled = Union[Awaitable[object], object]
OnOpen = Optional[Callable[[Transport, bool], Handled]]
OnTransport = Optional[Callable[[Optional[Transport]], Handled]]
OnMessage = Optional[Callable[[SpreadbotMessage], Handled]]
OnError = Optional[Callable[[SpreadbotError], Handled]]
OnTokens = Optional[Callable[[str, str], Handled]]
OnDisconnected = Optional[Callable[[Optional[RealtimeError]], Handled]]
#: Called at the end of a send: with None if the server has the message.
OnSent = Optional[Callable[[Optional[RealtimeError]], object]]


class AccountKeywords(TypedDict, total=False):
    """Credentials; a ``SpreadbotREST`` has these, too.

    :param access_token: sent as ``Authorization: Bearer``; ``""``, the default, sends none.
    :param refresh_token: for ``auth_url``. Default ``""``.
    :param auth_url: URL that refreshes a refused access token (RFC 6749 §6), once for all requests
        that wait for it. If the request is lost, or has no response within 30 s, the refresh token
        is sent again. Default None: the refusal is a fatal error of the connection, and raises
        ``AuthenticationFailed`` for requests.
    :param base64_credentials: base64 of "client:secret", for ``auth_url``. Default ``""``.
    :param on_tokens: called with access and refresh token after a refresh, before they are used:
        store them for the next run. A coroutine function starts later, when they are already in
        use; only a plain function can store them before.
    :param log: sends the library's log from INFO on to the logger ``librealtime``, and to standard
        error if the program has set up no logging. Default False.
    """

    access_token: str
    refresh_token: str
    auth_url: str | None
    base64_credentials: str
    on_tokens: OnTokens
    log: bool


def _set_account(setup: Setup, given: Given) -> None:
    status = rt_status.ERROR_INVALID_HEADER
    client = text(given["base64_credentials"], "base64_credentials", status)
    if given["auth_url"] is not None:
        url = text(given["auth_url"], "auth_url", rt_status.ERROR_INVALID_URL)
        setup.set_auth(url, client)
    setup.set_tokens(*encoded_tokens(given["access_token"], given["refresh_token"]))
    if given["log"]:
        write_log()


ACCOUNT = Group(
    AccountKeywords,
    _set_account,
    access_token="",
    refresh_token="",
    base64_credentials="",
    log=False,
)


def encoded_tokens(access_token: str, refresh_token: str) -> tuple[bytes, bytes]:
    status = rt_status.ERROR_INVALID_HEADER
    access = text(access_token, "access_token", status)
    return access, text(refresh_token, "refresh_token", status)


def write_log() -> None:
    """Logs from INFO on, to standard error if the program has set up no logging."""
    logger = logging.getLogger("librealtime")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    set_log_level("INFO")


def set_outbox(setup: Setup, given: Given) -> None:
    if given["outbox"] is not None:
        setup.set_outbox(path(given["outbox"], "outbox"))


class Keywords(
    AccountKeywords,
    HeaderKeywords,
    RedirectKeywords,
    RouteKeywords,
    QueueKeywords,
    SpreadbotKeywords,
    total=False,
):
    """All options of a Spreadbot connection.

    :param on_open: called after each connect, with the transport (``"websocket"``, ``"sse"``,
        ``"poll"``) and whether it continued after the last id, so that no message is missing.
    :param on_transport: called with the transport when another one is in use; with None at the end.
    :param on_error: called with a ``SpreadbotError`` when a transport fails or is lost. A wait for
        a network is reported once, by that or by an RT_ERROR_CONNECT without a transport.
    :param on_message: called with each ``SpreadbotMessage``, instead of an iteration.
    :param on_disconnected: called at the end: with None after ``close_connection``, else with the
        fatal error. It may call ``establish_connection`` again.
    :param transports: which to try, in this order. Default ``("websocket", "sse", "poll")``.
    :param transport_urls: whole URLs of transports, instead of base URL and path. Default none.
    :param send_url: URL to post sends to while there is no WebSocket. Default None: base URL and
        path.
    :param last_event_id: continues after the message with this id. Default ``""``.
    :param outbox: a file that keeps sends until the server has them. Once its call waits or has
        returned, a send survives a crash of the process: the next object with this outbox sends it
        when it is established. After a lost connection or a crash it may be sent twice, a POST with
        the same Idempotency-Key. Cancelling a wait withdraws nothing; sends before
        ``establish_connection`` are refused. It holds 10,000 sends and 64 MiB; the next send raises
        ``QueueFull``. Default None: sends are kept in memory.
    :param backoff: a ``Backoff`` that delays attempts on one transport and rounds over all of them;
        replaces ``max_delay``. Its ``max_attempts`` and ``stable_time`` are not used. Default None:
        use ``max_delay``.
    """

    on_open: OnOpen
    on_transport: OnTransport
    on_error: OnError
    on_message: OnMessage
    on_disconnected: OnDisconnected
    transports: Iterable[Transport]
    transport_urls: Mapping[Transport, str] | None
    send_url: str | None
    last_event_id: str
    outbox: StrPath | None
    backoff: Backoff | None


def _set_connection(setup: Setup, given: Given) -> None:
    names = strings(given["transports"], "transports")
    legs = [choice(name, TRANSPORTS, "an entry of transports") for name in names]
    setup.set_transports((ctypes.c_int32 * len(legs))(*legs), len(legs))
    for name, url in pairs(given["transport_urls"], "transport_urls"):
        leg = choice(name, TRANSPORTS, "a transport of transport_urls")
        what = f"the URL of {name} in transport_urls"
        setup.set_transport_url(leg, text(url, what, rt_status.ERROR_INVALID_URL))
    if given["send_url"] is not None:
        setup.set_send_url(text(given["send_url"], "send_url", rt_status.ERROR_INVALID_URL))
    setup.set_last_event_id(text(given["last_event_id"], "last_event_id"))
    set_outbox(setup, given)
    set_backoff(setup, given)


OPTIONS = Options(
    Keywords,
    _set_connection,
    shared=(ACCOUNT, HEADERS, REDIRECTS, ROUTE, QUEUE),
    plain=SPREADBOT_OPTIONS,
    transports=("websocket", "sse", "poll"),
    last_event_id="",
)


#: Maps the original's names to the names here.
_NAMES = {
    "baseURL": "base_url",
    "authURL": "auth_url",
    "accessToken": "access_token",
    "refreshToken": "refresh_token",
    "base64Credentials": "base64_credentials",
    "log": "log",
}


def _keywords(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters for a configuration with the original's names.

    :raises InvalidArgument: for an unknown name, or if baseURL is missing.
    :raises TypeError: for a value of the wrong type.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is {kind_of(config)}; a mapping is expected")
    for name, value in config.items():
        if name not in _NAMES:
            known = ", ".join(_NAMES)
            raise invalid(f"the configuration has the unknown name {name!r}; known are: {known}")
        wanted = bool if name == "log" else str
        if value is not None and not isinstance(value, wanted):
            kind = kind_of(value)
            raise TypeError(f"{name} is {kind}; {article(wanted.__name__)} is expected")
    if not config.get("baseURL"):
        raise invalid("the configuration has no baseURL")
    return {_NAMES[name]: value for name, value in config.items() if value is not None}


class Account:
    """An object with tokens; can be created from a configuration with the original's names."""

    @property
    def access_token(self) -> str:
        """The current one, which a refresh may have changed."""
        return self._tokens()[0]

    @property
    def refresh_token(self) -> str:
        """The one for the next refresh."""
        return self._tokens()[1]

    def _tokens(self) -> tuple[str, str]:
        raise NotImplementedError

    @classmethod
    def from_config(cls: type[Self], config: Mapping[str, Any], **options: Any) -> Self:
        """Creates an object from a mapping with the original's names: ``baseURL``, ``authURL``,
        ``accessToken``, ``refreshToken``, ``base64Credentials`` and ``log``. None counts as absent.

        :param options: further parameters, with the names here; they override those of `config`.
        :raises InvalidArgument: for an unknown name, or if baseURL is missing.
        :raises TypeError: for a value that is not a str, or a ``log`` that is not a bool.
        """
        return cls(**{**_keywords(config), **options})
