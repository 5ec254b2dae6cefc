"""Channels and the user in asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.errors import timed_out
from .._core.handle import Handle
from .._core.outcome import Outcome
from .asyncio_streams import AsyncListening
from .channel_base import BaseChannel
from .user import BaseUser

if TYPE_CHECKING:
    from .._core.awaiting import Futures


class PusherChannel(AsyncListening, BaseChannel):
    """A channel of a ``Pusher``, which ``subscribe`` returns.

    ``async for event in channel`` yields the events that arrive while it runs, except the library's
    own, whose names begin with ``pusher:``. The first iteration begins with what has arrived since
    the subscription (the last 100 events, at most 1 MiB), unless there are handlers.

    :ivar name: its name.
    :ivar kind: ``"public"``, ``"private"``, ``"encrypted"`` or ``"presence"``.
    """

    def __init__(self, pusher: Any, name: str, handle: Handle) -> None:
        self._waiters: Futures = {}
        super().__init__(pusher, name, handle)

    async def subscribed(self, timeout: float | None = None) -> None:
        """Waits until the channel is subscribed.

        :raises TimeoutError: if it is not subscribed within `timeout` seconds.
        :raises SubscriptionError: if it is not authorized, or the server refuses it, or has not
            answered for 30 s.
        :raises StreamEnded: if it is unsubscribed, or the connection closed, in the meantime.
        :raises RealtimeError: the error that ended the connection.
        """
        pusher = self._owning()
        pusher._may_wait(timeout)
        outcome = Outcome(self._result)
        if not await pusher._await_server(outcome.is_known, timeout, self._waiters):
            raise timed_out(f"channel {self.name} is not subscribed within {timeout} s")
        outcome.check()


class PusherUser(AsyncListening, BaseUser):
    """The user of a ``Pusher`` (``pusher.user``). ``async for event in user`` and the handlers
    receive the events that the server sends to the user, on whichever connection.
    """
