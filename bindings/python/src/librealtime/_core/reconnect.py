"""What happens between two connections: by the library's own reconnection, or by iterating."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Optional

from .abi import rt_status
from .backoff import Backoff
from .errors import InvalidStatus, RealtimeError, check
from .handle import Handle
from .headers import header
from .kind import Kind
from .network import Network
from .values import text

#: The server's wish is followed up to here, in seconds; as the library's own reconnection does.
_LONGEST_RETRY_AFTER = 300


@dataclass(frozen=True)
class Lost:
    """A connection that was lost, or an attempt that failed; for ``on_lost``.

    :ivar code: the close code; 1006 without a close frame.
    :ivar reason: the peer's reason.
    :ivar delay: seconds until the next attempt; None when it waits for a network.
    :ivar attempt: the number of that attempt, from 1 since the last connection that was stable.
        Without a network nothing is counted: it is that of the attempt that was lost, 0 for the
        first connection.
    :ivar error: what failed; None when the peer closed in order.
    """

    code: int
    reason: str
    delay: float | None
    attempt: int
    error: RealtimeError | None


class Attempt:
    """An attempt that begins now; inside the function it is given to its options may be changed.

    :ivar number: from 1 since the last connection that was stable.
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
        """Sets a request header in the place of all of its name."""
        check(self._kind.set_header(self._handle, *header(name, value)))

    def set_bearer_token(self, token: str) -> None:
        """Sets an Authorization header with a bearer token."""
        value = text(token, "the bearer token")
        check(self._kind.set_bearer_token(self._handle, value))

    def clear_headers(self) -> None:
        """Takes away every header that was set, User-Agent, Origin and Cookie too."""
        check(self._kind.clear_headers(self._handle))

    def set_network(self, network: Network) -> None:
        """Connects by another network from now on."""
        check(self._kind.set_network(self._handle, network.make()))


OnLost = Optional[Callable[[Lost], object]]
OnReconnect = Optional[Callable[[Attempt], object]]
ProcessException = Callable[[Exception], Optional[Exception]]


def process_exception(error: Exception) -> Exception | None:
    """Whether another attempt may succeed: None if so, else the exception to raise.

    What is tried again: network failures, timeouts, and the HTTP statuses 408, 425, 429 and 5xx.
    """
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return None if status >= 500 or status in (408, 425, 429) else error
    # Before Python 3.11 asyncio's timeout is no OSError, but the library's is.
    return None if isinstance(error, OSError) else error


class Retries:
    """The delays of an iteration over connections."""

    def __init__(self, backoff: Backoff, process: ProcessException) -> None:
        self._backoff = backoff
        self._process = process
        self._delays: Iterator[float] = iter(backoff)

    def after_failure(self, error: Exception) -> float:
        """How long to wait after an attempt that failed; raises when there is to be no other."""
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
        """How long to wait after a connection.

        One that ended by itself, and soon, counts as an attempt that failed: a server that accepts
        and closes is not to be flooded.

        :param error: how it ended by itself; None when it was the caller who ended it.
        """
        if lasted >= self._backoff.stable_time or error is None:
            self._delays = iter(self._backoff)
            return 0
        delay = next(self._delays, None)
        if delay is None:
            raise error
        return delay


def _retry_after(error: Exception) -> float:
    """Retry-After in whole seconds (RFC 9110 §10.2.3), 0 without."""
    if not isinstance(error, InvalidStatus):
        return 0
    wish = error.response.headers.get("Retry-After", "")
    if not (wish.isascii() and wish.isdigit()):
        return 0
    # Python refuses to read numbers of thousands of digits.
    return min(int(wish[:9]), _LONGEST_RETRY_AFTER)
