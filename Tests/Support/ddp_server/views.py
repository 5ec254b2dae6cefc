"""What a client has of each document: the merge of everything that its subscriptions publish."""

from __future__ import annotations

import copy
from typing import Any, Protocol

from ddp_server.documents import Document
from ddp_server.ejson import equal


class Output(Protocol):
    """Receives the differences. Ids are in wire form; `cleared` are fields that are gone."""

    def added(self, collection: str, id: str, fields: Document) -> None: ...

    def changed(self, collection: str, id: str, fields: Document, cleared: list[str]) -> None: ...

    def removed(self, collection: str, id: str) -> None: ...


class _View:
    """One document. Each field has a value from each publisher, of which the oldest one is sent."""

    def __init__(self) -> None:
        self.publishers: set[str] = set()
        self._values: dict[str, dict[str, Any]] = {}

    def fields(self) -> Document:
        return {key: next(iter(values.values())) for key, values in self._values.items()}

    def set(self, publisher: str, fields: Document) -> None:
        for key, value in fields.items():
            if key != "_id":
                self._values.setdefault(key, {})[publisher] = copy.deepcopy(value)

    def clear(self, publisher: str, keys: list[str]) -> None:
        for key in keys:
            values = self._values.get(key, {})
            values.pop(publisher, None)
            if not values:
                self._values.pop(key, None)

    def leave(self, publisher: str) -> None:
        self.publishers.discard(publisher)
        self.clear(publisher, list(self._values))


class MergeBox:
    """All documents of one session. A publisher is the id of a subscription, or of an unnamed
    publication."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._views: dict[tuple[str, str], _View] = {}
        #: What the client has, while nothing is sent to it.
        self._before: dict[tuple[str, str], Document] | None = None

    def added(self, publisher: str, collection: str, id: str, fields: Document) -> None:
        key = collection, id
        before = self._fields(key)
        view = self._views.setdefault(key, _View())
        view.publishers.add(publisher)
        view.set(publisher, fields)
        self._send(key, before)

    def changed(
        self, publisher: str, collection: str, id: str, fields: Document, cleared: list[str]
    ) -> None:
        key = collection, id
        if key not in self._views:
            raise ValueError(f"could not find element with id {id} to change")
        before = self._fields(key)
        self._views[key].set(publisher, fields)
        self._views[key].clear(publisher, cleared)
        self._send(key, before)

    def removed(self, publisher: str, collection: str, id: str) -> None:
        key = collection, id
        if key not in self._views:
            raise ValueError(f"removed nonexistent document {id}")
        before = self._fields(key)
        self._views[key].leave(publisher)
        if not self._views[key].publishers:
            del self._views[key]
        self._send(key, before)

    def reset(self) -> None:
        """Forgets all publishers. Nothing is sent until `continue_`."""
        self._before = {key: view.fields() for key, view in self._views.items()}
        self._views.clear()

    def continue_(self) -> None:
        """Sends the differences since `reset`, and sends at once again."""
        before, self._before = self._before or {}, None
        for key in [*before, *(key for key in self._views if key not in before)]:
            self._send(key, before.get(key))

    def documents(self) -> dict[str, dict[str, Document]]:
        """What the client has when it has received everything, by collection and id."""
        found: dict[str, dict[str, Document]] = {}
        for (collection, id), view in self._views.items():
            found.setdefault(collection, {})[id] = view.fields()
        return found

    def _fields(self, key: tuple[str, str]) -> Document | None:
        return self._views[key].fields() if key in self._views else None

    def _send(self, key: tuple[str, str], before: Document | None) -> None:
        if self._before is not None:
            return
        after = self._fields(key)
        if before is None and after is not None:
            self._output.added(*key, after)
        elif before is not None and after is None:
            self._output.removed(*key)
        elif before is not None and after is not None:
            fields = {
                name: value
                for name, value in after.items()
                if name not in before or not equal(value, before[name])
            }
            cleared = [name for name in before if name not in after]
            if fields or cleared:
                self._output.changed(*key, fields, cleared)
