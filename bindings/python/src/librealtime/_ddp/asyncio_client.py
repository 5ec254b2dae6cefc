"""The asyncio client of Meteor servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from .._core.awaiting import Awaiting
from .._core.handle import Handle
from .._core.outcome import Outcome
from .._core.parameters import Given
from .._core.reactor import Reactor
from .._core.values import text
from .callbacks import DDP
from .calls import BaseCall, BaseLoader, BaseSubscription
from .client_base import BaseDDPClient
from .collection import BaseCollection, BaseResults
from .query import Document
from .stub import encoded

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._core.awaiting import Futures


class DDPCall(BaseCall):
    """A call that was made; ``await call`` waits until it is done, and the documents that it wrote
    are there."""

    async def result(self) -> Any:
        """Waits for the result. The documents that the call wrote may follow.

        :raises DDPError: if the call fails.
        """
        await self._client._reach(self._outcome(completed=False))
        return self._value(completed=False)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._end().__await__()

    async def _end(self) -> Any:
        await self._client._reach(self._outcome(completed=True))
        return self._value(completed=True)


class DDPSubscription(BaseSubscription):
    async def ready(self) -> None:
        """Waits for the initial documents.

        :raises DDPError: if the server ends the subscription before.
        """
        await self._client._reach(self._outcome())


class DDPLoader(BaseLoader):
    pass


class DDPResults(BaseResults):
    """The result of a query, and its result after each change, as soon as the iteration asks for
    it: results that it was too slow for are left out."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Document]:
        while not self._is_new:
            if self._is_over:
                raise StopAsyncIteration
            await self._client._wait(self._client._waiters)
        if self._is_over:
            raise StopAsyncIteration
        return self._take()


class DDPCollection(BaseCollection):
    def results(self, selector: Any = None, **options: Any) -> DDPResults:
        """The result of a query, and its result after each change; the parameters are those of
        ``find``.

            async for tasks in client.collection("tasks").results({"done": False}):
                show(tasks)
        """
        return DDPResults(self._client, self.name, selector, options)


