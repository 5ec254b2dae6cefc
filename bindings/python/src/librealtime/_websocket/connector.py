"""The parameters of ``connect``, the same for asyncio and blocking programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.awaiting import check_function, handlers_of, plain
from .._core.backoff import Backoff
from .._core.naming import kind_of
from .._core.parameters import Configured
from .._core.reconnect import Retries
from .._core.values import invalid
from .options import OPTIONS, Keywords

if TYPE_CHECKING:
    from typing_extensions import Unpack


@OPTIONS.shown_by("connect")
class Connector(Configured):
    """Durations are in seconds, sizes in bytes. Where an option accepts None, None switches it off.

    Handlers are also attributes of the connection, which may be set at any time.

    :param url: ``ws://`` or ``wss://``; a user and password in it become a basic Authorization.
    """

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        self._url = url
        self._given = given = OPTIONS.complete(options)
        takers = (given["on_message"], given["on_messages"], given["streaming"] or None)
        if takers.count(None) < 2:
            raise invalid("on_message, on_messages and streaming exclude each other; give one")
        needy = ["on_lost", "on_reconnect", "retry_statuses", "reachability", "offline_queue"]
        needy.append("reconnect_after_normal_close")
        if given["reconnect"] is None and any(given.get(name) for name in needy):
            raise invalid(f"{', '.join(needy[:-1])} and {needy[-1]} need reconnect")
        handlers_of(given, (*OPTIONS.handlers, "credentials"))
        if given["process_exception"] is None:
            raise TypeError("process_exception is None; a function is expected")
        check_function(plain(given["process_exception"], "process_exception"), "process_exception")
        delays = given["reconnect_delays"]
        if not isinstance(delays, Backoff):
            raise TypeError(f"reconnect_delays is {kind_of(delays)}; a Backoff is expected")

    def _retries(self) -> Retries:
        return Retries(self._given["reconnect_delays"], self._given["process_exception"])
