"""The blocking face of the REST client."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ._abi import rt_status
from ._driven import Driven
from ._registry import Handle, new_loop
from ._rest_base import BaseRESTClient
from ._rest_call import Call, OnProgress
from ._rest_options import DEFAULT, RequestOptions
from ._rest_response import RESTResponse
from .exceptions import InvalidState


class StreamedResponse(RESTResponse):
    """An answer whose body comes while it is taken; ``client.stream`` gives one."""

    _call: Call
    _client: RESTClient
    _is_read = False

    def iter_bytes(self) -> Iterator[bytes]:
        """The body in pieces, as they come."""
        call, client = self._call, self._client
        while True:
            while call.pieces:
                with client._condition:
                    data = call.take()
                yield data
            if call.is_over:
                call.result()
                return
            client._until(lambda: call.is_over or bool(call.pieces))

    def iter_text(self) -> Iterator[str]:
        """The body as text, in pieces that end between characters."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        for data in self.iter_bytes():
            if piece := decoder.decode(data):
                yield piece
        if piece := decoder.decode(b"", True):
            yield piece

    def iter_lines(self) -> Iterator[str]:
        """The body in lines, without their ends; LF or CR LF ends one."""
        rest = ""
        for piece in self.iter_text():
            *lines, rest = (rest + piece).split("\n")
            for line in lines:
                yield line.removesuffix("\r")
        if rest:
            yield rest

    def read(self) -> bytes:
        """The whole body, which ``content``, ``text`` and ``json`` have afterwards."""
        if not self._is_read:
            self._content = b"".join(self.iter_bytes())
            self._is_read = True
        return self._content

    @property
    def content(self) -> bytes:
        if not self._is_read:
            raise InvalidState(rt_status.ERROR_STATE, "the body was not read: call read()")
        return self._content


class RESTClient(Driven, BaseRESTClient):
    """Requests with retries, blocking: ``with RESTClient("https://example.org/api") as client``.

    Any thread may use it, several at once: their requests run side by side. One of those that wait
    drives the client, and there is no thread behind it.
    """

    def __init__(self, base_url: str | None = None, **options: Any) -> None:
        self._loop_handle: Handle | None = None
        self._prepare_driving()
        super().__init__(base_url, **options)
        self._live()

    def _join(self) -> Handle:
        loop = new_loop()
        made = self._make(loop)
        self._loop_handle = loop
        return made

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = DEFAULT,
        content: Any = None,
        content_type: str | None = None,
        on_progress: OnProgress = None,
        **options: Any,
    ) -> RESTResponse:
        """Sends a request and waits for its answer.

        :param path: below the client's base URL, or a whole URL.
        :param json: a body that becomes JSON.
        :param content: a body: str, bytes, a file, or an iterable of bytes. A request whose body
            was begun to be sent is tried again only if that can begin anew: str, bytes and seekable
            files.
        :param content_type: of the body. Default: by what was given, none for bytes.
        :param on_progress: called with the bytes of bodies sent, to send, received, to receive; a
            total is 0 while it is not known.
        :param params: the query: a mapping or pairs; a list gives a name several values, and None
            leaves it out.
        :param headers: in the place of the client's of their names.
        :param timeout: and ``deadline``, ``queue_ttl``, ``attempts``, ``ordered``,
            ``retry_unsafe``, ``max_redirects``, ``max_body_size``: in the place of the client's.
        :param idempotency_key: a key of your own, or True for a random UUID.
        :raises RealtimeError: when no answer came, or not all of it.
        """
        call = self._new_call(lambda: None, on_progress)
        self._send(
            call, method, path, content, json, content_type, RequestOptions(**options), False
        )
        try:
            self._until(lambda: call.is_over)
        finally:
            self._end(call)
        return call.result()

    def get(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with GET."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with HEAD."""
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with POST."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with PUT."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with PATCH."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> RESTResponse:
        """As ``request`` with DELETE."""
        return self.request("DELETE", path, **options)

    @contextlib.contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        json: Any = DEFAULT,
        content: Any = None,
        content_type: str | None = None,
        on_progress: OnProgress = None,
        **options: Any,
    ) -> Iterator[StreamedResponse]:
        """``with client.stream("GET", path) as response``: the answer while it comes.

        The parameters of ``request``; ``timeout`` is for the whole body here, too, so that a long
        one needs a longer one, or None. A server that is faster than its reader is slowed down.
        """
        call = self._new_call(lambda: None, on_progress)
        self._send(call, method, path, content, json, content_type, RequestOptions(**options), True)
        try:
            self._until(lambda: call.is_over or call.response is not None)
            if call.response is None:
                call.result()
            response = StreamedResponse.__new__(StreamedResponse)
            response.__dict__.update(vars(call.response))
            response._call, response._client = call, self
            yield response
        finally:
            self._end(call)

    def close(self) -> None:
        """Ends all requests, which raise ``ConnectionClosedError``, and gives the client back."""
        self._close()

    def __enter__(self) -> RESTClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _end(self, call: Call) -> None:
        self._cancel(call)
        self._calls.discard(call)

    def _take(self, answer: Any) -> int:
        if hasattr(answer, "__await__"):
            if hasattr(answer, "close"):
                answer.close()
            raise TypeError("credentials of a blocking client are given by a plain function")
        return super()._take(answer)

    def _keep(self, error: BaseException) -> None:
        Driven._keep(self, error)
