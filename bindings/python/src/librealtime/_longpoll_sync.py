"""The blocking face of long polls."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ._driven import Driven
from ._longpoll_base import BaseLongPoll
from ._longpoll_parameters import Handlers, Options, PollMessage
from ._registry import Handle, new_loop
from .exceptions import StreamEnded


class LongPoll(Driven, BaseLongPoll):
    """Messages by requests that the server answers when there is something new; blocking.

    ``for message in LongPoll(url)`` ends after ``close``, and raises what is fatal. Any thread may
    use it, several at once; the one that waits drives it, so messages come and handlers are called
    while a call waits, and only then. What handlers raise is raised by that call.
    """

    def _make(self, options: Options, handlers: Handlers) -> None:
        self._prepare_driving()
        super()._make(options, handlers)

    def _join(self) -> Handle:
        return new_loop()

    def __iter__(self) -> Iterator[PollMessage]:
        while True:
            try:
                message = self.recv()
            except StreamEnded:
                return
            yield message

    def recv(self, timeout: float | None = None) -> PollMessage:
        """The next message.

        :raises TimeoutError: when none came in `timeout` seconds.
        :raises StreamEnded: when it is closed and all messages were taken; or what was fatal.
        """
        inbox = self._inbox
        messages = inbox.messages
        self._begin_taking()
        with self._condition:
            while not messages:
                if self._is_closed:
                    raise self._end()
                if not self._drive(lambda: len(messages) > 0 or self._is_closed, timeout):
                    raise TimeoutError(f"no message within {timeout} s")
            message = messages.popleft()
            if inbox.paused and len(messages) <= inbox.resume_at:
                self._took()
        return message

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until it is closed; with handlers alone this is the call that runs it.

        :raises TimeoutError: when it is still open after `timeout` seconds.
        :raises RealtimeError: what was fatal.
        """
        if not self._until(lambda: self._is_closed, timeout):
            raise TimeoutError(f"the long poll is still open after {timeout} s")
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> LongPoll:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _await_credentials(self, answer: Any, http_status: int) -> int:
        if hasattr(answer, "close"):
            answer.close()
        raise TypeError("credentials of a blocking long poll are given by a plain function")

    # Inside a dispatch.

    def _queue(self, message: PollMessage, size: int) -> None:
        with self._condition:
            super()._queue(message, size)
