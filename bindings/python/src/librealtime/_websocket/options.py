"""The options of a connection, in groups, each of which sets itself on a connection of C's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.abi import rt_status
from .._core.backoff import Backoff
from .._core.errors import check
from .._core.handle import Handle
from .._core.headers import USER_AGENT, HeadersLike, cookie_header, header
from .._core.loader import lib
from .._core.network import Network
from .._core.option_tables import WEBSOCKET_OPTIONS
from .._core.reachability import Reachability, on_loop
from .._core.values import invalid, number, pairs, strings, text, user_and_password

_HEADER = rt_status.ERROR_INVALID_HEADER


@dataclass(frozen=True)
class Deflate:
    """How messages are compressed (permessage-deflate, RFC 7692); for ``compression=``.

    :param level: 1 (fast, the default) to 9 (small); 0 sends uncompressed and still accepts
        compressed ones.
    :param memory_level: 1 to 9: with a window of w bits a connection holds 2^(w+2) + 2^(level+9)
        bytes once it has compressed a message. Default 8.
    :param min_size: messages of fewer bytes are sent uncompressed. Default 100.
    :param max_inflate_ratio: how many times its size a message may grow. Default None: only
        ``max_size`` counts.
    :param client_max_window_bits: the window of messages sent, 9 to 15. Default 15.
    :param server_max_window_bits: the window asked of the server, 8 to 15. Default 15.
    :param client_no_context_takeover: compress each message sent on its own. Default False.
    :param server_no_context_takeover: ask the server to do so. Default False.
    """

    level: int = 1
    min_size: int = 100
    max_inflate_ratio: int | None = None
    client_max_window_bits: int = 15
    server_max_window_bits: int = 15
    client_no_context_takeover: bool = False
    server_no_context_takeover: bool = False
    memory_level: int = 8

    def apply(self, websocket: Handle) -> None:
        check(lib.rt_websocket_set_compression(websocket, True))
        level = number(self.level, "level", 0, 9)
        check(lib.rt_websocket_set_compression_level(websocket, level))
        level = number(self.memory_level, "memory_level", 1, 9)
        check(lib.rt_websocket_set_compression_memory_level(websocket, level))
        smallest = number(self.min_size, "min_size", 0)
        check(lib.rt_websocket_set_compression_min_bytes(websocket, smallest))
        ratio = 0
        if self.max_inflate_ratio is not None:
            ratio = number(self.max_inflate_ratio, "max_inflate_ratio", 1, 2**31)
        check(lib.rt_websocket_set_max_inflate_ratio(websocket, ratio))
        bits = number(self.client_max_window_bits, "client_max_window_bits", 9, 15)
        check(lib.rt_websocket_set_client_max_window_bits(websocket, bits))
        bits = number(self.server_max_window_bits, "server_max_window_bits", 8, 15)
        check(lib.rt_websocket_set_server_max_window_bits(websocket, bits))
        alone = bool(self.client_no_context_takeover)
        check(lib.rt_websocket_set_client_no_context_takeover(websocket, alone))
        alone = bool(self.server_no_context_takeover)
        check(lib.rt_websocket_set_server_no_context_takeover(websocket, alone))


@dataclass(frozen=True)
class Request:
    """What the handshake says, and how far it is redirected."""

    subprotocols: Iterable[str] | None
    origin: str | None
    additional_headers: HeadersLike | None
    user_agent_header: str
    cookies: Mapping[str, str] | None
    auth: tuple[str, str] | None
    bearer_token: str | None

    def apply(self, websocket: Handle) -> None:
        for subprotocol in strings(self.subprotocols or (), "subprotocols"):
            name = text(subprotocol, "a subprotocol", rt_status.ERROR_INVALID_SUBPROTOCOL)
            check(lib.rt_websocket_add_subprotocol(websocket, name))
        if self.user_agent_header != USER_AGENT:
            agent = text(self.user_agent_header, "user_agent_header", _HEADER)
            check(lib.rt_websocket_set_user_agent(websocket, agent))
        for name, value in pairs(self.additional_headers, "additional_headers"):
            check(lib.rt_websocket_add_header(websocket, *header(name, value)))
        if self.origin is not None:
            check(lib.rt_websocket_set_origin(websocket, text(self.origin, "origin", _HEADER)))
        if self.cookies:
            check(lib.rt_websocket_set_cookie(websocket, cookie_header(self.cookies)))
        self._apply_credentials(websocket)

    def _apply_credentials(self, websocket: Handle) -> None:
        if self.auth is not None and self.bearer_token is not None:
            raise invalid("auth and bearer_token are the same header; give one of them")
        if self.auth is not None:
            check(lib.rt_websocket_set_basic_auth(websocket, *user_and_password(self.auth)))
        if self.bearer_token is not None:
            token = text(self.bearer_token, "bearer_token", _HEADER)
            check(lib.rt_websocket_set_bearer_token(websocket, token))


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, counts of messages; None for no limit."""

    max_queue: int | None
    max_queue_bytes: int | None
    write_limit: int
    offline_queue: int

    def apply(self, websocket: Handle) -> None:
        mark = number(self.write_limit, "write_limit", 0)
        check(lib.rt_websocket_set_send_high_water_bytes(websocket, mark))
        # What waits is bounded by write_limit here: send waits, send_nowait refuses.
        check(lib.rt_websocket_set_send_limit_bytes(websocket, 0))
        queue = number(self.offline_queue, "offline_queue", 0)
        if queue:
            check(lib.rt_websocket_set_offline_queue(websocket, queue))


@dataclass(frozen=True)
class Options:
    """What ``connect`` was given, the same for all faces."""

    url: str
    request: Request
    limits: Limits
    plain: Mapping[str, Any]
    compression: str | Deflate | None
    streaming: bool
    network: Network | None
    reconnect: Backoff | None
    reconnect_after_normal_close: bool
    reachability: Reachability | None

    def apply(self, websocket: Handle, loop: Handle) -> None:
        """Sets everything on a connection that was not started, on its loop."""
        self.request.apply(websocket)
        self.limits.apply(websocket)
        WEBSOCKET_OPTIONS.apply(websocket, self.plain)
        if self.compression is None:
            check(lib.rt_websocket_set_compression(websocket, False))
        elif isinstance(self.compression, Deflate):
            self.compression.apply(websocket)
        elif self.compression == "deflate":
            Deflate().apply(websocket)
        else:
            raise invalid(f'compression is {self.compression!r}; "deflate", Deflate() or None')
        if self.network is not None:
            check(lib.rt_websocket_set_network(websocket, self.network.make()))
        if self.reconnect is not None:
            if not isinstance(self.reconnect, Backoff):
                kind = type(self.reconnect).__name__
                raise TypeError(f"reconnect is a {kind}; a Backoff is expected")
            check(lib.rt_websocket_set_reconnect(websocket, self.reconnect.make()))
            after_normal = self.reconnect_after_normal_close
            check(lib.rt_websocket_set_reconnect_after_normal_close(websocket, after_normal))
        if self.reachability is not None:
            reachability = on_loop(self.reachability, loop)
            check(lib.rt_websocket_set_reachability(websocket, reachability))
