"""What can go wrong, by family.

Every exception of the library is a ``RealtimeError``; where Python has a class of its own for the
kind of failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it is that, too.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from .abi import rt_status
from .loader import lib
from .response import Response

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "AuthenticationFailed",
    "BufferFull",
    "ConcurrencyError",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "ConnectionLost",
    "ConnectionTimeout",
    "InvalidArgument",
    "InvalidHandshake",
    "InvalidProxy",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "ProtocolError",
    "ProxyError",
    "QueueFull",
    "RealtimeError",
    "ReconnectsExhausted",
    "SecurityError",
    "StoreError",
    "StreamEnded",
    "StreamRefused",
]

#: Close codes of an end that is no failure: normal, going away, a close frame without a code.
OK_CLOSE_CODES = frozenset((1000, 1001, 1005))

if TYPE_CHECKING or sys.version_info >= (3, 11):
    _Timeout = TimeoutError
else:

    class _Timeout(asyncio.TimeoutError, TimeoutError):
        """Before Python 3.11 asyncio's is a class of its own."""


class RealtimeError(Exception):
    """A failure that librealtime reported.

    :ivar status: the number of the C interface, an ``rt_status``.
    :ivar name: its name, for example ``RT_ERROR_CONNECT``.
    :ivar message: a sentence that names the culprit; control characters, which a server may have
        chosen, are spelt as escapes such as ``\\u{1b}``.
    :ivar response: what the server, or a proxy, answered instead: its status, headers and the
        beginning of its body; None without an answer.
    :ivar system_error: the operating system's error, an ``errno``; 0 for none.
    """

    response: Any = None
    system_error: int = 0

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = int(status)
        self.name = lib.rt_status_name(self.status).decode()
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _made_again, (type(self), self.message), vars(self)

    def with_details(self, response: Response | None, system_error: int) -> Self:
        """Adds what is known besides."""
        if response is not None:
            self.response = response
        if system_error:
            self.system_error = system_error
            _set_errno(self, system_error)
        return self


def _made_again(kind: type[RealtimeError], message: str) -> RealtimeError:
    """A copy, whose attributes are then set."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    return error


def _set_errno(error: Exception, number: int) -> None:
    """Python's own name for it."""
    if isinstance(error, OSError):
        error.errno = number


class InvalidArgument(RealtimeError, ValueError):
    """A value that was given cannot be used."""


class InvalidURI(InvalidArgument):
    """The URL cannot be parsed, or is neither ``ws://`` nor ``wss://``."""


class InvalidProxy(InvalidArgument):
    """The proxy's URL cannot be parsed, has a path, or its scheme is not known."""


class InvalidState(RealtimeError, RuntimeError):
    """The call does not fit the moment: too early, too late, or in a forked process."""


class ConcurrencyError(InvalidState):
    """Two tasks receive from one connection at once."""


class BufferFull(RealtimeError):
    """``send_nowait`` found ``write_limit`` bytes, or ``offline_queue`` messages, waiting."""


class ConnectFailed(RealtimeError, ConnectionError):
    """No connection could be made (name, TCP, TLS, proxy): nothing was sent."""


class ConnectionLost(RealtimeError, ConnectionError):
    """A connection broke while it was in use.

    What was sent may have arrived, or not; of an answer the rest is missing.
    """


class ProtocolError(ConnectionLost):
    """The peer's answer is not valid HTTP, or its body is damaged or in an unknown coding.

    The request was sent, so the server may have acted on it: to repeat a POST may do it twice.
    After a request ``response`` has the head of the answer, when one came.
    """


class ProxyError(ConnectFailed):
    """The proxy cannot be reached, refused or failed; the text names it.

    :ivar http_status: by which it refused; None without an answer.
    """

    def __init__(self, status: int, message: str, http_status: int | None = None) -> None:
        super().__init__(status, message)
        self.http_status = http_status


class InvalidHandshake(RealtimeError):
    """The server's answer is no valid WebSocket handshake."""


class InvalidStatus(InvalidHandshake):
    """The server answered the handshake with another HTTP status.

    :ivar response: its answer: ``status_code``, ``reason_phrase``, ``headers``, ``body``.
    """

    response: Response

    def __init__(self, status: int, message: str, response: Response) -> None:
        super().__init__(status, message)
        self.response = response


class SecurityError(InvalidHandshake):
    """The server redirects to where it is not followed: too often, without TLS, or nowhere."""


class ConnectionTimeout(RealtimeError, _Timeout):
    """Something took longer than its time limit."""


class ConnectionClosed(RealtimeError):
    """The connection is closed.

    :ivar code: the close code; 1005 when the close frame had none, 1006 without a close frame.
    :ivar reason: the peer's reason.
    """

    def __init__(self, status: int, message: str, code: int = 1006, reason: str = "") -> None:
        super().__init__(status, message)
        self.code = code
        self.reason = reason


