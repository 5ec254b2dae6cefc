"""From C to an event source: what other sources do not have."""

from __future__ import annotations

from typing import Protocol

from .._core import abi
from .._core.memory import memory, text_at
from .._core.registry import find
from .kind import Callback, Kind

EVENTSOURCE = Kind("eventsource", "event source", "event")

_view = abi.rt_event.from_address


class Target(Protocol):
    """Who is called back, inside a dispatch; `_stores` inside a close, too."""

    def _came(self, event: str, data: str, id_: str, had_id: bool, size: int) -> None: ...
    def _commented(self, comment: str) -> None: ...
    def _retried(self, time_ms: int) -> None: ...
    def _stores(self, key: str, id_: str) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def _on_event(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = _view(address)
            id_, event = view.id, view.event
            id_length, event_length, data_length = (
                view.id_length, view.event_length, view.data_length,
            )  # fmt: skip
            target._came(
                memory[event : event + event_length].decode(),
                text_at(view.data, data_length),
                memory[id_ : id_ + id_length].decode() if id_length else "",
                view.had_id,
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


ON_EVENT: Callback = EVENTSOURCE.callback("any", abi.rt_event_fn, _on_event)
ON_COMMENT: Callback = EVENTSOURCE.callback("comment", abi.rt_eventsource_comment_fn, _on_comment)
ON_RETRY: Callback = EVENTSOURCE.callback("retry", abi.rt_eventsource_retry_fn, _on_retry)
ON_STORE: Callback = EVENTSOURCE.callback("store", abi.rt_eventsource_store_fn, _on_store)
