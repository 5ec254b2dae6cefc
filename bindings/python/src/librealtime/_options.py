"""The options of a connection: checked here as far as C could not see what was meant."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ._abi import rt_status
from ._callbacks import Handle
from ._loader import lib
from .exceptions import check, from_status

Headers = Union[Mapping[str, str], Iterable["tuple[str, str]"]]

#: A hundred years, in milliseconds.
_LONGEST_MS = 100 * 365 * 86400 * 1000
_LARGEST = 2**62


@dataclass(frozen=True)
class Deflate:
    """How messages are compressed (permessage-deflate, RFC 7692); for ``compression=``.

    :param level: 1 (fast) to 9 (small); 0 sends uncompressed and still accepts compressed ones.
    :param min_size: messages of fewer bytes are sent uncompressed.
    :param max_inflate_ratio: how many times its size a message may grow; None: only ``max_size``.
    :param client_max_window_bits: the window of messages sent, 9 to 15.
    :param server_max_window_bits: the window asked of the server, 8 to 15.
    :param client_no_context_takeover: compress each message sent on its own.
    :param server_no_context_takeover: ask the server to do so.
    """

    level: int = 1
    min_size: int = 100
    max_inflate_ratio: int | None = None
    client_max_window_bits: int = 15
    server_max_window_bits: int = 15
    client_no_context_takeover: bool = False
    server_no_context_takeover: bool = False

    def apply(self, websocket: Handle) -> None:
        check(lib.rt_websocket_set_compression(websocket, True))
        level = _number(self.level, "level", 0, 9)
        check(lib.rt_websocket_set_compression_level(websocket, level))
        smallest = _number(self.min_size, "min_size", 0)
        check(lib.rt_websocket_set_compression_min_bytes(websocket, smallest))
        ratio = 0
        if self.max_inflate_ratio is not None:
            ratio = _number(self.max_inflate_ratio, "max_inflate_ratio", 1, 2**31)
        check(lib.rt_websocket_set_max_inflate_ratio(websocket, ratio))
        bits = _number(self.client_max_window_bits, "client_max_window_bits", 9, 15)
        check(lib.rt_websocket_set_client_max_window_bits(websocket, bits))
        bits = _number(self.server_max_window_bits, "server_max_window_bits", 8, 15)
        check(lib.rt_websocket_set_server_max_window_bits(websocket, bits))
        alone = bool(self.client_no_context_takeover)
        check(lib.rt_websocket_set_client_no_context_takeover(websocket, alone))
        alone = bool(self.server_no_context_takeover)
        check(lib.rt_websocket_set_server_no_context_takeover(websocket, alone))


@dataclass(frozen=True)
class Options:
    """What ``connect`` was given, the same for both faces."""

    url: str
    subprotocols: Iterable[str] | None
    additional_headers: Headers | None
    ca_file: str | os.PathLike[str] | None
    open_timeout: float | None
    close_timeout: float | None
    ping_interval: float | None
    ping_timeout: float | None
    max_size: int | None
    max_header_size: int
    max_frame_size: int | None
    max_queue: int | None
    max_queue_bytes: int | None
    write_limit: int
    compression: str | Deflate | None

    def apply(self, websocket: Handle) -> None:
        """Sets everything on a connection that was not started."""
        self._apply_names(websocket)
        for setter, value, name in (
            (lib.rt_websocket_set_open_timeout_ms, self.open_timeout, "open_timeout"),
            (lib.rt_websocket_set_close_timeout_ms, self.close_timeout, "close_timeout"),
            (lib.rt_websocket_set_ping_interval_ms, self.ping_interval, "ping_interval"),
            (lib.rt_websocket_set_pong_timeout_ms, self.ping_timeout, "ping_timeout"),
        ):
            check(setter(websocket, _milliseconds(value, name)))
        check(lib.rt_websocket_set_max_message_bytes(websocket, limit(self.max_size, "max_size")))
        header = _number(self.max_header_size, "max_header_size", 1024)
        check(lib.rt_websocket_set_max_header_bytes(websocket, header))
        frame = limit(self.max_frame_size, "max_frame_size")
        check(lib.rt_websocket_set_max_frame_bytes(websocket, frame))
        mark = _number(self.write_limit, "write_limit", 0)
        check(lib.rt_websocket_set_send_high_water_bytes(websocket, mark))
        # What waits is bounded by write_limit here: send waits, send_nowait refuses.
        check(lib.rt_websocket_set_send_limit_bytes(websocket, 0))
        if self.compression is None:
            check(lib.rt_websocket_set_compression(websocket, False))
        elif isinstance(self.compression, Deflate):
            self.compression.apply(websocket)
        elif self.compression == "deflate":
            Deflate().apply(websocket)
        else:
            raise _invalid(f'compression is {self.compression!r}; "deflate", Deflate() or None')

    def _apply_names(self, websocket: Handle) -> None:
        if isinstance(self.subprotocols, str):
            raise TypeError("subprotocols is a str; a list of str is expected")
        for subprotocol in self.subprotocols or ():
            name = text(subprotocol, "a subprotocol", rt_status.ERROR_INVALID_SUBPROTOCOL)
            check(lib.rt_websocket_add_subprotocol(websocket, name))
        headers: Any = self.additional_headers or ()
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            status = rt_status.ERROR_INVALID_HEADER
            header = text(name, "a header's name", status)
            content = text(value, f"the value of header {name}", status)
            check(lib.rt_websocket_add_header(websocket, header, content))
        if self.ca_file is not None:
            path = os.fsencode(self.ca_file)
            if b"\0" in path:
                raise _invalid("ca_file holds a NUL character")
            check(lib.rt_websocket_set_ca_file(websocket, path))


def text(value: str, what: str, status: int) -> bytes:
    """Encodes what C takes as text up to its first NUL: one inside would cut it silently."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}; a str is expected")
    if "\0" in value:
        raise from_status(status, f"{what} holds a NUL character")
    return encode(value, what)


def encode(value: str, what: str) -> bytes:
    """UTF-8; a str may hold lone surrogates, which have none."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        message = f"{what} has no UTF-8 form: a lone surrogate at index {error.start}"
        raise from_status(rt_status.ERROR_INVALID_UTF8, message) from error


def limit(value: int | None, name: str) -> int:
    """A limit as C spells it: 0 for none."""
    return 0 if value is None else _number(value, name, 1)


def _milliseconds(seconds: float | None, name: str) -> int:
    """A duration as C spells it: 0 for off. Rounded up, so that none becomes 0."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name} is a {type(seconds).__name__}; seconds or None are expected")
    if not 0 < seconds * 1000 <= _LONGEST_MS:
        raise _invalid(f"{name} is {seconds}; a positive number of seconds or None is expected")
    return math.ceil(seconds * 1000)


def _number(value: int, name: str, least: int, most: int = _LARGEST) -> int:
    """ctypes would wrap a number that does not fit."""
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} is a {kind}; a whole number is expected") from None
    if not least <= number <= most:
        range_ = f"{least} or more" if most == _LARGEST else f"{least} to {most}"
        raise _invalid(f"{name} is {number}; {range_} is expected")
    return number


def _invalid(message: str) -> Exception:
    return from_status(rt_status.ERROR_INVALID_ARGUMENT, message)
