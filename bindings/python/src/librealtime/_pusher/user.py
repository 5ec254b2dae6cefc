"""The signed-in user."""

from __future__ import annotations

import weakref
from typing import Any

from .._core.abi import rt_status
from .._core.errors import InvalidState
from .bindings import Bindings
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
