"""Documents as objects, for the blocking client of Meteor servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from .models import BaseDDPModels, DDPModelChanges, DDPObjectChanges
from .query import Sort
from .sync_collection import DDPBatch, DDPLiveChanges

M = TypeVar("M")


class DDPModels(BaseDDPModels):
    __doc__ = BaseDDPModels.__doc__

    def save(self, *objects: Any, removed: Iterable[Any] = (), **options: Any) -> DDPBatch:
        """Saves changes of objects, here and at the server. Here they are made at once, and are one
        notification; the server gets a call for each document that differs: an insertion, an update
        of the changed fields only, or a removal. Their order does not matter.

        Of an object that was read, what has changed since then is written. Another object is
        inserted, or if a document has its id, changed as far as it differs. A changed relationship
        is changed at both ends, as far as they have storage. If the server refuses a change, read
        the object again.

        :param removed: objects to delete. One that is not there is ignored. Objects that know it by
            two-way storage forget it; other references to it stay, and lead nowhere.
        :param options: as for ``DDPClient.batch``.
        :returns: the calls; its ``completed`` waits until all are done.
        :raises DDPModelError: for an object with a value that is not of its field's type.
        :raises InvalidArgument: if only an object that is not there could contain a reference.
        :raises RealtimeError: if an object that was read is not there any more. In all of these
            cases nothing is saved.
        """
        batch: DDPBatch = self._save(objects, removed, options)
        return batch

    def observe(
        self,
        model: type[M],
        selector: Any = None,
        *,
        sort: Sort | None = None,
        skip: int | None = None,
        limit: int | None = None,
    ) -> DDPLiveChanges[DDPModelChanges[M]]:
        """The objects that a query finds, also if there are none, and then each change of them.
        Changes for which the iteration is too slow are merged: it misses none.

            for changes in models.observe(Todo, {"done": False}):
                for todo in changes.inserted:
                    show(todo)

        Documents that do not fit the model are left out. An object whose document ceases to fit is
        deleted, and inserted when it fits again.
        """
        options = {"sort": sort, "skip": skip, "limit": limit}
        return DDPLiveChanges(*self._observe(model, selector, options))

    def changes(self) -> DDPLiveChanges[DDPObjectChanges]:
        """Which objects of all models change, from now on. Changes for which the iteration is too
        slow are merged: it misses none."""
        return DDPLiveChanges(*self._changes())
