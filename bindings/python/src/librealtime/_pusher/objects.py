"""What a Pusher connection passes to handlers, besides events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .._core.errors import RealtimeError
from .errors import PushError

#: ``"disconnected"`` means that no attempt follows by itself.
State = Literal["connecting", "connected", "disconnecting", "disconnected", "reconnecting"]
ChannelKind = Literal["public", "private", "encrypted", "presence"]


@dataclass(frozen=True)
class PusherStateChange:
    """A change of a connection's state; passed to ``on_state``.

    :ivar old: the state before.
    :ivar new: the state now.
    :ivar close_code: of the server; None without one.
    :ivar close_reason: of the server; ``""`` without one.
    :ivar error: why the connection was lost or ended; None if nothing failed.
    :ivar retry_in: seconds until the next attempt; None if there is none, or if it waits for a
        network.
    :ivar attempts: how many attempts have failed since it was last connected.
    """

    old: State
    new: State
    close_code: int | None
    close_reason: str
    error: RealtimeError | None
    retry_in: float | None
    attempts: int


@dataclass(frozen=True)
class PusherMember:
    """A member of a presence channel: a user, who may have several connections.

    :ivar id: the user's id.
    :ivar info: what the authorization says about the user; None for nothing.
    """

    id: str
    info: Any = None


@dataclass(frozen=True)
class PusherWatchlistEvent:
    """Users on the watchlist of the signed-in user who went online or offline.

    :ivar name: ``"online"`` or ``"offline"``.
    :ivar user_ids: their ids.
    """

    name: Literal["online", "offline"]
    user_ids: tuple[str, ...]


@dataclass(frozen=True)
class PusherPushResult:
    """The result of a call of ``pusher.push``; passed to ``on_push``.

    :ivar call: the name of the method.
    :ivar names: the interests; after a registration the id of this client.
    :ivar error: why it failed; None for success.
    :ivar http_status: of a response that refused the call; else 0.
    :ivar body: of that response.
    """

    call: Literal["register", "subscribe", "unsubscribe", "set_subscriptions"]
    names: tuple[str, ...]
    error: PushError | None
    http_status: int
    body: str
