"""A running request, the same for asyncio and blocking programs."""

from __future__ import annotations

import collections
import copy
import ctypes
import io
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Optional

from .._core.abi import rt_status
from .._core.errors import InvalidState, RealtimeError, from_status
from .._core.failure import Failure
from .._core.naming import said_by
from .._core.uncopied import Uncopied
from .._core.values import invalid
from .response import RESTResponse

#: (sent, to_send, received, to_receive): bytes of bodies; a total is 0 while it is unknown.
OnProgress = Optional[Callable[[int, int, int, int], object]]

#: (error, delay, attempt): why an attempt failed, the seconds before the next one, and its number.
OnRetry = Optional[Callable[[RealtimeError, Optional[float], int], object]]

#: Bytes of a streamed response that may be queued before receiving pauses.
HIGH_WATER = 1 << 20


class Source:
    """A request's body, read from a file or an iterator of bytes."""

    def __init__(self, content: Any) -> None:
        self._file = content if hasattr(content, "read") else None
        self._pieces: Iterator[Any] = iter(()) if self._file is not None else iter(content)
        self._rest = memoryview(b"")
        self._given = 0
        self._start = content.tell() if self.can_rewind else 0
        #: In bytes; -1 if unknown: then the body is sent in chunks.
        self.length = -1
        if self.can_rewind and not isinstance(content, io.TextIOBase):
            self.length = max(0, content.seek(0, io.SEEK_END) - self._start)
            content.seek(self._start)

    @property
    def can_rewind(self) -> bool:
        seekable = getattr(self._file, "seekable", None)
        return seekable is not None and bool(seekable())

    def more(self, capacity: int) -> bytes | None:
        """The next bytes; ``b""`` at the end, None if none are available yet.

        :raises InvalidArgument: if a file has become shorter.
        """
        if self.length >= 0:
            # A file may grow in the meantime. Bytes beyond the length in the request's head would
            # look like the next request to the server.
            capacity = min(capacity, self.length - self._given)
        while capacity and not self._rest:
            piece = self._next_piece(capacity)
            if piece is None:
                if self._given < self.length:
                    raise invalid(f"the body ended after {self._given} of {self.length} bytes")
                return b""
            self._rest = memoryview(piece)
        # A text file reads characters, and a custom file object may read anything.
        data, self._rest = self._rest[:capacity], self._rest[capacity:]
        self._given += len(data)
        return bytes(data)

    def _next_piece(self, size: int) -> bytes | None:
        """The next piece, which may be empty; None at the end."""
        if self._file is not None:
            return data_of(self._file.read(size)) or None
        try:
            return data_of(next(self._pieces))
        except StopIteration:
            return None

    def rewind(self) -> bool:
        if self._file is None:
            return False
        self._file.seek(self._start)
        self._rest = memoryview(b"")
        self._given = 0
        return True


def check_fresh(content: Any) -> None:
    """Rejects an exhausted generator, which would be sent as an empty body.

    :raises InvalidState: for an exhausted generator.
    """
    frames = [getattr(content, name, content) for name in ("gi_frame", "ag_frame")]
    if None in frames:
        message = "the generator of the body is exhausted: an earlier request has read it"
        raise InvalidState(rt_status.ERROR_STATE, message)


