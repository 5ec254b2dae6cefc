"""What the asyncio and the blocking long poll share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.kind import Callback
from .http_source import HTTPSource
from .longpoll_callbacks import LONGPOLL, ON_MESSAGE
from .longpoll_options import OPTIONS, Handlers, Keywords, PollMessage

if TYPE_CHECKING:
    from typing_extensions import Unpack


@OPTIONS.shown_by("LongPoll")
class BaseLongPoll(HTTPSource[PollMessage]):
    """It begins to poll when it is made; messages wait for the handler or the iteration. Polls go
    on while up to ``max_queue`` of them wait to be taken.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for. The header
    Accept takes anything unless it is among ``headers``.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    """

    _kind = LONGPOLL
    _options = OPTIONS
    _handler_type = Handlers

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        self._begin(url, OPTIONS.complete(options))

    def _callbacks(self) -> list[Callback]:
        return [*super()._callbacks(), ON_MESSAGE]

    # Called by the trampoline.

    def _came(self, data: bytes, content_type: str, id_: str, had_id: bool) -> None:
        if self._handle is None:
            return
        message = PollMessage(data, content_type, id_, had_id)
        size = len(data) + len(id_)
        if self._handlers.on_message is not None:
            # What it returns counts even if the message is empty.
            self._call(self._handlers.on_message, message, size=size + 1)
        else:
            self._queue(message, size)
