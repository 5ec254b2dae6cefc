"""Calls, subscriptions and loaders: what a Meteor client waits for."""

from __future__ import annotations

import ctypes
from typing import Any

from .._core.abi import rt_ddp_call_options, rt_ddp_stage, rt_status
from .._core.errors import RealtimeError
from .._core.handle import Handle
from .._core.hints import hint
from .._core.outcome import Outcome, Result
from .._core.uncopied import Uncopied
from .._core.values import milliseconds, text
from .callbacks import DDP, LOADED, OUTCOME, STAGES, SUBSCRIPTION, ensure_room
from .checking import Registration
from .errors import DDPError, closed
from .stub import raise_interrupt, take_failure

_OPTIONS = ("wait", "no_retry", "throw_stub_errors", "call_timeout")


def call_options(
    *,
    wait: bool = False,
    no_retry: bool = False,
    throw_stub_errors: bool = False,
    call_timeout: float | None = None,
    **others: Any,
) -> rt_ddp_call_options:
    """The options of a call, for C. It reports all stages."""
    for name in others:
        # "timeout" is an option of calls that wait.
        advice = hint("call_timeout" if name == "timeout" else name, _OPTIONS, {})
        raise TypeError(f"a call has no option {name!r}{advice}")
    options = rt_ddp_call_options()
    options.struct_bytes = ctypes.sizeof(options)
    options.stages = STAGES
    options.wait = bool(wait)
    options.no_retry = bool(no_retry)
    options.throw_stub_errors = bool(throw_stub_errors)
    timeout_ms = 0 if call_timeout is None else milliseconds(call_timeout, "call_timeout")
    options.timeout_ms = timeout_ms
    return options