def data_of(piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    return piece if isinstance(piece, bytes) else bytes(memoryview(piece))


class Call:
    """The callbacks of one request; all are called during a dispatch."""

    def __init__(
        self,
        changed: Callable[[], None],
        keep: Callable[[BaseException], None],
        source: Any = None,
        on_progress: OnProgress = None,
        on_retry: OnRetry = None,
    ) -> None:
        #: The library writes the request's number here, so no interrupt can come in between. 0 for
        #: a request that has not been sent.
        self.number = ctypes.c_uint64()
        #: What C's callbacks know it by; 0 before it is sent.
        self.key = 0
        self.changed = changed
        self.keep = keep
        #: Whether a 401 counts as a response, because there are no other credentials.
        self.is_refused: Callable[[], bool] = lambda: False
        #: Why there are none.
        self.no_credentials: Callable[[], Exception | None] = lambda: None
        self.source = source
        self.on_progress = on_progress
        self.on_retry = on_retry
        self.is_over = False
        self._began_at = time.monotonic()
        self.elapsed: timedelta | None = None
        self.response: RESTResponse | None = None
        self.error: BaseException | None = None
        # For a streamed response.
        self.pieces: collections.deque[bytes] = collections.deque()
        self.waiting = 0
        self.is_paused = False
        # Guards these three: one thread may read what another receives. While no thread drives the
        # loop, resuming after a pause may receive data in the middle of a read.
        self._lock = threading.RLock()
        self.pause: Callable[[bool], None] = lambda paused: None

    def finished(
        self, status: int, message: str, response: RESTResponse | None, proxy_status: int = 0
    ) -> None:
        self.elapsed = timedelta(seconds=time.monotonic() - self._began_at)
        if response is not None:
            response._elapsed = self.elapsed
            self.response = self.response or response
            if status == rt_status.ERROR_HTTP_STATUS:
                self.response._refusal = message
        is_answered = status in (rt_status.OK, rt_status.ERROR_HTTP_STATUS)
        if status == rt_status.ERROR_AUTH and response is not None:
            is_answered = self.is_refused()
        if not is_answered and self.error is None:
            cause = self.no_credentials() if status == rt_status.ERROR_AUTH else None
            if cause is not None:
                message = f"fetching credentials failed: {said_by(cause)}"
            self.error = _failure(status, message, response, proxy_status)
            if cause is not None:
                self.error.__cause__ = cause
        self._end()

    def failed(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        self.error = self.error or error
        self._end()

    def _end(self) -> None:
        # Set last, because a waiting thread may look at any time.
        self.is_over = True
        changed = self.changed
        # These functions refer to this call. The cycle would keep the response until the collector
        # runs.
        self.changed, self.pause = _ignore, _ignore
        changed()

    def begun(self, response: RESTResponse) -> None:
        self.response = response
        self.changed()

    def came(self, data: bytes) -> None:
        with self._lock:
            self.pieces.append(data)
            self.waiting += len(data)
            if self.waiting >= HIGH_WATER and not self.is_paused:
                self.is_paused = True
                self.pause(True)
        self.changed()

    def take(self) -> bytes:
        """The next piece of a streamed response; there must be one."""
        with self._lock:
            data = self.pieces.popleft()
            self.waiting -= len(data)
            if self.is_paused and self.waiting < HIGH_WATER // 2:
                self.is_paused = False
                self.pause(False)
            return data

    def progressed(self, sent: int, to_send: int, received: int, to_receive: int) -> None:
        if self.on_progress is not None:
            self.on_progress(sent, to_send, received, to_receive)

    def retries(self, failure: Failure) -> None:
        if self.on_retry is not None:
            self.on_retry(failure.connection_error(), failure.retry_in, failure.attempt)

    def more(self, capacity: int) -> bytes | None:
        data: bytes | None = self.source.more(capacity)
        return data

    def rewind(self) -> bool:
        return bool(self.source.rewind())

    def body_failed(self, error: BaseException) -> None:
        """Keeps what the request's own body raised, for the caller that waits for the request."""
        self.error = error

    def result(self) -> RESTResponse:
        """The result of a call that is over; a failed call raises each time."""
        if self.error is not None:
            error, self.error = self.error, _again(self.error)
            raise error
        assert self.response is not None
        return self.response


class StreamedAnswer(Uncopied, RESTResponse):
    """A response whose body arrives while it is read."""

    _how = "call read(), or iterate over it"

    def __init__(self, call: Call, client: Any) -> None:
        """:param call: one whose head has been received."""
        self.__dict__.update(vars(call.response))
        self._call = call
        self._client = client
        self._is_read = False
        # What read has received so far (it may be interrupted); whether the body is iterated.
        self._begun: list[bytes] = []
        self._is_iterated = False

    @property
    def content(self) -> bytes:
        if self._is_read:
            return self._content
        message = f"the body was not read: {self._how}"
        if self._call.is_over and self._call.error is not None:
            message = f"the body is incomplete: {self._call.error}"
        raise InvalidState(rt_status.ERROR_STATE, message)

    @property
    def elapsed(self) -> timedelta:
        self._elapsed = self._call.elapsed
        return super().elapsed

    def _begin_iterating(self) -> None:
        """Checks that the body can be iterated: pieces are not kept."""
        if self._is_iterated or self._begun:
            raise self._taken("was read before, at least in part; call read first to keep it")
        self._is_iterated = True

    def _begin_reading(self) -> None:
        if self._is_iterated:
            raise self._taken("was read in pieces, at least in part, which read would lack")

    def _taken(self, how: str) -> RealtimeError:
        """The exception for reading again; the failure itself if the body broke off."""
        if self._call.is_over:
            self._call.result()
        return InvalidState(rt_status.ERROR_STATE, f"the body {how}")

    def _keep(self) -> None:
        self._content = b"".join(self._begun)
        self._is_read = True


def _ignore(*_: object) -> None:
    pass


def _again(error: BaseException) -> BaseException:
    """A copy of a failure, to be raised once more.

    A single object would refer to the frames through which it was raised, and they to whatever
    keeps it: a cycle that keeps everything in these frames alive.
    """
    try:
        fresh = copy.copy(error)
    except Exception:  # a class that cannot be created from its args
        return from_status(rt_status.ERROR_CANCELLED, f"the request's body failed: {error!r}")
    vars(fresh).update(vars(error))
    return fresh


def _failure(
    status: int, message: str, response: RESTResponse | None, proxy_status: int
) -> RealtimeError:
    error = from_status(status, message, http_status=proxy_status)
    # For callers that want to look at it: a 401, or the head of a response that broke off.
    error.response = response
    return error
