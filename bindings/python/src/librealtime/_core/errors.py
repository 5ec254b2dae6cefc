"""Exceptions, by kind of failure.

Every exception of the library is a ``RealtimeError``. Where Python has a class for the kind of
failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it also derives from that.
"""

from __future__ import annotations

import asyncio
import re
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

#: Close codes that are not failures: normal, going away, a close frame without a code.
OK_CLOSE_CODES = frozenset((1000, 1001, 1005))

if TYPE_CHECKING or sys.version_info >= (3, 11):
    _Timeout = TimeoutError
else:

    class _Timeout(asyncio.TimeoutError, TimeoutError):
        """Before Python 3.11 asyncio's TimeoutError is a separate class."""


#: Names of options: those of setters of the C interface, which errors mention, and in Python.
#: The tables of options add theirs.
OPTION_NAMES = {
    "rt_pusher_set_reconnect_limits": "max_reconnects",
    "rt_websocket_set_max_inflate_ratio": "Deflate.max_inflate_ratio",
    "rt_websocket_set_offline_queue": "offline_queue",
    "rt_websocket_set_send_limit_bytes": "write_limit",
}
OPTION_NAMES |= {
    f"rt_{chapter}_add_redirect_origin": "redirect_origins"
    for chapter in ("websocket", "eventsource", "longpoll", "rest", "spreadbot", "pusher", "ddp")
}
_MENTION = re.compile(r" \((rt_[a-z_0-9]+_(?:set|add)_[a-z_0-9]+)\)")


def _in_python(mention: re.Match[str]) -> str:
    """The option in Python; nothing if Python does not have it."""
    name = OPTION_NAMES.get(mention[1])
    return f" ({name})" if name else ""


def with_python_names(message: str) -> str:
    """The message, in which options have their names in Python."""
    return _MENTION.sub(_in_python, message)


class RealtimeError(Exception):
    """A failure that librealtime reported.

    :ivar status: the error code of the C interface, an ``rt_status``.
    :ivar name: its name, for example ``RT_ERROR_CONNECT``.
    :ivar message: a sentence that names the culprit; control characters, which a server may have
        chosen, are escaped, such as ``\\u{1b}``.
    :ivar response: what the server, or a proxy, answered instead: its status, headers and the
        beginning of its body; None without an answer.
    :ivar system_error: the operating system's error, an ``errno``; 0 if there is none.
    """

    response: Any = None
    system_error: int = 0

    def __init__(self, status: int, message: str) -> None:
        message = with_python_names(message)
        super().__init__(message)
        self.status = int(status)
        self.name = lib.rt_status_name(self.status).decode()
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _made_again, (type(self), self.message), vars(self)

    def with_details(self, response: Response | None, system_error: int) -> Self:
        """Adds further details."""
        if response is not None:
            self.response = response
        if system_error:
            self.system_error = system_error
            _set_errno(self, system_error)
        return self


def _made_again(kind: type[RealtimeError], message: str) -> RealtimeError:
    """A copy for pickling; its attributes are set afterwards."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    return error


def _set_errno(error: Exception, number: int) -> None:
    """Sets ``errno``, the attribute that Python uses for it."""
    if isinstance(error, OSError):
        error.errno = number


class InvalidArgument(RealtimeError, ValueError):
    """An argument has an invalid value."""


class InvalidURI(InvalidArgument):
    """The URL cannot be parsed, or is neither ``ws://`` nor ``wss://``."""


class InvalidProxy(InvalidArgument):
    """The proxy's URL cannot be parsed, has a path, or has an unknown scheme."""


class InvalidState(RealtimeError, RuntimeError):
    """The call is not allowed in this state: too early, too late, or in a forked process."""


class ConcurrencyError(InvalidState):
    """Two tasks called receive on one connection at the same time."""


class BufferFull(RealtimeError):
    """``send_nowait`` found ``write_limit`` bytes, or ``offline_queue`` messages, waiting."""


class ConnectFailed(RealtimeError, ConnectionError):
    """No connection could be established (name, TCP, TLS, proxy): nothing was sent."""


class ConnectionLost(RealtimeError, ConnectionError):
    """A connection broke while it was in use.

    What was sent may or may not have arrived; the rest of a response is missing. An object that a
    time limit has ended for good raises it, too, with the ``ConnectionTimeout`` as its cause: a
    ``TimeoutError`` would look as if the object could still be waited for.
    """


