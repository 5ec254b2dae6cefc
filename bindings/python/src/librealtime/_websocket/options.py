"""The options of a connection, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._core.abi import rt_status
from .._core.backoff import Backoff
from .._core.headers import USER_AGENT, HeadersLike, cookie_header, header
from .._core.naming import kind_of, written
from .._core.option_tables import WEBSOCKET_OPTIONS, WebSocketKeywords
from .._core.parameters import Given, Options, Setup
from .._core.reconnect import (
    CredentialSource,
    OnLost,
    OnReconnect,
    ProcessException,
    process_exception,
)
from .._core.shared_options import (
    CREDENTIAL,
    REDIRECTS,
    ROUTE,
    CredentialKeywords,
    RedirectKeywords,
    RouteKeywords,
)
from .._core.values import invalid, number, numbers, pairs, text, texts
from .state import OnMessage, OnMessages

_HEADER = rt_status.ERROR_INVALID_HEADER


@dataclass(frozen=True)
class Deflate:
    """How messages are compressed (permessage-deflate, RFC 7692); for ``compression=``.

    :param level: 1 (fast, the default) to 9 (small); 0 sends uncompressed and still accepts
        compressed messages.
    :param memory_level: 1 to 9. With a window of w bits, a connection that has compressed a message
        uses 2^(w+2) + 2^(level+9) bytes, where level is the memory level. Default 8.
    :param min_size: messages of fewer bytes are sent uncompressed. Default 100.
    :param max_inflate_ratio: the largest ratio of a message's decompressed to its compressed size.
        Default None: limited only by ``max_size``.
    :param client_max_window_bits: the window of messages sent, 9 to 15. Default 15.
    :param server_max_window_bits: the window requested of the server, 8 to 15. Default 15.
    :param client_no_context_takeover: compress each sent message on its own. Default False.
    :param server_no_context_takeover: request the same of the server. Default False.
    """

    level: int = 1
    min_size: int = 100
    max_inflate_ratio: int | None = None
    client_max_window_bits: int = 15
    server_max_window_bits: int = 15
    client_no_context_takeover: bool = False
    server_no_context_takeover: bool = False
    memory_level: int = 8

    def apply(self, setup: Setup) -> None:
        setup.set_compression(True)
        setup.set_compression_level(number(self.level, "level", 0, 9))
        setup.set_compression_memory_level(number(self.memory_level, "memory_level", 1, 9))
        setup.set_compression_min_bytes(number(self.min_size, "min_size", 0))
        ratio = 0
        if self.max_inflate_ratio is not None:
            ratio = number(self.max_inflate_ratio, "max_inflate_ratio", 1, 2**31)
        setup.set_max_inflate_ratio(ratio)
        bits = number(self.client_max_window_bits, "client_max_window_bits", 9, 15)
        setup.set_client_max_window_bits(bits)
        bits = number(self.server_max_window_bits, "server_max_window_bits", 8, 15)
        setup.set_server_max_window_bits(bits)
        setup.set_client_no_context_takeover(bool(self.client_no_context_takeover))
        setup.set_server_no_context_takeover(bool(self.server_no_context_takeover))


class Keywords(CredentialKeywords, RedirectKeywords, RouteKeywords, WebSocketKeywords, total=False):
    """All options of ``connect``.

    :param on_message: called with each message while the loop is dispatched, instead of ``recv``.
        With asyncio, what it raises goes to the loop's exception handler. There, ``on_message``,
        ``on_messages`` and ``on_lost`` may be coroutine functions; their calls are awaited one
        after the other, and receiving pauses while ``max_queue`` messages wait for their turn.
    :param on_messages: the same with a list of all messages of one read: the fastest way.
    :param on_lost: called with a ``Lost`` when the connection will be made again (``reconnect``). A
        wait for a network is reported once, by that or by an RT_ERROR_CONNECT.
    :param on_reconnect: called with an ``Attempt`` at the end of each wait for one. It may change
        URL and headers, and ends the connection by returning False or raising. With asyncio it may
        be a coroutine function; the attempt waits for it.
    :param credentials: called with the status when the server refuses the handshake with 401 or
        403, or the proxy with 407, once an attempt, also without ``reconnect``. It returns headers
        for repeating the handshake (Proxy-Authorization for the proxy), which replace those of the
        same names, or None, which is fatal. With asyncio it may be a coroutine function. Default
        None.
    :param retry_statuses: further HTTP statuses of a refused handshake, 400 to 599 except 401 and
        407, after which a connection with ``reconnect`` tries again. Default ().
    :param subprotocols: offered in this order. Default None.
    :param origin: the Origin header. Default None.
    :param additional_headers: a mapping or pairs, for the handshake. Default None.
    :param user_agent_header: default ``librealtime/`` and the version.
    :param cookies: names and values of the Cookie header. Default None.
    :param compression: ``"deflate"`` (the default), a ``Deflate`` with its settings, or None.
    :param streaming: messages come in pieces, for ``recv_streaming``. Default False.
    :param max_queue: how many messages may be queued before receiving pauses; the messages of one
        read may exceed this. Default 256.
    :param max_queue_bytes: the same, by size. Default 1 MiB.
    :param write_limit: how many bytes may wait to be sent, with or without a connection, before
        ``send`` waits and ``send_nowait`` raises ``BufferFull``. Default 256 KiB.
    :param reconnect: a ``Backoff``. The same object connects again when the connection is lost or
        cannot be made; messages sent before a loss are not sent again. Default None.
    :param offline_queue: how many messages, up to ``write_limit`` bytes, may wait while there is no
        connection; above, ``send`` waits until they are sent and ``send_nowait`` raises
        ``BufferFull``. Default 0: both raise ``InvalidState``.
    :param reconnect_delays: a ``Backoff`` for iterating over connections. Default ``Backoff()``.
    :param process_exception: decides, when iterating, whether to try again: it is called with the
        exception and returns None to do so, or the exception to raise.
    """

    on_message: OnMessage
    on_messages: OnMessages
    on_lost: OnLost
    on_reconnect: OnReconnect
    credentials: CredentialSource
    retry_statuses: Iterable[int]
    subprotocols: Iterable[str] | None
    origin: str | None
    additional_headers: HeadersLike | None
    user_agent_header: str
    cookies: Mapping[str, str] | None
    compression: str | Deflate | None
    streaming: bool
    max_queue: int | None
    max_queue_bytes: int | None
    write_limit: int
    reconnect: Backoff | None
    offline_queue: int
    reconnect_delays: Backoff
    process_exception: ProcessException


def _set_handshake(setup: Setup, given: Given) -> None:
    status = rt_status.ERROR_INVALID_SUBPROTOCOL
    for subprotocol in texts(given["subprotocols"] or (), "subprotocols", status):
        setup.add_subprotocol(subprotocol)
    if given["user_agent_header"] != USER_AGENT:
        setup.set_user_agent(text(given["user_agent_header"], "user_agent_header", _HEADER))
    for name, value in pairs(given["additional_headers"], "additional_headers"):
        setup.add_header(*header(name, value, "additional_headers"))
    if given["origin"] is not None:
        setup.set_origin(text(given["origin"], "origin", _HEADER))
    if given["cookies"]:
        setup.set_cookie(cookie_header(given["cookies"]))


def _set_messages(setup: Setup, given: Given) -> None:
    setup.set_send_high_water_bytes(number(given["write_limit"], "write_limit", 0))
    # Here, write_limit bounds unsent messages: send waits, send_nowait raises.
    setup.set_send_limit_bytes(0)
    compression = given["compression"]
    if compression is None:
        setup.set_compression(False)
    elif isinstance(compression, Deflate):
        compression.apply(setup)
    elif compression != "deflate":  # which is C's default
        wanted = '"deflate", Deflate() or None is expected'
        raise invalid(f"compression is {written(compression)}; {wanted}")


def _set_reconnect(setup: Setup, given: Given) -> None:
    for status in numbers(given["retry_statuses"], "retry_statuses", 400, 599):
        setup.add_retry_status(status)
    queue = number(given["offline_queue"], "offline_queue", 0)
    if queue:
        setup.set_offline_queue(queue)
    backoff = given["reconnect"]
    if backoff is not None:
        if not isinstance(backoff, Backoff):
            kind = kind_of(backoff)
            raise TypeError(f"reconnect is {kind}; a Backoff is expected")
        setup.set_reconnect(backoff.make())


OPTIONS = Options(
    Keywords,
    _set_handshake,
    _set_messages,
    _set_reconnect,
    shared=(CREDENTIAL, REDIRECTS, ROUTE),
    plain=WEBSOCKET_OPTIONS,
    user_agent_header=USER_AGENT,
    compression="deflate",
    streaming=False,
    max_queue=256,
    max_queue_bytes=2**20,
    write_limit=2**18,
    offline_queue=0,
    retry_statuses=(),
    reconnect_delays=Backoff(),
    process_exception=process_exception,
)