class DDPClient(Awaiting, BaseDDPClient):
    """A client of a Meteor server.

        async with DDPClient("https://example.org") as client:
            await client.subscribe("tasks")
            tasks = client.collection("tasks")
            print(tasks.find({"done": False}, sort={"text": 1}))
            await client.call("addTask", "Buy milk")

    The object uses the running asyncio loop and belongs to that loop's thread. Handlers may be
    coroutine functions, which are awaited one after the other.
    """

    _call_type = DDPCall
    _subscription_type = DDPSubscription
    _loader_type = DDPLoader

    def _begin(self, url: str, given: Given) -> None:
        self._waits = 0
        self._prepare_awaiting(Reactor.current(), 0, 0)
        try:
            super()._begin(url, given)
        except BaseException:
            self._reactor.release_when_idle()
            raise
        self._reactor.add(self)
        self._hold()

    def _join(self) -> Handle:
        return self._reactor.require()

    async def connect(self, *, wait: bool = True) -> None:
        """Connects, and waits until it is connected. If the next attempt waits, it is made at once.
        Cancelling the wait does not end the connection.

        :param wait: False returns at once.
        :raises RealtimeError: why the client gave up; ``StoreError`` if `token_file` cannot be
            used.
        """
        self._check_loop()
        outcome = self._begin_connecting()
        if wait:
            await self._reach(outcome)

    async def subscribe(
        self,
        name: str,
        *params: Any,
        wait: bool = True,
        keep: float | None = None,
        on_stopped: Callable[[Any], object] | None = None,
    ) -> DDPSubscription:
        """Subscribes to a publication, and waits for its documents. A lost connection subscribes by
        itself again. Equal subscriptions are shared: the server is asked once.

        :param wait: False returns at once.
        :param keep: how long it is kept after its last use. Default None:
            `unused_subscription_time`.
        :param on_stopped: called with a ``DDPError`` or None when the server ends it.
        :raises DDPError: if the server refuses it.
        """
        self._check_loop()
        made: DDPSubscription = self._make_subscription(name, params, keep, on_stopped)
        if wait:
            await made.ready()
        return made

    async def load(self, publications: Iterable[Any]) -> DDPLoader:
        """Subscribes to several publications, and waits until they are all ready.

        :param publications: names, or tuples of a name and its parameters.
        :raises DDPError: the first error of those that the server ended.
        """
        self._check_loop()
        made: DDPLoader = self._make_loader(publications)
        await self._reach(made._outcome())
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
            DDP.call, text(method, "method"), encoded(params), **options
        )
        return made

    async def call(self, method: str, *params: Any, **options: Any) -> Any:
        """Calls a method, and waits until it is done and the documents that it wrote are there.
        Cancelling the wait does not end the call.

        :param options: as for ``send``.
        :raises DDPError: if the call fails.
        """
        self._check_loop()
        return await self.send(method, *params, **options)

    def collection(self, name: str, *, object_ids: bool = False) -> DDPCollection:
        """A collection of local documents. Its inserts, updates and removals change the local
        documents before the server has answered.

        :param object_ids: whether new documents get ObjectIDs of MongoDB, and not texts.
        """
        return DDPCollection(self, name, object_ids)

    # Accounts.

    async def log_in(self, user: str, password: str, code: str | None = None) -> Any:
        """Logs in with a password. A user who has logged in is logged in again on each new
        connection, and after a restart if the token is kept (`token_file`).

        :param user: an email address if it contains an ``@``, otherwise a user name.
        :param code: of the second factor.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: if the server refuses it.
        """
        return await self._checked(self._log_in(user, password, code))

    async def log_in_with_token(self, token: str) -> Any:
        """Logs in with the ``token`` of an earlier login."""
        return await self._checked(self._log_in_with_token(token))

    async def log_in_by(self, method: str, *params: Any) -> Any:
        """Calls any method that logs a user in: its result is a dict with ``id`` and ``token``."""
        return await self._checked(self._log_in_by(method, params))

    async def create_user(
        self,
        password: str,
        *,
        name: str | None = None,
        email: str | None = None,
        profile: Any = None,
    ) -> Any:
        """Creates a user, and logs in."""
        return await self._checked(self._create_user(password, name, email, profile))

    async def change_password(self, old: str | None, new: str) -> None:
        """
        :param old: None for a user who has no password yet.
        """
        await self._checked(self._change_password(old, new))

    async def forgot_password(self, email: str) -> None:
        """Makes the server send an email with a token for ``reset_password``."""
        await self._checked(self._forgot_password(email))

    async def reset_password(self, token: str, new: str) -> Any:
        """Sets a password with the token of an email, and logs in."""
        return await self._checked(self._reset_password(token, new))

    async def verify_email(self, token: str) -> Any:
        """Confirms an email address with the token of an email, and logs in."""
        return await self._checked(self._verify_email(token))

    async def log_out(self) -> None:
        """Logs the user out: here once the server has."""
        await self._checked(self._make_account_call(DDP.log_out))

    async def log_out_others(self) -> None:
        """Logs all other clients of the user out."""
        await self._checked(self._make_account_call(DDP.log_out_others))

    def _checked(self, call: DDPCall) -> Awaitable[Any]:
        self._check_loop()
        return call

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

    async def _reach(self, outcome: Outcome) -> None:
        while not outcome.is_known():
            await self._wait(self._waiters)
        outcome.check()

    def _changed(self) -> None:
        self._wake(self._waiters)
        self._hold()

    async def _wait(self, waiters: Futures) -> None:
        self._waits += 1
        try:
            await super()._wait(waiters)
        finally:
            self._waits -= 1
            self._hold()

    @property
    def _is_wanted(self) -> bool:
        return self._waits > 0 or (self._is_on and self._is_told)
