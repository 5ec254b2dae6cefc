"""What both faces of the REST_OPTIONS client share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from .._core.abi import rt_credentials, rt_status
from .._core.awaiting import Calling
from .._core.backoff import Backoff
from .._core.errors import InvalidState, RealtimeError, check
from .._core.handle import Handle, new
from .._core.headers import HeadersLike
from .._core.hints import called
from .._core.loader import lib
from .._core.network import Network, chosen_network
from .._core.option_tables import REST_OPTIONS, RESTKeywords
from .._core.reachability import Reachability
from .._core.registry import Registration
from .._core.values import StrPath, strings, text, without_userinfo
from . import callbacks as c
from .call import Call, OnProgress, Source, check_fresh
from .options import (
    ClientOptions,
    Credential,
    CredentialSource,
    Overflow,
    Params,
    RequestOptions,
    set_credential,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class BaseRESTClient(Calling):
    """
    Durations are in seconds, sizes in bytes. A request is tried again when that is safe: after an
    error that came before it was sent, after 408, 429 and 503, and, if its method is idempotent or
    it has an Idempotency-Key, after a connection that broke, a time that ran out, 425, 500, 502 and
    504. Without a network requests wait in a queue. All but GET and HEAD are sent one after the
    other, in the order they were asked for. An answer of any status is returned
    (``raise_for_status``); what brings no answer is raised.

    :param base_url: what paths are resolved against; user and password in it become a basic
        Authorization header of all requests to its origin. Default None: requests name whole URLs.
    :param headers: sent with every request to the base URL's origin. Default none.
    :param params: of the query of every request to the base URL's origin, as a request's. Default
        none.
    :param cookies: names and values of the Cookie header. None is kept from an answer. Default
        none.
    :param credential_origins: origins beside the base URL's that receive the client's own
        credential, headers, cookies and params, such as ``"https://files.example.org"``; ``"*"``
        for all. A request that names the URL of another origin sends it only headers that reveal
        nothing (see ``safe_headers``) and the request's own. Default none; a client without a base
        URL and without any of these sends them to each URL it is given.
    :param auth: user and password (RFC 7617). Default None.
    :param bearer_token: a token (RFC 6750). Default None.
    :param credentials: called once when they were refused with 401, however many requests wait: it
        returns a token, or user and password (with asyncio it may be a coroutine function), and the
        requests go out once more; or None when there are none, and the 401 is the answer, as it is
        when these are refused, too. A coroutine may fetch them by a request of the same client,
        best with an Authorization of its own, and with ``ordered=False``: it would wait behind an
        ordered one that was refused. Refused itself, it waits as the others do, until its deadline.
        Default None.
    :param base_delay: before the second attempt, of which a random half to whole is waited.
        Default 1.
    :param delay_factor: by how much each further delay is longer. Default 2.
    :param max_delay: the longest of them. Default 30.
    :param jitter: ``"equal"`` (the default), ``"full"``, ``"decorrelated"`` or ``"none"``.
    :param backoff: a ``Backoff`` in the place of these four; its ``max_attempts`` and
        ``stable_time`` are not used. Default None.
    :param max_retry_after: the longest Retry-After that is waited for; an answer that asks for more
        is given at once. Default 60; None for no limit but ``deadline``.
    :param queue_overflow: ``"reject_new"`` (the default): the next raises ``QueueFull``; or
        ``"drop_oldest"``: the one that has waited longest does.
    :param ordered: whether requests are sent one after the other. Default None: all but GET and
        HEAD.
    :param safe_headers: names of headers that another origin may see, too. Default none.
    :param network: how connections are made. Default ``Network()``.
    :param ca_file: short for ``Network(ca_file=…)``.
    :param proxy: short for ``Network(proxy=…)``.
    :param reachability: who says whether there is a network. Default None: the kernel.
    """

    _loop_handle: Handle | None
    # Whether `credentials` had none when it was asked last.
    _has_none = False

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {BaseRESTClient.__doc__}"

    def __init__(
        self,
        base_url: str | None = None,
        *,
        headers: HeadersLike | None = None,
        params: Params = None,
        cookies: Mapping[str, str] | None = None,
        credential_origins: Iterable[str] = (),
        auth: tuple[str, str] | None = None,
        bearer_token: str | None = None,
        credentials: CredentialSource = None,
        # Attempts.
        base_delay: float = 1,
        delay_factor: float = 2,
        max_delay: float = 30,
        jitter: Literal["none", "equal", "full", "decorrelated"] = "equal",
        backoff: Backoff | None = None,
        max_retry_after: float | None = 60,
        # The queue.
        queue_overflow: Overflow = "reject_new",
        ordered: bool | None = None,
        safe_headers: Iterable[str] = (),
        # The network.
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        reachability: Reachability | None = None,
        **options: Unpack[RESTKeywords],
    ) -> None:
        self._handle: Handle | None = None
        self._is_closed = False
        self._calls: set[Call] = set()
        self._credentials = credentials
        origins = strings(credential_origins, "credential_origins")
        self._options = ClientOptions(
            base_url, headers, params, cookies, origins, auth, bearer_token,
            base_delay, delay_factor, max_delay, jitter, backoff, max_retry_after, queue_overflow,
            ordered, safe_headers, options, chosen_network(network, ca_file, proxy), reachability,
        )  # fmt: skip
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
        self._options.apply(handle, loop)
        if self._credentials is not None:
            c.REST.set_callback(Registration(self), handle, c.ON_CREDENTIALS)
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
        set_credential(self._live(), token)

    def set_auth(self, user: str, password: str) -> None:
        """As ``set_bearer_token``, with a user and a password (RFC 7617)."""
        set_credential(self._live(), (user, password))

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
        assert self._credentials is not None
        self._has_none = False
        return self._take(self._credentials())

    def _take(self, answer: Any) -> int:
        credential: Credential = answer
        self._has_none = credential is None
        if credential is None or self._handle is None:
            return rt_credentials.NONE
        set_credential(self._handle, credential)
        return rt_credentials.READY

    def _keep(self, error: BaseException) -> None:
        raise NotImplementedError

    def _new_call(self, changed: Callable[[], None], on_progress: OnProgress) -> Call:
        call = Call(changed, self._keep, on_progress=on_progress)
        call.is_refused = lambda: self._has_none
        return call


called("RESTClient", BaseRESTClient, REST_OPTIONS)
