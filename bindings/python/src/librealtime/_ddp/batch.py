"""Several writes as one."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

from .._core.abi import rt_ddp_call_options, rt_ddp_stage, rt_status
from .._core.errors import InvalidState, RealtimeError
from .._core.uncopied import Uncopied
from .._core.values import text
from .callbacks import DDP, OUTCOME, ensure_room
from .calls import Awaited, BaseCall
from .errors import DDPError
from .query import Document
from .stub import encoded, raise_interrupt

if TYPE_CHECKING:
    from typing_extensions import Self


class BaseBatch(Uncopied):
    """Writes that belong together, from ``DDPClient.batch``. They are made when the ``with`` block
    ends, and are one notification of the local documents, and at most one change of each live
    query. The server gets a call for each of them, in their order, and does or refuses each by
    itself. If the block raises an exception, nothing is written.

    :ivar calls: a call for each write, in their order.
    """

    def __init__(self, client: Any, options: rt_ddp_call_options) -> None:
        self._client = client
        self._options = options
        self.calls: list[Any] = []
        self._writes: list[bytes] = []
        self._is_open = True

    def __len__(self) -> int:
        return len(self.calls)

    def __bool__(self) -> bool:
        return True

    def insert(self, collection: Any, document: Document) -> Any:
        """Inserts a document.

        :param collection: its name, or a ``DDPCollection``.
        :param document: without ``_id``, the client and the server draw the same id.
        :returns: the call; after the block its ``stub_value`` is the id.
        """
        return self._add(collection, {"insert": _name(collection), "document": document})

    def update(self, collection: Any, document_id: Any, modifier: Document) -> Any:
        """Changes a document.

        :param modifier: such as ``{"$set": {"done": True}}``.
        :returns: the call.
        """
        write = {"update": _name(collection), "id": document_id, "modifier": modifier}
        return self._add(collection, write)

    def remove(self, collection: Any, document_id: Any) -> Any:
        """Removes a document.

        :returns: the call.
        """
        return self._add(collection, {"remove": _name(collection), "id": document_id})

    def _add(self, collection: Any, write: dict[str, Any]) -> Any:
        if not self._is_open:
            raise InvalidState(rt_status.ERROR_STATE, "the batch has ended")
        self._writes.append(encoded(write))
        self._client._declare_once(_name(collection))
        call: BaseCall = self._client._call_type(self._client)
        call._finish()  # this object has it
        call._hindrance = InvalidState(rt_status.ERROR_STATE, "the batch has not been written")
        self.calls.append(call)
        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._is_open = False
        if kind is None and self._writes:
            self._write()

    def _write(self) -> None:
        """
        :raises DDPError: the first failure of a write here, if the options say so. The others are
            made.
        """
        writes, self._writes = b"[" + b",".join(self._writes) + b"]", []
        options = ctypes.byref(self._options)
        Writing(self._client, self.calls, len(self.calls)).make(
            lambda handle, fn, key, destroy: DDP.write(
                handle, writes, options, fn, key, destroy, None
            ),
            self._client._require_handle(),
        )

    def _write_planned(self, function: Any, handle: Any, changes: bytes) -> None:
        """Makes the writes that C plans, each with a call, instead of those that were added.

        :param function: of the C interface.
        :raises DDPError: as for ``_write``.
        """
        self._is_open = False
        count, options = ctypes.c_size_t(), ctypes.byref(self._options)
        writing = Writing(self._client, self.calls)
        writing.make(
            lambda handle, fn, key, destroy: function(
                handle, changes, options, fn, key, destroy, None, ctypes.byref(count)
            ),
            handle,
            count,
        )


class Writing(Awaited):
    """What C reports on the calls of a batch."""

    def __init__(self, client: Any, calls: list[Any], count: int | None = None) -> None:
        """
        :param count: how many calls there will be; None if that is not known yet.
        """
        super().__init__(client)
        self._calls = calls
        self._count = count
        self._completed = 0
        # C reports on the loop's thread, maybe before the number of calls is known.
        self._lock = threading.Lock()
        for call in calls:
            call._hindrance = None

    def make(self, function: Any, handle: Any, count: ctypes.c_size_t | None = None) -> None:
        """Makes the writes.

        :param count: receives how many calls there are.
        """
        refusal = None
        try:
            ensure_room()
            self._registration.set(function, handle, OUTCOME)
        except RealtimeError as error:
            refusal = error
        except BaseException:
            self._finish()
            raise
        finally:
            raise_interrupt()
        if count is not None:
            with self._lock:
                self._count = count.value
                self._grow(count.value)
            self._finish_if_done()
        if refusal is not None:
            failed = self._refuse(refusal)
            raise failed or refusal from None

    def _grow(self, count: int) -> None:
        while len(self._calls) < count:
            call: BaseCall = self._client._call_type(self._client)
            call._finish()  # the batch has it
            self._calls.append(call)

    def _finish_if_done(self) -> None:
        if self._completed == self._count:
            self._finish()

    def _reached(self, stage: int, index: int, value: Any, error: DDPError | None) -> None:
        with self._lock:
            self._grow(index + 1)
            call = self._calls[index]
            self._completed += stage == rt_ddp_stage.COMPLETED
        self._finish_if_done()
        call._reached(stage, index, value, error)

    def _missed(self) -> None:
        """Never called: the calls are awaited."""

    def _refuse(self, error: RealtimeError) -> DDPError | None:
        """Ends the calls that were not made.

        :returns: the first failure of a write; None if nothing was written.
        """
        failures = [call for call in self._calls if call._stub_error is not None]
        if error.status != rt_status.ERROR_METHOD or not failures:
            self._finish()
            for call in self._calls:
                call._hindrance = error
            return None
        for call in failures:
            self._reached(rt_ddp_stage.COMPLETED, self._calls.index(call), None, call._stub_error)
        first: DDPError = failures[0]._stub_error
        return first


def _name(collection: Any) -> str:
    name: str = getattr(collection, "name", collection)
    text(name, "collection")
    return name
