"""The accounts of the asyncio client of Meteor servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .accounts import Accounts
from .callbacks import DDP


class AsyncAccounts(Accounts):
    """The accounts of a client. After `timeout` seconds a call raises ``TimeoutError``, and
    continues."""

    async def log_in(
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
            one of ``id``, ``username`` and ``email``, such as ``{"id": "…"}``.
        :param code: of the second factor.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: if the server refuses it (`kind` is ``"server"``), with the code ``"403"``
            for a wrong password or an unknown user; if the client gives up (``"disconnected"``) or
            is closed (``"closed"``).
        :raises InvalidArgument: for a dict with other keys, or several.
        """
        self._may_wait(timeout)
        return await self._log_in(user, password, code).completed(timeout)

    async def log_in_with_token(self, token: str, *, timeout: float | None = None) -> Any:
        """Logs in with the ``token`` of an earlier login.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        self._may_wait(timeout)
        return await self._log_in_with_token(token).completed(timeout)

    async def log_in_by(self, method: str, *params: Any, timeout: float | None = None) -> Any:
        """Calls any method that logs a user in: its result is a dict with ``id`` and ``token``.

        :raises DDPError: as ``log_in``; the code is ``"no-user"`` if the result has no ``id``, so
            that nobody is logged in.
        """
        self._may_wait(timeout)
        return await self._log_in_by(method, params).completed(timeout)

    async def create_user(
        self,
        password: str,
        *,
        name: str | None = None,
        email: str | None = None,
        profile: Any = None,
        timeout: float | None = None,
    ) -> Any:
        """Creates a user, and logs in.

        :param name: the user name. It, `email` or both are required.
        :param profile: further data about the user, which the server stores. Default None.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` if the name or the email address is
            taken, or the server lets nobody sign up.
        """
        self._may_wait(timeout)
        return await self._create_user(password, name, email, profile).completed(timeout)

    async def change_password(
        self, old: str | None, new: str, *, timeout: float | None = None
    ) -> None:
        """Changes the password of the user who is logged in.

        :param old: None for a user who has no password yet.
        :raises DDPError: as ``log_in``; the code is ``"403"`` if `old` is wrong, and ``"401"`` if
            nobody is logged in.
        """
        self._may_wait(timeout)
        await self._change_password(old, new).completed(timeout)

    async def forgot_password(self, email: str, *, timeout: float | None = None) -> None:
        """Makes the server send an email with a token for ``reset_password``.

        :raises DDPError: as ``log_in``; the code is ``"403"`` if no user has this address.
        """
        self._may_wait(timeout)
        await self._forgot_password(email).completed(timeout)

    async def reset_password(self, token: str, new: str, *, timeout: float | None = None) -> Any:
        """Sets a password with the token of an email, and logs in.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        self._may_wait(timeout)
        return await self._reset_password(token, new).completed(timeout)

    async def verify_email(self, token: str, *, timeout: float | None = None) -> Any:
        """Confirms an email address with the token of an email, and logs in.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        self._may_wait(timeout)
        return await self._verify_email(token).completed(timeout)

    async def new_token(self, *, timeout: float | None = None) -> Any:
        """Gets another token for the user who is logged in; it replaces the one that is kept.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; also if nobody is logged in.
        """
        self._may_wait(timeout)
        return await self._make_account_call(DDP.new_token).completed(timeout)

    async def log_out(self, *, timeout: float | None = None) -> None:
        """Logs the user out. `user_id` becomes None when the server has answered.

        :raises DDPError: as ``log_in``.
        """
        self._may_wait(timeout)
        await self._make_account_call(DDP.log_out).completed(timeout)

    async def log_out_others(self, *, timeout: float | None = None) -> None:
        """Logs all other clients of the user out.

        :raises DDPError: as ``log_in``; also if nobody is logged in.
        """
        self._may_wait(timeout)
        await self._make_account_call(DDP.log_out_others).completed(timeout)

    def _may_wait(self, timeout: float | None) -> float | None:
        raise NotImplementedError
