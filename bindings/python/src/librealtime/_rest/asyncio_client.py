"""The asyncio face of the REST client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._core.abi import rt_credentials
from .._core.handle import Handle
from .._core.loader import lib
from .._core.reactor import Reactor, elsewhere
from .call import Call, Source, StreamedAnswer, check_fresh, data_of
from .client_base import BaseRESTClient
from .decoders import LineDecoder, SizeDecoder, TextDecoder
from .options import RequestKeywords, RequestOptions
from .response import RESTResponse

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AwaitedSource(Source):
    """A body from an asynchronous iterator: a task takes its pieces ahead, one at a time."""

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
        # Behind the end of this task, so that the next may be made.
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
    """An answer whose body comes while it is taken; ``client.stream`` gives one."""

    _how = "await aread, or iterate by aiter_bytes or the like"

    def __init__(self, call: Call, client: RESTClient) -> None:
        super().__init__(call)
        self._client = client

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """The body in pieces, as they come or of `chunk_size` bytes each."""
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
        """The body in lines, without their ends; LF or CR LF ends one."""
        decoder = LineDecoder()
        async for text in self.aiter_text():
            for line in decoder.decode(text):
                yield line
        for line in decoder.flush():
            yield line

    async def aread(self) -> bytes:
        """The whole body, which ``content``, ``text`` and ``json`` have afterwards.

        Cancelling it loses nothing.

        :raises InvalidState: when the body was taken in pieces before.
        :raises RealtimeError: when not all of it came, however often it is called.
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
            await self._client._wait(call)


class RESTClient(BaseRESTClient):
    """Requests with retries: ``async with RESTClient("https://example.org/api") as client``.

    It lives on the asyncio loop that runs at the first request, and belongs to that loop's thread.
    """

    _reactor: Reactor | None = None

    def _join(self) -> Handle:
        reactor = self._find_reactor()
        handle = reactor.handle
        if handle is None:
            raise RuntimeError("the reactor was given back")
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
        return super()._live()

    async def request(
        self,
        method: str,
        path: str,
        **options: Unpack[RequestKeywords],
    ) -> RESTResponse:
        """Sends a request and waits for its answer; cancelling the wait cancels the request.

        :param path: below the client's base URL, or a whole URL.
        :param params: the query: a mapping or pairs, where a list gives a name several values and
            None leaves it out; or a str or bytes, as ``a=b&c=d``. Goes before the client's of its
            names, as do ``headers`` and ``cookies``.
        :param headers: a mapping or pairs. Behind ``Expect: 100-continue`` the body is sent when
            the server asks for it, or has said nothing for a second, and stays here when it answers
            300 or more instead.
        :param cookies: a mapping.
        :param auth: user and password, in the place of the client's; or ``bearer_token``.
        :param json: a body that becomes JSON.
        :param data: a body that becomes a form, given as ``params`` is.
        :param content: a body: str, bytes, a file, or an iterable or asynchronous iterable of
            bytes. A request whose body was begun to be sent is tried again only if that can begin
            anew: str, bytes and seekable files. Of a seekable file of bytes as much is sent as it
            has from its position on when the request is made: what is appended later is left out,
            and one that becomes shorter raises InvalidArgument.
        :param content_type: of the body. Default: by what was given, none for bytes.
        :param on_progress: called with the bytes of bodies sent, to send, received, to receive; a
            total is 0 while it is not known.
        :param timeout: and ``deadline``, ``queue_ttl``, ``attempts``, ``ordered``,
            ``retry_unsafe``, ``max_redirects``, ``max_body_size``: in the place of the client's. A
            longer ``timeout`` without a ``deadline`` is the deadline, too.
        :param idempotency_key: a key of your own, or True for a random UUID.
        :raises RealtimeError: when no answer came, or not all of it.
        """
        call = self._start(method, path, RequestOptions.of(options, "request"), False)
        try:
            while not call.is_over:
                await self._wait(call)
        except BaseException:
            self._cancel(call)
            raise
        return call.result()

    async def get(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with GET."""
        return await self.request("GET", path, **options)

    async def head(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with HEAD."""
        return await self.request("HEAD", path, **options)

    async def post(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with POST."""
        return await self.request("POST", path, **options)

    async def put(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with PUT."""
        return await self.request("PUT", path, **options)

    async def patch(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with PATCH."""
        return await self.request("PATCH", path, **options)

    async def delete(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with DELETE."""
        return await self.request("DELETE", path, **options)

    async def options(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """As ``request`` with OPTIONS."""
        return await self.request("OPTIONS", path, **options)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        **options: Unpack[RequestKeywords],
    ) -> AsyncIterator[StreamedResponse]:
        """``async with client.stream("GET", path) as response``: the answer while it comes.

        The parameters of ``request``. ``timeout`` is for an attempt until its answer begins, and
        then for the time without a byte; the client's ``deadline`` counts until then, too. The body
        may come for as long as it flows, unless a ``deadline`` is given here. A server that is
        faster than its reader is slowed down. Requests that are ordered, as a POST is, wait until
        the body of one before them has ended, also when they are made inside of it:
        ``ordered=False`` lets them by.
        """
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
        """Ends all requests, which raise ``ConnectionClosedError``, and gives the client back."""
        self._give_back()

    def _give_back(self) -> None:
        self._close()
        if self._reactor is not None:
            self._reactor.remove(self)
            self._reactor = None

    async def __aenter__(self) -> RESTClient:
        self._live()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._reactor is not None:
            self._reactor.was_collected()

    def _start(self, method: str, path: str, options: RequestOptions, streams: bool) -> Call:
        self._live()
        call = self._new_call(lambda: self._changed(call), options.on_progress)
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
        """Nobody waits for a request any more, maybe."""
        if self._reactor is not None and not self._waiters:
            self._reactor.let_go(self)

    # Inside a dispatch.

    def _changed(self, call: Call) -> None:
        if call.is_over:
            self._calls.discard(call)
            if isinstance(call.source, AwaitedSource):
                call.source.stop()
                # It refers to the call, see `Call._end`.
                call.source.resume = lambda: None
        future = self._waiters.get(call)
        if future is not None and not future.done():
            future.set_result(None)

    def _take(self, answer: Any) -> int:
        if not hasattr(answer, "__await__"):
            return super()._take(answer)
        # The loop refers to tasks weakly.
        self._task = asyncio.get_running_loop().create_task(self._fetch(answer))
        return rt_credentials.LATER

    async def _fetch(self, answer: Any) -> None:
        is_fresh = False
        try:
            is_fresh = super()._take(await answer) == rt_credentials.READY
        except Exception as error:
            self._keep(error)
        finally:
            if self._handle is not None:
                lib.rt_rest_credentials_ready(self._handle, is_fresh)

    def _keep(self, error: BaseException) -> None:
        if self._reactor is not None:
            self._reactor.errors.append((self, error))
