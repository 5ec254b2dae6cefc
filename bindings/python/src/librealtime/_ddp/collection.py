"""Collections of local documents, and live queries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .._core.uncopied import Uncopied
from .._core.values import text
from .callbacks import DDP, documents
from .checking import check
from .feeds import DocumentFeed, IndexFeed, LatestFeed, QueryFeed, Source
from .live import DDPLiveQuery
from .objects import DDPChange, DDPIndexChanges
from .query import Document, query
from .stub import encoded

#: The name of a collection, a selector, and options.
Question = tuple[str, Any, dict[str, Any]]


def find(client: Any, collection: str, selector: Any, options: Any) -> list[Document]:
    handle = client._require_handle()
    arguments = (text(collection, "collection"), *query(selector, options))
    found = documents(lambda fn, key: int(DDP.find(handle, *arguments, fn, key)))
    return [document for _, document in found]


def observed(client: Any, question: Question, feed: QueryFeed[Any]) -> tuple[Any, ...]:
    """The arguments for an iteration over the changes of a query."""

    def make() -> Source:
        feed.source = Source(client, question, feed.parts)
        return feed.source

    return client, feed, make


class BaseDocuments(list[Document]):
    """The documents that a query has found: a list. ``observe`` follows the query."""

    def __init__(self, client: Any, question: Question) -> None:
        super().__init__(find(client, *question))
        self._client = client
        self._question = question

    def __reduce__(self) -> Any:
        """Copies and pickles are plain lists, without the client."""
        return list, (list(self),)

    def _observe(self) -> tuple[Any, ...]:
        return observed(self._client, self._question, DocumentFeed(self._question[0]))

    def _observe_indexes(self) -> tuple[Any, ...]:
        return observed(self._client, self._question, IndexFeed())


class BaseCollection(Uncopied):
    """A collection of local documents, from ``DDPClient.collection``. Documents are dicts with
    ``_id``. Selectors are dicts such as ``{"done": False}``, or ids; None selects all documents.

    :ivar name: its name.
    """

    def __init__(self, client: Any, name: str, object_ids: bool) -> None:
        self._client = client
        self.name = name
        self._encoded_name = text(name, "name")
        client._declare(name, object_ids)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __len__(self) -> int:
        count = ctypes.c_uint64()
        check(DDP.count(self._client._require_handle(), self._encoded_name, ctypes.byref(count)))
        return count.value

    def __bool__(self) -> bool:
        return True

    def get(self, document_id: Any) -> Document | None:
        """The document that has this id; None if it is not there."""
        handle, encoded_id = self._client._require_handle(), encoded(document_id)
        found = documents(
            lambda fn, key: int(DDP.get_document(handle, self._encoded_name, encoded_id, fn, key))
        )
        return found[0][1] if found else None

    def find_one(self, selector: Any = None, **options: Any) -> Document | None:
        """The first document that ``find`` finds; None if there is none."""
        found = find(self._client, self.name, selector, {**options, "limit": 1})
        return found[0] if found else None

    def insert(self, document: Document, **options: Any) -> Any:
        """Inserts a document, here and at the server.

        :param document: without ``_id``, the client and the server draw the same id.
        :param options: as for ``DDPClient.send``.
        :returns: the call; its ``stub_value`` is the id.
        """
        return self._client._make_call(DDP.insert, self._encoded_name, encoded(document), **options)

    def update(self, document_id: Any, modifier: Document, **options: Any) -> Any:
        """Changes a document, here and at the server.

        :param modifier: such as ``{"$set": {"done": True}}``.
        :returns: the call.
        """
        return self._client._make_call(
            DDP.update, self._encoded_name, encoded(document_id), encoded(modifier), **options
        )

    def remove(self, document_id: Any, **options: Any) -> Any:
        """Removes a document, here and at the server.

        :returns: the call.
        """
        return self._client._make_call(
            DDP.remove, self._encoded_name, encoded(document_id), **options
        )

    def observe(
        self, handler: Callable[[DDPChange], object], selector: Any = None, **options: Any
    ) -> DDPLiveQuery:
        """Calls `handler` with the result of a query, and then with each change of it: applied one
        after the other, the changes turn the old result into the new one. First come the present
        documents as added ones, with ``is_initial``. If there are none, `handler` is not called.

        :param options: as for ``find``, whose result can also be observed by an iteration.
        """
        live = DDPLiveQuery(self._client, self.name, selector, options, handler)
        live._tell()
        return live

    def observe_indexes(
        self, handler: Callable[[DDPIndexChanges], object], selector: Any = None, **options: Any
    ) -> DDPLiveQuery:
        """Calls `handler` with the result of a query by positions, even if nothing is found, and
        then with each change of it; otherwise like ``observe``."""
        live = DDPLiveQuery(self._client, self.name, selector, options, handler, by_indexes=True)
        live._tell()
        return live

    def _question(self, selector: Any, **options: Any) -> Question:
        return self.name, selector, options

    def _results(self, selector: Any, options: Any) -> tuple[Any, ...]:
        """The arguments for an iteration over whole results."""
        client, question = self._client, (self.name, selector, options)
        return observed(client, question, LatestFeed(lambda: find(client, *question)))
