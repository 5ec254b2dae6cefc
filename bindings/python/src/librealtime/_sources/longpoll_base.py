"""What the asyncio and the blocking long poll share."""

from __future__ import annotations

from .._core.kind import Callback
from .http_source import HTTPSource
from .longpoll_callbacks import LONGPOLL, ON_MESSAGE
from .longpoll_parameters import Handlers, Options, Parameters, PollMessage


class BaseLongPoll(HTTPSource[PollMessage], Parameters):
    """What both faces have."""

    _kind = LONGPOLL

    def _make(self, options: Options, handlers: Handlers) -> None:
        self._begin(options, handlers)

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
