"""The blocking client of Meteor servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._core.driven import Driven
from .._core.handle import Handle, new_loop
from .._core.outcome import Outcome
from .._core.parameters import Given
from .._core.values import text
from .callbacks import DDP
from .calls import BaseCall, BaseLoader, BaseSubscription
from .client_base import BaseDDPClient
from .collection import BaseCollection, BaseResults
from .query import Document
from .stub import encoded

if TYPE_CHECKING:
    from typing_extensions import Self


class DDPCall(BaseCall):
    """A call that was made."""

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result. The documents that the call wrote may follow.

        :raises DDPError: if the call fails.
        :raises TimeoutError: if there is none within `timeout` seconds; the call continues.
        """
        self._client._reach(self._outcome(completed=False), timeout)
        return self._value(completed=False)

    def completed(self, timeout: float | None = None) -> Any:
        """Waits until the call is done, and the documents that it wrote are there; otherwise like
        ``result``."""
        self._client._reach(self._outcome(completed=True), timeout)
        return self._value(completed=True)


class DDPSubscription(BaseSubscription):
    def ready(self, timeout: float | None = None) -> None:
        """Waits for the initial documents.

        :raises DDPError: if the server ends the subscription before.
        :raises TimeoutError: if they are not there within `timeout` seconds.
        """
        self._client._reach(self._outcome(), timeout)


class DDPLoader(BaseLoader):
    pass


class DDPResults(BaseResults):
    """The result of a query, and its result after each change, as soon as the iteration asks for
    it: results that it was too slow for are left out."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Document]:
        self._client._until(lambda: self._is_new or self._is_over)
        if self._is_over:
            raise StopIteration
        return self._take()


class DDPCollection(BaseCollection):
    def results(self, selector: Any = None, **options: Any) -> DDPResults:
        """The result of a query, and its result after each change; the parameters are those of
        ``find``.

            for tasks in client.collection("tasks").results({"done": False}):
                show(tasks)
        """
        return DDPResults(self._client, self.name, selector, options)


class DDPClient(Driven, BaseDDPClient):
    """A client of a Meteor server; blocking.

        with DDPClient("https://example.org") as client:
            client.subscribe("tasks")
            tasks = client.collection("tasks")
            print(tasks.find({"done": False}, sort={"text": 1}))
            client.call("addTask", "Buy milk")

    Several threads may use it at once. Documents are received and handlers called whatever the
    program does: in the call that waits, or in a thread of the object while no call does. The call
    that waits, or the next one, raises what handlers raise. Calls that wait take a `timeout` in
    seconds, and raise ``TimeoutError`` after it.
    """

    _call_type = DDPCall
    _subscription_type = DDPSubscription
    _loader_type = DDPLoader

    def _begin(self, url: str, given: Given) -> None:
        self._prepare_driving()
        super()._begin(url, given)
        self._live_by_itself()

    def _join(self) -> Handle:
        return new_loop()

    def connect(self, *, wait: bool = True, timeout: float | None = None) -> None:
        """Connects, and waits until it is connected. If the next attempt waits, it is made at
        once.

        :param wait: False returns at once.
        :raises RealtimeError: why the client gave up; ``StoreError`` if `token_file` cannot be
            used.
        """
        outcome = self._begin_connecting()
        if wait:
            self._reach(outcome, timeout)

    def subscribe(
        self,
        name: str,
        *params: Any,
        wait: bool = True,
        timeout: float | None = None,
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
        made: DDPSubscription = self._make_subscription(name, params, keep, on_stopped)
        if wait:
            made.ready(timeout)
        return made

    def load(self, publications: Iterable[Any], timeout: float | None = None) -> DDPLoader:
        """Subscribes to several publications, and waits until they are all ready.

        :param publications: names, or tuples of a name and its parameters.
        :raises DDPError: the first error of those that the server ended.
        """
        made: DDPLoader = self._make_loader(publications)
        self._reach(made._outcome(), timeout)
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

    def call(self, method: str, *params: Any, timeout: float | None = None, **options: Any) -> Any:
        """Calls a method, and waits until it is done and the documents that it wrote are there.
        After `timeout` seconds the call continues.

        :param options: as for ``send``.
        :raises DDPError: if the call fails.
        """
        return self.send(method, *params, **options).completed(timeout)

    def collection(self, name: str, *, object_ids: bool = False) -> DDPCollection:
        """A collection of local documents. Its inserts, updates and removals change the local
        documents before the server has answered.

        :param object_ids: whether new documents get ObjectIDs of MongoDB, and not texts.
        """
        return DDPCollection(self, name, object_ids)

    # Accounts.

    def log_in(
        self,
        user: str,
        password: str,
        code: str | None = None,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Logs in with a password. A user who has logged in is logged in again on each new
        connection, and after a restart if the token is kept (`token_file`).

        :param user: an email address if it contains an ``@``, otherwise a user name.
        :param code: of the second factor.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: if the server refuses it.
        """
        return self._log_in(user, password, code).completed(timeout)

    def log_in_with_token(self, token: str, *, timeout: float | None = None) -> Any:
        """Logs in with the ``token`` of an earlier login."""
        return self._log_in_with_token(token).completed(timeout)

    def log_in_by(self, method: str, *params: Any, timeout: float | None = None) -> Any:
        """Calls any method that logs a user in: its result is a dict with ``id`` and ``token``."""
        return self._log_in_by(method, params).completed(timeout)

    def create_user(
        self,
        password: str,
        *,
        name: str | None = None,
        email: str | None = None,
        profile: Any = None,
        timeout: float | None = None,
    ) -> Any:
        """Creates a user, and logs in."""
        return self._create_user(password, name, email, profile).completed(timeout)

    def change_password(self, old: str | None, new: str, *, timeout: float | None = None) -> None:
        """
        :param old: None for a user who has no password yet.
        """
        self._change_password(old, new).completed(timeout)

    def forgot_password(self, email: str, *, timeout: float | None = None) -> None:
        """Makes the server send an email with a token for ``reset_password``."""
        self._forgot_password(email).completed(timeout)

    def reset_password(self, token: str, new: str, *, timeout: float | None = None) -> Any:
        """Sets a password with the token of an email, and logs in."""
        return self._reset_password(token, new).completed(timeout)

    def verify_email(self, token: str, *, timeout: float | None = None) -> Any:
        """Confirms an email address with the token of an email, and logs in."""
        return self._verify_email(token).completed(timeout)

    def log_out(self, *, timeout: float | None = None) -> None:
        """Logs the user out: here once the server has."""
        self._make_account_call(DDP.log_out).completed(timeout)

    def log_out_others(self, *, timeout: float | None = None) -> None:
        """Logs all other clients of the user out."""
        self._make_account_call(DDP.log_out_others).completed(timeout)

    # The end.

    def __enter__(self) -> Self:
        """Connects, and waits until it is connected; see ``connect``."""
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def _leave(self, in_order: bool) -> None:
        self.close()

    # Overrides of the base classes.

    def _reach(self, outcome: Outcome, timeout: float | None) -> None:
        if not self._until(outcome.is_known, timeout):
            raise TimeoutError(f"there is no answer after {timeout} s")
        outcome.check()

    def _changed(self) -> None:
        self._rouse(self._loop_handle)
