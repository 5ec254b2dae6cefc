"""What both faces of the REST client share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.abi import rt_credentials, rt_status
from .._core.endpoint import Calling
from .._core.errors import InvalidState, RealtimeError, check
from .._core.handle import Handle, new
from .._core.loader import lib
from .._core.parameters import Configured, Setup
from .._core.values import strings, text, user_and_password, without_userinfo
from . import callbacks as c
from .call import Call, OnProgress, Source, check_fresh
from .client_options import OPTIONS, Credential, Keywords
from .options import ClientOptions, RequestKeywords, RequestOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


#: What a request gives, and a streamed one: in asyncio both are awaited.
Answer = TypeVar("Answer")
Stream = TypeVar("Stream")


@OPTIONS.shown_by("RESTClient")
class BaseRESTClient(Calling, Configured, Generic[Answer, Stream]):
    """
    Durations are in seconds, sizes in bytes. A request is tried again when that is safe: after an
    error that came before it was sent, after 408, 429 and 503, and, if its method is idempotent or
    it has an Idempotency-Key, after a connection that broke, a time that ran out, 425, 500, 502 and
    504. Without a network requests wait in a queue. All but GET and HEAD are sent one after the
    other, in the order they were asked for. An answer of any status is returned
    (``raise_for_status``); what brings no answer is raised.

    The client's ``headers``, ``params``, ``cookies`` and credential go to its base URL's origin.

    :param base_url: what paths are resolved against; user and password in it become a basic
        Authorization header of all requests to its origin. Default None: requests name whole URLs.
    """

    _loop_handle: Handle | None
    # Whether `credentials` had none when it was asked last.
    _has_none = False

    def __init__(self, base_url: str | None = None, **options: Unpack[Keywords]) -> None:
        self._handle: Handle | None = None
        self._is_closed = False
        self._calls: set[Call] = set()
        self._given = given = OPTIONS.complete(options)
        origins = strings(given["credential_origins"], "credential_origins")
        self._options = ClientOptions(base_url, given["params"], given["cookies"], origins)
        self._prepare()

    def _prepare(self) -> None:
        """For the faces; at the end of the making."""

    @property
    def base_url(self) -> str | None:
        """As it was given, without user and password."""
        url = self._options.base_url
        return None if url is None else without_userinfo(url)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _make(self, loop: Handle) -> Handle:
        """The C interface's client, with all options set."""
        url = self._options.base_url
        base = None if url is None else text(url, "base_url", rt_status.ERROR_INVALID_URL)
        handle = c.REST.make(loop, base)
        OPTIONS.apply(Setup(c.REST, handle, loop), self._given)
        if self._given["credentials"] is not None:
            c.REST.attach(self, handle, (c.ON_CREDENTIALS,))
        return handle

    def _join(self) -> Handle:
        raise NotImplementedError

    def _live(self) -> Handle:
        handle = self._handle
        if handle is None or self._is_closed:
            # Another thread that closes it says so before it takes the handle.
            if self._is_closed:
                raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
            self._handle = handle = self._join()
        return handle

    def set_bearer_token(self, token: str | None) -> None:
        """For all requests that have no Authorization of their own, from their next exchange on."""
        _set_credential(self._live(), token)

    def set_auth(self, user: str, password: str) -> None:
        """As ``set_bearer_token``, with a user and a password (RFC 7617)."""
        _set_credential(self._live(), (user, password))

    # Requests.

    def request(self, method: str, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Sends a request and waits for its answer; in asyncio cancelling the wait cancels it.

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
        :param content: a body: str, bytes, a file, or an iterable of bytes, in asyncio also an
            asynchronous one. A request whose body was begun to be sent is tried again only if that
            can begin anew: str, bytes and seekable files. Of a seekable file of bytes as much is
            sent as it has from its position on when the request is made: what is appended later is
            left out, and one that becomes shorter raises InvalidArgument.
        :param content_type: of the body. Default: by what was given, none for bytes.
        :param on_progress: called with the bytes of bodies sent, to send, received, to receive; a
            total is 0 while it is not known.
        :param timeout: and ``deadline``, ``queue_ttl``, ``attempts``, ``ordered``,
            ``retry_unsafe``, ``max_redirects``, ``max_body_size``: in the place of the client's. A
            longer ``timeout`` without a ``deadline`` is the deadline, too.
        :param idempotency_key: a key of your own, or True for a random UUID.
        :raises RealtimeError: when no answer came, or not all of it.
        """
        return self._request(method, path, options)

    def get(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with GET."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with HEAD."""
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with POST."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with PUT."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with PATCH."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with DELETE."""
        return self.request("DELETE", path, **options)

    def options(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """As ``request`` with OPTIONS."""
        return self.request("OPTIONS", path, **options)

    def stream(self, method: str, path: str, **options: Unpack[RequestKeywords]) -> Stream:
        """``with client.stream("GET", path) as response``, in asyncio ``async with``: the answer
        while it comes.

        The parameters of ``request``. ``timeout`` is for an attempt until its answer begins, and
        then for the time without a byte; the client's ``deadline`` counts until then, too. The body
        may come for as long as it flows, unless a ``deadline`` is given here. A server that is
        faster than its reader is slowed down. Requests that are ordered, as a POST is, wait until
        the body of one before them has ended, also when they are made inside of it:
        ``ordered=False`` lets them by.
        """
        return self._stream(method, path, options)

    def _request(self, method: str, path: str, options: RequestKeywords) -> Answer:
        raise NotImplementedError

    def _stream(self, method: str, path: str, options: RequestKeywords) -> Stream:
        raise NotImplementedError

    def _new_source(self, content: Any) -> Source:
        # Of a mapping the names alone would be sent.
        is_readable = hasattr(content, "read") or hasattr(content, "__iter__")
        if isinstance(content, Mapping) or not is_readable:
            kind = type(content).__name__
            raise TypeError(f"content is a {kind}; str, bytes, a file or an iterable is expected")
        check_fresh(content)
        return Source(content)

    def _send(
        self, call: Call, method: str, path: str, options: RequestOptions, streams: bool
    ) -> None:
        """Sends a request, which is over when `call` says so."""
        handle = self._live()
        where = text(path, "the path", rt_status.ERROR_INVALID_URL)
        verb = text(method, "method")
        request = new(lib.rt_rest_request_new, lib.rt_rest_request_free, handle, verb, where)
        options.apply(request, self._options, path)
        if not options.set_body(request):
            call.source = self._new_source(options.content)
            if options.content_type is not None:
                status = rt_status.ERROR_INVALID_HEADER
                kind = text(options.content_type, "content_type", status)
                check(lib.rt_rest_request_set_header(request, b"Content-Type", kind))
        key = c.add(call)
        # Before it is sent: while there is one, another thread that closes does not take the loop.
        self._calls.add(call)
        none = c.NO_DESTROY
        try:
            self._set_callbacks(request, call, key, streams)
            check(lib.rt_rest_request_send(request, c.DONE, key, none, ctypes.byref(call.number)))
        except BaseException:
            # An interrupt may come after it was sent.
            self._cancel(call)
            self._calls.discard(call)
            c.remove(key)
            raise

    def _set_callbacks(self, request: Handle, call: Call, key: int, streams: bool) -> None:
        none = c.NO_DESTROY
        if call.source is not None:
            rewind = c.REWIND if call.source.can_rewind else c.NO_REWIND
            set_source = lib.rt_rest_request_set_body_source
            length = call.source.length
            check(set_source(request, length, c.SOURCE, rewind, key, none))
        if call.on_progress is not None:
            check(lib.rt_rest_request_on_progress(request, c.PROGRESS, key, none))
        if streams:
            check(lib.rt_rest_request_on_head(request, c.HEAD, key, none))
            check(lib.rt_rest_request_on_body(request, c.BODY, key, none))
            call.pause = lambda paused: self._pause(call, paused)

    def _pause(self, call: Call, paused: bool) -> None:
        if self._handle is not None and not call.is_over:
            (lib.rt_rest_pause if paused else lib.rt_rest_resume)(self._handle, call.number.value)

    def _resume_body(self, call: Call) -> None:
        if self._handle is not None and not call.is_over:
            lib.rt_rest_resume_body(self._handle, call.number.value)

    def _cancel(self, call: Call) -> None:
        if self._handle is not None and call.number.value and not call.is_over:
            lib.rt_rest_cancel(self._handle, call.number.value)

    def _close(self) -> None:
        """Ends all requests, each with RT_ERROR_CLOSED."""
        self._is_closed = True
        if self._handle is not None:
            lib.rt_rest_close(self._handle)
            self._handle = None

    def fail(self, error: RealtimeError) -> None:
        """The loop itself failed."""
        self._is_closed = True
        for call in list(self._calls):
            call.failed(error)

    # Inside a dispatch.

    def _asked(self) -> int:
        """Fresh credentials are wanted."""
        self._has_none = False
        return self._take(self._given["credentials"]())

    def _take(self, answer: Any) -> int:
        credential: Credential = answer
        self._has_none = credential is None
        if credential is None or self._handle is None:
            return rt_credentials.NONE
        _set_credential(self._handle, credential)
        return rt_credentials.READY

    def _keep(self, error: BaseException) -> None:
        raise NotImplementedError

    def _new_call(self, changed: Callable[[], None], on_progress: OnProgress) -> Call:
        call = Call(changed, self._keep, on_progress=on_progress)
        call.is_refused = lambda: self._has_none
        return call


def _set_credential(rest: Handle, credential: Credential) -> None:
    if credential is None:
        check(lib.rt_rest_set_bearer_token(rest, None))
    elif isinstance(credential, str):
        token = text(credential, "bearer_token", rt_status.ERROR_INVALID_HEADER)
        check(lib.rt_rest_set_bearer_token(rest, token))
    else:
        check(lib.rt_rest_set_basic_auth(rest, *user_and_password(credential, "the credential")))
