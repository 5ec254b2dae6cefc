"""Failures that C reports, as Python objects."""

from __future__ import annotations

from dataclasses import dataclass

from .abi import rt_failure, rt_status
from .errors import RealtimeError, StreamEnded, StreamRefused, from_status
from .memory import memory
from .response import Response

_REFUSALS = (
    rt_status.ERROR_HTTP_STATUS,
    rt_status.ERROR_CONTENT_TYPE,
    rt_status.ERROR_NO_CONTENT,
    rt_status.ERROR_GONE,
)


@dataclass(frozen=True)
class Failure:
    """A copy of an ``rt_failure``; `retry_in` is in seconds."""

    status: int
    message: str
    http_status: int
    response: Response | None
    system_error: int
    fatal: bool
    retry_in: float | None
    attempt: int
    transport: int

    @staticmethod
    def at(address: int) -> Failure:
        """Copies the failure at this address."""
        view = rt_failure.from_address(address)
        delay_ms = view.retry_in_ms
        return Failure(
            view.status,
            view.message.decode(),
            view.http_status,
            _response(view),
            view.system_error,
            view.fatal,
            None if delay_ms < 0 else delay_ms / 1000,
            view.attempt,
            view.transport,
        )

    def stream_error(self) -> RealtimeError:
        """The exception for a stream that was refused, was lost or has ended."""
        error = stream_error(self.status, self.message, self.http_status)
        return error.with_details(self.response, self.system_error)

    def connection_error(self) -> RealtimeError:
        """The exception for a connection that was refused, was lost or has ended."""
        error = from_status(self.status, self.message, self.response, self.http_status)
        return error.with_details(self.response, self.system_error)


def stream_error(status: int, message: str, http_status: int = 0) -> RealtimeError:
    """The exception for a stream without the server's response."""
    if status in _REFUSALS:
        return StreamRefused(status, message, http_status)
    if status == rt_status.ERROR_CLOSED:
        return StreamEnded(status, message)
    return from_status(status, message, None, http_status)


def _response(view: rt_failure) -> Response | None:
    # Without headers there is only a status, for example of a proxy that refused a tunnel.
    if not view.http_status and not view.headers_length:
        return None
    lines, body = view.headers, view.body
    return Response.parse(
        view.http_status,
        view.http_reason,
        memory[lines : lines + view.headers_length],
        memory[body : body + view.body_length],
    )
