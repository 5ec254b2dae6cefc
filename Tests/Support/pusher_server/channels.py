"""Channels: their kinds, subscribers, members and cached events."""

from __future__ import annotations

import dataclasses
import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pusher_server.connection import Connection

_NAME = re.compile(r"[-A-Za-z0-9_=@,.;]+")
USER_PREFIX = "#server-to-user-"


def kind_of(name: str) -> str:
    """encrypted, private, presence, user or public."""
    if name.startswith("private-encrypted-"):
        return "encrypted"
    if name.startswith(USER_PREFIX):
        return "user"
    prefix = name.partition("-")[0] if "-" in name else ""
    return prefix if prefix in ("private", "presence") else "public"


def is_cache(name: str) -> bool:
    prefixes = ("cache-", "private-cache-", "presence-cache-", "private-encrypted-cache-")
    return name.startswith(prefixes)


def is_valid(name: str, longest: int) -> bool:
    """Whether a channel that a client or a publisher names may exist."""
    return len(name) <= longest and _NAME.fullmatch(name.removeprefix("#")) is not None


@dataclasses.dataclass
class Member:
    """A user of a presence channel. The id is as the client's data had it, text or a number."""

    id: Any
    info: Any

    @property
    def key(self) -> str:
        return str(self.id)


@dataclasses.dataclass
class CachedEvent:
    event: str
    data: object
    expires: float


class Channel:
    """A channel exists while it has subscribers or a cached event."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = kind_of(name)
        #: In the order of subscription; with the member, on presence channels.
        self.subscribers: dict[Connection, Member | None] = {}
        self.cached: CachedEvent | None = None
        self.counted = 0.0  # when the count was sent last
        self.is_count_due = False

    def others_of(self, connection: Connection, member: Member) -> bool:
        """Whether another connection of the same user is subscribed."""
        return any(
            other is not connection and theirs is not None and theirs.key == member.key
            for other, theirs in self.subscribers.items()
        )

    def users(self) -> dict[str, Member]:
        """One member for each user."""
        return {member.key: member for member in self.subscribers.values() if member is not None}

    def presence(self, by: str, with_ids: bool) -> dict[str, Any]:
        """The data of a successful subscription."""
        users = self.users()
        count = len(self.subscribers) if by == "connection" else len(users)
        table: dict[str, Any] = {"count": count}
        if with_ids:
            table["ids"] = [member.id for member in users.values()]
        table["hash"] = {key: member.info for key, member in users.items()}
        return {"presence": table}

    def cache(self, event: str, data: object, lifetime: float) -> None:
        self.cached = CachedEvent(event, data, time.monotonic() + lifetime)

    def take_cached(self) -> CachedEvent | None:
        """The cached event, unless it has expired."""
        if self.cached is not None and self.cached.expires <= time.monotonic():
            self.cached = None
        return self.cached
