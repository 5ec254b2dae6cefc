"""Authorization of subscriptions and sign-ins by the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Optional, Union

from .._core.abi import rt_pusher_auth_request, rt_status
from .._core.errors import InvalidState, check
from .._core.handle import Handle, adopt, new
from .._core.headers import header
from .._core.loader import lib
from .._core.memory import text_at
from .._core.naming import kind_of
from .._core.uncopied import Uncopied
from .._core.values import encode, text
from .._rest.options import json_text

#: What an authorization server answers: an object with ``auth`` and so on, or its JSON text.
Answer = Union[Mapping[str, Any], str, bytes]


class PusherAuthorizationRequest:
    """What is to be authorized.

    :ivar socket_id: of the connection, which the signature must include.
    :ivar channels: the names of the channels; ``()`` for a sign-in. More than one only with
        ``auth_batch_size``.
    :ivar is_user: whether the user signs in.
    """

    __slots__ = ("channels", "is_user", "socket_id")

    def __init__(self, socket_id: str, channels: tuple[str, ...], is_user: bool) -> None:
        self.socket_id = socket_id
        self.channels = channels
        self.is_user = is_user

    @property
    def channel(self) -> str:
        """The name of the first channel; ``""`` for a sign-in."""
        return self.channels[0] if self.channels else ""

    def __repr__(self) -> str:
        what = "the user" if self.is_user else ", ".join(self.channels)
        return f"<{type(self).__name__} {self.socket_id} {what}>"


class PusherAuthorization(Uncopied, PusherAuthorizationRequest):
    """A request that the program answers once, at any time and on any thread. If nothing refers to
    it any more and it was not answered, the authorization fails.

    :ivar socket_id: of the connection, which the signature must include.
    :ivar channels: the names of the channels; ``()`` for a sign-in. More than one only with
        ``auth_batch_size``.
    :ivar is_user: whether the user signs in.
    """

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: Handle, *request: Any) -> None:
        super().__init__(*request)
        self._handle: Handle | None = handle

    def answer(self, answer: Answer) -> None:
        """Answers as an authorization server would: with a mapping that has ``auth``, for a
        presence channel ``channel_data``, for an encrypted one ``shared_secret``, for a sign-in
        ``user_data``; or with its JSON text. For several channels: a mapping of such answers by
        name.

        ``channel_data`` and ``user_data`` are the texts that were signed, which are sent unchanged.
        An answer after the connection was lost is ignored.

        :raises InvalidState: if it is already answered.
        """
        if isinstance(answer, Mapping):
            body = encode(json_text(_without_none(answer)), "the answer")
        elif isinstance(answer, str):
            body = encode(answer, "the answer")
        elif isinstance(answer, (bytes, bytearray, memoryview)):
            body = bytes(answer)
        else:
            kind = kind_of(answer)
            raise TypeError(f"an authorization is {kind}; a mapping or JSON text is expected")
        check(lib.rt_pusher_authorization_answer_json(self._take(), body, len(body)))

    def fail(self, message: str = "") -> None:
        """Refuses the authorization.

        :param message: why; part of the ``SubscriptionError`` or ``SignInError``.
        :raises InvalidState: if it is already answered.
        """
        why = text(message.replace("\0", "\ufffd"), "the message")
        check(lib.rt_pusher_authorization_fail(self._take(), why))

    def _prepare(self) -> PusherPreparation:
        """Makes the request to the endpoint. Only in the callback that asks."""
        http = new(lib.rt_pusher_authorization_get_request, lib.rt_rest_request_free, self._handle)
        return PusherPreparation(http, self.socket_id, self.channels, self.is_user)

    def _send(self, preparation: PusherPreparation, built: object) -> None:
        """Sends the request to the endpoint, unless `built` is False."""
        http = preparation._finish()
        if built is False:
            self.fail("prepare_authorization returned False")
        else:
            check(lib.rt_pusher_authorization_send(self._take(), http))

    def _take(self) -> Handle:
        handle, self._handle = self._handle, None
        if handle is None:
            message = "the authorization is already answered"
            raise InvalidState(rt_status.ERROR_STATE, message)
        return handle


class PusherPreparation(Uncopied, PusherAuthorizationRequest):
    """A request to an authorization endpoint, before it is sent; passed to
    ``prepare_authorization``, which may change it until it returns, or has been awaited.

    :ivar socket_id: of the connection.
    :ivar channels: the names of the channels; ``()`` for a sign-in. More than one only with
        ``auth_batch_size``.
    :ivar is_user: whether the user signs in.
    """

    __slots__ = ("_http",)

    def __init__(self, http: Handle, *request: Any) -> None:
        super().__init__(*request)
        self._http: Handle | None = http

    def set_target(self, method: str, url: str) -> None:
        """Sends another method, or to another URL."""
        where = text(url, "the URL", rt_status.ERROR_INVALID_URL)
        check(lib.rt_rest_request_set_target(self._require(), text(method, "the method"), where))

    def set_header(self, name: str, value: str) -> None:
        """Sets a header and replaces all others of that name."""
        check(lib.rt_rest_request_set_header(self._require(), *header(name, value)))

    def add_query(self, name: str, value: str) -> None:
        """Adds a parameter to the query of the URL."""
        name_, value_ = text(name, "a parameter's name"), text(value, f"the parameter {name}")
        check(lib.rt_rest_request_add_query(self._require(), name_, value_))

    def add_form_parameter(self, name: str, value: str) -> None:
        """Adds a parameter to the form, besides ``auth_params``.

        :raises InvalidState: if ``set_body`` has replaced the form by another body.
        """
        name_, value_ = text(name, "a parameter's name"), text(value, f"the parameter {name}")
        check(lib.rt_rest_request_add_form_parameter(self._require(), name_, value_))

    def set_body(self, content: str | bytes, content_type: str) -> None:
        """Replaces the form with ``socket_id`` and ``channel_name``."""
        body = encode(content, "content") if isinstance(content, str) else bytes(content)
        kind = text(content_type, "content_type")
        check(lib.rt_rest_request_set_body(self._require(), body, len(body), kind))

    def _require(self) -> Handle:
        if self._http is None:
            message = "prepare_authorization is done, so the request cannot be changed"
            raise InvalidState(rt_status.ERROR_STATE, message)
        return self._http

    def _finish(self) -> Handle:
        http = self._require()
        self._http = None
        return http


Authorizer = Optional[
    Callable[[PusherAuthorization], Union[Answer, Awaitable[Optional[Answer]], None]]
]
PrepareAuthorization = Optional[
    Callable[[PusherPreparation], Union[Optional[bool], Awaitable[Optional[bool]]]]
]


def requested(address: int) -> tuple[str, tuple[str, ...], bool]:
    """Socket id, channels, and whether it is a sign-in."""
    view = rt_pusher_auth_request.from_address(address)
    lines = text_at(view.channels, view.channels_length)
    socket_id = text_at(view.socket_id, view.socket_id_length)
    return socket_id, tuple(lines.split("\n")[:-1]), view.is_user


def authorization(request: int, address: int) -> PusherAuthorization:
    """Takes over an authorization from C."""
    handle = adopt(address, lib.rt_pusher_authorization_free)
    return PusherAuthorization(handle, *requested(request))


def _without_none(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Without channels and members that have no value."""
    return {
        name: _without_none(value) if isinstance(value, Mapping) else value
        for name, value in answer.items()
        if value is not None
    }
