"""The asyncio REST client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from .._core.abi import rt_credentials
from .._core.forgetting import forget
from .._core.handle import Handle
from .._core.loader import lib
from .._core.reactor import Reactor, elsewhere
from . import callbacks
from .call import Call, Source, StreamedAnswer, check_fresh, data_of
from .client_base import BaseRESTClient
from .decoders import LineDecoder, SizeDecoder, TextDecoder
from .options import RequestKeywords, RequestOptions
from .response import RESTResponse


class AwaitedSource(Source):
    """A body from an asynchronous iterator: a task fetches its pieces ahead, one at a time."""

    can_rewind = False
    length = -1

    def __init__(self, content: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._content = content
        self._loop = loop
        self._rest = memoryview(b"")
        self._is_over = False
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self.resume = lambda: None

    def more(self, capacity: int) -> bytes | None:
        if self._error is not None:
            raise self._error
        if self._rest:
            data, self._rest = self._rest[:capacity], self._rest[capacity:]
            return bytes(data)
        if self._is_over:
            return b""
        if self._task is None:
            self._awaited = aiter_(self._content)
            self._task = self._loop.create_task(self._next())
        elif self._task.done():
            self._task = self._loop.create_task(self._next())
        return None

    async def _next(self) -> None:
        try:
            while not self._rest:
                piece = await self._awaited.__anext__()
                self._rest = memoryview(data_of(piece))
        except StopAsyncIteration:
            self._is_over = True
        except BaseException as error:
            self._error = error
        # Scheduled after this task has ended, so that another can be created.
        self._loop.call_soon(self.resume)

    def rewind(self) -> bool:
        return False

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


def aiter_(content: Any) -> AsyncIterator[Any]:
    iterator: AsyncIterator[Any] = content.__aiter__()
    return iterator


class StreamedResponse(StreamedAnswer):
    """A response whose body arrives while it is read; made by ``client.stream``."""

    _how = "await aread(), or iterate with aiter_bytes() or similar"

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """The body in pieces, as they arrive or of `chunk_size` bytes each."""
        decoder = SizeDecoder(chunk_size)
        async for data in self._bytes():
            for piece in decoder.decode(data):
                yield piece
        for piece in decoder.flush():
            yield piece

    async def aiter_text(self) -> AsyncIterator[str]:
        """The body as text, in pieces that end between characters."""
        decoder = TextDecoder(self.encoding)
        async for data in self._bytes():
            for piece in decoder.decode(data):
                yield piece
        for piece in decoder.flush():
            yield piece

    async def aiter_lines(self) -> AsyncIterator[str]:
        """The lines of the body, without their ends; LF or CR LF ends a line."""
        decoder = LineDecoder()
        async for text in self.aiter_text():
            for line in decoder.decode(text):
                yield line
        for line in decoder.flush():
            yield line

    async def aread(self) -> bytes:
        """The whole body; afterwards, ``content``, ``text`` and ``json`` have it, too.

        Cancelling the call loses nothing.

        :raises InvalidState: if the body was read in pieces before.
        :raises RealtimeError: if the body is incomplete; also on every further call.
        """
        if not self._is_read:
            self._begin_reading()
            async for data in self._come():
                self._begun.append(data)
            self._keep()
        return self.content

    async def _bytes(self) -> AsyncIterator[bytes]:
        if self._is_read:
            yield self.content
            return
        self._begin_iterating()
        async for data in self._come():
            yield data

    async def _come(self) -> AsyncIterator[bytes]:
        call = self._call
        while True:
            while call.pieces:
                yield call.take()
            if call.is_over:
                call.result()
                return
            callbacks.revive(call)
            if not call.is_over:
                await self._client._wait(call)


#: The result of a request: an awaitable.
Answer = Coroutine[Any, Any, RESTResponse]
Stream = AbstractAsyncContextManager[StreamedResponse]


class RESTClient(BaseRESTClient[Answer, Stream]):
    """Requests with retries: ``async with RESTClient("https://example.org/api") as client``.

    It uses the asyncio loop that runs at the first request, and belongs to that loop's thread.
    """

    _reactor: Reactor | None = None

    def _join(self) -> Handle:
        reactor = self._find_reactor()
        handle = reactor.require()
        try:
            made = self._make(handle)
        except BaseException:
            reactor.release_when_idle()
            raise
        self._reactor = reactor
        self._waiters: dict[Call, asyncio.Future[None]] = {}
        reactor.add(self)
        return made

    def _find_reactor(self) -> Reactor:
        return Reactor.current()

    def _live(self) -> Handle:
        reactor = self._reactor
        if reactor is not None and asyncio.get_running_loop() is not reactor.loop:
            raise elsewhere("client")
        try:
            return super()._live()
        except BaseException as error:
            forget(error)
            raise

    async def _request(self, method: str, path: str, options: RequestKeywords) -> RESTResponse:
        call = self._start(method, path, RequestOptions.of(options, "request"), False)
        try:
            while not call.is_over:
                await self._wait(call)
        except BaseException:
            self._cancel(call)
            raise
        return call.result()

    @contextlib.asynccontextmanager
    async def _stream(
        self, method: str, path: str, options: RequestKeywords
    ) -> AsyncIterator[StreamedResponse]:
        call = self._start(method, path, RequestOptions.of(options, "stream"), True)
        try:
            while call.response is None and not call.is_over:
                await self._wait(call)
            if call.response is None:
                call.result()
            yield StreamedResponse(call, self)
        finally:
            self._cancel(call)

    async def aclose(self) -> None:
        """Ends all requests, which raise ``ConnectionClosedError``, and releases the client."""
        self._give_back()

    def _give_back(self) -> None:
        self._close()
        if self._reactor is not None:
            self._reactor.remove(self)
            self._reactor = None

    async def __aenter__(self) -> RESTClient:
        self._live()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._reactor is not None:
            self._reactor.was_collected()

    def _start(self, method: str, path: str, options: RequestOptions, streams: bool) -> Call:
        self._live()
        call = self._new_call(lambda: self._changed(call), options)
        self._send(call, method, path, options, streams)
        if isinstance(call.source, AwaitedSource):
            call.source.resume = lambda: self._resume_body(call)
        return call

    def _new_source(self, content: Any) -> Source:
        if hasattr(content, "__aiter__"):
            check_fresh(content)
            return AwaitedSource(content, asyncio.get_running_loop())
        return super()._new_source(content)

    async def _wait(self, call: Call) -> None:
        """Waits for something to change; meanwhile the reactor keeps the client alive."""
        reactor = self._reactor
        if reactor is not None and asyncio.get_running_loop() is not reactor.loop:
            raise elsewhere("client")
        future = asyncio.get_running_loop().create_future()
        self._waiters[call] = future
        if reactor is not None:
            reactor.hold(self)
        try:
            await future
        finally:
            self._waiters.pop(call, None)
            self._let_go()

    def _let_go(self) -> None:
        """Called when possibly no more requests are waited for."""
        if self._reactor is not None and not self._waiters:
            self._reactor.let_go(self)

    # Called during a dispatch.

    def _changed(self, call: Call) -> None:
        if call.is_over:
            self._calls.discard(call)
            if isinstance(call.source, AwaitedSource):
                call.source.stop()
                # The exception refers to the call, see `Call._end`.
                call.source.resume = lambda: None
        future = self._waiters.get(call)
        if future is not None and not future.done():
            future.set_result(None)

    def _take(self, answer: Any) -> int:
        if not hasattr(answer, "__await__"):
            return super()._take(answer)
        # Keep a reference, as asyncio refers to tasks weakly.
        self._task = asyncio.get_running_loop().create_task(self._fetch(answer))
        return rt_credentials.LATER

    async def _fetch(self, answer: Any) -> None:
        is_fresh = False
        try:
            is_fresh = super()._take(await answer) == rt_credentials.READY
        except Exception as error:
            self._credentials_failed(error)
        finally:
            if self._handle is not None:
                lib.rt_rest_credentials_ready(self._handle, is_fresh)

    def _keep(self, error: BaseException) -> None:
        if self._reactor is not None:
            self._reactor.errors.append((self, error))
