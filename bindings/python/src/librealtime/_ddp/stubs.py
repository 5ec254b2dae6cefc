"""What calls of methods do to the local documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import abi
from .._core.awaiting import check_function, plain
from .._core.endpoint import Endpoint
from .._core.values import text
from .callbacks import DDP, STUB
from .checking import Registration, check
from .stub import StubEntry, required_function


class Stubs(Endpoint):
    """The stubs of a client."""

    _stubs: dict[str, StubEntry]

    def set_stub(self, method: str, function: Callable[..., Any] | None) -> None:
        """Defines what calls of a method do to the local documents until the server has done it.

        :param function: called with a ``DDPStub`` and the parameters, on the thread that calls the
            method, before the call returns. It returns the stub's value, and must not wait for
            other threads; in asyncio it may be a coroutine function that awaits only others that do
            not wait. If it raises, that is logged, the call is sent nevertheless, and what it has
            done stays until the server has done the call. With ``throw_stub_errors`` it is undone
            at once, the call fails, and nothing is sent. None for no stub.
        """
        name, handle = text(method, "method"), self._require_handle()
        if function is None:
            check(DDP.set_stub(handle, name, abi.rt_ddp_stub_fn(), None, abi.rt_destroy_fn()))
            self._stubs.pop(method, None)
            return
        check_function(function, "a stub")
        entry = StubEntry(self._stub_function(function))
        Registration(entry).set(
            lambda handle, fn, key, destroy: DDP.set_stub(handle, name, fn, key, destroy),
            handle,
            STUB,
        )
        self._stubs[method] = entry

    def _stub_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return plain(function, "a stub")

    def stub(self, method: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator for ``set_stub``."""
        text(method, "method")

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            required_function(function, "a stub")
            self.set_stub(method, function)
            return function

        return decorate
