"""Stubs of methods: what they do to the local documents until the server has done it."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from typing import Any

from .._core.abi import rt_ddp_ids, rt_status
from .._core.errors import InvalidState, check
from .._core.kind import read_text
from .._core.loader import lib
from .._core.values import text
from . import ejson
from .callbacks import DDP, documents, outcome
from .errors import DDPError
from .query import Document, query

_logger = logging.getLogger("librealtime")


def encoded(value: Any) -> bytes:
    """EJSON for C."""
    return text(ejson.dumps(value), "the value")


class DDPStub:
    """What a stub uses, while it runs."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle

    @property
    def user_id(self) -> str | None:
        """The user who is logged in; None for nobody."""
        return read_text(lib.rt_ddp_stub_get_user_id, self._require()) or None

    def insert(self, collection: str, document: Document) -> Any:
        """Inserts a document into the local documents.

        :param document: without ``_id``, it gets the id that the server's method will draw too.
        :returns: its id.
        :raises DDPError: if it cannot be inserted, for example because its id exists.
        """
        name, value = text(collection, "collection"), encoded(document)
        stub = self._require()
        found = documents(
            lambda fn, key: _checked(lib.rt_ddp_stub_insert(stub, name, value, fn, key))
        )
        return found[0][0]

    def update(
        self, collection: str, selector: Any, modifier: Document, *, multi: bool = False
    ) -> int:
        """Changes local documents.

        :param selector: a dict, or an id.
        :param modifier: such as ``{"$set": {"done": True}}``.
        :param multi: whether all documents are changed that the selector finds, or the first one.
        :returns: how many there were.
        """
        count = ctypes.c_uint64()
        arguments = (text(collection, "collection"), encoded(selector), encoded(modifier))
        stub = self._require()
        check(_checked(lib.rt_ddp_stub_update(stub, *arguments, bool(multi), ctypes.byref(count))))
        return count.value

    def remove(self, collection: str, selector: Any) -> int:
        """Removes local documents.

        :returns: how many there were.
        """
        count = ctypes.c_uint64()
        arguments = (text(collection, "collection"), encoded(selector))
        stub = self._require()
        check(_checked(lib.rt_ddp_stub_remove(stub, *arguments, ctypes.byref(count))))
        return count.value

    def find(self, collection: str, selector: Any = None, **options: Any) -> list[Document]:
        """The documents that a query finds, as the stub has changed them; see
        ``DDPCollection.find``."""
        arguments = (text(collection, "collection"), *query(selector, options))
        stub = self._require()
        return [
            document
            for _, document in documents(
                lambda fn, key: _checked(lib.rt_ddp_stub_find(stub, *arguments, fn, key))
            )
        ]

    def call(self, method: str, *params: Any) -> Any:
        """Runs the stub of another method. Nothing is sent.

        :raises DDPError: if that stub fails.
        """
        arguments = (text(method, "method"), encoded(params))
        stub = self._require()
        return outcome(lambda fn, key: int(lib.rt_ddp_stub_call(stub, *arguments, fn, key)))

    def draw_id(self, stream: str) -> str:
        """Draws an id that the server's method will draw too.

        :param stream: inserts into a collection draw from ``/collection/NAME``.
        """
        stub, name = self._require(), text(stream, "stream")
        buffer = ctypes.create_string_buffer(64)
        check(lib.rt_ddp_stub_draw_id(stub, name, rt_ddp_ids.STRINGS, buffer, 64, None))
        return buffer.value.decode()

    def draw_fraction(self, stream: str) -> float:
        """Draws a number, from 0 to below 1, that the server's method will draw too."""
        number = ctypes.c_double()
        stub, name = self._require(), text(stream, "stream")
        check(lib.rt_ddp_stub_draw_fraction(stub, name, ctypes.byref(number)))
        return number.value

    def _require(self) -> Any:
        if self._handle is None:
            raise InvalidState(rt_status.ERROR_STATE, "the stub has ended")
        return self._handle


def _checked(status: int) -> int:
    """
    :raises DDPError: if an operation on the documents failed.
    """
    if status == rt_status.ERROR_METHOD:
        reason = lib.rt_last_error().decode()
        raise DDPError("stub-operation", reason)
    return status


class StubEntry:
    """A stub that is set."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def _keep(self, error: BaseException) -> None:
        _logger.error("a stub failed", exc_info=error)

    def _run(self, handle: Any, params: list[Any]) -> None:
        stub = DDPStub(handle)
        try:
            value = encoded(self._function(stub, *params))
        except DDPError as error:
            details = None if error.details is None else encoded(error.details)
            reason = None if error.reason is None else text(error.reason, "reason")
            check(DDP.stub_fail(handle, text(error.code, "code"), reason, details))
        except Exception as error:
            self._keep(error)
            check(DDP.stub_fail(handle, b"error", text(repr(error), "reason"), None))
        else:
            check(DDP.stub_return(handle, value))
        finally:
            stub._handle = None
