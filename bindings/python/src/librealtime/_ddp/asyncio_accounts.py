"""The accounts of the asyncio client of Meteor servers."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from .accounts import Accounts
from .callbacks import DDP


class AsyncAccounts(Accounts):
    """The accounts of a client."""

    async def log_in(
        self, user: str | Mapping[str, str], password: str, code: str | None = None
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
        return await self._checked(self._log_in(user, password, code))

    async def log_in_with_token(self, token: str) -> Any:
        """Logs in with the ``token`` of an earlier login.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        return await self._checked(self._log_in_with_token(token))

    async def log_in_by(self, method: str, *params: Any) -> Any:
        """Calls any method that logs a user in: its result is a dict with ``id`` and ``token``.

        :raises DDPError: as ``log_in``; the code is ``"no-user"`` if the result has no ``id``, so
            that nobody is logged in.
        """
        return await self._checked(self._log_in_by(method, params))

    async def create_user(
        self,
        password: str,
        *,
        name: str | None = None,
        email: str | None = None,
        profile: Any = None,
    ) -> Any:
        """Creates a user, and logs in.

        :param name: the user name. It, `email` or both are required.
        :param profile: further data about the user, which the server stores. Default None.
        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` if the name or the email address is
            taken, or the server lets nobody sign up.
        """
        return await self._checked(self._create_user(password, name, email, profile))

    async def change_password(self, old: str | None, new: str) -> None:
        """Changes the password of the user who is logged in.

        :param old: None for a user who has no password yet.
        :raises DDPError: as ``log_in``; the code is ``"403"`` if `old` is wrong, and ``"401"`` if
            nobody is logged in.
        """
        await self._checked(self._change_password(old, new))

    async def forgot_password(self, email: str) -> None:
        """Makes the server send an email with a token for ``reset_password``.

        :raises DDPError: as ``log_in``; the code is ``"403"`` if no user has this address.
        """
        await self._checked(self._forgot_password(email))

    async def reset_password(self, token: str, new: str) -> Any:
        """Sets a password with the token of an email, and logs in.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        return await self._checked(self._reset_password(token, new))

    async def verify_email(self, token: str) -> Any:
        """Confirms an email address with the token of an email, and logs in.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; the code is ``"403"`` for a token that is wrong or has
            expired.
        """
        return await self._checked(self._verify_email(token))

    async def new_token(self) -> Any:
        """Gets another token for the user who is logged in; it replaces the one that is kept.

        :returns: a dict with ``id`` and ``token``.
        :raises DDPError: as ``log_in``; also if nobody is logged in.
        """
        return await self._checked(self._make_account_call(DDP.new_token))

    async def log_out(self) -> None:
        """Logs the user out. `user_id` becomes None when the server has answered.

        :raises DDPError: as ``log_in``.
        """
        await self._checked(self._make_account_call(DDP.log_out))

    async def log_out_others(self) -> None:
        """Logs all other clients of the user out.

        :raises DDPError: as ``log_in``; also if nobody is logged in.
        """
        await self._checked(self._make_account_call(DDP.log_out_others))

    def _checked(self, call: Any) -> Awaitable[Any]:
        self._check_loop()
        awaited: Awaitable[Any] = call
        return awaited

    def _check_loop(self) -> None:
        raise NotImplementedError
