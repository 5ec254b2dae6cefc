"""The accounts of Meteor clients: what both faces share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from .._core.endpoint import Endpoint
from .._core.errors import checked
from .._core.kind import read_text
from .._core.naming import kind_of
from .._core.values import encode, invalid, text
from .callbacks import DDP, documents
from .checking import check
from .stub import encoded

#: How a user is named: a text, or a dict with one of these.
_NAMES = ("id", "username", "email")


class Accounts(Endpoint):
    """The state of the user, and the calls that both faces wait for."""

    _call_type: ClassVar[Any]

    @property
    def user_id(self) -> str | None:
        """The user who is logged in; None for nobody. Until the first connection has logged in,
        that of the token that was kept."""
        handle = self._handle
        return None if handle is None else read_text(DDP.get_user_id, handle) or None

    @property
    def user(self) -> dict[str, Any] | None:
        """The document of the user who is logged in, of the collection ``users``. It stays the same
        while the client connects again. None if nobody is logged in, or the server has not sent
        it."""
        handle = self._handle
        if handle is None:
            return None
        found = documents(lambda fn, key: int(DDP.get_user(handle, fn, key)))
        return found[0][1] if found else None

    @property
    def is_logging_in(self) -> bool:
        """Whether a login is in progress. It stays False while a user who is known (`user_id`) is
        logged in again, on a new connection or with a token that was kept."""
        handle = self._handle
        return handle is not None and checked(DDP.is_logging_in(handle)) == 1

    def set_user_id(self, user_id: str | None) -> None:
        """Sets the user that stubs see, without a login, for servers with accounts of their own."""
        encoded_id = None if user_id is None else text(user_id, "user_id")
        check(DDP.set_user_id(self._require_handle(), encoded_id))

    def _make_account_call(self, function: Any, *arguments: Any) -> Any:
        call = self._call_type(self)
        call._start(function, *arguments)
        return call

    def _log_in(self, user: str | Mapping[str, str], password: str, code: str | None) -> Any:
        if isinstance(user, Mapping):
            return self._log_in_by("login", (_credentials(user, password, code),))
        if not isinstance(user, str):
            raise TypeError(f"user is {kind_of(user)}; a str or a dict is expected")
        return self._make_account_call(
            DDP.log_in_with_password,
            text(user, "user"),
            text(password, "password"),
            _optional(code, "code"),
        )

    def _log_in_with_token(self, token: str) -> Any:
        return self._make_account_call(DDP.log_in_with_token, text(token, "token"))

    def _log_in_by(self, method: str, params: tuple[Any, ...]) -> Any:
        return self._make_account_call(DDP.log_in, text(method, "method"), encoded(params))

    def _create_user(self, password: str, name: str | None, email: str | None, profile: Any) -> Any:
        return self._make_account_call(
            DDP.create_user,
            _optional(name, "name"),
            _optional(email, "email"),
            text(password, "password"),
            None if profile is None else encoded(profile),
        )

    def _change_password(self, old: str | None, new: str) -> Any:
        arguments = _optional(old, "old"), text(new, "new")
        return self._make_account_call(DDP.change_password, *arguments)

    def _forgot_password(self, email: str) -> Any:
        return self._make_account_call(DDP.forgot_password, text(email, "email"))

    def _reset_password(self, token: str, new: str) -> Any:
        arguments = text(token, "token"), text(new, "new")
        return self._make_account_call(DDP.reset_password, *arguments)

    def _verify_email(self, token: str) -> Any:
        return self._make_account_call(DDP.verify_email, text(token, "token"))


def _credentials(user: Mapping[str, str], password: str, code: str | None) -> dict[str, Any]:
    """The parameter of Meteor's method ``login``."""
    if len(user) != 1 or not set(user) <= set(_NAMES):
        raise invalid("user is a dict; one of 'id', 'username' and 'email' is expected in it")
    for name, value in user.items():
        text(value, name)
    text(password, "password")
    digest = hashlib.sha256(encode(password, "password")).hexdigest()
    login = {"user": dict(user), "password": {"digest": digest, "algorithm": "sha-256"}}
    if code is not None:
        text(code, "code")
        return {**login, "code": code}
    return login


def _optional(value: str | None, name: str) -> bytes | None:
    return None if value is None else text(value, name)
