"""From C to a long poll: what other sources do not have."""

from __future__ import annotations

from typing import Any

from .._core import abi
from .._core.kind import Kind, callback
from .._core.memory import memory

LONGPOLL = Kind("longpoll", "long poll", "message")


def _message(target: Any, address: int) -> None:
    view = abi.rt_event.from_address(address)
    id_, data = view.id, view.data
    target._came(
        memory[data : data + view.data_length],
        view.content_type.decode("utf-8", "replace"),
        memory[id_ : id_ + view.id_length].decode(),
        view.had_id,
    )


ON_MESSAGE = callback("message", abi.rt_event_fn, _message)
