"""From C to a Spreadbot connection: one trampoline for each callback type, kept for ever."""

from __future__ import annotations

from typing import Protocol

from .._core.abi import rt_status
from .._core.errors import RealtimeError, from_status, stream_failure
from .._core.loader import lib
from .._core.memory import memory
from .._core.registry import find
from .._rest.callbacks import answer, proxy_status
from .._rest.response import HTTPStatusError, RESTResponse
from .._sources.kind import Callback, Kind

SPREADBOT = Kind("spreadbot", "Spreadbot connection", "message")
# What a source calls to be ended.
SPREADBOT.close = lib.rt_spreadbot_disconnect


class Target(Protocol):
    """Who is called back, inside a dispatch."""

    def _connected(self, transport: int, resumed: bool) -> None: ...
    def _uses(self, transport: int) -> None: ...
    def _came(self, id_: str, event: str, data: bytes, had_id: bool) -> None: ...
    def _lost(
        self, error: RealtimeError, transport: int, http_status: int, fatal: bool,
        delay_ms: int, attempt: int,
    ) -> None: ...  # fmt: skip
    def _refreshed(self, access_token: str, refresh_token: str) -> None: ...
    def _sent(
        self, number: int, error: RealtimeError | None, response: RESTResponse | None
    ) -> None: ...
    def _disconnected(self, error: RealtimeError | None) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


class TokensTarget(Protocol):
    """Who is told of tokens alone."""

    def _refreshed(self, access_token: str, refresh_token: str) -> None: ...
    def _keep(self, error: BaseException) -> None: ...


def _on_open(transport: int, resumed: bool, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._connected(transport, resumed)
        except BaseException as error:
            target._keep(error)


def _on_transport(transport: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._uses(transport)
        except BaseException as error:
            target._keep(error)


def _on_message(
    id_: int,
    id_length: int,
    event: int,
    event_length: int,
    data: int,
    length: int,
    had_id: bool,
    key: int,
) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._came(
                memory[id_ : id_ + id_length].decode("utf-8", "replace"),
                memory[event : event + event_length].decode("utf-8", "replace"),
                memory[data : data + length] if length else b"",
                had_id,
            )
        except BaseException as error:
            target._keep(error)


def _on_error(
    status: int,
    message: bytes,
    transport: int,
    http_status: int,
    fatal: bool,
    delay_ms: int,
    attempt: int,
    key: int,
) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            error = stream_failure(status, message.decode(), http_status)
            target._lost(error, transport, http_status, fatal, delay_ms, attempt)
        except BaseException as error:
            target._keep(error)


def _on_tokens(access_token: bytes, refresh_token: bytes, key: int) -> None:
    target: TokensTarget | None = find(key)
    if target is not None:
        try:
            target._refreshed(access_token.decode(), refresh_token.decode())
        except BaseException as error:
            target._keep(error)


def _on_sent(number: int, status: int, message: bytes, response: int | None, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            got = None if response is None else answer(response)
            refused_by = 0 if response is None else proxy_status(response)
            target._sent(number, _send_failure(status, message, got, refused_by), got)
        except BaseException as error:
            target._keep(error)


def _send_failure(
    status: int, message: bytes, response: RESTResponse | None, refused_by: int
) -> RealtimeError | None:
    if status == rt_status.OK:
        return None
    if status == rt_status.ERROR_HTTP_STATUS and response is not None:
        return HTTPStatusError(status, message.decode(), response)
    return from_status(status, message.decode(), http_status=refused_by)


def _on_disconnected(status: int, message: bytes, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            is_error = status != rt_status.OK
            target._disconnected(stream_failure(status, message.decode(), 0) if is_error else None)
        except BaseException as error:
            target._keep(error)


ON_OPEN: Callback = SPREADBOT.callback("open", _on_open)
ON_TRANSPORT: Callback = SPREADBOT.callback("transport", _on_transport)
ON_MESSAGE: Callback = SPREADBOT.callback("message", _on_message)
ON_ERROR: Callback = SPREADBOT.callback("error", _on_error)
ON_TOKENS: Callback = SPREADBOT.callback("tokens", _on_tokens)
ON_SENT: Callback = SPREADBOT.callback("sent", _on_sent)
ON_DISCONNECTED: Callback = SPREADBOT.callback("disconnected", _on_disconnected)
