"""Collections, live queries and batches of the asyncio client of Meteor servers."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.errors import timed_out
from .batch import BaseBatch
from .collection import BaseCollection, BaseDocuments
from .live import BaseLiveChanges
from .objects import DDPChange, DDPIndexChanges
from .query import Document, Sort

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class DDPBatch(BaseBatch):
    __doc__ = f"""{BaseBatch.__doc__}
    ``await batch`` is the same as ``await batch.completed()``.
    """

    async def completed(self, timeout: float | None = None) -> list[Any]:
        """Waits until all calls are done, and the documents that they wrote are there.

        :returns: their values.
        :raises DDPError: the failure of the first one that failed.
        :raises TimeoutError: if they are not done within `timeout` seconds; the calls continue.
        """
        outcomes = [call._outcome(completed=True) for call in self.calls]
        client = self._client
        if not await client._until(lambda: all(one.is_known() for one in outcomes), timeout):
            raise timed_out(f"not all calls are done after {timeout} s")
        return [await call for call in self.calls]

    def __await__(self) -> Generator[Any, None, list[Any]]:
        return self.completed().__await__()


class DDPLiveChanges(BaseLiveChanges[T]):
    __doc__ = BaseLiveChanges.__doc__

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        client = self._client
        client._check_loop()
        self._await_news()
        while not self._is_over:
            item = self._take()
            if item is not None:
                return item
            if not self._has_news:
                await client._wait(client._waiters)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Calls ``close``."""
        self.close()


class DDPResults(DDPLiveChanges[list[Document]]):
    """The result of a query, and its result after each change, as soon as the iteration asks for
    it: results that it was too slow for are left out."""


class DDPDocuments(BaseDocuments):
    __doc__ = BaseDocuments.__doc__

    def observe(self) -> DDPLiveChanges[DDPChange]:
        """The present result as documents that are added, and then each change of it: applied one
        after the other, the changes turn the old result into the new one. If nothing is found,
        there is no change at first; ``observe_indexes`` and ``results`` report that.

            async for change in client.collection("tasks").find({"done": False}).observe():
                print(change.kind, change.id)
        """
        return DDPLiveChanges(*self._observe())

    def observe_indexes(self) -> DDPLiveChanges[DDPIndexChanges]:
        """The same by positions, for lists on a screen. The first change is the present result,
        even if nothing is found."""
        return DDPLiveChanges(*self._observe_indexes())


class DDPCollection(BaseCollection):
    def find(
        self,
        selector: Any = None,
        *,
        sort: Sort | None = None,
        skip: int | None = None,
        limit: int | None = None,
        fields: Document | None = None,
        projection: Document | None = None,
    ) -> DDPDocuments:
        """The documents that a query finds, in its order: a list, whose method ``observe`` follows
        the query.

        :param sort: such as ``{"name": 1}``; -1 sorts downwards.
        :param fields: the fields to include (1) or to leave out (0). `projection` is another name.
        :raises InvalidArgument: for a query with a fault.
        """
        options = {"sort": sort, "skip": skip, "limit": limit, "fields": fields}
        options["projection"] = projection
        return DDPDocuments(self._client, self._question(selector, **options))

    def results(self, selector: Any = None, **options: Any) -> DDPResults:
        """The result of a query, and its result after each change; the parameters are those of
        ``find``.

            async for tasks in client.collection("tasks").results({"done": False}):
                show(tasks)
        """
        return DDPResults(*self._results(selector, options))
