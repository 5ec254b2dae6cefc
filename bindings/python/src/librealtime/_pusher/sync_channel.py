"""Channels and the user in blocking programs."""

from __future__ import annotations

from .._core.errors import timed_out
from .._core.outcome import Outcome
from .channel_base import BaseChannel
from .sync_streams import BlockingListening
from .user import BaseUser


class PusherChannel(BlockingListening, BaseChannel):
    """A channel of a ``Pusher``, which ``subscribe`` returns; blocking.

    ``for event in channel`` yields the events that arrive while it runs, except the library's own,
    whose names begin with ``pusher:``. The first iteration begins with what has arrived since the
    subscription (the last 100 events, at most 1 MiB), unless there are handlers.

    :ivar name: its name.
    :ivar kind: ``"public"``, ``"private"``, ``"encrypted"`` or ``"presence"``.
    """

    def subscribed(self, timeout: float | None = None) -> None:
        """Waits until the channel is subscribed.

        :raises TimeoutError: if it is not subscribed within `timeout` seconds.
        :raises SubscriptionError: if it is not authorized, or the server refuses it, or has not
            answered for 30 s.
        :raises StreamEnded: if it is unsubscribed, or the connection closed, in the meantime.
        :raises RealtimeError: the error that ended the connection.
        """
        outcome = Outcome(self._result)
        if not self._owning()._await_server(outcome.is_known, timeout):
            raise timed_out(f"channel {self.name} is not subscribed within {timeout} s")
        outcome.check()


class PusherUser(BlockingListening, BaseUser):
    """The user of a ``Pusher`` (``pusher.user``). ``for event in user`` and the handlers receive
    the events that the server sends to the user, on whichever connection.
    """
