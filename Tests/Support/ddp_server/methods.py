"""Method calls: what a method gets, the answers to its call, and the writes of clients."""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ddp_server.alea import Streams
from ddp_server.documents import Collection, id_of, selects
from ddp_server.ejson import ObjectID, decode, encode
from ddp_server.errors import MeteorError, visible

if TYPE_CHECKING:
    from ddp_server.app import App
    from ddp_server.session import Session

#: What a method returns that returns nothing.
NOTHING = object()
Method = Callable[["Invocation", list[Any]], Awaitable[Any]]


class Invocation:
    """What a method may do. A method that another one calls has its own streams of random ids."""

    def __init__(
        self, session: Session, method: str, streams: Streams, unblock: Callable[[], None]
    ) -> None:
        self.session, self.method, self.streams, self.unblock = session, method, streams, unblock

    @property
    def app(self) -> App:
        return self.session.app

    @property
    def user_id(self) -> str | None:
        return self.session.user_id

    def insert(self, collection: Collection, document: dict[str, Any]) -> Any:
        """Returns the id, which may be in the document."""
        fields = {key: value for key, value in document.items() if key != "_id"}
        id = document["_id"] if "_id" in document else self._new_id(collection)
        collection.insert(id, fields)
        return id

    def _new_id(self, collection: Collection) -> Any:
        stream = self.streams.stream(f"/collection/{collection.name}")
        return ObjectID(stream.hex(24)) if collection.ids == "objectId" else stream.id()

    def find(self, collection: Collection, selector: Any) -> list[dict[str, Any]]:
        return [
            {"_id": id, **copy.deepcopy(fields)}
            for id, fields in collection.all()
            if selects(selector, id, fields)
        ]

    async def call(self, method: str, params: list[Any]) -> Any:
        """Calls another method. Its errors go to the caller."""
        inner = Invocation(self.session, method, self.streams.inner(method), self.unblock)
        return await find(self.app, method)(inner, params)


def find(app: App, name: str) -> Method:
    """The method of a name: a test's, one of accounts, or a write to a collection."""
    if name in app.methods:
        return app.methods[name]
    if match := re.fullmatch("/(.+)/(insert|update|remove)(Async)?", name):
        collection = app.collections.get(match[1])
        if collection is not None:
            return lambda invocation, params: _write(invocation, collection, match[2], params)
    raise MeteorError(404, f"Method '{name}' not found")


async def run(session: Session, message: dict[str, Any], unblock: Callable[[], None]) -> None:
    """Runs the method of a message, and answers."""
    id, name, seed = message.get("id"), message.get("method"), message.get("randomSeed")
    params = message.get("params", [])
    is_complete = isinstance(id, str) and isinstance(name, str) and isinstance(params, list)
    if not is_complete or not isinstance(seed, (str, type(None))):
        return session.error("Malformed method invocation", message)
    app = session.app
    result: dict[str, Any] = {"msg": "result", "id": id}
    updated = {"msg": "updated", "methods": [id]}
    try:
        method = find(app, str(name))
    except MeteorError as error:
        session.send({**result, "error": error.as_json()})
        return session.send(updated)
    app.log.add("run", kind="method", name=name, id=id, user_id=session.user_id)
    invocation = Invocation(session, str(name), Streams(seed), unblock)
    try:
        app.accounts.limit(session, str(name))
        value = await method(invocation, [decode(one) for one in params])
        if value is not NOTHING:
            result["result"] = encode(value)
    except Exception as error:  # whatever a method throws
        result["error"] = visible(error).as_json()
    is_updated_first = app.settings.order == "updated"
    for answer in (updated, result) if is_updated_first else (result, updated):
        session.send(answer)
    after, session.after_result = session.after_result, []
    for step in after:
        step()
    return None


async def _write(
    invocation: Invocation, collection: Collection, action: str, params: list[Any]
) -> Any:
    """A client's own write."""
    if not params or not collection.allows[action]:
        raise MeteorError(403 if params else 400, "Access denied" if params else "Match failed")
    if action == "insert":
        if not isinstance(params[0], dict):
            raise MeteorError(400, "Match failed")
        id = invocation.insert(collection, params[0])
        return [{"_id": id}] if invocation.app.settings.insert_result == "documents" else id
    id = id_of(params[0])
    if action == "remove":
        return collection.remove(id)
    options = params[2] if len(params) > 2 and isinstance(params[2], dict) else {}
    if options.get("upsert"):
        raise MeteorError(403, "Access denied. Upserts not allowed in a restricted collection.")
    return collection.update(id, params[1] if len(params) > 1 else None)
