"""The asyncio Pusher connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .._core.awaiting import Awaiting, current_task
from .._core.errors import timed_out
from .._core.option_tables import PUSHER_OPTIONS
from .._core.parameters import Given
from .._core.shared_options import queue_limits
from .asyncio_channel import PusherChannel, PusherUser
from .asyncio_push import PusherPush
from .asyncio_streams import AsyncListening
from .authorization import PusherAuthorization
from .pusher_base import BasePusher

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._core.awaiting import Futures


class Pusher(Awaiting, AsyncListening, BasePusher[PusherChannel]):
    """A connection to Pusher Channels, or to a server that speaks its protocol.

        async with Pusher(key, cluster="eu") as pusher:
            channel = await pusher.subscribe("orders")
            async for event in channel:
                print(event.event, event.data)

    The object uses the running asyncio loop and belongs to that loop's thread. Handlers may be
    coroutine functions, which are awaited one after the other.

    :ivar user: a ``PusherUser``: the user that ``sign_in`` signs in.
    :ivar push: a ``PusherPush``: interests in push notifications.
    """

    _channel_type = PusherChannel
    _user_type = PusherUser
    _push_type = PusherPush
    user: PusherUser
    push: PusherPush

    def _begin(self, key: str, given: Given) -> None:
        self._guard = contextlib.nullcontext()
        # How many tasks wait.
        self._waits = 0
        # Coroutines of the program that authorize, and how long one may prepare a request.
        self._tasks: set[asyncio.Task[None]] = set()
        self._auth_timeout: float | None = PUSHER_OPTIONS.get("auth_timeout", given)
        begin = super()._begin
        self._construct(lambda: begin(key, given), *queue_limits(given))

    async def connect(self, *, wait: bool = True, timeout: float | None = None) -> None:
        """Connects, and waits until it is connected. Does nothing if it is; if the next attempt
        waits, it is made at once. Without a network it waits for one. Cancelling the wait does not
        end the connection.

        :param wait: False returns at once.
        :raises TimeoutError: if it is not connected within `timeout` seconds; it continues to try.
        :raises RealtimeError: the error that ended the connection, such as a
            ``ConnectionClosedError`` with the server's close ``code``; ``StreamEnded`` if it was
            disconnected in the meantime.
        """
        self._may_wait(timeout)
        outcome = self._begin_connecting()
        if not wait:
            return
        if not await self._await_server(outcome.is_known, timeout):
            raise timed_out(f"not connected within {timeout} s")
        outcome.check()

    async def disconnect(self) -> None:
        """Disconnects with a closing handshake, and waits for its end, up to 5 s after the last of
        the events before it has arrived, 50 s at most. Channels and handlers are kept for the next
        ``connect``; iterations end."""
        self._check_loop()
        has_ended = self._begin_disconnecting()
        if has_ended is not None:
            await self._await_server(has_ended)

    async def subscribe(
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

        :param wait: False returns at once, also before ``connect``: bind handlers before the first
            event, then await ``channel.subscribed()``.
        :param auth: a signature to use once, instead of an authorization.
        :param channel_data: what was signed with `auth`, for a presence channel.
        :raises TimeoutError: if it is not subscribed within `timeout` seconds; it stays registered.
        :raises SubscriptionError: if it is not authorized, or the server refuses it, or has not
            answered for 30 s.
        :raises InvalidArgument: for a name that is not allowed.
        :raises RealtimeError: the error that ended the connection; ``InvalidState`` before
            ``connect``.
        """
        self._may_wait(timeout)
        channel = self._register(name, auth, channel_data, wait)
        if wait:
            await channel.subscribed(timeout)
        return channel

    async def sign_in(self, *, wait: bool = True, timeout: float | None = None) -> PusherUser:
        """Signs in as a user, now and after each reconnect, and waits for the result.

        :param wait: False returns at once, also before ``connect``.
        :returns: ``user``.
        :raises TimeoutError: if there is no result within `timeout` seconds.
        :raises SignInError: if it is not authorized, or the server refuses it, or has not answered
            for 30 s.
        :raises RealtimeError: the error that ended the connection; ``InvalidState`` before
            ``connect``.
        """
        self._may_wait(timeout)
        outcome = self._begin_signing_in(wait)
        if outcome is None:
            return self.user
        if not await self._await_server(outcome.is_known, timeout):
            raise timed_out(f"not signed in within {timeout} s")
        outcome.check()
        return self.user

    async def wait_closed(self) -> None:
        """Waits until it is disconnected and its handlers have finished. For programs that only use
        handlers.

        :raises RealtimeError: the error that ended the connection.
        """
        self._check_loop()
        while not self._is_over or self._is_awaiting:
            await self._wait(self._waiters)
        if self._failure is not None:
            raise self._failure

    async def __aenter__(self) -> Self:
        """Connects, and waits until it is connected; see ``connect``."""
        try:
            await self.connect()
        except BaseException:
            self.close()
            raise
        return self

    async def aclose(self) -> None:
        """Calls ``disconnect`` and ``close``. Before that, it awaits what handlers returned, except
        those of events."""
        await self._leave(in_order=True)

    def close(self) -> None:
        super().close()
        self._stop_awaiting()

    close.__doc__ = BasePusher.close.__doc__

    async def _leave(self, in_order: bool) -> None:
        self._forgets_messages = True
        try:
            if asyncio.get_running_loop() is self._loop and not self._is_closed:
                await self.disconnect()
                if in_order:
                    await self._let_handlers_finish()
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
        task = self._loop.create_task(self._fetch(request, answer, use, name))
        # Keep a reference, as asyncio refers to tasks weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(
        self,
        request: PusherAuthorization,
        answer: Awaitable[Any],
        use: Callable[[Any], None],
        name: str,
    ) -> None:
        limit = self._auth_timeout
        is_late, task = False, asyncio.current_task()

        def end() -> None:
            nonlocal is_late
            is_late = True
            if task is not None:
                task.cancel()

        timer = None if limit is None else self._loop.call_later(limit, end)
        try:
            use(await answer)
        except asyncio.CancelledError:
            if not is_late:
                raise
            late = timed_out(f"it has not returned within {limit:g} s (auth_timeout)")
            self._could_not_authorize(request, late, name)
        except Exception as error:
            self._could_not_authorize(request, error, name)
        finally:
            if timer is not None:
                timer.cancel()

    def _changed(self) -> None:
        self._wake(self._waiters)
        if not self._is_on:
            self._wake_all()
        self._hold()

    def _wake_all(self) -> None:
        """Wakes the waiters of channels and iterations, since the connection has ended."""
        self._wake_streams()
        self.user._wake_streams()
        for channel in self.channels:
            self._wake(channel._waiters)
            channel._wake_streams()

    def _channel_changed(self, channel: PusherChannel) -> None:
        self._wake(channel._waiters)
        if channel._is_gone:
            channel._wake_streams()

    async def _await_server(
        self,
        is_ready: Callable[[], bool],
        timeout: float | None = None,
        waiters: Futures | None = None,
    ) -> bool:
        """Receives even if queues are full.

        :param waiters: those of a channel; None for those of the connection.
        :returns: False on timeout.
        """

        def is_over() -> bool:
            if is_ready():
                return True
            self._check_overflow()
            return False

        with self._expects():
            return await self._until(is_over, timeout, waiters)

    @property
    def _is_full(self) -> bool:
        return self._awaited.paused or super()._is_full

    @property
    def _is_paused(self) -> bool:
        return self._must_pause

    def _await(self, awaitable: Awaitable[Any], size: int, is_end: bool = False) -> None:
        super()._await(awaitable, size, is_end)
        if self._awaited.paused:
            self._look_at(self._awaited)

    def _overflowed(self) -> None:
        self._wake(self._waiters)
        self._wake_all()

    async def _wait(self, waiters: Futures) -> None:
        self._waits += 1
        try:
            await super()._wait(waiters)
        finally:
            self._waits -= 1
            self._hold()

    @property
    def _is_wanted(self) -> bool:
        return self._waits > 0 or self._calls_back

    def _handlers_changed(self) -> None:
        super()._handlers_changed()
        self._hold()

    def _soon(self, function: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def _ended(self) -> None:
        super()._ended()
        me = current_task()
        for task in tuple(self._tasks):
            if task is not me:
                task.cancel()
