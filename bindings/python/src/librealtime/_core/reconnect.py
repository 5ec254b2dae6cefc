"""What happens between two connections: the library's own reconnection, or iterating."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Optional, Union

from .abi import rt_status
from .backoff import Backoff
from .errors import InvalidStatus, RealtimeError, check
from .handle import Handle
from .headers import HeadersLike, header
from .kind import Kind
from .network import Network
from .uncopied import Uncopied
from .values import text

#: The longest Retry-After that is obeyed, in seconds, as in the library's own reconnection.
_LONGEST_RETRY_AFTER = 300


@dataclass(frozen=True)
class Lost:
    """A lost connection, a failed attempt, or a wait for a network; passed to ``on_lost``.

    :ivar code: the close code; 1006 without a close frame.
    :ivar reason: the peer's reason.
    :ivar delay: seconds until the next attempt; None while there is no network.
    :ivar attempt: the number of that attempt, from 1 since the last stable connection. Without a
        network nothing is counted: this is the number of the lost attempt, 0 for the first
        connection.
    :ivar error: what failed; None if the peer closed normally.
    """

    code: int
    reason: str
    delay: float | None
    attempt: int
    error: RealtimeError | None


class Attempt(Uncopied):
    """An attempt that begins now. The function that receives it may change options by its methods.

    :ivar number: from 1 since the last stable connection.
    """

    __slots__ = ("_handle", "_kind", "number")

    def __init__(self, handle: Handle, number: int, kind: Kind) -> None:
        self._handle = handle
        self._kind = kind
        self.number = number

    def set_url(self, url: str) -> None:
        """Connects to another URL from now on."""
        value = text(url, "the URL", rt_status.ERROR_INVALID_URL)
        check(self._kind.set_url(self._handle, value))

    def set_header(self, name: str, value: str) -> None:
        """Sets a request header and replaces all others of that name."""
        check(self._kind.set_header(self._handle, *header(name, value)))

    def set_bearer_token(self, token: str) -> None:
        """Sets an Authorization header with a bearer token."""
        value = text(token, "the bearer token")
        check(self._kind.set_bearer_token(self._handle, value))

    def clear_headers(self) -> None:
        """Removes every header that was set, including User-Agent, Origin and Cookie."""
        check(self._kind.clear_headers(self._handle))

    def set_network(self, network: Network) -> None:
        """Connects with another network from now on."""
        check(self._kind.set_network(self._handle, network.make()))


OnLost = Optional[Callable[[Lost], object]]
OnReconnect = Optional[Callable[[Attempt], object]]
#: Receives the status of a refusal; returns headers, or None if there are no credentials.
CredentialSource = Optional[
    Callable[[int], Union[HeadersLike, Awaitable[Optional[HeadersLike]], None]]
]
ProcessException = Callable[[Exception], Optional[Exception]]


def process_exception(error: Exception) -> Exception | None:
    """Decides whether to try again: returns None to do so, else the exception to raise.

    Network failures, timeouts and the HTTP statuses 408, 425, 429 and 5xx are retried.
    """
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return None if status >= 500 or status in (408, 425, 429) else error
    # Before Python 3.11 asyncio's TimeoutError is not an OSError, but the library's is.
    return None if isinstance(error, OSError) else error


class Retries:
    """The delays of an iteration over connections."""

    def __init__(self, backoff: Backoff, process: ProcessException) -> None:
        self._backoff = backoff
        self._process = process
        self._delays: Iterator[float] = iter(backoff)

    def after_failure(self, error: Exception) -> float:
        """How long to wait after a failed attempt; raises if this was the last one."""
        verdict = self._process(error)
        if verdict is error:
            raise error
        if verdict is not None:
            raise verdict from error
        delay = next(self._delays, None)
        if delay is None:
            raise error
        return max(delay, _retry_after(error))

    def after_end(self, lasted: float, error: RealtimeError | None) -> float:
        """How long to wait after a connection ended.

        A connection that soon ended by itself counts as a failed attempt, so that a server that
        accepts and closes is not flooded.

        :param error: why it ended by itself; None if the caller ended it.
        """
        if lasted >= self._backoff.stable_time or error is None:
            self._delays = iter(self._backoff)
            return 0
        delay = next(self._delays, None)
        if delay is None:
            raise error
        return delay


def _retry_after(error: Exception) -> float:
    """The seconds of a Retry-After header (RFC 9110 §10.2.3); 0 without one."""
    if not isinstance(error, InvalidStatus):
        return 0
    wish = error.response.headers.get("Retry-After", "")
    if not (wish.isascii() and wish.isdigit()):
        return 0
    # Python refuses to parse numbers of thousands of digits.
    return min(int(wish[:9]), _LONGEST_RETRY_AFTER)