class Awaited(Uncopied):
    """Something that C reports on. The client refers to it until nothing more will come."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._registration = Registration(self)
        client._pending.add(self)

    def _begin(
        self, function: Any, owner: Handle, arguments: tuple[Any, ...], trampoline: Any, *last: Any
    ) -> int:
        """Calls a function that makes C report on this object. If it fails, nothing more will come.

        :param arguments: those before the callback; `last` follow the number.
        :returns: the number that C gives the object.
        """
        number = ctypes.c_uint64()
        try:
            self._registration.set(
                lambda handle, fn, key, destroy: function(
                    handle, *arguments, fn, key, destroy, ctypes.byref(number), *last
                ),
                owner,
                trampoline,
            )
        except BaseException:
            self._finish()
            raise
        return number.value

    def _keep(self, error: BaseException) -> None:
        self._client._keep(error)

    def _tell(self) -> None:
        """Called if it has a handler of the program: the client lives as long as it does."""
        client = self._client
        client._telling.add(self)
        if self not in client._pending:  # it has ended meanwhile, on another thread
            client._telling.discard(self)
        client._changed()

    def _finish(self) -> None:
        client = self._client
        client._pending.discard(self)
        if self in client._telling:
            client._telling.discard(self)
            client._changed()

    def _revive(self) -> None:
        """Called before it is awaited: a finalizer may do that, see ``Registration.revive``."""
        if self._registration.revive(self):
            self._missed()

    def _missed(self) -> None:
        """Called if C has reported in vain, so that nothing may follow."""
        raise NotImplementedError

    def _result_of(self, known: Result) -> Result:
        """What a waiting call gets."""
        if known is not None:
            return known
        client = self._client
        if not client._is_closed:
            return None
        error: RealtimeError = client._end()
        return error


class BaseCall(Awaited):
    """A call that was made.

    :ivar stub_value: what the stub returned; None without one, and if it failed. For an insert the
        document's id, for an update or removal the number of documents.
    """

    stub_value: Any = None
    _result: tuple[Any] | DDPError | None = None
    _completed: tuple[Any] | DDPError | None = None
    _stub_error: DDPError | None = None
    #: Why it cannot be waited for.
    _hindrance: RealtimeError | None = None

    def _start(self, function: Any, *arguments: Any) -> None:
        """Makes the call.

        :raises DDPError: if its stub fails and the options say so.
        """

        def make(handle: Any, fn: Any, key: int, destroy: Any) -> int:
            status: int = function(handle, *arguments, fn, key, destroy, None)
            return status

        try:
            ensure_room()
            self._registration.set(make, self._client._require_handle(), OUTCOME)
        except RealtimeError as error:
            self._finish()
            if error.status == rt_status.ERROR_METHOD and self._stub_error is not None:
                raise self._stub_error from take_failure()
            raise
        except BaseException:
            self._finish()
            raise
        finally:
            take_failure()
            raise_interrupt()

    def _reached(self, stage: int, _: int, value: Any, error: DDPError | None) -> None:
        outcome: tuple[Any] | DDPError = (value,) if error is None else error
        if stage == rt_ddp_stage.STUB:
            self.stub_value, self._stub_error = value, error
            return
        if stage == rt_ddp_stage.RESULT:
            self._result = outcome
        else:
            self._result = self._result or outcome
            self._completed = outcome
            self._finish()
        self._client._changed()

    def _missed(self) -> None:
        self._completed = self._completed or _lost()
        self._result = self._result or self._completed
        self._finish()

    def _outcome(self, completed: bool) -> Outcome:
        self._revive()

        def ask() -> Result:
            if self._hindrance is not None:
                return self._hindrance
            known = self._completed if completed else self._result
            return self._result_of(known if isinstance(known, DDPError) else known and True)

        return Outcome(ask)

    def _value(self, completed: bool) -> Any:
        known = self._completed if completed else self._result
        assert isinstance(known, tuple)
        return known[0]


class BaseSubscription(Awaited):
    """A use of a publication. It ends with ``stop``, or ``release``, which keeps it for a while so
    that using it again needs no request; or with its client.

    :ivar name: of the publication.
    :ivar params: its parameters.
    """

    _number: int
    _known: Result = None
    _is_given_up = False

    def __init__(self, client: Any, name: str, params: tuple[Any, ...], on_stopped: Any) -> None:
        super().__init__(client)
        self.name = name
        self.params = params
        self._on_stopped = on_stopped

    @property
    def is_ready(self) -> bool:
        """Whether the initial documents are there."""
        handle = self._client._handle
        return handle is not None and DDP.is_ready(handle, self._number) == 1

    def release(self) -> None:
        """Gives the subscription up. After its last use it is kept for a while."""
        self._end_by(DDP.release_subscription)

    def stop(self) -> None:
        """Gives the subscription up. If nobody else uses it, it ends at once."""
        self._end_by(DDP.stop_subscription)

    def _end_by(self, function: Any) -> None:
        handle = self._client._handle
        if not self._client._reports_own_stops:
            self._finish()
        if handle is not None:
            function(handle, self._number)
        self._is_given_up = True
        if self._known is None:  # nothing more will be heard of it
            self._known = closed("the subscription was given up")
            self._client._changed()

    def _happened(self, is_ready: bool, error: DDPError | None) -> None:
        if is_ready:
            self._known = self._known or True
        else:
            stopped = error or DDPError("stopped", "the server has ended it", kind="server")
            if not self._is_given_up and not isinstance(self._known, DDPError):
                self._known = stopped
            self._finish()
            if self._on_stopped is not None:
                self._client._call(self._on_stopped, error)
        self._client._changed()

    def _missed(self) -> None:
        self._known = self._known or (True if self.is_ready else _lost())

    def _outcome(self) -> Outcome:
        self._revive()
        return Outcome(lambda: self._result_of(self._known))

    _trampoline = SUBSCRIPTION


class BaseLoader(Awaited):
    """Several subscriptions, from ``load``; ``close`` releases them."""

    _number: int
    _known: Result = None

    def close(self) -> None:
        """Releases the subscriptions."""
        handle = self._client._handle
        self._finish()
        if handle is not None:
            DDP.close_loader(handle, self._number)

    def _loaded(self, error: DDPError | None) -> None:
        self._known = error or True
        self._client._changed()

    def _missed(self) -> None:
        self._known = self._known or _lost()

    def _outcome(self) -> Outcome:
        self._revive()
        return Outcome(lambda: self._result_of(self._known))

    _trampoline = LOADED


def _lost() -> DDPError:
    """Why an outcome is not known that came while the collector finalized what waits for it."""
    reason = "the outcome came while the collector finalized the program's objects"
    return DDPError("lost", reason, kind="closed")


def publication(given: Any) -> list[Any]:
    """A publication to load: its name, and its parameters."""
    parts = [given] if isinstance(given, str) else given
    if not isinstance(parts, (tuple, list)) or not parts or not isinstance(parts[0], str):
        raise TypeError(
            f"publications has {given!r}; a name, or a tuple of a name and parameters, is expected"
        )
    text(parts[0], "the name of a publication")
    return list(parts)
