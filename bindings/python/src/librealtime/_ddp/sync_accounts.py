"""The accounts of the blocking client of Meteor servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .accounts import Accounts
from .callbacks import DDP


class BlockingAccounts(Accounts):
    """The accounts of a client. After `timeout` seconds a call raises ``TimeoutError``, and
    continues."""

    def log_in(
        self,
        user: str | Mapping[str, str],
        password: str,
        code: str | None = None,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Logs in with a password. A user who has logged in is logged in again on each new
        connection, and after a restart if the token is kept (`token_file`).

        :param user: an email address if it contains an ``@``, otherwise a user name; or a dict with
            ``id``, ``username`` or ``email``.
        :param code: of the second factor.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: if the server refuses it.
        """
        return self._log_in(user, password, code).completed(timeout)

    def log_in_with_token(self, token: str, *, timeout: float | None = None) -> Any:
        """Logs in with the ``token`` of an earlier login."""
        return self._log_in_with_token(token).completed(timeout)

    def log_in_by(self, method: str, *params: Any, timeout: float | None = None) -> Any:
        """Calls any method that logs a user in: its result is a dict with ``id`` and ``token``.

        :raises DDPError: if the server refuses it, or if the result has no ``id``, so that nobody
            is logged in.
        """
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

    def new_token(self, *, timeout: float | None = None) -> Any:
        """Gets another token for the user who is logged in; it replaces the one that is kept.

        :returns: a dict with ``id`` and ``token``.
        """
        return self._make_account_call(DDP.new_token).completed(timeout)

    def log_out(self, *, timeout: float | None = None) -> None:
        """Logs the user out: here once the server has."""
        self._make_account_call(DDP.log_out).completed(timeout)

    def log_out_others(self, *, timeout: float | None = None) -> None:
        """Logs all other clients of the user out."""
        self._make_account_call(DDP.log_out_others).completed(timeout)
