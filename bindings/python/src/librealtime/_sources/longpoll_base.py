"""What the asyncio and the blocking long poll share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import abi
from .._core.kind import Callback, Kind, callback
from .._core.memory import memory
from .http_source import HTTPSource
from .longpoll_options import OPTIONS, Keywords, PollMessage

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _message(target: Any, address: int) -> None:
    view = abi.rt_event.from_address(address)
    id_, data = view.id, view.data
    target._came(
        memory[data : data + view.data_length],
        view.content_type.decode("utf-8", "replace"),
        memory[id_ : id_ + view.id_length].decode(),
        view.had_id,
    )


LONGPOLL = Kind("longpoll", "long poll", "message")
ON_MESSAGE = callback("message", abi.rt_event_fn, _message)


@OPTIONS.shown_by("LongPoll")
class BaseLongPoll(HTTPSource[PollMessage]):
    """It starts to poll as soon as it is created; messages wait for the handler or the iteration.
    Polling continues until ``max_queue`` of them are queued.

    Durations are in seconds, sizes in bytes. Where an option accepts None, None switches it off.
    The Accept header accepts anything unless ``headers`` contains another.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    """

    _kind = LONGPOLL
    _options = OPTIONS

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        self._begin(url, OPTIONS.complete(options))

    def _callbacks(self) -> list[Callback]:
        return [*super()._callbacks(), ON_MESSAGE]

    # Called by the trampoline.

    def _came(self, data: bytes, content_type: str, id_: str, had_id: bool) -> None:
        message = PollMessage(data, content_type, id_, had_id)
        self._deliver(message, len(data) + len(id_))
