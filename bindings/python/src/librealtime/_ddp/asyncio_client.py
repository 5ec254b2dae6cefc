"""The asyncio client of Meteor servers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from .._core.awaiting import Awaiting
from .._core.errors import timed_out
from .._core.outcome import Outcome
from .._core.parameters import Given
from .._core.values import text
from .asyncio_accounts import AsyncAccounts
from .asyncio_collection import DDPBatch, DDPCollection
from .asyncio_models import DDPModels
from .callbacks import DDP
from .calls import BaseCall, BaseLoader, BaseSubscription, call_options
from .client_base import BaseDDPClient
from .stub import without_waiting

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._core.awaiting import Futures


class DDPCall(BaseCall):
    """A call that was made; ``await call`` is the same as ``await call.completed()``."""

    async def result(self, timeout: float | None = None) -> Any:
        """Waits for the result. The documents that the call wrote may follow.

        :raises DDPError: if the call fails.
        :raises TimeoutError: if there is none within `timeout` seconds; the call continues.
        """
        await self._client._reach(self._outcome(completed=False), timeout)
        return self._value(completed=False)

    async def completed(self, timeout: float | None = None) -> Any:
        """Waits until the call is done, and the documents that it wrote are there; otherwise like
        ``result``."""
        await self._client._reach(self._outcome(completed=True), timeout)
        return self._value(completed=True)

    def __await__(self) -> Generator[Any, None, Any]:
        return self.completed().__await__()


class DDPSubscription(BaseSubscription):
    async def ready(self, timeout: float | None = None) -> None:
        """Waits for the initial documents.

        :raises DDPError: if the server ends the subscription before, or ``release`` or ``stop``
            gives it up.
        :raises TimeoutError: if they are not there within `timeout` seconds.
        """
        await self._client._reach(self._outcome(), timeout)


class DDPLoader(BaseLoader):
    pass


class DDPClient(Awaiting, AsyncAccounts, BaseDDPClient):
    """A client of a Meteor server.

        async with DDPClient("https://example.org") as client:
            await client.subscribe("tasks")
            tasks = client.collection("tasks")
            print(tasks.find({"done": False}, sort={"text": 1}))
            await client.call("addTask", "Buy milk")

    The object uses the running asyncio loop and belongs to that loop's thread. Handlers may be
    coroutine functions, which are awaited one after the other. Calls that wait take a `timeout` in
    seconds, and raise ``TimeoutError`` after it.
    """

    _call_type = DDPCall
    _subscription_type = DDPSubscription
    _loader_type = DDPLoader

    def _begin(self, url: str, given: Given) -> None:
        self._waits = 0
        begin = super()._begin
        self._construct(lambda: begin(url, given))

    async def connect(self, *, wait: bool = True, timeout: float | None = None) -> None:
        """Connects, and waits until it is connected. If the next attempt waits, it is made at once.
        Without a network it waits for one. Cancelling the wait does not end the connection.

        :param wait: False does not wait for the connection. The call must be awaited
            nevertheless: without ``await`` nothing happens.
        :raises RealtimeError: why the client gave up; ``StoreError`` if `token_file` or
            `document_file` cannot be used.
        :raises TimeoutError: if it is not connected within `timeout` seconds; it names the error
            of the last attempt.
        """
        self._may_wait(timeout)
        outcome = self._begin_connecting()
        if not wait:
            return
        if not await self._until(outcome.is_known, timeout):
            raise self._not_connected(timeout)
        outcome.check()

    async def subscribe(
        self,
        name: str,
        *params: Any,
        wait: bool = True,
        timeout: float | None = None,
        keep: float | None = None,
        on_stopped: Callable[[Any], object] | None = None,
    ) -> DDPSubscription:
        """Subscribes to a publication, and waits for its documents. After a lost connection it is
        repeated by itself. Equal subscriptions are shared: the server is asked once. If the wait
        fails, for example after `timeout` seconds, or is cancelled, the subscription is released.

        :param wait: False does not wait for the documents; await ``ready`` later. The call must be
            awaited nevertheless: without ``await`` nothing is subscribed.
        :param keep: how many seconds it is kept after its last use; 0 ends it at once. Default
            None: `unused_subscription_time`.
        :param on_stopped: called with a ``DDPError`` or None when the server ends it; with
            `report_own_stops` also, with None, when the program gives it up.
        :raises DDPError: if the server refuses it.
        """
        self._may_wait(timeout)
        made: DDPSubscription = self._make_subscription(name, params, keep, on_stopped)
        if wait:
            try:
                await made.ready(timeout)
            except BaseException:
                made.release()
                raise
        return made

    async def load(self, publications: Iterable[Any], timeout: float | None = None) -> DDPLoader:
        """Subscribes to several publications, and waits until they are all ready. If the wait fails
        or is cancelled, all are released.

        :param publications: names, or tuples of a name and its parameters.
        :raises DDPError: the error of the first one that the server refused or ended.
        """
        self._may_wait(timeout)
        made: DDPLoader = self._make_loader(publications)
        try:
            await self._reach(made._outcome(), timeout)
        except BaseException:
            made.close()
            raise
        return made

    def send(self, method: str, *params: Any, **options: Any) -> DDPCall:
        """Calls a method without waiting: its stub has run when this returns.

        :param wait: earlier calls are finished before it is sent, and it is finished before later
            ones are. Default False.
        :param no_retry: if the connection is lost before its result, the call fails: it is not sent
            again, because it could run twice on the server. Default False.
        :param throw_stub_errors: if its stub fails, the call fails, and nothing is sent. Default
            False.
        :param call_timeout: the time limit for the whole call. Default None.
        :raises DDPError: if the stub fails and the options say so.
        """
        made: DDPCall = self._make_call(
            DDP.call, text(method, "method"), self._encoded(params), **options
        )
        return made

    async def call(
        self, method: str, *params: Any, timeout: float | None = None, **options: Any
    ) -> Any:
        """Calls a method, and waits until it is done and the documents that it wrote are there.
        After `timeout` seconds, or if the wait is cancelled, the call continues.

        :param options: as for ``send``.
        :raises DDPError: if the call fails.
        """
        self._may_wait(timeout)
        return await self.send(method, *params, **options).completed(timeout)

    def batch(
        self,
        *,
        wait: bool = False,
        no_retry: bool = False,
        throw_stub_errors: bool = False,
        call_timeout: float | None = None,
    ) -> DDPBatch:
        """Several writes as one: they are made when the ``with`` block ends.

            with client.batch() as batch:
                batch.insert("tasks", {"text": "milk"})
                batch.remove("tasks", "b")
            await batch

        :param options: as for ``send``, for each of the calls.
        """
        options = call_options(
            wait=wait,
            no_retry=no_retry,
            throw_stub_errors=throw_stub_errors,
            call_timeout=call_timeout,
        )
        return DDPBatch(self, options)

    def models(self, *classes: type) -> DDPModels:
        """Reads, saves and observes documents as objects of these dataclasses; see
        ``librealtime.ddp_models``. Their objects can be parameters of methods and subscriptions:
        they become their ids.

        :param classes: those to which their relationships lead belong to them, too.
        :raises InvalidArgument: for models that contradict each other.
        """
        return DDPModels(self, classes)

    def collection(self, name: str, *, object_ids: bool = False) -> DDPCollection:
        """A collection of local documents. Its inserts, updates and removals change the local
        documents before the server has answered.

        :param object_ids: whether new documents get ObjectIDs of MongoDB, and not texts.
        """
        return DDPCollection(self, name, object_ids)

    # The end.

    async def __aenter__(self) -> Self:
        """Connects, and waits until it is connected; see ``connect``."""
        try:
            await self.connect()
        except BaseException:
            self.close()
            raise
        return self

    async def aclose(self) -> None:
        """Calls ``close``. Before that, it awaits what handlers returned."""
        await self._leave(in_order=True)

    def close(self) -> None:
        super().close()
        self._stop_awaiting()

    close.__doc__ = BaseDDPClient.close.__doc__

    async def _leave(self, in_order: bool) -> None:
        try:
            if asyncio.get_running_loop() is self._loop and not self._is_closed and in_order:
                await self._let_handlers_finish()
        finally:
            self.close()

    # Overrides of the base classes.

    async def _reach(self, outcome: Outcome, timeout: float | None = None) -> None:
        if not await self._until(outcome.is_known, timeout):
            raise timed_out(f"there is no answer after {timeout} s")
        outcome.check()

    def _changed(self) -> None:
        self._wake(self._waiters)
        self._hold()

    async def _wait(self, waiters: Futures) -> None:
        self._check_loop()
        self._waits += 1
        try:
            await super()._wait(waiters)
        finally:
            self._waits -= 1
            self._hold()

    def _stub_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A stub may be a coroutine function."""

        @functools.wraps(function)
        def run(*arguments: Any) -> Any:
            return without_waiting(function(*arguments))

        return run

    @property
    def _is_wanted(self) -> bool:
        return self._waits > 0 or self._calls_back
