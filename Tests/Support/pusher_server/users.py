"""Users that have signed in, and the watchlists of others that they are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pusher_server.messages import compact

if TYPE_CHECKING:
    from pusher_server.connection import Connection
    from pusher_server.settings import Settings


class Users:
    """A user is online while one of its connections is signed in."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connections: dict[str, list[Connection]] = {}

    def sign_in(
        self, connection: Connection, user_id: str, info: Any, watchlist: list[str]
    ) -> None:
        """Signs a connection in, and tells it which users of its watchlist are online."""
        if connection.user_id is not None:
            self.sign_out(connection)
        connection.user_id, connection.user_info = user_id, info
        connection.watchlist = [str(name) for name in watchlist]
        known = self._connections.setdefault(user_id, [])
        known.append(connection)
        if len(known) == 1:
            self._announce("online", user_id)
        online = [name for name in connection.watchlist if name in self._connections]
        offline = [name for name in connection.watchlist if name not in self._connections]
        lists = {"online": online, "offline": offline}
        self._send(connection, {name: users for name, users in lists.items() if users})

    def sign_out(self, connection: Connection) -> None:
        if connection.user_id is None:
            return
        user_id, connection.user_id = connection.user_id, None
        left = self._connections[user_id]
        left.remove(connection)
        if not left:
            del self._connections[user_id]
            self._announce("offline", user_id)

    def connections(self, user_id: str) -> list[Connection]:
        return list(self._connections.get(user_id, ()))

    def _announce(self, event: str, user_id: str) -> None:
        for connections in self._connections.values():
            for connection in connections:
                if user_id in connection.watchlist and connection.user_id != user_id:
                    self._send(connection, {event: [user_id]})

    def _send(self, connection: Connection, lists: dict[str, list[str]]) -> None:
        """Sends user ids by the name of the event."""
        if self._settings.watchlist == "bare":
            for event, ids in lists.items():
                connection.send(event, data=compact({"user_ids": ids}))
        elif self._settings.watchlist == "wrapped" and lists:
            events = [{"name": event, "user_ids": ids} for event, ids in lists.items()]
            data = compact({"events": events})
            connection.send("pusher_internal:watchlist_events", data=data)