class ProtocolError(ConnectionLost):
    """The peer's response is not valid HTTP, or its body is damaged or has an unknown coding.

    The request was sent and the server may have acted on it: repeating a POST may perform it twice.
    After a request ``response`` has the head of the response, if one was received.
    """


class ProxyError(ConnectFailed):
    """The proxy cannot be reached, refused or failed; the message names it.

    :ivar http_status: the status of the refusal; None without a response.
    """

    def __init__(self, status: int, message: str, http_status: int | None = None) -> None:
        super().__init__(status, message)
        self.http_status = http_status


class InvalidHandshake(RealtimeError):
    """The server's answer is not a valid WebSocket handshake."""


class InvalidStatus(InvalidHandshake):
    """The server answered the handshake with an HTTP status other than 101.

    :ivar response: its answer: ``status_code``, ``reason_phrase``, ``headers``, ``body``.
    """

    response: Response

    def __init__(self, status: int, message: str, response: Response) -> None:
        super().__init__(status, message)
        self.response = response


class SecurityError(InvalidHandshake):
    """A redirect that is not followed: one too many, one without TLS, or one without a target."""


class ConnectionTimeout(RealtimeError, _Timeout):
    """A time limit was exceeded: of a connection or a request, or the `timeout` of a call. After
    the latter, what the call has waited for continues."""


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
    """The connection was closed normally, with 1000, 1001 or no code."""


class ConnectionClosedError(ConnectionClosed):
    """The connection was closed with another code, or broke; ``message`` names the cause."""


class StreamRefused(RealtimeError):
    """The server's response does not start an event stream: wrong status or content type.

    :ivar http_status: the status of the response.
    """

    def __init__(self, status: int, message: str, http_status: int = 0) -> None:
        super().__init__(status, message)
        self.http_status = http_status


class ReconnectsExhausted(ConnectFailed):
    """``max_reconnects`` reconnects in a row failed.

    A ``Spreadbot`` raises it when all of its transports have failed ``max_rounds`` times in a row.
    """


class StoreError(RealtimeError, OSError):
    """A file in which ids, messages, logins or documents are kept cannot be used."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)


class QueueFull(RealtimeError):
    """Too many requests wait for the network or for their turn."""


class AuthenticationFailed(RealtimeError):
    """The server refused the credentials, and no fresh ones were available."""


class StreamEnded(RealtimeError):
    """The stream ended normally, or the event source is closed."""


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


#: How C refuses a value of the caller that is nested too deep, or has a number that is too large.
_REFUSED_VALUE = re.compile(r"\w+ is not an EJSON text: ")


def from_status(
    status: int, message: str, response: Response | None = None, http_status: int = 0
) -> RealtimeError:
    """The exception for a failure; the base class if this version does not know the status.

    :param response: of the server or proxy that refused the handshake.
    :param http_status: of the proxy, if it is known without a response.
    """
    message = message.replace(" is empty; use NULL for none", " is empty; use None instead")
    if status == rt_status.ERROR_PROTOCOL and _REFUSED_VALUE.match(message):
        return InvalidArgument(status, message)
    if status == rt_status.ERROR_HTTP_STATUS and response is not None:
        return InvalidStatus(status, message, response)
    if status == rt_status.ERROR_PROXY:
        refused_by = http_status if response is None else response.status_code
        return ProxyError(status, message, refused_by or None)
    return _FAMILIES.get(status, RealtimeError)(status, message)


def final(error: RealtimeError) -> RealtimeError:
    """The exception for waiting for an object that `error` has ended for good.

    It is never a TimeoutError, as a call whose `timeout` ends raises that: loops that call again
    then would never end.
    """
    if not isinstance(error, TimeoutError):
        return error
    lost = ConnectionLost(rt_status.ERROR_CONNECTION_LOST, error.message)
    lost.__cause__ = error
    return lost.with_details(error.response, error.system_error)


def naming(option: str, error: InvalidArgument) -> RealtimeError:
    """What C refuses, such as a URL, with the name of the option that has it."""
    if option in error.message:
        return error
    return from_status(error.status, f"{option}: {error.message}")


def timed_out(message: str) -> ConnectionTimeout:
    """The exception for a call that its `timeout` has ended."""
    return ConnectionTimeout(rt_status.ERROR_TIMEOUT, message)


def check(status: int) -> None:
    """Raises an exception if a call of the C interface returned an error."""
    if status < 0:
        raise from_status(status, lib.rt_last_error().decode())


def checked(result: int) -> int:
    """The result of a function of the C interface, which is negative for an error."""
    check(result)
    return result
