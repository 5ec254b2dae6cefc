"""What a Spreadbot connection is given, and what it tells."""

from __future__ import annotations

import ctypes
import json
import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Literal, Optional, TypeVar, Union

from .._core.abi import rt_spreadbot_phase, rt_spreadbot_state, rt_spreadbot_transport, rt_status
from .._core.errors import RealtimeError, check
from .._core.handle import Handle
from .._core.headers import Pairs
from .._core.kind import Kind
from .._core.log import set_log_level
from .._core.option_tables import SPREADBOT_OPTIONS
from .._core.values import StrPath, invalid, path, strings, text
from .._rest.options import _OVERFLOWS, _named
from .._sources.source_options import ErrorEvent, SourceHandlers, SourceOptions

T = TypeVar("T")

#: A way that messages come.
Transport = Literal["websocket", "sse", "poll"]
State = Literal["connecting", "connected", "disconnected"]
Phase = Literal["none", "dialing", "backoff", "offline", "auth"]

TRANSPORTS: dict[Transport, int] = {
    "websocket": rt_spreadbot_transport.WEBSOCKET,
    "sse": rt_spreadbot_transport.SSE,
    "poll": rt_spreadbot_transport.POLL,
}
_TRANSPORT_NAMES: dict[int, Transport] = {value: name for name, value in TRANSPORTS.items()}
STATES: dict[int, State] = {
    rt_spreadbot_state.CONNECTING: "connecting",
    rt_spreadbot_state.CONNECTED: "connected",
    rt_spreadbot_state.DISCONNECTED: "disconnected",
}
PHASES: dict[int, Phase] = {
    rt_spreadbot_phase.NONE: "none",
    rt_spreadbot_phase.DIALING: "dialing",
    rt_spreadbot_phase.BACKOFF: "backoff",
    rt_spreadbot_phase.OFFLINE: "offline",
    rt_spreadbot_phase.AUTH: "auth",
}


def transport_name(transport: int) -> Transport | None:
    return _TRANSPORT_NAMES.get(transport)


@dataclass(frozen=True)
class SpreadbotMessage:
    """A message, by whichever way it came.

    :ivar id: how far the messages have come; ``""`` before there was an id. It serves
        ``last_event_id``.
    :ivar event: what the server named it, or the path.
    :ivar data: its bytes.
    :ivar had_id: whether it has an id of its own.
    """

    id: str
    event: str
    data: bytes
    had_id: bool = False

    @property
    def text(self) -> str:
        """The data as UTF-8; what is ill-formed is replaced."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The data read as JSON."""
        return json.loads(self.data)


@dataclass(frozen=True)
class SpreadbotError(ErrorEvent):
    """A leg that failed or was lost, or tokens that were refused; for ``on_error``.

    ``retry_in`` is the time until the next attempt, on this leg or another, and ``attempt`` its
    number in a row on this leg, 0 when it is not counted.

    :ivar transport: the leg; None when it was none.
    """

    transport: Transport | None


#: What a handler returns: with asyncio it may be a coroutine function.
Handled = Union[Awaitable[object], object]
OnOpen = Optional[Callable[[Transport, bool], Handled]]
OnTransport = Optional[Callable[[Optional[Transport]], Handled]]
OnMessage = Optional[Callable[[SpreadbotMessage], Handled]]
OnError = Optional[Callable[[SpreadbotError], Handled]]
OnTokens = Optional[Callable[[str, str], Handled]]
OnDisconnected = Optional[Callable[[Optional[RealtimeError]], Handled]]
#: How a send ended: with None when the server has it.
OnSent = Optional[Callable[[Optional[RealtimeError]], object]]


@dataclass
class Handlers(SourceHandlers[SpreadbotMessage]):
    """The caller's functions, all called inside a dispatch."""

    # These are called with other arguments than those of other sources.
    on_open: OnOpen  # type: ignore[assignment]
    on_error: OnError  # type: ignore[assignment]
    on_transport: OnTransport
    on_tokens: OnTokens
    on_disconnected: OnDisconnected

    @property
    def take_items(self) -> bool:
        # A WebSocket that is not read has its sends never confirmed: what comes is queued from the
        # beginning.
        return True

    @property
    def call_back(self) -> bool:
        messages = (self.on_message, self.on_open, self.on_error)
        others = (self.on_transport, self.on_tokens, self.on_disconnected)
        return any(handler is not None for handler in messages + others)


