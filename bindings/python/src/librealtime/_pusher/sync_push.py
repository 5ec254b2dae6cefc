"""Interests in push notifications, in blocking programs."""

from __future__ import annotations

from collections.abc import Iterable

from .._core.errors import timed_out
from .push import BasePush, Call


class PusherPush(BasePush):
    """Registers a device and its interests with a push notification service (``pusher.push``).

    The calls need no connection. Each waits for its result and raises ``PushError`` if it fails, or
    ``TimeoutError`` after `timeout` seconds; `wait=False` returns at once, as in a handler.
    ``on_push`` receives the results, too. Receiving the notifications is the operating system's
    task.
    """

    def register(
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
        call = self._register(token, platform)
        if wait:
            self._wait(call, timeout)

    def subscribe(self, interest: str, *, wait: bool = True, timeout: float | None = None) -> None:
        """Adds an interest. Calls about interests are made one after the other; each is tried up to
        six times, within a minute. If the wait ends earlier, the call continues.

        :raises PushError: if it fails, or the registration for which it waits.
        :raises InvalidState: before ``register``; with `wait=False` it waits for that.
        """
        call = self._change("subscribe", interest, wait)
        if wait:
            self._wait(call, timeout)

    def unsubscribe(
        self, interest: str, *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Removes an interest, otherwise like ``subscribe``."""
        call = self._change("unsubscribe", interest, wait)
        if wait:
            self._wait(call, timeout)

    def set_subscriptions(
        self, interests: Iterable[str], *, wait: bool = True, timeout: float | None = None
    ) -> None:
        """Replaces all interests, otherwise like ``subscribe``."""
        call = self._replace(interests, wait)
        if wait:
            self._wait(call, timeout)

    def _wait(self, call: Call, timeout: float | None) -> None:
        if not self._owning()._until(lambda: self._is_over(call), timeout):
            raise timed_out(f"{call.name} has no result after {timeout} s")
        self._check(call)
