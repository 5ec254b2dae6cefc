"""From C to a Spreadbot connection: one trampoline for each callback type, kept for ever."""

from __future__ import annotations

from typing import Protocol

from .._core import abi
from .._core.abi import rt_status
from .._core.errors import RealtimeError, from_status
from .._core.failure import Failure, stream_error
from .._core.loader import lib
from .._core.memory import memory
from .._core.registry import find
from .._core.response import Opened
from .._rest.callbacks import answer, proxy_status
from .._rest.response import HTTPStatusError, RESTResponse
from .._sources.kind import Callback, Kind

SPREADBOT = Kind("spreadbot", "Spreadbot connection", "message")
# What a source calls to be ended.
SPREADBOT.close = lib.rt_spreadbot_disconnect


class Target(Protocol):
    """Who is called back, inside a dispatch."""

    def _connected(self, transport: int, resumed: bool, opened: Opened) -> None: ...
    def _uses(self, transport: int) -> None: ...
    def _came(self, id_: str, event: str, data: bytes, had_id: bool) -> None: ...
    def _lost(self, failure: Failure) -> None: ...
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


def _on_open(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = abi.rt_opened.from_address(address)
            target._connected(view.transport, view.resumed, Opened.at(address))
        except BaseException as error:
            target._keep(error)


def _on_transport(transport: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._uses(transport)
        except BaseException as error:
            target._keep(error)


def _on_message(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = abi.rt_event.from_address(address)
            id_, event, data, length = view.id, view.event, view.data, view.data_length
            target._came(
                memory[id_ : id_ + view.id_length].decode("utf-8", "replace"),
                memory[event : event + view.event_length].decode("utf-8", "replace"),
                memory[data : data + length] if length else b"",
                view.had_id,
            )
        except BaseException as error:
            target._keep(error)


def _on_error(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._lost(Failure.at(address))
        except BaseException as error:
            target._keep(error)


def _on_tokens(access_token: bytes, refresh_token: bytes, key: int) -> None:
    target: TokensTarget | None = find(key)
    if target is not None:
        try:
            target._refreshed(access_token.decode(), refresh_token.decode())
        except BaseException as error:
            target._keep(error)


def _on_sent(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = abi.rt_spreadbot_sent.from_address(address)
            response = view.response
            got = None if response is None else answer(response)
            refused_by = 0 if response is None else proxy_status(response)
            failure = _send_failure(view.status, view.message, got, refused_by)
            target._sent(view.number, failure, got)
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


def _on_disconnected(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = abi.rt_closed.from_address(address)
            status = view.status
            is_error = status != rt_status.OK
            target._disconnected(stream_error(status, view.message.decode()) if is_error else None)
        except BaseException as error:
            target._keep(error)


ON_OPEN: Callback = SPREADBOT.callback("open", abi.rt_opened_fn, _on_open)
ON_TRANSPORT: Callback = SPREADBOT.callback(
    "transport", abi.rt_spreadbot_transport_fn, _on_transport
)
ON_MESSAGE: Callback = SPREADBOT.callback("message", abi.rt_event_fn, _on_message)
ON_ERROR: Callback = SPREADBOT.callback("error", abi.rt_failure_fn, _on_error)
ON_TOKENS: Callback = SPREADBOT.callback("tokens", abi.rt_spreadbot_tokens_fn, _on_tokens)
ON_SENT: Callback = SPREADBOT.callback("sent", abi.rt_spreadbot_sent_fn, _on_sent)
ON_DISCONNECTED: Callback = SPREADBOT.callback("disconnected", abi.rt_closed_fn, _on_disconnected)
