"""What a Pusher connection does when C calls back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

from .._core.abi import rt_state, rt_status
from .._core.awaiting import at_once
from .._core.errors import RealtimeError, final
from .._core.kind import read_opened
from .._core.naming import said_by
from .authorization import Answer, PusherAuthorization, PusherPreparation
from .bindings import Binding, Bindings
from .callbacks import PUSHER
from .channel_base import BaseChannel
from .errors import PusherError, SignInError, SubscriptionError
from .event import PusherEvent
from .flow import Flow
from .objects import PusherMember, PusherPushResult, PusherStateChange, PusherWatchlistEvent
from .options import encoded_user
from .user import BaseUser

C = TypeVar("C", bound=BaseChannel)
_DISCONNECTED = int(rt_state.CLOSED)


class Reception(Flow, Generic[C]):
    """The part of a connection that the trampolines call, during a dispatch."""

    _bindings: Bindings
    user: Any
    push: Any
    # Channels by number, in the order of their registration. C finds the number of a name.
    _channels: dict[int, C]
    _failure: RealtimeError | None
    _is_on: bool
    _ends: int
    # What has failed the last sign-in.
    _refusal: SignInError | None
    _signs_in: bool

    # Events.

    def _received(self, memory: Any, records: Iterable[tuple[int, ...]]) -> None:
        """Passes events to the handlers that are bound to them.

        :param memory: an array of the memory to which the offsets in `records` refer.
        """
        channels, everywhere = self._channels, self._bindings
        for number, at, length, data, size, id_, id_length, start, whole, kind, _ in records:
            event_name = memory[at : at + length].decode("utf-8", "replace")
            found = everywhere.named.get(event_name, everywhere.others)
            name = None
            if number:
                channel = channels.get(number) or self._find(number)
                if channel is None:
                    continue
                name, bindings = channel.name, channel._bindings
                found += bindings.named.get(event_name, bindings.others)
            if found:
                event = PusherEvent(
                    event_name,
                    name,
                    memory[data : data + size].decode("utf-8", "replace") if kind else None,
                    memory[id_ : id_ + id_length].decode("utf-8", "replace") if id_length else None,
                    memory[start : start + whole],
                )
                self._hand_to(found, event, size + 1)

    def _hand_to(self, found: tuple[Binding, ...], event: PusherEvent, size: int) -> None:
        """Calls handlers; an exception does not keep the event from the others."""
        for binding in found:
            if binding.is_bound:
                try:
                    returned = binding.handler(event)
                    if returned is not None and hasattr(returned, "__await__"):
                        self._await(returned, size)
                except BaseException as error:
                    self._keep(error)

    def _find(self, number: int) -> C | None:
        """The channel of this number, after its registration on another thread has finished."""
        with self._guard:
            return self._channels.get(number)

    def _user_received(self, event: PusherEvent) -> None:
        bindings = self.user._bindings
        found = bindings.named.get(event.event, bindings.others)
        event.channel = None
        self._hand_to(found, event, len(event.raw or "") + 1)

    # State.

    def _state_changed(self, change: PusherStateChange) -> None:
        handle = self._handle
        if change.new == "disconnected":
            self._ends += 1
            with self._guard:
                # A handler or another thread may have connected again.
                if handle is not None and PUSHER.get_state(handle) == _DISCONNECTED:
                    self._failure = None if change.error is None else final(change.error)
                    self._is_on = False
        else:
            self._is_on = True
        if change.new == "connected":
            if handle is not None:
                self._opened = read_opened(PUSHER.get_opened, handle)
        else:
            self.user._id = self.user._data = None
        self._changed()
        self._tell("on_state", change)

    def _erred(self, error: PusherError) -> None:
        self._tell("on_error", error)

    # Channels.

    def _subscribed(self, number: int) -> None:
        channel = self._find(number)
        if channel is not None:
            channel._refusal = None
            self._causes.pop(channel.name, None)
            self._channel_changed(channel)
            self._tell("on_subscribed", channel)

    def _subscription_failed(self, number: int, error: SubscriptionError) -> None:
        channel = self._find(number)
        if channel is not None:
            error.__cause__ = self._causes.pop(channel.name, None) or self._user_cause(error)
            channel._refusal = error
            self._channel_changed(channel)
            self._tell("on_subscription_failed", error)

    def _counted(self, number: int, count: int) -> None:
        channel = self._find(number)
        if channel is not None:
            self._tell_both("on_subscription_count", channel, count)

    def _member_changed(self, name: str, number: int, member: PusherMember) -> None:
        channel = self._find(number)
        if channel is not None:
            self._tell_both(name, channel, member)

    def _tell_both(self, name: str, channel: C, value: object) -> None:
        """Calls the connection's handler, then the channel's."""
        try:
            self._tell(name, channel, value)
        except BaseException as error:
            self._keep(error)
        handler = getattr(channel._handlers, name)
        if handler is not None:
            self._call(handler, value)

    def _failed_to_decrypt(self, number: int, event: PusherEvent) -> None:
        if self._find(number) is not None:
            self._tell("on_decryption_failed", event)

    # The user.

    def _signed_in(self, user_id: str, data: Any) -> None:
        user: BaseUser = self.user
        with self._guard:
            if not self._signs_in:  # it was signed out on another thread
                return
            user._id, user._data = user_id, data
        self._causes.pop(None, None)
        self._changed()
        self._tell("on_signed_in", user)

    def _sign_in_failed(self, error: SignInError) -> None:
        if error.status != rt_status.ERROR_CANCELLED:
            error.__cause__ = self._causes.pop(None, None) or self._user_cause(error)
        self._refusal = error
        self._tell("on_sign_in_failed", error)

    def _watched(self, event: PusherWatchlistEvent) -> None:
        self._tell("on_watchlist", event)

    def _pushed(self, result: PusherPushResult) -> None:
        with self._guard:
            self.push._settle(result)
        self._changed()
        self._tell("on_push", result)

    # Authorization.

    # What the program's function raised, by channel; None for the sign-in.
    _causes: dict[str | None, BaseException]

    def _authorizes(self, request: PusherAuthorization) -> None:
        def use(answer: Answer | None) -> None:
            if answer is not None:
                request.answer(answer)

        self._ask(request, "the authorizer", lambda: self._handlers.authorizer(request), use)

    def _prepares(self, request: PusherAuthorization) -> None:
        """Lets the program change the request to the endpoint, and sends it."""
        preparation: PusherPreparation | None = None

        def ask() -> Any:
            nonlocal preparation
            preparation = request._prepare()
            return self._handlers.prepare_authorization(preparation)

        def use(built: object) -> None:
            if preparation is not None:
                request._send(preparation, built)

        self._ask(request, "prepare_authorization", ask, use)

    def _ask(
        self,
        request: PusherAuthorization,
        name: str,
        ask: Callable[[], Any],
        use: Callable[[Any], None],
    ) -> None:
        """Calls a function of the program that authorizes, and uses what it returns.

        :param name: of the function, for messages.
        """
        try:
            answer = ask()
            if hasattr(answer, "__await__"):
                self._answer_later(request, answer, use, name)
            else:
                use(answer)
        except Exception as error:
            self._could_not_authorize(request, error, name)

    def _could_not_authorize(
        self, request: PusherAuthorization, error: Exception, what: str
    ) -> None:
        """Reports what the function raised to the caller that waits for the subscription."""
        if request._handle is None:  # it has answered before
            self._keep(error)
            return
        names: tuple[str | None, ...] = (None,) if request.is_user else request.channels
        for name in names:
            self._causes[name] = error
        request.fail(f"{what} failed: {said_by(error)}")

    # What ``user_data`` raised last, and the message of the failures that follow.
    _unnamed: tuple[str, Exception] | None = None

    def _names_user(self) -> tuple[bytes, bytes | None] | None:
        """The id of the user, and the information; an empty id with a message for a failure."""
        named: tuple[bytes, bytes | None] | None
        try:
            named = encoded_user(at_once(self._handlers.user_data(), "user_data"))
        except Exception as error:
            message = f"user_data failed: {said_by(error)}".replace("\0", "\ufffd")
            named = b"", message.encode("utf-8", "replace")
            self._unnamed = named[1].decode(), error
        # Kept until the next call, as C copies it after this one has returned.
        self._named = named
        return named

    def _user_cause(self, error: RealtimeError) -> Exception | None:
        message, cause = self._unnamed or ("", None)
        return cause if message == str(error) else None

    # Overridden by the asyncio and the blocking class.

    def _answer_later(
        self,
        request: PusherAuthorization,
        answer: Awaitable[Any],
        use: Callable[[Any], None],
        name: str,
    ) -> None:
        """Uses what a coroutine of the program returns; see ``_ask``."""
        raise NotImplementedError

    def _changed(self) -> None:
        """Called when the state has changed, so that waiters check their conditions."""

    def _channel_changed(self, channel: C) -> None:
        """The same for waiters of one channel."""
