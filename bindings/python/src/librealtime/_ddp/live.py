"""Live queries, and iterations over what changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._core.errors import RealtimeError
from .._core.uncopied import Uncopied
from .._core.values import text
from .callbacks import DDP, INDEXES, LIVE
from .calls import Awaited
from .checking import check
from .feeds import Feed
from .query import query
from .stub import required_function

T = TypeVar("T")


class DDPLiveQuery(Awaited):
    """A live query, from ``DDPCollection.observe``; ``stop`` ends it.

    :ivar error: why it has ended by itself; None if it has not. See the client's ``on_query_end``.
    """

    error: RealtimeError | None = None
    _number: int | None = None

    def __init__(
        self,
        client: Any,
        collection: str,
        selector: Any,
        options: Any,
        handler: Any,
        by_indexes: bool = False,
    ) -> None:
        required_function(handler, "handler")
        arguments = (text(collection, "collection"), *query(selector, options))
        function, trampoline = (DDP.observe_indexes, INDEXES) if by_indexes else (DDP.observe, LIVE)
        handle = client._require_handle()
        super().__init__(client)
        self._handler = handler
        self._number = self._begin(function, handle, arguments, trampoline)

    def stop(self) -> None:
        """Ends the query: its handler is not called any more."""
        handle, number = self._client._handle, self._number
        self._finish()
        if handle is not None and number is not None:
            check(DDP.stop_observing(handle, number))

    def _fail(self, error: RealtimeError) -> None:
        self.error = error
        self._finish()

    def _missed(self) -> None:
        # The changes that follow do not fit what is known.
        self.stop()

    def _changed(self, change: Any) -> None:
        if self in self._client._pending:
            self._client._call(self._handler, change)


class BaseLiveChanges(Uncopied, Generic[T]):
    """An iteration over the changes of a live query, in order. It begins with the present result.

    An iteration that is slow misses nothing: when many changes wait, they are replaced by the
    difference between what it knows and what is there now. So they never take more memory than
    these two results. It ends when the client is closed, and by ``close``. The query ends with the
    last reference to this object, for example when a loop over it is left.
    """

    _live: Any = None

    def __init__(self, client: Any, feed: Feed[T], make: Callable[[], Any]) -> None:
        """
        :param make: makes the live query. That must not refer to this object, whose end is the
            query's end.
        """
        self._client = client
        self._feed = feed
        self._live = make()

    def close(self) -> None:
        """Ends the query, and with it the iteration."""
        self._live.stop()
        self._client._changed()

    # The default outlives the module at interpreter exit.
    def __del__(self, _expected: type[Exception] = RealtimeError) -> None:
        if self._live is not None:
            try:
                self._live.stop()
            except _expected:  # in a forked process
                return

    def _take(self) -> T | None:
        """The next item; None if there is none yet. If it cannot be made, nothing follows."""
        try:
            return self._feed.take()
        except BaseException:
            self.close()
            raise

    def _await_news(self) -> None:
        """Called before it waits for a change."""
        self._live._revive()

    @property
    def _is_over(self) -> bool:
        return self._client._is_closed or self._live not in self._client._pending

    @property
    def _has_news(self) -> bool:
        return self._is_over or self._feed.is_filled
