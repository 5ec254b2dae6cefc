"""The blocking Pusher connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .._core.awaiting import plain
from .._core.driven import DrivenEndpoint
from .._core.errors import timed_out
from .._core.parameters import Given
from .authorization import PusherAuthorization
from .pusher_base import BasePusher
from .sync_channel import PusherChannel, PusherUser
from .sync_push import PusherPush
from .sync_streams import BlockingListening

if TYPE_CHECKING:
    from typing_extensions import Self


class Pusher(DrivenEndpoint, BlockingListening, BasePusher[PusherChannel]):
    """A connection to Pusher Channels, or to a server that speaks its protocol; blocking.

        with Pusher(key, cluster="eu") as pusher:
            channel = pusher.subscribe("orders")
            for event in channel:
                print(event.event, event.data)

    Several threads may use it at once. Events are received, pings answered and handlers called
    whatever the program does: in the call that waits, or in a thread of the object while no call
    does. The call that waits, or the next one, raises what handlers raise.

    :ivar user: a ``PusherUser``: the user that ``sign_in`` signs in.
    :ivar push: a ``PusherPush``: interests in push notifications.
    """

    _channel_type = PusherChannel
    _user_type = PusherUser
    _push_type = PusherPush
    user: PusherUser
    push: PusherPush

    def _begin(self, key: str, given: Given) -> None:
        plain(given["prepare_authorization"], "prepare_authorization")
        begin = super()._begin

        def make() -> None:
            self._guard = self._lock
            begin(key, given)

        self._construct(make)

    def connect(self, *, wait: bool = True, timeout: float | None = None) -> None:
        """Connects, and waits until it is connected. Does nothing if it is; if the next attempt
        waits, it is made at once. Without a network it waits for one.

        :param wait: False returns at once, as in a handler.
        :raises TimeoutError: if it is not connected within `timeout` seconds; it continues to try.
        :raises RealtimeError: the error that ended the connection, such as a
            ``ConnectionClosedError`` with the server's close ``code``; ``StreamEnded`` if it was
            disconnected in the meantime.
        """
        outcome = self._begin_connecting()
        if not wait:
            return
        if not self._await_server(outcome.is_known, timeout):
            raise timed_out(f"not connected within {timeout} s")
        outcome.check()

    def disconnect(self, timeout: float | None = None) -> None:
        """Disconnects with a closing handshake, and waits for its end, up to 5 s after the last of
        the events before it has arrived, 50 s at most; in a handler it does not wait. Channels and
        handlers are kept for the next ``connect``; iterations end.

        :raises TimeoutError: if it has not ended after `timeout` seconds.
        """
        has_ended = self._begin_disconnecting()
        if has_ended is None or self._is_inside_callback():
            return
        if not self._await_server(has_ended, timeout):
            raise timed_out(f"the connection is not closed after {timeout} s")

    def subscribe(
        self,
        name: str,
        *,
        wait: bool = True,
        timeout: float | None = None,
        auth: str | None = None,
        channel_data: str | None = None,
    ) -> PusherChannel:
        """Subscribes to a channel, and waits until it is subscribed. The name's prefix decides the
        kind: ``private-``, ``private-encrypted-``, ``presence-``. For a channel that is subscribed
        this returns the same object; for one that has failed it tries again. A lost connection
        subscribes by itself again.

        :param wait: False returns at once, also before ``connect`` and in a handler: bind handlers
            before the first event, then call ``channel.subscribed()``.
        :param auth: a signature to use once, instead of an authorization.
        :param channel_data: what was signed with `auth`, for a presence channel.
        :raises TimeoutError: if it is not subscribed within `timeout` seconds; it stays registered.
        :raises SubscriptionError: if it is not authorized, or the server refuses it, or has not
            answered for 30 s.
        :raises InvalidArgument: for a name that is not allowed.
        :raises RealtimeError: the error that ended the connection; ``InvalidState`` before
            ``connect``.
        """
        channel = self._register(name, auth, channel_data, wait)
        if wait:
            channel.subscribed(timeout)
        return channel

    def sign_in(self, *, wait: bool = True, timeout: float | None = None) -> PusherUser:
        """Signs in as a user, now and after each reconnect, and waits for the result.

        :param wait: False returns at once, also before ``connect`` and in a handler.
        :returns: ``user``.
        :raises TimeoutError: if there is no result within `timeout` seconds.
        :raises SignInError: if it is not authorized, or the server refuses it, or has not answered
            for 30 s.
        :raises RealtimeError: the error that ended the connection; ``InvalidState`` before
            ``connect``.
        """
        outcome = self._begin_signing_in(wait)
        if outcome is None:
            return self.user
        if not self._await_server(outcome.is_known, timeout):
            raise timed_out(f"not signed in within {timeout} s")
        outcome.check()
        return self.user

    def wait_closed(self, timeout: float | None = None) -> None:
        """Waits until it is disconnected. For programs that only use handlers.

        :raises TimeoutError: if it is still connected after `timeout` seconds.
        :raises RealtimeError: the error that ended the connection.
        """
        if not self._until(lambda: self._is_over, timeout):
            raise timed_out(f"the connection is not closed after {timeout} s")
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        """Connects, and waits until it is connected; see ``connect``."""
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def _leave(self, in_order: bool) -> None:
        try:
            self.disconnect()
        finally:
            self.close()

    # Overrides of the base classes.

    def _answer_later(
        self,
        request: PusherAuthorization,
        answer: Awaitable[Any],
        use: Callable[[Any], None],
        name: str,
    ) -> None:
        if asyncio.iscoroutine(answer):
            answer.close()
        raise TypeError(f"{name} returned a coroutine; use a plain function")

    @property
    def _is_wanted(self) -> bool:
        return self._calls_back

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        self._hold()

    def _soon(self, function: Any) -> None:
        function()

    def _await_server(self, is_ready: Callable[[], bool], timeout: float | None) -> bool:
        """Like ``_until``, but receives even if queues are full."""
        if self._is_inside_callback():  # raises, unless it is ready
            return self._until(is_ready, timeout)
        with self._expects():
            is_in_time = self._until(lambda: is_ready() or self._has_overflowed, timeout)
            if not is_ready():
                self._check_overflow()
            return is_in_time

    # Called by any thread.

    def _overflowed(self) -> None:
        """Threads that wait check their conditions after this turn."""

    def _changed(self) -> None:
        self._hold()
        self._rouse(self._loop_handle)

    def _channel_changed(self, channel: PusherChannel) -> None:
        self._rouse(self._loop_handle)
