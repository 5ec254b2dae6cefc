"""The parameters of a Spreadbot connection, the same for both faces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .._core.backoff import Backoff
from .._core.headers import HeadersLike
from .._core.hints import called
from .._core.network import Network, chosen_network
from .._core.option_tables import SPREADBOT_OPTIONS, SpreadbotKeywords
from .._core.reachability import Reachability
from .._core.values import StrPath
from .._rest.options import Overflow
from .options import (
    Config,
    Handlers,
    OnDisconnected,
    OnError,
    OnMessage,
    OnOpen,
    OnTokens,
    OnTransport,
    Options,
    Transport,
    keywords,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Self = TypeVar("Self", bound="Parameters")


class Parameters:
    """Nothing is sent before ``establish_connection``. A WebSocket is tried first, then server-sent
    events, then long polls; what fails is tried again, what does not work here is left, and while
    a lower leg is in use the WebSocket is asked for from time to time. Each leg begins behind the
    last message of the one before.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param base_url: ``http://`` or ``https://`` without a query; paths are appended to it.
    :param access_token: sent as ``Authorization: Bearer``; ``""``, the default, sends none.
    :param refresh_token: for ``auth_url``. Default ``""``.
    :param auth_url: where a refused access token is refreshed (RFC 6749 §6), once for all that wait
        for it. The answer is waited for up to 30 s; a refresh token whose request is lost, or not
        answered by then, is sent again. Default None: a refusal is fatal.
    :param base64_credentials: base64 of "client:secret", for ``auth_url``. Default ``""``.

    :param on_open: called with the leg (``"websocket"``, ``"sse"``, ``"poll"``) and whether it
        began behind the last id, so that nothing is missing: when it is connected, and again.
    :param on_transport: called with the leg in use when another one is; with None when it is over.
    :param on_error: called with a ``SpreadbotError`` when a leg fails or is lost.
    :param on_message: called with each ``SpreadbotMessage``, in the place of an iteration.
    :param on_tokens: called with access and refresh token when they were refreshed, before they are
        used: keep them for the next run. A coroutine function is begun behind that, while they are
        used already: only what a plain one keeps is kept before.
    :param on_disconnected: called when it is over: with None after ``close_connection``, else with
        the fatal error. It may be established again, here too.

    :param transports: which legs are tried, in this order. Default
        ``("websocket", "sse", "poll")``.
    :param transport_urls: whole URLs of legs, in the place of base URL and path. Default none.
    :param send_url: where sends are posted while there is no WebSocket. Default None: to base URL
        and path.
    :param last_event_id: begins behind the message with this id. Default ``""``.
    :param headers: of every request and handshake: a mapping or pairs. Default None.
    :param log: sends the library's log to the logger ``librealtime``, from INFO on, and to standard
        error where the program has set up no logging. Default False.


    :param queue_overflow: ``"reject_new"`` (the default): the next one raises ``QueueFull``; or
        ``"drop_oldest"``: the one that has waited longest does.
    :param outbox: a file that keeps sends until the server has them: one whose call has begun to
        wait, or has returned, is sent after a crash of the process, too, by the next object with
        this outbox, once that is established; when a connection is lost, or in a crash, maybe
        twice, a POST with the same Idempotency-Key. Cancelling a wait withdraws nothing, and what
        was sent before anything was established is refused. It holds 10,000 sends, and 64 MiB:
        the next one raises ``QueueFull``. Default None: they are kept in memory.
    :param backoff: a ``Backoff`` that delays attempts on one transport, and rounds over all of
        them, in the place of ``max_delay``. Its ``max_attempts`` and ``stable_time`` are not used.
        Default None: by that option.
    :param network: a ``Network``: TLS, proxies, addresses, sockets. Default None: its defaults.
    :param ca_file: a PEM file of certificates to trust instead of the system's; goes before the
        network's. Default None.
    :param proxy: the URL of a proxy, or None for no proxy; goes before the network's. Default True:
        as the network says.
    :param reachability: a ``Reachability``: while it is offline no attempt is made and none is
        counted. Default None: as the kernel tells.
    :param max_queue: how many messages may wait to be taken before receiving pauses. Default 1024.
        A WebSocket confirms a send behind what it sent before: while receiving pauses, a send by
        the task that takes the messages, or with nobody to take them, raises ``BufferFull``. A
        program that wants no messages gives an ``on_message`` that forgets them.
    :param max_queue_bytes: the same by their size. Default 8 MiB.
    """

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {Parameters.__doc__}"

    def __init__(
        self,
        base_url: str,
        *,
        access_token: str = "",
        refresh_token: str = "",
        auth_url: str | None = None,
        base64_credentials: str = "",
        on_open: OnOpen = None,
        on_transport: OnTransport = None,
        on_error: OnError = None,
        on_message: OnMessage = None,
        on_tokens: OnTokens = None,
        on_disconnected: OnDisconnected = None,
        # Where, and from where on.
        transports: Iterable[Transport] = ("websocket", "sse", "poll"),
        transport_urls: Mapping[Transport, str] | None = None,
        send_url: str | None = None,
        last_event_id: str = "",
        headers: HeadersLike | None = None,
        log: bool = False,
        # The network and limits.
        queue_overflow: Overflow = "reject_new",
        outbox: StrPath | None = None,
        backoff: Backoff | None = None,
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        reachability: Reachability | None = None,
        max_queue: int | None = 1024,
        max_queue_bytes: int | None = 2**23,
        **options: Unpack[SpreadbotKeywords],
    ) -> None:
        given = Options(
            base_url, headers, options, chosen_network(network, ca_file, proxy), reachability,
            backoff, max_queue, max_queue_bytes,
            Config(base_url, auth_url, access_token, refresh_token, base64_credentials,
                   queue_overflow, log, outbox),
            transports, transport_urls, send_url, last_event_id,
        )  # fmt: skip
        handlers = Handlers(on_open, on_error, on_message, on_transport, on_tokens, on_disconnected)
        self._make(given, handlers)

    @classmethod
    def from_config(cls: type[Self], config: Mapping[str, Any], **options: Any) -> Self:
        """From a mapping by the original's names: ``baseURL``, ``authURL``, ``accessToken``,
        ``refreshToken``, ``base64Credentials`` and ``log``; None is as if it were not there.

        :param options: further parameters, by the names here; they go before those of `config`.
        :raises InvalidArgument: for another name, or without a baseURL.
        :raises TypeError: for a value that is no str, or a ``log`` that is no bool.
        """
        return cls(**{**keywords(config), **options})

    def _make(self, options: Options, handlers: Handlers) -> None:
        raise NotImplementedError


called("Spreadbot", Parameters, SPREADBOT_OPTIONS)
