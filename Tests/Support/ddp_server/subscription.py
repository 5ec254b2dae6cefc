"""Publications, and the subscriptions that run them."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ddp_server.documents import Collection, Document, Observer, projected, selects
from ddp_server.ejson import equal, id_to_wire

if TYPE_CHECKING:
    from ddp_server.session import Session


@dataclasses.dataclass
class Publication:
    """`handler` gets the subscription and its parameters; without a name it runs for everybody."""

    name: str | None
    handler: Callable[[Subscription, list[Any]], Awaitable[None]]


class Subscription:
    """One client's run of a publication. Its methods are those of Meteor's publish functions."""

    def __init__(
        self, session: Session, publication: Publication, id: str, params: list[Any]
    ) -> None:
        self.session, self.publication, self.id = session, publication, id
        self.params = params  # in JSON form
        self.is_active = True
        self._is_ready = False
        self._documents: dict[tuple[str, str], None] = {}
        self._cursors: list[tuple[Collection, Observer]] = []

    @property
    def user_id(self) -> str | None:
        return self.session.user_id

    async def run(self) -> None:
        try:
            await self.publication.handler(self, self.params)
        except Exception as error:  # whatever a publication throws
            self.error(error)

    def again(self) -> Subscription:
        """The same subscription, for another user."""
        return Subscription(self.session, self.publication, self.id, self.params)

    def deactivate(self) -> None:
        """Publishes no more, and leaves what the client has."""
        self.is_active = False
        for collection, observer in self._cursors:
            collection.observers.remove(observer)
        self._cursors.clear()

    def remove_all(self) -> None:
        for collection, id in list(self._documents):
            self.session.view.removed(self.id, collection, id)
        self._documents.clear()

    # For publications

    def added(self, collection: str, id: Any, fields: Document) -> None:
        if self.is_active:
            self._documents[(collection, id_to_wire(id))] = None
            self.session.view.added(self.id, collection, id_to_wire(id), fields)

    def changed(
        self, collection: str, id: Any, fields: Document, cleared: list[str] | None = None
    ) -> None:
        if self.is_active:
            view = self.session.view
            view.changed(self.id, collection, id_to_wire(id), fields, cleared or [])

    def removed(self, collection: str, id: Any) -> None:
        if self.is_active:
            self._documents.pop((collection, id_to_wire(id)), None)
            self.session.view.removed(self.id, collection, id_to_wire(id))

    def ready(self) -> None:
        if self.is_active and not self._is_ready and self.publication.name is not None:
            self._is_ready = True
            self.session.ready(self.id)

    def stop(self) -> None:
        if self.is_active and self.publication.name is not None:
            self.session.stop(self.id)

    def error(self, error: Exception) -> None:
        if self.is_active and self.publication.name is not None:
            self.session.stop(self.id, error)

    def publish(
        self, collection: Collection, selector: Any, fields: list[str] | None = None
    ) -> None:
        """Publishes the matching documents, and all that happens to them."""

        def see(id: Any, before: Document | None, after: Document | None) -> None:
            had, has = ((one is not None and selects(selector, id, one)) for one in (before, after))
            old, new = (projected(one or {}, fields) for one in (before, after))
            if has and not had:
                self.added(collection.name, id, new)
            elif had and not has:
                self.removed(collection.name, id)
            elif had:
                changed = {k: v for k, v in new.items() if k not in old or not equal(v, old[k])}
                cleared = [key for key in old if key not in new]
                if changed or cleared:
                    self.changed(collection.name, id, changed, cleared)

        for id, document in collection.all():
            see(id, None, document)
        collection.observers.append(see)
        self._cursors.append((collection, see))
