"""Stubs of methods: what they do to the local documents until the server has done it."""

from __future__ import annotations

import ctypes
import inspect
import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import ejson
from .._core.abi import rt_ddp_random, rt_status
from .._core.errors import InvalidState
from .._core.kind import read_text
from .._core.loader import lib
from .._core.naming import kind_of, said_by
from .._core.uncopied import Uncopied
from .._core.values import invalid, number, text
from .callbacks import DDP, documents, outcome
from .checking import check
from .errors import DDPError
from .query import Document, query

T = TypeVar("T")

_logger = logging.getLogger("librealtime")

#: The longest text that can be drawn.
_LONGEST_TEXT = 2**16
#: How many stubs may run inside each other. Each takes part of the C stack, whose end would end the
#: process.
_DEEPEST = 50
#: How C says why an operation of a stub failed: a reason and a code, which a long text lacks.
_FAILURE = re.compile(r"the stub's operation has failed: (.*?)(?: \[([^\[\]]*)\])?", re.DOTALL)

_running = threading.local()


def encoded(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """EJSON for C."""
    return text(ejson.dumps(value, default=default), "the value")


def required_function(function: object, name: str) -> None:
    if not callable(function):
        raise TypeError(f"{name} is {kind_of(function)}; a function is expected")


class DDPStub(Uncopied):
    """What a stub uses, while it runs."""

    def __init__(self, handle: Any) -> None:
        self._handle: Any = handle

    @property
    def is_simulation(self) -> bool:
        """True, for code that a stub shares with a method of the server."""
        known = lib.rt_ddp_stub_is_simulation(self._require())
        check(known)
        return known == 1

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

    def random_stream(self, name: str = "default") -> DDPRandomStream:
        """A stream of random values, which the server's method draws too.

        :param name: as the server's method names it for ``DDP.randomStream``. Inserts into a
            collection draw from ``/collection/NAME``.
        """
        return DDPRandomStream(self, text(name, "name"))

    def _require(self) -> Any:
        if self._handle is None:
            raise InvalidState(rt_status.ERROR_STATE, "the stub has ended")
        return self._handle


class DDPRandomStream(Uncopied):
    """Random values that the server's method draws too, if both draw the same in the same order;
    from ``DDPStub.random_stream``."""

    def __init__(self, stub: DDPStub, name: bytes) -> None:
        self._stub = stub
        self._name = name

    def fraction(self) -> float:
        """A number from 0 to below 1."""
        drawn = ctypes.c_double()
        stub = self._stub._require()
        check(_checked(lib.rt_ddp_stub_draw_fraction(stub, self._name, ctypes.byref(drawn))))
        return drawn.value

    def id(self, n: int = 17) -> str:  # the name in Meteor
        """An id as Meteor gives to documents: letters and digits that are easy to read."""
        return self._draw(rt_ddp_random.ID, n)

    def hex_string(self, n: int) -> str:
        """Hexadecimal digits, 24 for an ``ObjectID``."""
        return self._draw(rt_ddp_random.HEX, n)

    def secret(self, n: int = 43) -> str:
        """Letters, digits, ``-`` and ``_``. They are not secret: they follow from the call's
        seed."""
        return self._draw(rt_ddp_random.SECRET, n)

    def choice(self, sequence: Sequence[T]) -> T:
        """An element of a sequence, which must not be empty."""
        if not sequence:
            raise invalid("the sequence is empty")
        return sequence[int(self.fraction() * len(sequence))]

    def _draw(self, kind: int, n: int) -> str:
        stub, count = self._stub._require(), number(n, "n", 0, _LONGEST_TEXT)
        if count == 0:
            return ""  # C would draw the usual number
        buffer = ctypes.create_string_buffer(count + 1)
        arguments = (self._name, kind, count, buffer, count + 1, None)
        check(_checked(lib.rt_ddp_stub_draw_text(stub, *arguments)))
        return buffer.value.decode()


def _checked(status: int) -> int:
    """
    :raises DDPError: if an operation on the documents failed.
    """
    if status == rt_status.ERROR_METHOD:
        # Another text is that of a call that a finalizer has made in the meantime.
        found = _FAILURE.fullmatch(lib.rt_last_error().decode())
        reason, code = found.groups() if found else (None, None)
        raise DDPError(code or "stub-failed", reason)
    return status


class StubEntry:
    """A stub that is set."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def _keep(self, error: BaseException) -> None:
        _logger.error("a stub failed", exc_info=error)

    def _run(self, handle: Any, params: int) -> None:
        depth = getattr(_running, "depth", 0)
        if depth >= _DEEPEST:
            message = f"more than {_DEEPEST} stubs run inside each other"
            check(DDP.stub_fail(handle, b"too-deep", message.encode(), None))
            return
        stub = DDPStub(handle)
        _running.depth = depth + 1
        try:
            self._end(handle, stub, ejson.loads(ctypes.string_at(params)))
        except BaseException as error:
            self._keep(error)
            check(DDP.stub_fail(handle, b"error", _encoded(said_by(error)), None))
            if depth == 0:
                _running.failure = error
            if not isinstance(error, Exception):
                _running.interrupt = error
        finally:
            _running.depth = depth
            stub._handle = None

    def _end(self, handle: Any, stub: DDPStub, params: list[Any]) -> None:
        """Runs the function, and tells C how it ended."""
        try:
            value = encoded(self._function(stub, *params))
        except DDPError as error:
            reason, details = error.reason, None
            try:
                details = None if error.details is None else encoded(error.details)
            except (TypeError, ValueError) as fault:
                reason = f"{reason or error.code}; without its details: {fault}"
            encoded_reason = None if reason is None else _encoded(reason)
            check(DDP.stub_fail(handle, _encoded(error.code), encoded_reason, details))
        else:
            check(DDP.stub_return(handle, value))


def _encoded(value: object) -> bytes:
    """A text of an error, as far as C can take it."""
    return str(value).replace("\0", "").encode("utf-8", "replace")


def without_waiting(value: Any) -> Any:
    """What a function of the program returns, or the coroutine that it returns, which must end
    without waiting for anything."""
    if not inspect.iscoroutine(value):
        return value
    try:
        value.send(None)
    except StopIteration as end:
        return end.value
    value.close()
    raise InvalidState(
        rt_status.ERROR_STATE,
        "a stub cannot wait, and it awaits what is not done yet; it may await coroutines that do "
        "not wait",
    )


def take_failure() -> BaseException | None:
    """What the outermost stub of the call that has just ended has raised, unless a DDPError."""
    failure, _running.failure = getattr(_running, "failure", None), None
    return failure


def raise_interrupt() -> None:
    """Raises what was not meant for the stubs of the call that has just ended: an interrupt by the
    user, or the end of the process."""
    error = getattr(_running, "interrupt", None)
    if error is not None and getattr(_running, "depth", 0) == 0:
        _running.interrupt = None
        raise error
