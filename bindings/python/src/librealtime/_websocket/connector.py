"""The parameters of ``connect``, the same for every face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from .._core.awaiting import plain
from .._core.backoff import Backoff
from .._core.headers import USER_AGENT, HeadersLike
from .._core.hints import called
from .._core.network import Network, chosen_network
from .._core.option_tables import WEBSOCKET_OPTIONS, WebSocketKeywords
from .._core.reachability import Reachability
from .._core.reconnect import OnLost, OnReconnect, ProcessException, Retries, process_exception
from .._core.values import StrPath, invalid
from .options import Deflate, Limits, Options, Request
from .state import Handlers, OnMessage, OnMessages

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Connector:
    """Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param url: ``ws://`` or ``wss://``; a user and password in it become a basic Authorization.
    :param on_message: called with each message inside the loop's dispatch, instead of ``recv``. In
        asyncio what it raises goes to the loop's exception handler; it may be a coroutine function,
        as ``on_messages`` and ``on_lost`` may, and then its calls are awaited one after the other,
        ``max_queue`` messages at most waiting for theirs.
    :param on_messages: the same with a list, all messages of one read: the fastest way.
    :param on_lost: called with a ``Lost`` when the connection will be made again (``reconnect``).
    :param on_reconnect: called with an ``Attempt`` before each further attempt, whose URL and
        headers it may change; it ends the connection by returning False, or by raising.

    :param subprotocols: offered in this order. Default None.
    :param origin: the Origin header. Default None.
    :param additional_headers: a mapping or pairs, for the handshake. Default None.
    :param user_agent_header: default ``librealtime/`` and the version.
    :param cookies: names and values of the Cookie header. Default None.
    :param auth: user and password for a basic Authorization header. Default None.
    :param bearer_token: for an Authorization header. Default None.

    :param network: a ``Network``: TLS, proxies, addresses, sockets. Default None: its defaults.
    :param ca_file: a PEM file of certificates to trust instead of the system's; goes before the
        network's. Default None.
    :param proxy: the URL of a proxy, or None for no proxy; goes before the network's. Default True:
        as the network says.


    :param compression: ``"deflate"`` (the default), a ``Deflate`` with its settings, or None.
    :param streaming: messages come in pieces, for ``recv_streaming``. Default False.
    :param max_queue: how many messages may wait to be taken before receiving pauses; one read's
        messages may come on top. Default 256.
    :param max_queue_bytes: the same by their size. Default 1 MiB.
    :param write_limit: how many bytes may wait to be sent, with a connection or without, before
        ``send`` waits and ``send_nowait`` raises ``BufferFull``. Default 256 KiB.

    :param reconnect: a ``Backoff``: the connection is made again when it is lost or cannot be made,
        as one and the same object; what was sent before a loss is not sent again. Default None.
    :param reconnect_after_normal_close: whether ``reconnect`` also applies after the peer closed
        the connection with code 1000. Some servers send that code when they restart. ``close()``
        always ends the connection. Default False.
    :param reachability: a ``Reachability``: while it is offline no attempt to come back is made and
        none is counted. Default None: by what the kernel tells of the network.
    :param offline_queue: how many messages may wait while there is no connection, and up to
        ``write_limit`` bytes; above, ``send`` waits until they are sent and ``send_nowait`` raises
        ``BufferFull``. Default 0: both raise ``InvalidState``.
    :param reconnect_delays: a ``Backoff`` for iterating over connections. Default ``Backoff()``.
    :param process_exception: tells when iterating whether a failure is worth another attempt: it is
        given the exception and returns None, or the exception to raise.
    """

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {Connector.__doc__}"

    def __init__(
        self,
        url: str,
        *,
        on_message: OnMessage = None,
        on_messages: OnMessages = None,
        on_lost: OnLost = None,
        on_reconnect: OnReconnect = None,
        # The request.
        subprotocols: Iterable[str] | None = None,
        origin: str | None = None,
        additional_headers: HeadersLike | None = None,
        user_agent_header: str = USER_AGENT,
        cookies: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        bearer_token: str | None = None,
        # The network.
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        # Messages.
        compression: str | Deflate | None = "deflate",
        streaming: bool = False,
        max_queue: int | None = 256,
        max_queue_bytes: int | None = 2**20,
        write_limit: int = 2**18,
        # Another connection after one that was lost.
        reconnect: Backoff | None = None,
        reconnect_after_normal_close: bool = False,
        reachability: Reachability | None = None,
        offline_queue: int = 0,
        reconnect_delays: Backoff = Backoff(),  # noqa: B008
        process_exception: ProcessException = process_exception,
        **options: Unpack[WebSocketKeywords],
    ) -> None:
        if [on_message, on_messages, streaming or None].count(None) < 2:
            raise invalid("on_message, on_messages and streaming exclude each other")
        needs = on_lost or on_reconnect or offline_queue or reachability
        if reconnect is None and (needs or reconnect_after_normal_close):
            raise invalid(
                "on_lost, on_reconnect, reachability, offline_queue and"
                " reconnect_after_normal_close need reconnect"
            )
        self._handlers = Handlers(on_message, on_messages, on_lost, on_reconnect)
        request = Request(
            subprotocols, origin, additional_headers, user_agent_header, cookies, auth,
            bearer_token,
        )  # fmt: skip
        limits = Limits(
            max_queue, max_queue_bytes, write_limit, offline_queue,
        )  # fmt: skip
        route = chosen_network(network, ca_file, proxy)
        self._options = Options(
            url, request, limits, options, compression, bool(streaming), route, reconnect,
            bool(reconnect_after_normal_close), reachability,
        )  # fmt: skip
        self._reconnect_delays = reconnect_delays
        self._process_exception = plain(process_exception, "process_exception")

    def _retries(self) -> Retries:
        return Retries(self._reconnect_delays, self._process_exception)


called("connect", Connector, WEBSOCKET_OPTIONS)
