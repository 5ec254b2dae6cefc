"""How the server behaves, where Meteor's versions and the options of servers differ."""

from __future__ import annotations

import dataclasses
from typing import Any

VERSIONS = ("1", "pre2", "pre1")


@dataclasses.dataclass
class Settings:
    """The comments name the possible values. Times are in seconds."""

    # Transport
    greeting: bool = False  # old servers send {"server_id":"0"} first
    compression: bool = True  # whether the server accepts permessage-deflate
    websocket: bool = True  # False: requests for a WebSocket get 404, as behind some proxies
    sockjs: bool = True  # False: 404
    sticky: bool = False  # a load balancer: the cookie of a SockJS session, or 404
    sockjs_heartbeat: float = 45
    sockjs_timeout: float = 5  # a SockJS session without a poll ends after this time

    # Connections
    versions: tuple[str, ...] = VERSIONS  # the server prefers the first one
    heartbeat_interval: float = 15  # 0: no heartbeat
    heartbeat_timeout: float = 15
    answers_pings: bool = True
    resumes: bool = False  # whether sessions can be resumed, as from Meteor 3.5 on
    resume_grace: float = 15
    resume_queue: int = 100

    # Methods
    order: str = "updated"  # or result: which of the two messages comes first
    insert_result: str = "id"  # or documents: very old servers answer with [{"_id": …}]

    # Accounts
    token_life: float = 90 * 24 * 3600
    late_user_document: bool = False  # whether it is published after the result of a login
    signups: bool = True
    logins: int = 5  # how many calls of login and similar methods a connection may make…
    logins_window: float = 10  # …in this time; 0 calls: no limit

    def change(self, changes: dict[str, Any]) -> None:
        unknown = set(changes) - {field.name for field in dataclasses.fields(self)}
        if unknown:
            raise ValueError(f"no such setting: {', '.join(sorted(unknown))}")
        for key, value in changes.items():
            setattr(self, key, tuple(value) if isinstance(value, list) else value)
