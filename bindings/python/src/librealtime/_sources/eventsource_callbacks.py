"""From C to an event source: what other sources do not have."""

from __future__ import annotations

from typing import Protocol

from .._core import abi
from .._core.memory import memory, text_at
from .._core.registry import find
from .kind import Callback, Kind

EVENTSOURCE = Kind("eventsource", "event source", "event")


class Target(Protocol):
    """Who is called back, inside a dispatch; `_stores` inside a close, too."""

    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None: ...
    def _commented(self, comment: str) -> None: ...
    def _retried(self, time_ms: int) -> None: ...
    def _stores(self, key: str, id_: str) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def _on_event(
    id_: int,
    id_length: int,
    event: int,
    event_length: int,
    data: int,
    data_length: int,
    had_id: bool,
    key: int,
) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._came(
                memory[event : event + event_length].decode(),
                text_at(data, data_length),
                memory[id_ : id_ + id_length].decode() if id_length else "",
                had_id,
                id_length + event_length + data_length,
            )
        except BaseException as error:
            target._keep(error)


def _on_comment(comment: int, length: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            # A comment may be anything.
            target._commented(memory[comment : comment + length].decode("utf-8", "replace"))
        except BaseException as error:
            target._keep(error)


def _on_retry(time_ms: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._retried(time_ms)
        except BaseException as error:
            target._keep(error)


def _on_store(key_: bytes, id_: int, length: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            target._stores(key_.decode(), memory[id_ : id_ + length].decode())
        except BaseException as error:
            target._keep(error)


ON_EVENT: Callback = (EVENTSOURCE.on_any, abi.rt_eventsource_event_fn(_on_event))
ON_COMMENT: Callback = EVENTSOURCE.callback("comment", _on_comment)
ON_RETRY: Callback = EVENTSOURCE.callback("retry", _on_retry)
ON_STORE: Callback = EVENTSOURCE.callback("store", _on_store)
