"""Interests in push notifications, in asyncio."""

from __future__ import annotations

from collections.abc import Iterable

from .._core.errors import timed_out
from .push import BasePush, Call


class PusherPush(BasePush):
    """Registers a device and its interests with a push notification service (``pusher.push``).

    The calls need no connection. Each waits for its result and raises ``PushError`` if it fails, or
    ``TimeoutError`` after `timeout` seconds; `wait=False` returns at once. ``on_push`` receives the
    results, too. Receiving the notifications is the operating system's task.
    """

    async def register(
        self,
        token: bytes,
        platform: str = "apns",
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Registers this device. Calls about interests wait for it.

        :param token: the operating system's token for this device.
        :param platform: ``"apns"``, ``"gcm"`` or another name that the service knows.
        :raises PushError: if the service refuses it or cannot be reached.
        """
        self._owning()._may_wait(timeout)
        call = self._register(token, platform)
        if wait:
            await self._wait(call, timeout)

    async def subscribe(
        self, interest: str, *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Adds an interest. Calls about interests are made one after the other; each is tried up to
        six times, within a minute. If the wait ends earlier, the call continues.

        :raises PushError: if it fails, or the registration for which it waits.
        :raises InvalidState: before ``register``; with `wait=False` it waits for that.
        """
        self._owning()._may_wait(timeout)
        call = self._change("subscribe", interest, wait)
        if wait:
            await self._wait(call, timeout)

    async def unsubscribe(
        self, interest: str, *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Removes an interest, otherwise like ``subscribe``."""
        self._owning()._may_wait(timeout)
        call = self._change("unsubscribe", interest, wait)
        if wait:
            await self._wait(call, timeout)

    async def set_subscriptions(
        self, interests: Iterable[str], *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Replaces all interests, otherwise like ``subscribe``."""
        self._owning()._may_wait(timeout)
        call = self._replace(interests, wait)
        if wait:
            await self._wait(call, timeout)

    async def _wait(self, call: Call, timeout: float | None) -> None:
        if not await self._owning()._until(lambda: self._is_over(call), timeout):
            raise timed_out(f"{call.name} has no result after {timeout} s")
        self._check(call)