class ConnectionClosedOK(ConnectionClosed):
    """It was closed in order, with 1000, 1001 or no code."""


class ConnectionClosedError(ConnectionClosed):
    """It was closed with another code, or broke; ``status`` and ``message`` tell the cause."""


class StreamRefused(RealtimeError):
    """The server's answer begins no event stream: its status, or its content type.

    :ivar http_status: of the answer.
    """

    def __init__(self, status: int, message: str, http_status: int = 0) -> None:
        super().__init__(status, message)
        self.http_status = http_status


class ReconnectsExhausted(ConnectFailed):
    """As many reconnects in a row as ``max_reconnects`` allows did not hold.

    A ``Spreadbot`` raises it when all of its transports have failed ``max_rounds`` times in a row.
    """


class StoreError(RealtimeError, OSError):
    """The file that keeps ids cannot be used, or is damaged."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)


class QueueFull(RealtimeError):
    """Too many requests wait for the network, or for their turn."""


class AuthenticationFailed(RealtimeError):
    """The credentials were refused, and no fresh ones were to be had."""


class StreamEnded(RealtimeError):
    """The stream ended in order, or the event source is closed."""


_FAMILIES: dict[int, type[RealtimeError]] = {
    rt_status.ERROR_INVALID_ARGUMENT: InvalidArgument,
    rt_status.ERROR_STATE: InvalidState,
    rt_status.ERROR_REENTRANT: InvalidState,
    rt_status.ERROR_FORKED: InvalidState,
    rt_status.ERROR_BUSY: InvalidState,
    rt_status.ERROR_INVALID_URL: InvalidURI,
    rt_status.ERROR_UNSUPPORTED_SCHEME: InvalidURI,
    rt_status.ERROR_INVALID_HEADER: InvalidArgument,
    rt_status.ERROR_INVALID_SUBPROTOCOL: InvalidArgument,
    rt_status.ERROR_INVALID_UTF8: InvalidArgument,
    rt_status.ERROR_INVALID_CLOSE_CODE: InvalidArgument,
    rt_status.ERROR_CLOSE_REASON_TOO_LONG: InvalidArgument,
    rt_status.ERROR_CLOSED: ConnectionClosedError,
    rt_status.ERROR_BUFFER_FULL: BufferFull,
    rt_status.ERROR_RESOLVE: ConnectFailed,
    rt_status.ERROR_CONNECT: ConnectFailed,
    rt_status.ERROR_TLS: ConnectFailed,
    rt_status.ERROR_PROXY: ProxyError,
    rt_status.ERROR_CONNECTION_LOST: ConnectionLost,
    rt_status.ERROR_PROTOCOL: ProtocolError,
    rt_status.ERROR_TIMEOUT: ConnectionTimeout,
    rt_status.ERROR_HANDSHAKE: InvalidHandshake,
    rt_status.ERROR_HTTP_STATUS: InvalidHandshake,
    rt_status.ERROR_CONTENT_TYPE: StreamRefused,
    rt_status.ERROR_NO_CONTENT: StreamRefused,
    rt_status.ERROR_RECONNECTS_EXHAUSTED: ReconnectsExhausted,
    rt_status.ERROR_STORE: StoreError,
    rt_status.ERROR_DEADLINE: ConnectionTimeout,
    rt_status.ERROR_EXPIRED: ConnectionTimeout,
    rt_status.ERROR_QUEUE_FULL: QueueFull,
    rt_status.ERROR_AUTH: AuthenticationFailed,
    rt_status.ERROR_REDIRECT: SecurityError,
    rt_status.ERROR_INSECURE_REDIRECT: SecurityError,
}


#: Of limits, in messages of the C interface and here.
_NAMES = {
    "attempt_timeout": "timeout",
    "pong_timeout": "ping_timeout",
    "max_body_bytes": "max_body_size",
    "max_event_bytes": "max_event_size",
    "max_header_bytes": "max_header_size",
    "max_line_bytes": "max_line_size",
    "max_message_bytes": "max_size",
    "max_name_bytes": "max_name_size",
}


def from_status(
    status: int, message: str, response: Response | None = None, http_status: int = 0
) -> RealtimeError:
    """The exception for a failure; the base class for a status this version does not know.

    :param response: of the server, or the proxy, that refused the handshake.
    :param http_status: of the proxy, when it is known without a response.
    """
    for theirs, ours in _NAMES.items():
        message = message.replace(f"({theirs})", f"({ours})")
    if status == rt_status.ERROR_HTTP_STATUS and response is not None:
        return InvalidStatus(status, message, response)
    if status == rt_status.ERROR_PROXY:
        refused_by = http_status if response is None else response.status_code
        return ProxyError(status, message, refused_by or None)
    return _FAMILIES.get(status, RealtimeError)(status, message)


def check(status: int) -> None:
    """Raises what a call of the C interface answered, unless it is success."""
    if status < 0:
        raise from_status(status, lib.rt_last_error().decode())
