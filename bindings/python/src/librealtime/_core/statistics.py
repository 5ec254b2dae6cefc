"""Counters of a connection and of the library's loop."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from .abi import rt_loop_statistics, rt_websocket_statistics
from .errors import check
from .handle import Handle
from .loader import lib


@dataclass(frozen=True)
class Statistics:
    """Counters of a connection since it was made, up to the last turn of the loop.

    :ivar messages_sent: messages passed to the connection.
    :ivar messages_received: complete messages, or messages whose last piece was received.
    :ivar payload_bytes_sent: bytes of the messages sent, before compression.
    :ivar payload_bytes_received: bytes of the messages received, after decompression.
    :ivar wire_bytes_sent: bytes written to the kernel or TLS, without the handshake.
    :ivar wire_bytes_received: bytes read from there, including the handshake's response.
    :ivar pings_sent: by the interval, or by ``ping``.
    :ivar pongs_received: including unsolicited ones.
    :ivar connections: how often it was opened; one more than the reconnections.
    :ivar round_trip: of the last answered ping in seconds; None before the first.
    """

    messages_sent: int
    messages_received: int
    payload_bytes_sent: int
    payload_bytes_received: int
    wire_bytes_sent: int
    wire_bytes_received: int
    pings_sent: int
    pongs_received: int
    connections: int
    round_trip: float | None


@dataclass(frozen=True)
class LoopStatistics:
    """Counters of the library's loop since it was made, up to its last turn.

    :ivar turns: waits that ended.
    :ivar events: descriptors that were ready.
    :ivar jobs: calls from other threads.
    :ivar connections: connections opened, including reconnections.
    :ivar messages_sent: as in ``Statistics``, for all its connections; the others likewise.
    """

    turns: int
    events: int
    jobs: int
    connections: int
    messages_sent: int
    messages_received: int
    payload_bytes_sent: int
    payload_bytes_received: int
    wire_bytes_sent: int
    wire_bytes_received: int


def read_statistics(websocket: Handle) -> rt_websocket_statistics:
    out = rt_websocket_statistics()
    check(lib.rt_websocket_get_statistics(websocket, ctypes.byref(out), ctypes.sizeof(out)))
    return out


def websocket_statistics(raw: rt_websocket_statistics) -> Statistics:
    numbers = _fields(raw)
    microseconds = numbers.pop("round_trip_us")
    return Statistics(**numbers, round_trip=None if microseconds < 0 else microseconds / 1e6)


def loop_statistics(loop: Handle) -> LoopStatistics:
    out = rt_loop_statistics()
    check(lib.rt_loop_get_statistics(loop, ctypes.byref(out), ctypes.sizeof(out)))
    return LoopStatistics(**_fields(out))


def _fields(struct: ctypes.Structure) -> dict[str, int]:
    return {field[0]: getattr(struct, field[0]) for field in struct._fields_}
