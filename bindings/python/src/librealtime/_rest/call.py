"""One request under way, the same for both faces."""

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
from .._core.values import invalid
from .response import RESTResponse

#: (sent, to_send, received, to_receive) in bytes of bodies; a total is 0 while it is not known.
OnProgress = Optional[Callable[[int, int, int, int], object]]

#: Bytes of a streamed answer that wait to be taken before receiving pauses.
HIGH_WATER = 1 << 20


class Source:
    """A request's body from a file, or from an iterator of bytes."""

    def __init__(self, content: Any) -> None:
        self._file = content if hasattr(content, "read") else None
        self._pieces: Iterator[Any] = iter(()) if self._file is not None else iter(content)
        self._rest = memoryview(b"")
        self._given = 0
        self._start = content.tell() if self.can_rewind else 0
        #: In bytes; -1 when it is not known, and then the body is sent in chunks.
        self.length = -1
        if self.can_rewind and not isinstance(content, io.TextIOBase):
            self.length = max(0, content.seek(0, io.SEEK_END) - self._start)
            content.seek(self._start)

    @property
    def can_rewind(self) -> bool:
        seekable = getattr(self._file, "seekable", None)
        return seekable is not None and bool(seekable())

    def more(self, capacity: int) -> bytes | None:
        """The next bytes; ``b""`` at the end, None when there are none yet.

        :raises InvalidArgument: when a file became shorter than it was.
        """
        if self.length >= 0:
            # A file may grow meanwhile. What is beyond the length that the head of the request
            # tells would be the next request to the server.
            capacity = min(capacity, self.length - self._given)
        while capacity and not self._rest:
            piece = self._next_piece(capacity)
            if piece is None:
                if self._given < self.length:
                    raise invalid(f"the body ended after {self._given} of {self.length} bytes")
                return b""
            self._rest = memoryview(piece)
        # A file of text reads characters, and one of somebody's own making what it likes.
        data, self._rest = self._rest[:capacity], self._rest[capacity:]
        self._given += len(data)
        return bytes(data)

    def _next_piece(self, size: int) -> bytes | None:
        """None at the end; a piece may be empty."""
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
    """A generator that is over would be sent as a body that is empty.

    :raises InvalidState: for one.
    """
    frames = [getattr(content, name, content) for name in ("gi_frame", "ag_frame")]
    if None in frames:
        message = "the generator of the body is over: a request before has taken it"
        raise InvalidState(rt_status.ERROR_STATE, message)


def data_of(piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    return piece if isinstance(piece, bytes) else bytes(memoryview(piece))


class Call:
    """What the library calls back for one request; inside a dispatch, all of it."""

    def __init__(
        self,
        changed: Callable[[], None],
        keep: Callable[[BaseException], None],
        source: Any = None,
        on_progress: OnProgress = None,
    ) -> None:
        #: The library writes the request's number here, so no interrupt can come in between. 0 for
        #: a request that is not sent.
        self.number = ctypes.c_uint64()
        self.changed = changed
        self.keep = keep
        #: Whether a refusal is an answer: there are no other credentials.
        self.is_refused: Callable[[], bool] = lambda: False
        self.source = source
        self.on_progress = on_progress
        self.is_over = False
        self._began_at = time.monotonic()
        self.elapsed: timedelta | None = None
        self.response: RESTResponse | None = None
        self.error: BaseException | None = None
        # A streamed answer.
        self.pieces: collections.deque[bytes] = collections.deque()
        self.waiting = 0
        self.is_paused = False
        # Of these three: one thread may take what another receives. While nobody drives the loop,
        # going on after a pause may receive in the middle of taking.
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
        if not is_answered:
            self.error = self.error or _failure(status, message, response, proxy_status)
        self._end()

    def failed(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        self.error = self.error or error
        self._end()

    def _end(self) -> None:
        # The last, as whoever waits in another thread may look at any time.
        self.is_over = True
        changed = self.changed
        # These functions refer to this call: a cycle, which would keep the answer until the
        # collector runs.
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
        """The next piece of a streamed answer, of which there is one."""
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

    def more(self, capacity: int) -> bytes | None:
        data: bytes | None = self.source.more(capacity)
        return data

    def rewind(self) -> bool:
        return bool(self.source.rewind())

    def body_failed(self, error: BaseException) -> None:
        """Whoever awaits the request is told what its own body raised."""
        self.error = error

    def result(self) -> RESTResponse:
        """Of a call that is over; one that failed fails each time it is asked."""
        if self.error is not None:
            error, self.error = self.error, _again(self.error)
            raise error
        assert self.response is not None
        return self.response


class StreamedAnswer(RESTResponse):
    """An answer whose body comes while it is taken."""

    _how = "call read, or iterate over it"

    def __init__(self, call: Call, client: Any) -> None:
        """:param call: whose head has come."""
        self.__dict__.update(vars(call.response))
        self._call = call
        self._client = client
        self._is_read = False
        # What read has taken, which may have been interrupted; and whether another way takes.
        self._begun: list[bytes] = []
        self._is_iterated = False

    @property
    def content(self) -> bytes:
        if self._is_read:
            return self._content
        message = f"the body was not read: {self._how}"
        if self._call.is_over and self._call.error is not None:
            message = f"the body did not come whole: {self._call.error}"
        raise InvalidState(rt_status.ERROR_STATE, message)

    @property
    def elapsed(self) -> timedelta:
        self._elapsed = self._call.elapsed
        return super().elapsed

    def _begin_iterating(self) -> None:
        """What is taken in pieces is kept by nobody."""
        if self._is_iterated or self._begun:
            raise self._taken("was taken before, whole or in part; read it first to take it again")
        self._is_iterated = True

    def _begin_reading(self) -> None:
        if self._is_iterated:
            raise self._taken("was taken in pieces, whole or in part, which read would lack")

    def _taken(self, how: str) -> RealtimeError:
        """One that broke off says so however it is taken."""
        if self._call.is_over:
            self._call.result()
        return InvalidState(rt_status.ERROR_STATE, f"the body {how}")

    def _keep(self) -> None:
        self._content = b"".join(self._begun)
        self._is_read = True


def _ignore(*_: object) -> None:
    pass


def _again(error: BaseException) -> BaseException:
    """The same failure to be raised another time.

    One and the same would refer to the frames it was raised through, and they to whoever keeps it:
    a cycle, and with it all that these frames hold.
    """
    try:
        fresh = copy.copy(error)
    except Exception:  # a class whose exceptions are not made of their arguments
        return from_status(rt_status.ERROR_CANCELLED, f"the request's body failed: {error!r}")
    vars(fresh).update(vars(error))
    return fresh


def _failure(
    status: int, message: str, response: RESTResponse | None, proxy_status: int
) -> RealtimeError:
    error = from_status(status, message, http_status=proxy_status)
    # For those who want to look: a 401, for example, or the head of an answer that broke off.
    error.response = response
    return error
