"""Collections whose documents are events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import abi
from .._core.awaiting import check_function
from .._core.endpoint import Endpoint
from .._core.values import text
from .callbacks import DDP, LIVE
from .checking import Registration, check
from .objects import DDPChange
from .stub import required_function


class StreamEntry:
    """The function of a stream."""

    def __init__(self, client: Any, function: Callable[[DDPChange], object]) -> None:
        self._client = client
        self._function = function

    def _keep(self, error: BaseException) -> None:
        self._client._keep(error)

    def _changed(self, event: DDPChange) -> None:
        if not self._client._is_closed:
            self._client._call(self._function, event)


class Streams(Endpoint):
    """The streams of a client."""

    _streams: dict[str, StreamEntry]

    def set_stream(self, collection: str, function: Callable[[DDPChange], object] | None) -> None:
        """Makes a collection a stream: its documents are events, as Rocket.Chat's servers send
        them. Nothing is merged or kept, so that the collection has no documents, and nothing is
        held back after a reconnect. Call it before ``subscribe``.

        :param function: called with each message, at once and as the server has sent it: a
            ``DDPChange`` with its kind, its ``fields`` and the fields that it has ``cleared``. None
            makes the collection an ordinary one again.
        """
        name, handle = text(collection, "collection"), self._require_handle()
        if function is None:
            no_function, no_destroy = abi.rt_ddp_change_fn(), abi.rt_destroy_fn()
            check(DDP.set_stream(handle, name, no_function, None, no_destroy))
            self._streams.pop(collection, None)
            self._streams_changed()
            return
        check_function(function, "function")
        entry = StreamEntry(self, function)
        Registration(entry).set(
            lambda handle, fn, key, destroy: DDP.set_stream(handle, name, fn, key, destroy),
            handle,
            LIVE,
        )
        self._streams[collection] = entry
        self._streams_changed()

    def stream(
        self, collection: str
    ) -> Callable[[Callable[[DDPChange], object]], Callable[[DDPChange], object]]:
        """A decorator for ``set_stream``."""
        text(collection, "collection")

        def decorate(function: Callable[[DDPChange], object]) -> Callable[[DDPChange], object]:
            required_function(function, "function")
            self.set_stream(collection, function)
            return function

        return decorate

    def _streams_changed(self) -> None:
        """Called when there are more or fewer streams."""
        raise NotImplementedError
