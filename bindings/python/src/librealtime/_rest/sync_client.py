"""The blocking REST client."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from .._core.driven import Driven
from .._core.forgetting import forget
from .._core.handle import Handle, new_loop
from . import callbacks
from .call import Call, StreamedAnswer
from .client_base import BaseRESTClient
from .options import RequestKeywords, RequestOptions
from .response import RESTResponse


class StreamedResponse(StreamedAnswer):
    """A response whose body arrives while it is read; made by ``client.stream``."""

    def read(self) -> bytes:
        """The whole body; afterwards, ``content``, ``text`` and ``json`` have it, too.

        :raises InvalidState: if the body was read in pieces before.
        :raises RealtimeError: if the body is incomplete; also on every further call.
        """
        if not self._is_read:
            self._begin_reading()
            for data in self._come():
                self._begun.append(data)
            self._keep()
        return self.content

    def _pieces(self) -> Iterator[bytes]:
        if self._is_read:
            yield self.content
            return
        self._begin_iterating()
        yield from self._come()

    def _come(self) -> Iterator[bytes]:
        call, client = self._call, self._client
        while True:
            # Read before the pieces: another thread may receive the last ones and the end.
            is_over = call.is_over
            while call.pieces:
                yield call.take()
            if is_over:
                call.result()
                return
            callbacks.revive(call)
            client._until(lambda: call.is_over or bool(call.pieces))


Stream = AbstractContextManager[StreamedResponse]


class RESTClient(Driven, BaseRESTClient[RESTResponse, Stream]):
    """Requests with retries, blocking: ``with RESTClient("https://example.org/api") as client``.

    Several threads may use it at once: their requests run in parallel. A streamed response
    continues to arrive while the program does something else.
    """

    def _prepare(self) -> None:
        self._loop_handle: Handle | None = None
        self._prepare_driving()
        try:
            self._live()
        except BaseException as error:
            forget(error)
            raise

    def _join(self) -> Handle:
        loop = new_loop()
        made = self._make(loop)
        self._loop_handle = loop
        self._live_by_itself()
        return made

    def _request(self, method: str, path: str, options: RequestKeywords) -> RESTResponse:
        chosen = RequestOptions.of(options, "request")
        call = self._new(chosen)
        try:
            self._send(call, method, path, chosen, False)
            self._until(lambda: call.is_over)
        finally:
            self._end(call)
        return call.result()

    @contextlib.contextmanager
    def _stream(
        self, method: str, path: str, options: RequestKeywords
    ) -> Iterator[StreamedResponse]:
        chosen = RequestOptions.of(options, "stream")
        call = self._new(chosen)
        try:
            self._send(call, method, path, chosen, True)
            self._until(lambda: call.is_over or call.response is not None)
            if call.response is None:
                call.result()
            yield StreamedResponse(call, self)
        finally:
            self._end(call)

    def close(self) -> None:
        """Ends all requests, which raise ``ConnectionClosedError``, and releases the client."""
        loop = self._loop_handle
        self._close()
        self._rouse(loop)
        self._let_go()

    def _leave(self, in_order: bool) -> None:
        self.close()

    def _new(self, options: RequestOptions) -> Call:
        """A call that is not yet sent, so that an interrupt cannot leave a call that never ends."""
        call = self._new_call(lambda: None, options)
        # Weak references: no cycle keeps the data of an interrupted request.
        weakly = weakref.ref(call)
        call.keep = lambda error: self._call_failed(weakly(), error)
        return call

    def _call_failed(self, call: Call | None, error: BaseException) -> None:
        """Keeps what a request's functions raised for its caller, whichever thread drives."""
        if not isinstance(error, Exception):
            # An interrupt is raised in the thread where it arrived.
            self._keep(error)
        if call is not None:
            call.error = call.error or error
            self._cancel(call)

    def _end(self, call: Call) -> None:
        self._cancel(call)
        self._calls.discard(call)
        self._let_go()

    def _let_go(self) -> None:
        """Once closed, releases its descriptors when no more requests are waited for."""
        if self._is_closed and all(call.is_over for call in self._calls.copy()):
            self._end_keeper()
            self._loop_handle = None

    def _take(self, answer: Any) -> int:
        if hasattr(answer, "__await__"):
            if hasattr(answer, "close"):
                answer.close()
            raise TypeError("credentials returned a coroutine; use a plain function")
        return super()._take(answer)

    def _keep(self, error: BaseException) -> None:
        Driven._keep(self, error)
