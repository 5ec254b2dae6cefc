"""From C to a long poll: what other sources do not have."""

from __future__ import annotations

from typing import Protocol

from .._core import abi
from .._core.memory import memory
from .._core.registry import find
from .kind import Callback, Kind

LONGPOLL = Kind("longpoll", "long poll", "message")


class Target(Protocol):
    """Who is called back, inside a dispatch."""

    def _came(self, data: bytes, content_type: str, id_: str, had_id: bool) -> None: ...

    def _keep(self, error: BaseException) -> None:
        """Keeps what a callback raised until the dispatch is over."""


def _on_message(address: int, key: int) -> None:
    target: Target | None = find(key)
    if target is not None:
        try:
            view = abi.rt_event.from_address(address)
            id_, data = view.id, view.data
            target._came(
                memory[data : data + view.data_length],
                view.content_type.decode("utf-8", "replace"),
                memory[id_ : id_ + view.id_length].decode(),
                view.had_id,
            )
        except BaseException as error:
            target._keep(error)


ON_MESSAGE: Callback = LONGPOLL.callback("message", abi.rt_event_fn, _on_message)
