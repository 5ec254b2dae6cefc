"""The callbacks that C makes for an event source, beyond those of other sources."""

from __future__ import annotations

from typing import Any

from .._core import abi
from .._core.kind import Callback, Kind, callback
from .._core.memory import memory, text_at
from .._core.registry import find

EVENTSOURCE = Kind("eventsource", "event source", "event")

_view = abi.rt_event.from_address


def _on_event(address: int, key: int) -> None:
    """Has its own trampoline, because a general one would slow down each event."""
    target = find(key)
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


def _comment(target: Any, comment: int, length: int) -> None:
    # A comment may contain any bytes.
    target._commented(memory[comment : comment + length].decode("utf-8", "replace"))


def _store(target: Any, key: bytes, id_: int, length: int) -> None:
    target._stores(key.decode(), memory[id_ : id_ + length].decode())


ON_EVENT = Callback("any", abi.rt_event_fn(_on_event))
ON_COMMENT = callback("comment", abi.rt_eventsource_comment_fn, _comment)
ON_RETRY = callback(
    "retry", abi.rt_eventsource_retry_fn, lambda target, time_ms: target._retried(time_ms)
)
# Also called during a close.
ON_STORE = callback("store", abi.rt_eventsource_store_fn, _store)
