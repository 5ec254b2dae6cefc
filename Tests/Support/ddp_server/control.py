"""What tests order: over HTTP as `POST /control/ACTION` with a JSON object, or from Python.

Documents, selectors, ids and other values are EJSON in its JSON form.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from event_log import Entry

from ddp_server import programs
from ddp_server.documents import selects
from ddp_server.ejson import decode, encode
from ddp_server.errors import MeteorError
from ddp_server.subscription import Publication, Subscription

if TYPE_CHECKING:
    from ddp_server.accounts import User
    from ddp_server.app import App
    from ddp_server.links import Link
    from ddp_server.session import Session

Json = dict[str, Any]


class Control:
    """The actions. The parameter `connection` is a number of the log, a session's id, or nothing:
    then the action concerns all connections."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def settings(self, **changes: Any) -> Json:
        """Changes settings; see settings.py."""
        self._app.settings.change(changes)
        return vars(self._app.settings)

    # Data

    async def collection(self, name: str, ids: str = "string", **allows: bool) -> None:
        """Makes a collection, to which clients may write. ids: string or objectId.

        allows: insert, update or remove, which are allowed unless they are False.
        """
        collection = self._app.collection(name)
        collection.ids = ids
        collection.allows.update(allows)

    async def insert(
        self, collection: str, *documents: Json, many: list[Json] | None = None
    ) -> None:
        """Inserts documents, which have an `_id`. Over HTTP they are the parameter `many`."""
        for document in [*documents, *(many or [])]:
            fields = decode(document)
            self._app.collection(collection).insert(fields.pop("_id"), fields)

    async def update(self, collection: str, id: Any, modifier: Json) -> int:
        """Changes a document; returns how many have this id."""
        return self._app.collection(collection).update(decode(id), decode(modifier))

    async def remove(self, collection: str, id: Any) -> int:
        return self._app.collection(collection).remove(decode(id))

    async def find(self, collection: str, selector: Any = None) -> list[Json]:
        """The documents of a collection."""
        wanted = decode({} if selector is None else selector)
        return [
            encode({"_id": id, **fields})
            for id, fields in self._app.collection(collection).all()
            if selects(wanted, id, fields)
        ]

    # Publications and methods

    async def publication(self, name: str | None = None, **plan: Any) -> None:
        """Declares a publication, which publishes cursors and is ready. Without a name, all clients
        that connect from now on get it.

        cursors: a list of {"collection", "selector", "fields"}, of which the last two may be
        missing; selectors may have what programs.py says. check: kinds of the parameters.
        hold: waits for `release` before. error: fails, with {"error": …}. crash: fails with what
        clients may not see. stops: stops itself after the documents. ready=False: never ready.
        """
        known = {"cursors", "check", "hold", "error", "crash", "stops", "ready"}
        if unknown := set(plan) - known:
            raise ValueError(f"no such part of a publication: {', '.join(sorted(unknown))}")
        publication = Publication(name, programs.publication(self._app, plan))
        if name is None:
            self._app.unnamed.append(publication)
        else:
            self._app.publications[name] = publication

    async def publish(
        self,
        name: str,
        do: str,
        collection: str = "",
        id: Any = None,
        fields: Json | None = None,
        cleared: list[str] | None = None,
        error: Json | None = None,
    ) -> int:
        """Calls added, changed, removed, ready, stop or error of a publication's subscriptions.

        Returns how many these are.
        """
        found = self._subscriptions(name)
        for one in found:
            if do == "added":
                one.added(collection, decode(id), decode(fields or {}))
            elif do == "changed":
                one.changed(collection, decode(id), decode(fields or {}), cleared)
            elif do == "removed":
                one.removed(collection, decode(id))
            elif do == "ready":
                one.ready()
            elif do == "stop":
                one.stop()
            elif do == "error":
                one.error(MeteorError(**(error or {"error": "stopped"})))
            else:
                raise ValueError(f"do is {do}, which publications have not")
        return len(found)

    async def method(self, name: str, ops: list[Json]) -> None:
        """Declares a method; see programs.py."""
        self._app.methods[name] = programs.method(ops)

    def _subscriptions(self, name: str) -> list[Subscription]:
        return [
            one
            for session in self._app.sessions.values()
            for one in list(session.subscriptions.values())
            if one.publication.name == name
        ]

    # Users

    async def user(self, **fields: Any) -> str:
        """Makes a user: username, email, password, profile, code (of a second factor).

        Returns the id.
        """
        return self._app.accounts.add(**{key: decode(value) for key, value in fields.items()}).id

    async def login_service(self, field: str, value: Any, username: str) -> None:
        """Declares a way to log in: `login` with {field: value} logs this user in."""
        self._app.accounts.services.append((field, decode(value), username))

    async def verify(self, username: str, address: str) -> None:
        """Sends the mail with which a user verifies an address."""
        self._app.accounts.mail("verifyEmail", self._user(username), address)

    async def mails(self) -> list[Json]:
        """The mails whose tokens can be used: kind, address, token, user."""
        return [dataclasses.asdict(one) for one in self._app.accounts.mails]

    async def tokens(self, username: str) -> list[str]:
        """The login tokens of a user."""
        return list(self._user(username).tokens)

    async def remove_tokens(self, username: str) -> None:
        """Logs a user out everywhere, as an administrator would."""
        user = self._user(username)
        self._app.accounts.remove_tokens(user, set(user.tokens))

    def _user(self, username: str) -> User:
        user = self._app.accounts.search({"username": username})
        if user is None:
            raise ValueError(f"no user {username}")
        return user

    # Faults

    async def fault(self, **fields: Any) -> None:
        """Orders a fault; see faults.py."""
        self._app.faults.add(**fields)

    async def clear(self) -> None:
        """Forgets faults that have not happened."""
        self._app.faults.clear()

    async def release(self, count: int | None = None) -> int:
        """Continues the steps that faults and programs hold, the oldest first.

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

    async def send(self, text: str, connection: int | str | None = None) -> None:
        """Sends a text that need not be a message."""
        for one in self._links(connection):
            one.send_text(text)

    async def send_frame(
        self, kind: str, text: str = "", connection: int | str | None = None
    ) -> None:
        """Sends a WebSocket frame: binary, ping or pong; or, as `raw`, bytes that need not be one.

        Each character of the text is a byte.
        """
        for one in self._links(connection):
            one.send_frame(kind, text.encode("latin-1"))

    async def close(
        self, code: int = 1000, reason: str = "", connection: int | str | None = None
    ) -> None:
        """Closes connections, after the messages that wait."""
        for one in self._links(connection):
            one.close(code, reason)

    async def end(self, how: str = "end", connection: int | str | None = None) -> None:
        """Ends connections without a close frame: end, reset, or stall."""
        for one in self._links(connection):
            one.end(how)

    async def restart(self) -> None:
        """Resets all connections and forgets all sessions, as a new process would. Data stay."""
        self._app.crash()

    # What happened

    async def log(self, after: int = 0, **fields: Any) -> list[Entry]:
        """The entries with these fields.

        Each entry has a `number`, and as `what` one of:
        open       a connection was opened: connection, transport (websocket or xhr), path, headers,
                   tls
        in, out    a message: connection, text, message, and its msg, id and name (of the method,
                   the publication or the collection), which are None if it has no such member
        frame      another WebSocket frame arrived: connection, kind (binary, ping, pong or close),
                   and the code and reason of a close frame
        end        a connection has ended: connection
        run        a method or publication begins: kind (method or sub), name, id, user_id
        mail       a mail would have been sent: kind, address, token, user
        """
        return self._app.log.find(after, **fields)

    async def wait(
        self, count: int = 1, timeout: float = 30, after: int = 0, **fields: Any
    ) -> list[Entry]:
        """Waits until the log has so many entries with these fields, and returns them."""
        return await self._app.log.wait(count, timeout, after, **fields)

    async def wait_connections(self, count: int, timeout: float = 30) -> None:
        """Waits until there are exactly so many connections."""
        await self._app.log.until(lambda: len(self._app.links) == count, timeout)

    async def sessions(self) -> list[Json]:
        """The sessions, with the connection's number or null, and all that is published to each."""
        return [self._described(one) for one in self._app.sessions.values()]

    def _described(self, session: Session) -> Json:
        documents = {
            collection: {id: encode_fields(fields) for id, fields in found.items()}
            for collection, found in session.view.documents().items()
        }
        return {
            "session": session.id,
            "connection": session.link.number if session.link else None,
            "version": session.version,
            "user_id": session.user_id,
            "sent": session.sent,
            "subscriptions": {
                id: one.publication.name for id, one in session.subscriptions.items()
            },
            "documents": documents,
        }

    def _links(self, connection: int | str | None) -> list[Link]:
        return [
            one
            for one in self._app.links
            if connection is None
            or connection == one.number
            or (one.session and one.session.id == connection)
        ]


def encode_fields(fields: Json) -> Json:
    """The form of `fields` in messages, which `encode` would escape as a whole."""
    return {key: encode(value) for key, value in fields.items()}
