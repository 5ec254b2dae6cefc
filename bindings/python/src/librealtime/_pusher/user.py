"""The signed-in user."""

from __future__ import annotations

import weakref
from typing import Any

from .._core.abi import rt_destroy_fn, rt_pusher_sign_in_fn, rt_status
from .._core.errors import InvalidState
from .._core.failure import Failure
from .._core.handle import Handle
from .._core.outcome import Outcome, Result
from .._core.registry import Registration
from .bindings import Bindings
from .callbacks import PUSHER, SIGN_IN
from .streams import Listening


class BaseUser(Listening):
    """The user of a ``Pusher`` (``pusher.user``). Handlers receive the events that the server sends
    to the user, on whichever connection.
    """

    def __init__(self, pusher: Any) -> None:
        self._pusher = weakref.ref(pusher)
        self._id: str | None = None
        self._data: Any = None
        self._bindings = Bindings(self._pusher)

    @property
    def id(self) -> str | None:
        """The user's id; None while not signed in."""
        return self._id

    @property
    def data(self) -> Any:
        """The user's data as the authorization server gave it; None while not signed in."""
        return self._data

    @property
    def is_signed_in(self) -> bool:
        """Whether the server has confirmed the sign-in on the current connection."""
        return self._id is not None

    def __repr__(self) -> str:
        kind = type(self)
        return f"<{kind.__module__}.{kind.__name__} {self._id or 'not signed in'}>"

    def _owning(self) -> Any:
        pusher = self._pusher()
        if pusher is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection of this user is gone")
        return pusher


#: The arguments of `rt_pusher_sign_in` if nobody waits for the result.
UNAWAITED = (rt_pusher_sign_in_fn(), None, rt_destroy_fn(), None)


class SignIn:
    """A call of ``sign_in`` that waits for its result, which C reports to it."""

    _known: Result = None

    def __init__(self, pusher: Any) -> None:
        self._pusher = pusher

    def begin(self, handle: Handle) -> Outcome:
        def sign_in(handle: Handle, function: Any, key: int, destroy: Any) -> int:
            status: int = PUSHER.sign_in(handle, function, key, destroy, None)
            return status

        Registration(self).set(sign_in, handle, SIGN_IN.trampoline)
        return Outcome(self._result)

    def _answered(self, failure: Failure | None) -> None:
        self._known = True if failure is None else self._pusher._sign_in_error(failure)
        self._pusher._changed()

    def _result(self) -> Result:
        pusher = self._pusher
        if self._known is None and pusher._is_closed:
            self._known = pusher._end()
        return self._known

    def _keep(self, error: BaseException) -> None:
        self._pusher._keep(error)
