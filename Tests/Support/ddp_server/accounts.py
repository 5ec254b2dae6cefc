"""Users: logins and their tokens, passwords, mails, and the methods for them."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import time
from typing import TYPE_CHECKING, Any

from ddp_server.alea import new_id, new_secret
from ddp_server.documents import Collection, Document
from ddp_server.ejson import Date
from ddp_server.errors import MeteorError
from ddp_server.methods import NOTHING, Invocation

if TYPE_CHECKING:
    from ddp_server.app import App
    from ddp_server.session import Session
    from ddp_server.subscription import Subscription

_LIMITED = ("login", "createUser", "resetPassword", "forgotPassword")
_PUBLISHED = ["profile", "username", "emails"]


@dataclasses.dataclass
class User:
    """What the collection `users` does not show."""

    id: str
    digest: str | None = None  # of the password
    code: str | None = None  # a login with password needs it too
    #: When each token was made, in seconds.
    tokens: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Mail:
    """A mail that the server would have sent."""

    kind: str  # resetPassword or verifyEmail
    address: str
    token: str
    user: str


class Accounts:
    """The users of an app. Their documents are in the collection `users`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.documents = Collection("users")
        self.documents.allows = {"insert": False, "update": False, "remove": False}
        self.users: dict[str, User] = {}
        self.mails: list[Mail] = []
        #: Ways to log in that tests declare: a field of the options, its value, the user.
        self.services: list[tuple[str, Any, str]] = []
        self.methods = {
            "login": self._login,
            "logout": self._logout,
            "createUser": self._create,
            "changePassword": self._change_password,
            "forgotPassword": self._forgot,
            "resetPassword": self._reset,
            "verifyEmail": self._verify,
            "getNewToken": self._new_token,
            "removeOtherTokens": self._remove_others,
        }

    async def publish(self, subscription: Subscription, _: list[Any]) -> None:
        """The unnamed publication of the user's own document."""
        if subscription.user_id is not None:
            selector = {"_id": subscription.user_id}
            subscription.publish(self.documents, selector, _PUBLISHED)

    # Users

    def add(
        self,
        username: str | None = None,
        email: str | None = None,
        password: Any = None,
        profile: Any = None,
        code: str | None = None,
    ) -> User:
        """Makes a user. The password is a text, or what clients send."""
        if not username and not email:
            raise MeteorError(400, "Need to set a username or email")
        for selector, name in (({"username": username}, "Username"), ({"email": email}, "Email")):
            if next(iter(selector.values())) and self.search(selector):
                raise MeteorError(403, f"{name} already exists.")
        document: Document = {"createdAt": Date(int(time.time() * 1000))}
        if username:
            document["username"] = username
        if email:
            document["emails"] = [{"address": email, "verified": False}]
        if profile is not None:
            document["profile"] = profile
        user = User(new_id(), _digest(password) if password is not None else None, code)
        self.users[user.id] = user
        self.documents.insert(user.id, document)
        return user

    def search(self, selector: Any) -> User | None:
        """The user with this id, username or email."""
        if not isinstance(selector, dict) or len(selector) != 1:
            raise MeteorError(400, "Match failed")
        ((key, value),) = selector.items()
        for id, fields in self.documents.all():
            found = {"id": [id], "username": [fields.get("username")]}
            found["email"] = [one["address"] for one in fields.get("emails", [])]
            if value in found.get(key, []):
                return self.users[id]
        return None

    def find(self, selector: dict[str, Any]) -> User:
        wanted = {key: selector[key] for key in ("id", "username", "email") if key in selector}
        user = self.search(wanted)
        if user is None:
            raise MeteorError(403, "User not found")
        return user

    def mail(self, kind: str, user: User, address: str) -> None:
        self.mails.append(Mail(kind, address, new_secret(), user.id))
        self._app.log.add("mail", **dataclasses.asdict(self.mails[-1]))

    def remove_tokens(self, user: User, gone: set[str]) -> None:
        """Ends the connections that use these tokens."""
        user.tokens = {token: when for token, when in user.tokens.items() if token not in gone}
        for session in list(self._app.sessions.values()):
            if session.token in gone:
                asyncio.get_running_loop().call_soon(session.close)

    def remove_others(self, user: User, session: Session) -> None:
        """Logs the user out everywhere else."""
        self.remove_tokens(user, set(user.tokens) - {session.token or ""})

    def limit(self, session: Session, method: str) -> None:
        """Counts calls of the methods that may be tried too often."""
        settings, now = self._app.settings, asyncio.get_running_loop().time()
        if method not in _LIMITED or not settings.logins:
            return
        times = session.login_times
        if times and now >= times[0] + settings.logins_window:
            times.clear()
        times.append(now)
        if len(times) > settings.logins:
            left = times[0] + settings.logins_window - now
            reason = "Error, too many requests. Please slow down. You must wait "
            reason += f"{int(left) + 1} seconds before trying again."
            raise MeteorError("too-many-requests", reason, {"timeToReset": int(left * 1000)})

    async def log_in(self, session: Session, user: User, kind: str, token: str = "") -> Any:
        """Makes the session the user's; returns the result of the login."""
        token = token or new_secret()
        user.tokens.setdefault(token, time.time())
        session.token = token
        await session.set_user(user.id)
        return {**self._described(user, token), "type": kind}

    def _described(self, user: User, token: str) -> dict[str, Any]:
        expires = user.tokens[token] + self._app.settings.token_life
        return {"id": user.id, "token": token, "tokenExpires": Date(int(expires * 1000))}

    # Methods

    async def _login(self, invocation: Invocation, params: list[Any]) -> Any:
        options = params[0] if params else None
        if not isinstance(options, dict):
            raise MeteorError(400, "Match failed")
        session = invocation.session
        if "resume" in options:
            user = self._resumed(options["resume"])
            return await self.log_in(session, user, "resume", options["resume"])
        for field, value, name in self.services:
            if field in options:
                if options[field] != value:
                    raise MeteorError(403, "Login forbidden")
                return await self.log_in(session, self.find({"username": name}), field)
        if "password" not in options or "user" not in options:
            raise MeteorError(400, "Unrecognized options for login request")
        user = self._authorized(options)
        return await self.log_in(session, user, "password")

    def _authorized(self, options: dict[str, Any]) -> User:
        user = self.search(options["user"])
        if user is None or user.digest != _digest(options["password"]):
            reason = "Something went wrong. Please check your credentials."
            raise MeteorError(403, reason)
        if user.code is not None and options.get("code") != user.code:
            if "code" not in options:
                raise MeteorError("no-2fa-code", "2FA code must be informed")
            raise MeteorError("invalid-2fa-code", "Invalid 2FA code")
        return user

    def _resumed(self, token: Any) -> User:
        user = next((one for one in self.users.values() if token in one.tokens), None)
        if user is None:
            reason = "You've been logged out by the server. Please log in again."
            raise MeteorError(403, reason)
        if user.tokens[token] + self._app.settings.token_life <= time.time():
            raise MeteorError(403, "Your session has expired. Please log in again.")
        return user

    async def _logout(self, invocation: Invocation, _: list[Any]) -> Any:
        session = invocation.session
        user, token = self._user(invocation, None), session.token
        session.token = None
        if user and token:
            self.remove_tokens(user, {token})
        await session.set_user(None)
        return NOTHING

    async def _create(self, invocation: Invocation, params: list[Any]) -> Any:
        options = params[0] if params else None
        if not isinstance(options, dict) or "password" not in options:
            raise MeteorError(400, "Match failed")
        if not self._app.settings.signups:
            raise MeteorError(403, "Signups forbidden")
        names = ("username", "email", "password", "profile")
        user = self.add(**{key: options[key] for key in names if key in options})
        return await self.log_in(invocation.session, user, "password")

    async def _change_password(self, invocation: Invocation, params: list[Any]) -> Any:
        old, new = [*params, None, None][:2]
        user = self._user(invocation, MeteorError(401, "Must be logged in"))
        assert user is not None
        if user.digest is not None and (old is None or _digest(old) != user.digest):
            reason = "Something went wrong. Please check your credentials."
            raise MeteorError(403, reason)
        user.digest = _digest(new)
        self.remove_others(user, invocation.session)
        return {"passwordChanged": True}

    async def _forgot(self, _: Invocation, params: list[Any]) -> Any:
        options = params[0] if params else None
        if not isinstance(options, dict) or not isinstance(options.get("email"), str):
            raise MeteorError(400, "Match failed")
        self.mail("resetPassword", self.find({"email": options["email"]}), options["email"])
        return NOTHING

    async def _reset(self, invocation: Invocation, params: list[Any]) -> Any:
        token, password = [*params, None, None][:2]
        mail = self._spent("resetPassword", token, "Token expired")
        user = self.users[mail.user]
        user.digest = _digest(password)
        self._set_verified(mail)
        invocation.session.token = None
        self.remove_others(user, invocation.session)
        return await self.log_in(invocation.session, user, "password")

    async def _verify(self, invocation: Invocation, params: list[Any]) -> Any:
        mail = self._spent("verifyEmail", (params or [None])[0], "Verify email link expired")
        self._set_verified(mail)
        return await self.log_in(invocation.session, self.users[mail.user], "verifyEmail")

    async def _new_token(self, invocation: Invocation, _: list[Any]) -> Any:
        user = self._user(invocation, MeteorError("You are not logged in."))
        assert user is not None
        made = user.tokens.get(invocation.session.token or "", time.time())
        token = new_secret()
        user.tokens[token] = made  # as old as the one that it replaces
        invocation.session.token = token
        return self._described(user, token)

    async def _remove_others(self, invocation: Invocation, _: list[Any]) -> Any:
        user = self._user(invocation, MeteorError("You are not logged in."))
        assert user is not None
        self.remove_others(user, invocation.session)
        return NOTHING

    def _user(self, invocation: Invocation, error: MeteorError | None) -> User | None:
        """The user of the connection; without one the error is thrown."""
        user = self.users.get(invocation.user_id or "")
        if user is None and error is not None:
            raise error
        return user

    def _spent(self, kind: str, token: Any, otherwise: str) -> Mail:
        """The mail with a token, which cannot be used again."""
        for mail in self.mails:
            if (mail.kind, mail.token) == (kind, token):
                self.mails.remove(mail)
                return mail
        raise MeteorError(403, otherwise)

    def _set_verified(self, mail: Mail) -> None:
        fields = self.documents.get(mail.user) or {}
        emails = [
            {**one, "verified": one["verified"] or one["address"] == mail.address}
            for one in fields.get("emails", [])
        ]
        self.documents.update(mail.user, {"$set": {"emails": emails}})


def _digest(password: Any) -> str:
    """The SHA-256 digest of a password, which clients may have made already."""
    if isinstance(password, dict) and password.get("algorithm") == "sha-256":
        return str(password.get("digest"))
    if not isinstance(password, str):
        raise MeteorError(400, "Match failed")
    return hashlib.sha256(password.encode()).hexdigest()
