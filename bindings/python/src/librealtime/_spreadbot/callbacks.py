"""The callbacks that C makes for a Spreadbot connection, beyond those of sources."""

from __future__ import annotations

from typing import Any

from .._core import abi
from .._core.abi import rt_status
from .._core.errors import RealtimeError, from_status
from .._core.failure import stream_error
from .._core.handle import Handle
from .._core.kind import Kind, callback, read_text
from .._core.memory import memory
from .._core.response import Opened
from .._rest.callbacks import answer, proxy_status
from .._rest.response import HTTPStatusError, RESTResponse

SPREADBOT = Kind("spreadbot", "Spreadbot connection", "message")


def read_tokens(spreadbot: Handle) -> tuple[str, str]:
    """Access and refresh token."""
    access = read_text(SPREADBOT.get_access_token, spreadbot)
    return access, read_text(SPREADBOT.get_refresh_token, spreadbot)


def _open(target: Any, address: int) -> None:
    view = abi.rt_opened.from_address(address)
    target._connected(view.transport, view.resumed, Opened.at(address))


def _message(target: Any, address: int) -> None:
    view = abi.rt_event.from_address(address)
    id_, event, data, length = view.id, view.event, view.data, view.data_length
    target._came(
        memory[id_ : id_ + view.id_length].decode("utf-8", "replace"),
        memory[event : event + view.event_length].decode("utf-8", "replace"),
        memory[data : data + length] if length else b"",
        view.had_id,
    )


def _tokens(target: Any, access_token: bytes, refresh_token: bytes) -> None:
    target._refreshed(access_token.decode(), refresh_token.decode())


def _sent(target: Any, address: int) -> None:
    view = abi.rt_spreadbot_sent.from_address(address)
    response = view.response
    got = None if response is None else answer(response)
    refused_by = 0 if response is None else proxy_status(response)
    failure = _send_failure(view.status, view.message, got, refused_by)
    target._sent(view.number, failure, got)


def _send_failure(
    status: int, message: bytes, response: RESTResponse | None, refused_by: int
) -> RealtimeError | None:
    if status == rt_status.OK:
        return None
    if status == rt_status.ERROR_HTTP_STATUS and response is not None:
        return HTTPStatusError(status, message.decode(), response)
    return from_status(status, message.decode(), http_status=refused_by)


def _disconnected(target: Any, address: int) -> None:
    view = abi.rt_closed.from_address(address)
    status = view.status
    is_error = status != rt_status.OK
    target._disconnected(stream_error(status, view.message.decode()) if is_error else None)


ON_OPEN = callback("open", abi.rt_opened_fn, _open)
ON_TRANSPORT = callback(
    "transport", abi.rt_spreadbot_transport_fn, lambda target, transport: target._uses(transport)
)
ON_MESSAGE = callback("message", abi.rt_event_fn, _message)
ON_TOKENS = callback("tokens", abi.rt_spreadbot_tokens_fn, _tokens)
ON_SENT = callback("sent", abi.rt_spreadbot_sent_fn, _sent)
ON_DISCONNECTED = callback("closed", abi.rt_closed_fn, _disconnected)
