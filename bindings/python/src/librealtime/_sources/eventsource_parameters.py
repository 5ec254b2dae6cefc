"""The parameters of an event source, the same for both faces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from .._core.backoff import Backoff
from .._core.headers import HeadersLike
from .._core.hints import called
from .._core.network import Network, chosen_network
from .._core.option_tables import EVENTSOURCE_OPTIONS, EventSourceKeywords
from .._core.reachability import Reachability
from .._core.values import StrPath
from .eventsource_options import (
    Handlers,
    Ids,
    OnComment,
    OnEvent,
    OnStore,
    Options,
)
from .source_options import Credentials, HeaderProvider, OnError, OnOpen, OnRequest

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Parameters:
    """It begins to connect when it is made; events wait for the first handler or iteration.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    :param on_open: called when a stream begins.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails or a stream ends.
    :param on_message: called with each event of the type "message", named or not.
    :param on_any: called with every event, after the listeners of its type. Handlers are given what
        comes from when they are set on. Once ``recv`` or an iteration has begun it is given the
        same events, and while ``max_queue`` of them wait for it none come, to handlers neither.
    :param on_comment: called with each comment, as it is read.
    :param on_request: called with an ``Attempt`` before each attempt, whose URL and headers it may
        change; it closes the event source by returning False.

    :param method: default GET.
    :param content: the body, sent with each attempt. Default None.
    :param headers: a mapping or pairs. Default None.
    :param auth: user and password for a basic Authorization header. Default None.
    :param bearer_token: for an Authorization header. Default None.
    :param header_provider: called with the number of each attempt, from 1 since the last that was
        stable; the headers it returns are laid over the others for that attempt. Default None.
    :param credentials: called with the status when the server answers 401, or the proxy 407, once
        an attempt: returns headers (Proxy-Authorization for the proxy), with which the request is
        sent again, or None, which is fatal. In asyncio it may be a coroutine function. Default
        None.
    :param safe_headers: names of headers that go along to another origin. Default ().

    :param last_event_id: what the first request sends, whatever the id file says. Default None.
    :param id_file: a file that keeps the last id between runs, for any number of event sources and
        processes: an id is kept when its handlers have returned, coroutines too, or the next event
        is asked for, so that a crash repeats events and loses none; of several tasks or threads
        that take events, when each is done with those before it. A file with other content, of
        another user or writable by others, and a symbolic link, are a StoreError and stay as they
        are. Default None.
    :param store_key: under what this one's id is kept, there and by on_store. Default None: its
        URL, the one that it starts with, whatever `on_request` sets.
    :param on_store: called with the key and the id that is to be kept, at most once a second and
        at the end.

    :param retry_statuses: HTTP statuses that it comes back from; ``RESILIENT`` has those that pass.
        Default ().


    :param backoff: a ``Backoff`` that delays attempts, and limits them, in the place of
        ``reconnection_time``, ``max_delay``, ``max_reconnects`` and ``stable_time``; a ``retry``
        field of the server still sets the initial delay. Default None: by those.
    :param network: a ``Network``: TLS, proxies, addresses, sockets. Default None: its defaults.
    :param ca_file: a PEM file of certificates to trust instead of the system's; goes before the
        network's. Default None.
    :param proxy: the URL of a proxy, or None for no proxy; goes before the network's. Default True:
        as the network says.
    :param reachability: a ``Reachability``: while it is offline no attempt is made and none is
        counted. Default None: as the kernel tells.
    :param max_queue: how many events may wait to be taken before receiving pauses. Default 1024.
    :param max_queue_bytes: the same by their size. Default 8 MiB.
    """

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {Parameters.__doc__}"

    def __init__(
        self,
        url: str,
        *,
        on_open: OnOpen = None,
        on_error: OnError = None,
        on_message: OnEvent = None,
        on_any: OnEvent = None,
        on_comment: OnComment = None,
        on_request: OnRequest = None,
        # The request.
        method: str = "GET",
        content: str | bytes | None = None,
        headers: HeadersLike | None = None,
        auth: tuple[str, str] | None = None,
        bearer_token: str | None = None,
        header_provider: HeaderProvider = None,
        credentials: Credentials = None,
        safe_headers: Iterable[str] = (),
        # Ids.
        last_event_id: str | None = None,
        id_file: StrPath | None = None,
        store_key: str | None = None,
        on_store: OnStore = None,
        # Coming back.
        retry_statuses: Iterable[int] = (),
        # The network.
        backoff: Backoff | None = None,
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        reachability: Reachability | None = None,
        max_queue: int | None = 1024,
        max_queue_bytes: int | None = 2**23,
        **options: Unpack[EventSourceKeywords],
    ) -> None:
        given = Options(
            url, headers, options, chosen_network(network, ca_file, proxy), reachability,
            backoff, max_queue, max_queue_bytes, auth, bearer_token, safe_headers, method, content,
            Ids(last_event_id, id_file, store_key, on_store is not None), retry_statuses,
        )  # fmt: skip
        handlers = Handlers(on_open, on_error, on_message, on_request, header_provider, credentials,
                            on_any, on_comment, on_store)  # fmt: skip
        self._make(given, handlers)

    def _make(self, options: Options, handlers: Handlers) -> None:
        raise NotImplementedError


called("EventSource", Parameters, EVENTSOURCE_OPTIONS)
