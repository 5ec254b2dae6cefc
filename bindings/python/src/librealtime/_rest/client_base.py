"""What the asyncio and the blocking REST client share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.abi import rt_credentials, rt_status
from .._core.awaiting import check_function
from .._core.endpoint import Calling
from .._core.errors import InvalidState, RealtimeError, check
from .._core.handle import Handle, new
from .._core.loader import lib
from .._core.naming import kind_of
from .._core.parameters import Configured, Setup
from .._core.values import strings, text, user_and_password, without_userinfo
from . import callbacks as c
from .call import Call, Source, check_fresh
from .client_options import OPTIONS, Credential, Keywords
from .options import ClientOptions, RequestKeywords, RequestOptions, check_params

if TYPE_CHECKING:
    from typing_extensions import Unpack


#: The result of a request, and of a streamed one; with asyncio both are awaited.
Answer = TypeVar("Answer")
Stream = TypeVar("Stream")


@OPTIONS.shown_by("RESTClient")
class BaseRESTClient(Calling, Configured, Generic[Answer, Stream]):
    """
    Durations are in seconds, sizes in bytes. A request is retried when that is safe: after an error
    before it was sent and after 408, 429 and 503; if its method is idempotent or it has an
    Idempotency-Key, also after a lost connection, a timeout, 425, 500, 502, 504, 520 to 524 and
    530. Without a network, requests wait in a queue. All methods except GET and HEAD are sent one
    after the other, in the order of the calls. A response of any status is returned (see
    ``raise_for_status``); a failure without a response is raised.

    The client's ``headers``, ``params``, ``cookies`` and credential go to its base URL's origin.

    :param base_url: the URL that paths are resolved against; user and password in it become a basic
        Authorization header of all requests to its origin. Default None: requests need whole URLs.
    """

    _loop_handle: Handle | None
    # What `credentials` raised when it was last called.
    _no_credentials: Exception | None = None
    # Whether `credentials` returned None when it was last called.
    _has_none = False

    def __init__(self, base_url: str | None = None, **options: Unpack[Keywords]) -> None:
        self._handle: Handle | None = None
        self._is_closed = False
        self._calls: set[Call] = set()
        self._given = given = OPTIONS.complete(options)
        check_function(given["credentials"], "credentials")
        check_params(given["params"])
        origins = strings(given["credential_origins"], "credential_origins")
        self._options = ClientOptions(base_url, given["params"], given["cookies"], origins)
        self._prepare()

    def _prepare(self) -> None:
        """Called at the end of the constructor; overridden by subclasses."""

    @property
    def base_url(self) -> str | None:
        """The URL as given, without user and password."""
        url = self._options.base_url
        return None if url is None else without_userinfo(url)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _make(self, loop: Handle) -> Handle:
        """Creates the client in C, with all options set."""
        url = self._options.base_url
        base = None if url is None else text(url, "base_url", rt_status.ERROR_INVALID_URL)
        handle = c.REST.make(loop, base)
        OPTIONS.apply(Setup(c.REST, handle, loop), self._given)
        if self._given["credentials"] is not None:
            c.REST.attach(self, handle, (c.ON_CREDENTIALS,))
        return handle

    def _join(self) -> Handle:
        raise NotImplementedError

    def _revive(self) -> None:
        """Does nothing: calls are revived one by one."""

    def _live(self) -> Handle:
        handle = self._handle
        if handle is None or self._is_closed:
            # Another thread that closes the client sets this before it removes the handle.
            if self._is_closed:
                raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
            self._handle = handle = self._join()
        return handle

    def set_bearer_token(self, token: str | None) -> None:
        """For all requests without their own Authorization, from their next attempt on."""
        _set_credential(self._live(), token)

    def set_auth(self, user: str, password: str) -> None:
        """Like ``set_bearer_token``, with a user and a password (RFC 7617)."""
        _set_credential(self._live(), (user, password))

    # Requests.

    def request(self, method: str, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Sends a request and waits for its response. With asyncio, cancelling the wait cancels the
        request.

        :param path: below the client's base URL, or a whole URL.
        :param params: the query: a mapping or pairs, where a list gives a name several values and
            None omits it; or a str or bytes such as ``a=b&c=d``. Like ``headers`` and ``cookies``,
            they override the client's of the same name.
        :param headers: a mapping or pairs. With ``Expect: 100-continue`` the body is sent when the
            server asks for it or has not answered for a second; it is not sent if the server
            answers 300 or more instead.
        :param cookies: a mapping.
        :param auth: user and password; overrides the client's. Or ``bearer_token``.
        :param json: a body to send as JSON.
        :param data: a body to send as a form, in the forms of ``params``.
        :param content: a body: str, bytes, a file, or an iterable of bytes; with asyncio also an
            asynchronous iterable. After some of the body was sent, a request is only retried if the
            body can be read again: str, bytes and seekable files. Of a seekable file, the bytes
            from its position to its end at the time of the call are sent: bytes appended later are
            left out, and a file that becomes shorter raises InvalidArgument.
        :param content_type: the body's. Default: according to the kind of body, none for bytes.
        :param on_progress: called with the bytes of bodies sent, to send, received, to receive; a
            total is 0 while it is unknown.
        :param on_retry: called when an attempt has failed and another follows: with the exception,
            whose ``response`` is the one that refused the attempt, if any, without its body; the
            delay in seconds before the next attempt; and its number, from 2. Also called once each
            time that the request begins to wait for a network: the delay is then None.
        :param timeout: like ``deadline``, ``queue_ttl``, ``attempts``, ``ordered``,
            ``retry_unsafe``, ``max_redirects`` and ``max_body_size``: overrides the client's. A
            longer ``timeout`` without a ``deadline`` is also the deadline.
        :param idempotency_key: your own key, or True for a random UUID.
        :raises RealtimeError: if there was no response, or an incomplete one.
        """
        return self._request(method, path, options)

    def get(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with GET."""
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with HEAD."""
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with POST."""
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with PUT."""
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with PATCH."""
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with DELETE."""
        return self.request("DELETE", path, **options)

    def options(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """Like ``request`` with OPTIONS."""
        return self.request("OPTIONS", path, **options)

    def stream(self, method: str, path: str, **options: Unpack[RequestKeywords]) -> Stream:
        """``with client.stream("GET", path) as response``, in asyncio ``async with``: provides the
        response while it arrives.

        The parameters are those of ``request``. Until the response begins, ``timeout`` limits an
        attempt and the client's ``deadline`` counts; then ``timeout`` limits the time without a
        byte. The body may take as long as bytes flow, unless a ``deadline`` is passed here. A slow
        reader slows the server down. Ordered requests, such as a POST, wait until the body of the
        previous one has ended, even if they are made inside its block; ``ordered=False`` avoids
        this.
        """
        return self._stream(method, path, options)

    def _request(self, method: str, path: str, options: RequestKeywords) -> Answer:
        raise NotImplementedError

    def _stream(self, method: str, path: str, options: RequestKeywords) -> Stream:
        raise NotImplementedError

    def _new_source(self, content: Any) -> Source:
        # Of a mapping only the keys would be sent.
        is_readable = hasattr(content, "read") or hasattr(content, "__iter__")
        if isinstance(content, Mapping) or not is_readable:
            kind = kind_of(content)
            raise TypeError(f"content is {kind}; str, bytes, a file or an iterable is expected")
        check_fresh(content)
        return Source(content)

    def _send(
        self, call: Call, method: str, path: str, options: RequestOptions, streams: bool
    ) -> None:
        """Sends a request; `call` says when it is over."""
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
        # Added before it is sent: while calls exist, a close in another thread keeps the loop.
        self._calls.add(call)
        none = c.NO_DESTROY
        try:
            self._set_callbacks(request, call, key, streams)
            number = ctypes.byref(call.number)
            check(lib.rt_rest_request_send(request, c.DONE, key, none, number, None))
        except BaseException:
            # An interrupt may arrive after the request was sent.
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
        if call.on_retry is not None:
            check(lib.rt_rest_request_on_retry(request, c.RETRY, key, none))
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
        """Called when the loop itself failed."""
        self._is_closed = True
        for call in list(self._calls):
            call.failed(error)

    # Called during a dispatch.

    def _asked(self) -> int:
        """Called when fresh credentials are needed."""
        self._has_none, self._no_credentials = False, None
        try:
            return self._take(self._given["credentials"]())
        except Exception as error:
            self._credentials_failed(error)
            return rt_credentials.NONE

    def _credentials_failed(self, error: Exception) -> None:
        """Fails the requests that wait for credentials, and no other call."""
        self._no_credentials = error

    def _take(self, answer: Any) -> int:
        credential: Credential = answer
        self._has_none = credential is None
        if credential is None or self._handle is None:
            return rt_credentials.NONE
        _set_credential(self._handle, credential)
        return rt_credentials.READY

    def _keep(self, error: BaseException) -> None:
        raise NotImplementedError

    def _new_call(self, changed: Callable[[], None], options: RequestOptions) -> Call:
        call = Call(changed, self._keep, on_progress=options.on_progress, on_retry=options.on_retry)
        call.is_refused = lambda: self._has_none
        call.no_credentials = lambda: self._no_credentials
        return call


def _set_credential(rest: Handle, credential: Credential) -> None:
    if credential is None:
        check(lib.rt_rest_set_bearer_token(rest, None))
    elif isinstance(credential, str):
        token = text(credential, "bearer_token", rt_status.ERROR_INVALID_HEADER)
        check(lib.rt_rest_set_bearer_token(rest, token))
    else:
        check(lib.rt_rest_set_basic_auth(rest, *user_and_password(credential, "the credential")))