@dataclass(frozen=True)
class Config:
    """Where to connect and as whom: also what a ``SpreadbotREST`` is given."""

    base_url: str
    auth_url: str | None
    access_token: str
    refresh_token: str
    base64_credentials: str
    queue_overflow: str
    log: bool
    outbox: StrPath | None

    def apply(self, kind: Kind, spreadbot: Handle) -> None:
        if self.auth_url is not None:
            url = text(self.auth_url, "auth_url", rt_status.ERROR_INVALID_URL)
            status = rt_status.ERROR_INVALID_HEADER
            credentials = text(self.base64_credentials, "base64_credentials", status)
            check(kind.set_auth(spreadbot, url, credentials))
        set_tokens(kind, spreadbot, self.access_token, self.refresh_token)
        overflow = _named(self.queue_overflow, _OVERFLOWS, "queue_overflow")
        check(kind.set_queue_overflow(spreadbot, overflow))
        if self.outbox is not None:
            check(kind.set_outbox(spreadbot, path(self.outbox, "outbox")))
        if self.log:
            write_log()


def set_tokens(kind: Kind, spreadbot: Handle, access_token: str, refresh_token: str) -> None:
    status = rt_status.ERROR_INVALID_HEADER
    access = text(access_token, "access_token", status)
    check(kind.set_tokens(spreadbot, access, text(refresh_token, "refresh_token", status)))


def write_log() -> None:
    """The library's log from INFO on, on standard error where the program has no place for it."""
    logger = logging.getLogger("librealtime")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    set_log_level("INFO")


@dataclass(frozen=True)
class Options(SourceOptions):
    """What a Spreadbot connection was given, the same for both faces."""

    table = SPREADBOT_OPTIONS

    config: Config
    transports: Iterable[Transport] = ("websocket", "sse", "poll")
    transport_urls: Mapping[Transport, str] | None = None
    send_url: str | None = None
    last_event_id: str = ""

    def apply(self, kind: Kind, source: Handle, loop: Handle) -> None:
        super().apply(kind, source, loop)
        self.config.apply(kind, source)
        self._apply_legs(kind, source)
        check(kind.set_last_event_id(source, text(self.last_event_id, "last_event_id")))

    def _apply_legs(self, kind: Kind, source: Handle) -> None:
        names = strings(self.transports, "transports")
        legs = [_named(name, TRANSPORTS, "a transport") for name in names]
        check(kind.set_transports(source, (ctypes.c_int32 * len(legs))(*legs), len(legs)))
        for name, url in (self.transport_urls or {}).items():
            leg = _named(name, TRANSPORTS, "a transport of transport_urls")
            where = text(url, f"the URL of {name}", rt_status.ERROR_INVALID_URL)
            check(kind.set_transport_url(source, leg, where))
        if self.send_url is not None:
            where = text(self.send_url, "send_url", rt_status.ERROR_INVALID_URL)
            check(kind.set_send_url(source, where))

    def pairs(self) -> Pairs:
        if not isinstance(self.config.base_url, str):
            kind = type(self.config.base_url).__name__
            raise TypeError(f"base_url is a {kind}; a str is expected")
        return super().pairs()


#: The original's names, and what they are here.
_NAMES = {
    "baseURL": "base_url",
    "authURL": "auth_url",
    "accessToken": "access_token",
    "refreshToken": "refresh_token",
    "base64Credentials": "base64_credentials",
    "log": "log",
}


def keywords(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a configuration by the original's names stands for.

    :raises InvalidArgument: for a name that is none of them, or without a baseURL.
    :raises TypeError: for a value of another type than its parameter has.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; a mapping is expected")
    for name, value in config.items():
        if name not in _NAMES:
            known = ", ".join(_NAMES)
            raise invalid(f"the configuration has {name!r}; {known} are known")
        wanted = bool if name == "log" else str
        if value is not None and not isinstance(value, wanted):
            kind = type(value).__name__
            raise TypeError(f"{name} is a {kind}; a {wanted.__name__} is expected")
    if not config.get("baseURL"):
        raise invalid("the configuration has no baseURL")
    return {_NAMES[name]: value for name, value in config.items() if value is not None}
