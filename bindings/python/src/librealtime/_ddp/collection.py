"""Collections of local documents, and live queries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .._core.abi import rt_ddp_ids
from .._core.errors import check
from .._core.values import text
from .callbacks import DDP, LIVE, documents
from .calls import Awaited
from .objects import DDPChange
from .query import Document, query
from .stub import encoded


class DDPLiveQuery(Awaited):
    """A live query, from ``DDPCollection.observe``; ``stop`` ends it."""

    _number: int | None = None

    def __init__(
        self, client: Any, collection: str, selector: Any, options: Any, handler: Any
    ) -> None:
        super().__init__(client)
        self._handler = handler
        said = (text(collection, "collection"), *query(selector, options))
        number = ctypes.c_uint64()
        try:
            self._registration.set(
                lambda handle, fn, key, destroy: DDP.observe(
                    handle, *said, fn, key, destroy, ctypes.byref(number)
                ),
                client._require_handle(),
                LIVE,
            )
        except BaseException:
            self._finish()
            raise
        self._number = number.value

    def stop(self) -> None:
        """Ends the query: its handler is not called any more."""
        handle, number = self._client._handle, self._number
        self._finish()
        if handle is not None and number is not None:
            check(DDP.stop_observing(handle, number))

    def _changed(self, change: DDPChange) -> None:
        self._client._call(self._handler, change)


class BaseResults:
    """The result of a query, and its result after each change."""

    def __init__(self, client: Any, collection: str, selector: Any, options: Any) -> None:
        self._client = client
        self._collection = collection
        self._query = selector, options
        self._is_new = True
        self._live = DDPLiveQuery(client, collection, selector, options, self._note)

    def _note(self, _: DDPChange) -> None:
        self._is_new = True
        self._client._changed()

    def close(self) -> None:
        """Ends the query, and with it the iteration."""
        self._live.stop()

    @property
    def _is_over(self) -> bool:
        return self._client._is_closed or self._live not in self._client._pending

    def _take(self) -> list[Document]:
        self._is_new = False
        selector, options = self._query
        return find(self._client, self._collection, selector, options)


def find(client: Any, collection: str, selector: Any, options: Any) -> list[Document]:
    handle = client._require_handle()
    said = (text(collection, "collection"), *query(selector, options))
    found = documents(lambda fn, key: int(DDP.find(handle, *said, fn, key)))
    return [document for _, document in found]


class BaseCollection:
    """A collection of local documents, from ``DDPClient.collection``. Documents are dicts with
    ``_id``. Selectors are dicts such as ``{"done": False}``, or ids; None selects all documents.

    :ivar name: its name.
    """

    def __init__(self, client: Any, name: str, object_ids: bool) -> None:
        self._client = client
        self.name = name
        self._said = text(name, "name")
        ids = rt_ddp_ids.OBJECT_IDS if object_ids else rt_ddp_ids.STRINGS
        check(DDP.declare(client._require_handle(), self._said, ids))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __len__(self) -> int:
        count = ctypes.c_uint64()
        check(DDP.count(self._client._require_handle(), self._said, ctypes.byref(count)))
        return count.value

    def __bool__(self) -> bool:
        return True

    def get(self, document_id: Any) -> Document | None:
        """The document that has this id; None if it is not there."""
        handle, said = self._client._require_handle(), encoded(document_id)
        found = documents(lambda fn, key: int(DDP.get_document(handle, self._said, said, fn, key)))
        return found[0][1] if found else None

    def find(
        self,
        selector: Any = None,
        *,
        sort: Document | None = None,
        skip: int | None = None,
        limit: int | None = None,
        fields: Document | None = None,
    ) -> list[Document]:
        """The documents that a query finds, in its order.

        :param sort: such as ``{"name": 1}``; -1 sorts downwards.
        :param fields: the fields to include (1) or to leave out (0).
        :raises InvalidArgument: for a query with a fault.
        """
        options = {"sort": sort, "skip": skip, "limit": limit, "fields": fields}
        return find(self._client, self.name, selector, options)

    def find_one(self, selector: Any = None, **options: Any) -> Document | None:
        """The first document that ``find`` finds; None if there is none."""
        found = self.find(selector, **{**options, "limit": 1})
        return found[0] if found else None

    def insert(self, document: Document, **options: Any) -> Any:
        """Inserts a document, here and at the server.

        :param document: without ``_id``, the client and the server draw the same id.
        :param options: as for ``DDPClient.send``.
        :returns: the call; its ``stub_value`` is the id.
        """
        return self._client._make_call(DDP.insert, self._said, encoded(document), **options)

    def update(self, document_id: Any, modifier: Document, **options: Any) -> Any:
        """Changes a document, here and at the server.

        :param modifier: such as ``{"$set": {"done": True}}``.
        :returns: the call.
        """
        return self._client._make_call(
            DDP.update, self._said, encoded(document_id), encoded(modifier), **options
        )

    def remove(self, document_id: Any, **options: Any) -> Any:
        """Removes a document, here and at the server.

        :returns: the call.
        """
        return self._client._make_call(DDP.remove, self._said, encoded(document_id), **options)

    def observe(
        self,
        handler: Callable[[DDPChange], object],
        selector: Any = None,
        *,
        sort: Document | None = None,
        skip: int | None = None,
        limit: int | None = None,
        fields: Document | None = None,
    ) -> DDPLiveQuery:
        """Calls `handler` with the result of a query, and then with each change of it: applied one
        after the other, the changes turn the old result into the new one. First come the present
        documents as added ones, with ``is_initial``."""
        options = {"sort": sort, "skip": skip, "limit": limit, "fields": fields}
        return DDPLiveQuery(self._client, self.name, selector, options, handler)
