"""Interests in push notifications, in asyncio."""

from __future__ import annotations

from collections.abc import Iterable

from .push import BasePush, Call


class PusherPush(BasePush):
    """Registers a device and its interests with a push notification service (``pusher.push``).

    The calls need no connection. Each waits for its result and raises ``PushError`` if it fails;
    `wait=False` returns at once. ``on_push`` receives the results, too. Receiving the notifications
    is the operating system's task.
    """

    async def register(self, token: bytes, platform: str = "apns", *, wait: bool = True) -> None:
        """Registers this device. Calls about interests wait for it.

        :param token: the operating system's token for this device.
        :param platform: ``"apns"``, ``"gcm"`` or another name that the service knows.
        :raises PushError: if the service refuses it or cannot be reached.
        """
        self._owning()._check_loop()
        call = self._register(token, platform)
        if wait:
            await self._wait(call)

    async def subscribe(self, interest: str, *, wait: bool = True) -> None:
        """Adds an interest. Calls about interests are made one after the other; each is tried up to
        six times, within a minute. If the wait ends earlier, the call continues.

        :raises PushError: if it fails, or the registration for which it waits.
        :raises InvalidState: before ``register``; with `wait=False` it waits for that.
        """
        self._owning()._check_loop()
        call = self._change("subscribe", interest, wait)
        if wait:
            await self._wait(call)

    async def unsubscribe(self, interest: str, *, wait: bool = True) -> None:
        """Removes an interest, otherwise like ``subscribe``."""
        self._owning()._check_loop()
        call = self._change("unsubscribe", interest, wait)
        if wait:
            await self._wait(call)

    async def set_subscriptions(self, interests: Iterable[str], *, wait: bool = True) -> None:
        """Replaces all interests, otherwise like ``subscribe``."""
        self._owning()._check_loop()
        call = self._replace(interests, wait)
        if wait:
            await self._wait(call)

    async def _wait(self, call: Call) -> None:
        pusher = self._owning()
        while not self._is_over(call):
            await pusher._wait(pusher._waiters)
        self._check(call)
