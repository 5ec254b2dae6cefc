"""Channels, for asyncio and blocking programs."""

from __future__ import annotations

import ctypes
import weakref
from types import SimpleNamespace
from typing import Any, Callable, Literal, Optional

from .._core.abi import (
    rt_pusher_channel_kind,
    rt_pusher_channel_state,
    rt_status,
)
from .._core.errors import InvalidState, RealtimeError, StreamEnded, check
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.kind import read_text
from .._core.outcome import Result
from .._core.values import encode, names_of, text
from .._rest.options import json_text
from .bindings import Bindings
from .callbacks import CHANNEL, members
from .errors import SubscriptionError
from .objects import ChannelKind, PusherMember
from .streams import Backlog, Listening

ChannelState = Literal["idle", "authorizing", "sent", "subscribed", "failed", "unsubscribed"]
OnMember = Optional[Callable[[PusherMember], object]]
OnCount = Optional[Callable[[int], object]]

KINDS: dict[int, ChannelKind] = {
    value: name for name, value in names_of(rt_pusher_channel_kind).items()
}
STATES: dict[int, ChannelState] = {
    value: name for name, value in names_of(rt_pusher_channel_state).items()
}
_SUBSCRIBED = int(rt_pusher_channel_state.SUBSCRIBED)


class BaseChannel(Listening):
    """A channel of a ``Pusher``, which ``subscribe`` returns.

    :ivar name: its name.
    :ivar kind: ``"public"``, ``"private"``, ``"encrypted"`` or ``"presence"``.
    """

    def __init__(self, pusher: Any, name: str, handle: Handle) -> None:
        self.name = name
        self._number: int = CHANNEL.get_number(handle)
        self.kind: ChannelKind = KINDS[CHANNEL.get_kind(handle)]
        self._pusher = weakref.ref(pusher)
        self._handle: Handle | None = handle
        # Why the subscription failed, until it is tried again.
        self._refusal: SubscriptionError | None = None
        self._handlers = SimpleNamespace(
            on_member_added=None, on_member_removed=None, on_subscription_count=None
        )
        self._bindings = Bindings(weakref.ref(self))
        self._backlog = backlog = Backlog()
        self._bindings.add(None, backlog.put)

    def __repr__(self) -> str:
        kind = type(self)
        try:
            what = f"{self.name} {self.state}"
        except RealtimeError as error:  # in a forked process
            what = error.name
        return f"<{kind.__module__}.{kind.__name__} {what}>"

    # State.

    @property
    def state(self) -> ChannelState:
        """``"idle"`` while it waits for a connection, or for the server to answer an earlier
        subscription that was ended, ``"authorizing"``, ``"sent"`` while the server's answer is
        awaited, ``"subscribed"``, ``"failed"`` or ``"unsubscribed"``."""
        handle = self._handle
        if handle is None:
            return "unsubscribed"
        state = CHANNEL.get_state(handle)
        check(state)
        return STATES[state]

    @property
    def is_subscribed(self) -> bool:
        """Whether the server has confirmed the subscription on the current connection."""
        handle = self._handle
        return handle is not None and CHANNEL.get_state(handle) == _SUBSCRIBED

    @property
    def subscription_count(self) -> int | None:
        """The number of subscribers that the server sent last; None if it has sent none."""
        handle, count = self._handle, ctypes.c_uint64()
        if handle is None:
            return None
        status = CHANNEL.get_subscription_count(handle, ctypes.byref(count))
        if status == rt_status.ERROR_NOT_FOUND:
            return None
        check(status)
        return count.value

    # Presence.

    @property
    def members(self) -> list[PusherMember]:
        """The members of a presence channel, oneself included, in the order in which they came;
        none while the channel is not subscribed."""
        handle = self._handle
        if handle is None:
            return []
        return members(lambda collect, key: CHANNEL.each_member(handle, collect, key))

    @property
    def my_id(self) -> str | None:
        """One's own user id on a presence channel; None while it is not subscribed."""
        handle = self._handle
        return (read_text(CHANNEL.get_my_id, handle) or None) if handle is not None else None

    @property
    def me(self) -> PusherMember | None:
        """Oneself as a member of a presence channel; None while it is not subscribed."""
        id_ = self.my_id
        return None if id_ is None else self.find_member(id_)

    def find_member(self, user_id: str) -> PusherMember | None:
        """The member with this id, or None."""
        handle, id_ = self._handle, text(user_id, "the user's id")
        if handle is None:
            return None
        found = members(lambda collect, key: CHANNEL.find_member(handle, id_, collect, key))
        return found[0] if found else None

    on_member_added: Handler[OnMember] = Handler(
        "Called with each ``PusherMember`` that joins a presence channel. May be set at any time."
    )
    on_member_removed: Handler[OnMember] = Handler(
        "Called with each ``PusherMember`` that left a presence channel. May be set at any time."
    )
    on_subscription_count: Handler[OnCount] = Handler(
        "Called with the number of subscribers, if the server sends it. May be set at any time."
    )

    def _set_handler(self, name: str, handler: object) -> None:
        self._handlers = SimpleNamespace(**{**vars(self._handlers), name: handler})
        self._handlers_changed()

    def _handlers_changed(self) -> None:
        """Called after handlers were set, bound or removed."""
        pusher = self._pusher()
        if pusher is not None:
            (pusher._telling.add if self._calls_back else pusher._telling.discard)(self)
            pusher._handlers_changed()

    # Methods.

    def trigger(self, event: str, data: Any = None) -> None:
        """Sends a client event to the other subscribers of a private or presence channel, in the
        order of the calls. Before the channel is subscribed it is queued; ``on_trigger_failed``
        reports those that do not fit. What the server rejects is reported to ``on_error``.

        :param event: a name that begins with ``client-``.
        :param data: any value that JSON can represent.
        :raises InvalidArgument: for another name, for a channel of another kind, and for data that
            JSON cannot represent.
        :raises StreamEnded: if the channel is unsubscribed.
        :raises BufferFull: if 8 MiB wait to be sent.
        """
        encoded_data = encode(json_text(data), "the data")
        handle, name = self._require_handle(), text(event, "the name of an event")
        check(CHANNEL.trigger(handle, name, encoded_data, len(encoded_data)))

    def unsubscribe(self) -> None:
        """Ends the subscription, and removes all handlers. Does nothing if it has ended."""
        pusher = self._pusher()
        if pusher is not None and self._handle is not None:
            pusher.unsubscribe(self.name)

    # For the connection.

    def _owning(self) -> Any:
        pusher = self._pusher()
        if pusher is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection of this channel is gone")
        return pusher

    def _require_handle(self) -> Handle:
        if self._handle is None:
            raise StreamEnded(rt_status.ERROR_STATE, f"channel {self.name} is unsubscribed")
        return self._handle

    @property
    def _is_gone(self) -> bool:
        return self._handle is None

    @property
    def _calls_back(self) -> bool:
        has_handlers = any(handler is not None for handler in vars(self._handlers).values())
        return has_handlers or (self._backlog is None and bool(self._bindings))

    def _check_open(self) -> None:
        self._require_handle()

    def _end(self) -> None:
        """Called when it is unsubscribed, or the connection is closed."""
        self._handle = None
        self._handlers = SimpleNamespace(**dict.fromkeys(vars(self._handlers)))
        self._bindings.remove(lambda _: True)
        self._handlers_changed()

    def _result(self) -> Result:
        """Whether the subscription succeeded, or why not."""
        if self.is_subscribed:
            return True
        if self._refusal is not None:
            return self._refusal
        if self._is_gone:
            return StreamEnded(rt_status.ERROR_CLOSED, f"channel {self.name} is unsubscribed")
        pusher = self._owning()
        with pusher._guard:
            error: Exception | None = pusher._end() if pusher._is_over else None
        return error
