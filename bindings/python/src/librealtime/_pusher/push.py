"""Interests in push notifications."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from .._core.abi import rt_status
from .._core.errors import InvalidState, check
from .._core.naming import kind_of
from .._core.uncopied import Uncopied
from .._core.values import invalid, strings, text
from .callbacks import PUSHER
from .objects import PusherPushResult


class Call:
    """A call that has no result yet."""

    __slots__ = ("name", "names", "result")

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        self.name = name
        self.names = names
        self.result: PusherPushResult | None = None


class BasePush(Uncopied):
    """What the asyncio and the blocking class share."""

    def __init__(self, pusher: Any) -> None:
        self._pusher = weakref.ref(pusher)
        # In their order.
        self._calls: list[Call] = []
        self._is_registered = False

    def _register(self, token: bytes, platform: str) -> Call:
        if not isinstance(token, (bytes, bytearray, memoryview)):
            raise TypeError(f"token is {kind_of(token)}; bytes are expected")
        token_bytes = bytes(token)
        call = Call("register", ())
        self._begin(
            call, PUSHER.push_register, token_bytes, len(token_bytes), text(platform, "platform")
        )
        return call

    def _change(self, name: str, interest: str, waits: bool) -> Call:
        encoded_interest = text(interest, "the interest")
        if not encoded_interest:
            raise invalid("the interest is empty")
        call = Call(name, (interest,))
        function = PUSHER.push_subscribe if name == "subscribe" else PUSHER.push_unsubscribe
        self._begin(call, function, encoded_interest, waits=waits)
        return call

    def _replace(self, interests: Iterable[str], waits: bool) -> Call:
        names = strings(interests, "interests")
        for name in names:
            if not name or "\n" in text(name, "an interest").decode():
                raise invalid(f"interest {name!r} is empty or has a line feed")
        call = Call("set_subscriptions", tuple(names))
        encoded_names = text("\n".join(names), "interests")
        self._begin(call, PUSHER.push_set_subscriptions, encoded_names, waits=waits)
        return call

    def _begin(self, call: Call, function: Any, *arguments: Any, waits: bool = False) -> None:
        pusher = self._owning()
        handle = pusher._require_handle()
        with pusher._guard:
            if waits and not self._will_answer:
                message = "the device is not registered, so this call would wait forever"
                raise InvalidState(rt_status.ERROR_STATE, message)
            check(function(handle, *arguments))
            self._calls.append(call)

    @property
    def _will_answer(self) -> bool:
        return self._is_registered or any(call.name == "register" for call in self._calls)

    def _owning(self) -> Any:
        pusher = self._pusher()
        if pusher is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection is gone")
        return pusher

    def _settle(self, result: PusherPushResult) -> None:
        """Called with each result, while the connection's guard is held."""
        calls = self._calls
        if result.call == "register":
            # A registration replaces those in progress.
            found = [call for call in calls if call.name == "register"]
            if result.error is None:
                self._is_registered = True
            elif not self._is_registered:
                # Calls about interests stay in the queue, but those that wait end.
                for call in calls:
                    call.result = result
        else:
            found = [c for c in calls if (c.name, c.names) == (result.call, result.names)]
            error = result.error
            # The last one does not fit into the queue; otherwise they are made in order.
            is_refused = error is not None and error.status == rt_status.ERROR_QUEUE_FULL
            found = found[-1:] if is_refused else found[:1]
        for call in found:
            call.result = result
            calls.remove(call)

    def _is_over(self, call: Call) -> bool:
        return call.result is not None or self._owning()._is_closed

    def _check(self, call: Call) -> None:
        """Raises why a call has failed."""
        if call.result is None:
            raise self._owning()._end()
        if call.result.error is not None:
            raise call.result.error
