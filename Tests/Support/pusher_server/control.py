"""What tests order: over HTTP as `POST /control/ACTION` with a JSON object, or from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from event_log import Entry

from pusher_server import signatures
from pusher_server.channels import kind_of
from pusher_server.messages import as_text

if TYPE_CHECKING:
    from pusher_server.app import App
    from pusher_server.connection import Connection


class Control:
    """The actions. The parameter `connection` is a number of the log, a socket id, or nothing:
    then the action concerns all connections."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def settings(self, **changes: Any) -> dict[str, Any]:
        """Changes settings; see settings.py. `dialect` sets those of a server."""
        self._app.settings.change(changes)
        return vars(self._app.settings)

    async def fault(self, **fields: Any) -> None:
        """Orders a fault; see faults.py."""
        self._app.faults.add(**fields)

    async def auth(self, **fields: Any) -> None:
        """Orders how the authorization endpoints answer; see auth.py."""
        self._app.authorizer.plan(**fields)

    async def user(self, **fields: Any) -> None:
        """Sets the user whom the endpoints authorize: user_id, user_info, watchlist."""
        self._app.authorizer.user = fields

    async def wrap_batches(self, wrap: bool = True) -> None:
        """Selects the other form of answers to batches: with `status` and `data`."""
        self._app.authorizer.wraps_batches = wrap

    async def push(self, **fields: Any) -> None:
        """Orders how the service of push notifications answers; see push.py."""
        self._app.push.plan(**fields)

    async def interests(self) -> dict[str, list[str]]:
        """The interests of each device that has registered."""
        return self._app.push.interests

    async def clear(self) -> None:
        """Forgets faults and plans that have not happened."""
        self._app.faults.clear()
        self._app.authorizer.clear()
        self._app.push.clear()

    async def release(self, count: int | None = None) -> int:
        """Continues the steps that faults and the mode `hang` hold, the oldest first.

        Returns how many these were.
        """
        count = len(self._app.held) if count is None else count
        steps, self._app.held[:count] = self._app.held[:count], []
        for step in steps:
            step()
        return len(steps)

    async def wait_held(self, count: int = 1, timeout: float = 30) -> None:
        """Waits until so many steps are held."""
        await self._app.log.until(lambda: len(self._app.held) >= count, timeout)

    async def publish(
        self,
        channel: str,
        event: str,
        data: Any = None,
        socket_id: str | None = None,
        encrypt: bool = True,
        encode: bool = True,
        count: int = 1,
    ) -> None:
        """Publishes an event without a signature, encrypted on encrypted channels.

        encode: whether data that are not a string become one. count: how many equal events.
        """
        value = as_text(data) if encode else data
        for _ in range(count):
            if encrypt and kind_of(channel) == "encrypted":
                key = signatures.shared_secret(self._app.master_key, channel)
                self._app.publish(channel, event, signatures.encrypt(key, str(value)), socket_id)
            else:
                self._app.publish(channel, event, value, socket_id)

    async def send(self, text: str, connection: int | str | None = None) -> None:
        """Sends a text frame as it is."""
        for one in self._chosen(connection):
            one.send_text(text)

    async def send_frame(
        self, kind: str, text: str = "", connection: int | str | None = None
    ) -> None:
        """Sends a frame: binary, ping or pong; or, as `raw`, bytes that need not be a frame.

        Each character of the text is a byte.
        """
        for one in self._chosen(connection):
            one.send_bytes(kind, text.encode("latin-1"))

    async def close(
        self,
        code: int | None = None,
        reason: str = "",
        connection: int | str | None = None,
    ) -> None:
        """Sends a close frame, after the messages that wait."""
        for one in self._chosen(connection):
            one.close(code, reason)

    async def end(self, how: str = "end", connection: int | str | None = None) -> None:
        """Ends connections without a close frame: end, reset, or stall."""
        for one in self._chosen(connection):
            one.end(how)

    async def log(self, after: int = 0, **fields: Any) -> list[Entry]:
        """The entries with these fields.

        Each entry has a `number`, and as `what` one of:
        open       a WebSocket was opened: connection, socket_id, path, query, headers, tls
        in, out    a frame: connection, socket_id, kind (text, binary, ping, pong, close), text, and
                   the message's event, channel and data, or the code and reason of a close frame
        end        a connection has ended: connection, socket_id
        auth       a request to an authorization endpoint: path, form, headers, channels, status
        publish    a request to the publish API: method, path, query, body, status
        push       a request to the service of push notifications: method, path, headers, body,
                   status
        """
        return self._app.log.find(after, **fields)

    async def wait(
        self, count: int = 1, timeout: float = 30, after: int = 0, **fields: Any
    ) -> list[Entry]:
        """Waits until the log has so many entries with these fields, and returns them."""
        return await self._app.log.wait(count, timeout, after, **fields)

    async def wait_connections(self, count: int, timeout: float = 30) -> None:
        """Waits until there are exactly so many connections."""
        await self._app.log.until(lambda: len(self._app.connections) == count, timeout)

    async def connections(self) -> list[dict[str, Any]]:
        """The connections that are open."""
        return [
            {
                "connection": one.number,
                "socket_id": one.socket_id,
                "user_id": one.user_id,
                "channels": list(one.channels),
            }
            for one in self._app.connections
        ]

    def _chosen(self, connection: int | str | None) -> list[Connection]:
        return [
            one
            for one in self._app.connections
            if connection is None or connection in (one.number, one.socket_id)
        ]
