"""What the asyncio and the blocking Pusher connection share."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from .._core.abi import rt_state, rt_status
from .._core.awaiting import handlers_of, plain
from .._core.errors import InvalidState, RealtimeError, StreamEnded, check, checked
from .._core.failure import Failure
from .._core.handle import Handle, new
from .._core.handlers import Handler
from .._core.headers import header_pairs
from .._core.inbox import Inbox
from .._core.kind import Callback, read_text
from .._core.outcome import Outcome, Result
from .._core.parameters import Configured, Given, Setup
from .._core.registry import Registration
from .._core.shared_options import queue_limits
from .._core.values import text
from .bindings import Binding, Bindings
from .callbacks import (
    ALWAYS,
    CHANNEL,
    ON_AUTHORIZE,
    ON_DEBUG,
    ON_PREPARE,
    ON_USER_DATA,
    PUSHER,
    STATES,
    USER_EVENT,
)
from .objects import PusherStateChange, State
from .options import (
    FUNCTIONS,
    OPTIONS,
    Keywords,
    OnCount,
    OnDebug,
    OnDecryptionFailed,
    OnError,
    OnMember,
    OnPush,
    OnSignedIn,
    OnSignInFailed,
    OnState,
    OnSubscribed,
    OnSubscriptionFailed,
    OnTriggerFailed,
    OnWatchlist,
    reconnect_limits,
)
from .reception import C, Reception
from .streams import Listening
from .user import UNAWAITED, SignIn

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CONNECTED = int(rt_state.OPEN)


@OPTIONS.shown_by("Pusher")
class BasePusher(Reception[C], Listening, Configured):
    """Nothing is sent before ``connect``; an ``async with`` or ``with`` block connects. A lost
    connection is established again, and all channels are subscribed again. Handlers that are bound
    to the connection receive the events of all channels, before those of the channel.

    Durations are in seconds, sizes in bytes. Where an option accepts None, None switches it off.

    :param key: the application's key.
    """

    _kind = PUSHER
    _channel_type: ClassVar[Any]
    _user_type: ClassVar[Any]
    _push_type: ClassVar[Any]
    # Whether C calls back with lines for debugging.
    _debugs = False
    # How often it has been disconnected.
    _ends = 0
    # How often it was asked to connect.
    _connects = 0
    # Whether the user is to be signed in.
    _signs_in = False
    # Whether any handler is set or bound.
    _has_readers = False

    def __init__(self, key: str, **options: Unpack[Keywords]) -> None:
        self._begin(key, OPTIONS.complete(options))

    def _begin(self, key: str, given: Given) -> None:
        """Creates the object in C."""
        plain(given["user_data"], "user_data")
        self._handlers = handlers_of(given, FUNCTIONS)
        self._limits = queue_limits(given)
        self._full = set()
        self._inbox = Inbox(0, 0)
        self._bindings = Bindings(weakref.ref(self))
        self._channels, self._causes = {}, {}
        # The channels that have handlers.
        self._telling: set[C] = set()
        message = "connect was not called"
        self._failure: RealtimeError | None = InvalidState(rt_status.ERROR_STATE, message)
        self._is_on = False
        self._refusal = None
        self.user = self._user_type(self)
        self.push = self._push_type(self)
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = PUSHER.make(loop, text(key, "the key"))
        PUSHER.add_headers(handle, header_pairs(given["headers"]))
        OPTIONS.apply(Setup(PUSHER, handle, loop), given)
        self._registration = PUSHER.attach(self, handle, self._callbacks(given))
        _bind_user(self._registration, handle)
        self._handle = handle
        self._is_closed = False
        self._handlers_changed()

    def _callbacks(self, given: Given) -> list[Callback]:
        handlers, callbacks = self._handlers, list(ALWAYS)
        if handlers.authorizer is not None:
            callbacks.append(ON_AUTHORIZE)
        elif handlers.prepare_authorization is not None and given["secret"] is None:
            callbacks.append(ON_PREPARE)
        if handlers.user_data is not None:
            callbacks.append(ON_USER_DATA)
        if handlers.on_debug is not None:
            self._debugs = True
            callbacks.append(ON_DEBUG)
        return callbacks

    def _join(self) -> Handle:
        """The library's loop to use."""
        raise NotImplementedError

    # State.

    @property
    def state(self) -> State:
        """``"disconnected"`` if no attempt follows by itself, ``"connecting"``, ``"connected"``,
        ``"disconnecting"``, or ``"reconnecting"`` while the next attempt is awaited."""
        handle = self._handle
        return "disconnected" if handle is None else STATES[checked(PUSHER.get_state(handle))]

    @property
    def socket_id(self) -> str | None:
        """What the server calls this connection; None while it is not connected. A server that
        publishes an event can exclude this connection by it."""
        handle = self._handle
        return None if handle is None else read_text(PUSHER.get_socket_id, handle) or None

    @property
    def url(self) -> str:
        """The URL to which the options lead."""
        return read_text(PUSHER.get_url, self._require_handle())

    @property
    def reconnect_attempts(self) -> int:
        """How many attempts in a row have failed since it was last connected."""
        handle = self._handle
        if handle is None:
            return 0
        return checked(PUSHER.get_reconnect_attempts(handle))

    @property
    def channels(self) -> list[C]:
        """All channels that are subscribed, or will be, in the order of their registration."""
        with self._guard:
            return list(self._channels.values())

    def channel(self, name: str) -> C | None:
        """The channel of this name; None if there was no ``subscribe``, or it was unsubscribed."""
        encoded_name = text(name, "the channel's name")
        with self._guard:
            return self._channel_named(encoded_name)

    def _channel_named(self, encoded_name: bytes) -> C | None:
        """The channel that C has registered by this name."""
        handle = self._handle
        if handle is None:
            return None
        try:
            found = new(PUSHER.find_channel, CHANNEL.free, handle, encoded_name)
        except RealtimeError as error:
            if error.status != rt_status.ERROR_NOT_FOUND:
                raise
            return None
        return self._channels.get(CHANNEL.get_number(found))

    # Handlers.

    on_state: Handler[OnState] = Handler()
    on_error: Handler[OnError] = Handler()
    on_subscribed: Handler[OnSubscribed] = Handler()
    on_subscription_failed: Handler[OnSubscriptionFailed] = Handler()
    on_member_added: Handler[OnMember] = Handler()
    on_member_removed: Handler[OnMember] = Handler()
    on_subscription_count: Handler[OnCount] = Handler()
    on_decryption_failed: Handler[OnDecryptionFailed] = Handler()
    on_trigger_failed: Handler[OnTriggerFailed] = Handler()
    on_signed_in: Handler[OnSignedIn] = Handler()
    on_sign_in_failed: Handler[OnSignInFailed] = Handler()
    on_watchlist: Handler[OnWatchlist] = Handler()
    on_push: Handler[OnPush] = Handler()
    on_debug: Handler[OnDebug] = Handler()

    def _set_handler(self, name: str, handler: object) -> None:
        handle = self._handle
        if name == "on_debug" and handle is not None and not self._debugs:
            self._debugs = True
            PUSHER.set_callback(self._registration, handle, ON_DEBUG)
        super()._set_handler(name, handler)
        self._handlers_changed()

    # Methods.

    def unsubscribe(self, name: str) -> None:
        """Ends the subscription to a channel, and removes the channel's handlers. Does nothing if
        there is none."""
        encoded_name = text(name, "the channel's name")
        with self._guard:
            channel = self._channel_named(encoded_name)
            if channel is None:
                return
            del self._channels[channel._number]
            status = CHANNEL.unsubscribe(channel._require_handle())
        self._drop(channel)
        check(status)

    def unsubscribe_all(self) -> None:
        """Ends the subscriptions to all channels."""
        for channel in self.channels:
            self.unsubscribe(channel.name)

    def network_changed(self, is_reachable: bool) -> None:
        """Reports what the program knows about the network, besides what `reachability` observes. A
        connection is checked by a ping. If the network is reachable, an attempt that waits is made
        at once. If it is not, none is made until it is, and ``connect`` waits."""
        check(PUSHER.network_changed(self._require_handle(), bool(is_reachable)))

    def set_reconnect_limits(
        self, max_reconnects: int | None = None, max_reconnect_gap: float | None = 120
    ) -> None:
        """Changes the options of these names, from the next failure on."""
        limits = reconnect_limits(max_reconnects, max_reconnect_gap)
        check(PUSHER.set_reconnect_limits(self._require_handle(), *limits))

    def _begin_connecting(self) -> Outcome:
        """
        :returns: whether it is connected; a failure once no attempt follows.
        """
        handle = self._require_handle()
        with self._guard:
            # Set before the call: another thread may report its outcome at once.
            before = self._is_on, self._failure
            self._is_on, self._failure = True, None
            self._connects += 1
            try:
                check(PUSHER.start(handle))
            except BaseException:
                self._is_on, self._failure = before
                raise
        self._changed()
        return Outcome(self._connection_result)

    def _begin_disconnecting(self) -> Callable[[], bool] | None:
        """
        :returns: whether it has disconnected, even if it was connected again at once; None if there
            is nothing to wait for.
        """
        with self._guard:
            handle, ends = self._handle, self._ends
            if handle is None or not self._is_on:
                return None
            self._revive()
            check(PUSHER.close(handle))
            connects = self._connects
        # One that was connected again before the loop's turn reports no end.
        return lambda: self._ends != ends or self._connects != connects or not self._is_on

    def _register(self, name: str, auth: str | None, channel_data: str | None, waits: bool) -> C:
        """Subscribes to a channel, or tries a failed one again."""
        encoded_name = text(name, "the channel's name")
        handle = self._require_handle()
        if waits and not self._is_on:
            raise self._end()
        with self._guard:
            arguments = [handle, encoded_name]
            if auth is not None:
                data = None if channel_data is None else text(channel_data, "channel_data")
                arguments += [text(auth, "auth"), data]
            subscribe = PUSHER.subscribe if auth is None else PUSHER.subscribe_with
            made = new(subscribe, CHANNEL.free, *arguments)
            # If C has the name already, this is the number that it had.
            number = CHANNEL.get_number(made)
            known = self._channels.get(number)
            if known is None:
                channel: C = self._channel_type(self, name, made)
                self._channels[number] = channel
                return channel
            # Reports on the new attempt wait for the guard.
            known._refusal = None
        return known

    def _begin_signing_in(self, waits: bool) -> Outcome | None:
        """The result; None unless the caller waits."""
        handle = self._require_handle()
        if waits and not self._is_on:
            raise self._end()
        with self._guard:
            self._signs_in = True
            if waits:
                return SignIn(self).begin(handle)
            check(PUSHER.sign_in(handle, *UNAWAITED))
        return None

    def sign_out(self) -> None:
        """Ends ``sign_in``: no more events for the user arrive, and later connections do not sign
        in. A call of ``sign_in`` that waits raises ``SignInError``. Handlers and channels stay. The
        server considers the user signed in until the connection ends."""
        handle = self._require_handle()
        with self._guard:
            self._signs_in = False
            self.user._id = self.user._data = None
            check(PUSHER.sign_out(handle))
        self._changed()

    @property
    def _is_up(self) -> bool:
        handle = self._handle
        return handle is not None and PUSHER.get_state(handle) == _CONNECTED

    def _connection_result(self) -> Result:
        with self._guard:
            if self._is_up:
                return True
            return None if self._is_on else self._end()

    def _sign_in_error(self, failure: Failure) -> Exception:
        """What ``on_sign_in_failed`` received just before, or why the connection has ended."""
        refusal, found = self._refusal, (failure.status, failure.message)
        if refusal is not None and (refusal.status, str(refusal)) == found:
            return refusal
        with self._guard:
            return self._end() if self._is_over else failure.connection_error()

    # For iterations.

    def _owning(self) -> BasePusher[C]:
        return self

    def _check_open(self) -> None:
        self._require_handle()

    def _was_dropped(self, bindings: Bindings, binding: Binding) -> None:
        """Called when nothing refers to an iteration any more, on any thread."""
        binding.is_bound = False
        self._soon(lambda: self._let_go(bindings, binding))

    def _let_go(self, bindings: Bindings, binding: Binding) -> None:
        bindings.remove(lambda one: one is binding)
        self._emptied(binding)

    # The end.

    def close(self) -> None:
        """Drops the connection without a closing handshake, and releases it and its channels. No
        more handlers are called, iterations end, and queued events are discarded."""
        if not self._is_closed:
            self._failure = None
            self._ended()

    def _ended(self) -> None:
        self._is_on = False
        super()._ended()
        with self._guard:
            channels = list(self._channels.values())
            self._channels = {}
        for channel in channels:
            self._drop(channel)
        for bindings in (self._bindings, self.user._bindings):
            bindings.remove(lambda _: True)
        self.user._id = self.user._data = None
        self._changed()

    def _missed(self, handle: Handle) -> None:
        if STATES.get(PUSHER.get_state(handle)) == "disconnected":
            self._ends += 1
            self._is_on = False

    def _drop(self, channel: C) -> None:
        channel._end()
        self._channel_changed(channel)

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        change = PusherStateChange(self.state, "disconnected", None, "", error, None, 0)
        self._failure = error
        handlers = self._handlers
        self._ended()
        if handlers.on_state is not None:
            self._call(handlers.on_state, change)

    @property
    def _is_over(self) -> bool:
        """Whether no more events will come."""
        return self._is_closed or not self._is_on

    def _end(self) -> RealtimeError:
        message = "the connection is closed" if self._is_closed else "it is disconnected"
        return self._failure or StreamEnded(rt_status.ERROR_CLOSED, message)

    @property
    def _calls_back(self) -> bool:
        """Whether events have somewhere to go even if nobody refers to this object."""
        return self._is_on and self._has_readers

    def _describe(self) -> str:
        count = len(self._channels)
        return f"{self.state}, {count} channel{'' if count == 1 else 's'}"

    def _handlers_changed(self) -> None:
        """Called after handlers were set, bound or removed."""
        has_handlers = any(
            function is not None and name.startswith("on_")
            for name, function in vars(self._handlers).items()
        )
        self._has_readers = (
            has_handlers or bool(self._bindings) or bool(self.user._bindings) or bool(self._telling)
        )

    # Overridden by the asyncio and the blocking class.

    def _soon(self, function: Any) -> None:
        """Calls a function on the thread of the object; this may be called on any."""
        raise NotImplementedError


def _bind_user(registration: Registration, handle: Handle) -> None:
    def bind(handle: Handle, function: Any, key: int, destroy: Any) -> int:
        status: int = PUSHER.user_bind(handle, None, function, key, destroy, None)
        return status

    registration.set(bind, handle, USER_EVENT.trampoline)
