"""What the asyncio and the blocking ``SpreadbotREST`` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeVar

from .._core.abi import rt_status
from .._core.errors import InvalidState, RealtimeError, from_status
from .._core.handle import Handle, new
from .._core.headers import HeadersLike
from .._core.hints import called
from .._core.kind import read_text
from .._core.loader import lib
from .._core.network import Network, chosen_network
from .._core.option_kinds import Table
from .._core.reachability import Reachability
from .._core.registry import Registration
from .._core.values import StrPath, encode, invalid, text
from .._rest.client_base import BaseRESTClient
from .._rest.options import Overflow, json_text
from .._rest.response import RESTResponse
from .callbacks import ON_SENT, ON_TOKENS, SPREADBOT
from .options import Config, OnTokens, Options, keywords, set_tokens
from .sends import Ended, Send, Sends, posting

Self = TypeVar("Self", bound="BaseSpreadbotREST")


class BaseSpreadbotREST(BaseRESTClient):
    """
    Each request is tried up to three times, a POST by an Idempotency-Key that is the same in all
    attempts; without a network they wait. An access token that is refused is refreshed once for all
    that wait for it, and they go out again; the base URL's origin alone is shown it.

    Durations are in seconds, sizes in bytes.

    :param base_url: ``http://`` or ``https://`` without a query; paths are appended to it.
    :param access_token: sent as ``Authorization: Bearer``; ``""``, the default, sends none.
    :param refresh_token: for ``auth_url``. Default ``""``.
    :param auth_url: where a refused access token is refreshed (RFC 6749 §6). Default None: a
        refusal raises ``AuthenticationFailed``.
    :param base64_credentials: base64 of "client:secret", for ``auth_url``. Default ``""``.
    :param on_tokens: called with access and refresh token when they were refreshed, before they are
        used: keep them for the next run. A coroutine function is begun behind that, while they are
        used already: only what a plain one keeps is kept before.
    :param headers: of every request: a mapping or pairs. Default None.
    :param log: sends the library's log to the logger ``librealtime``, from INFO on, and to standard
        error where the program has set up no logging. Default False.
    :param queue_capacity: requests that may wait. Default 100.
    :param queue_overflow: ``"reject_new"`` (the default): the next one raises ``QueueFull``; or
        ``"drop_oldest"``: the one that has waited longest does.
    :param outbox: a file that keeps what ``post_data`` sends until the server has it: what has
        begun to wait is sent after a crash of the process, too, by the next object with this
        outbox; in the moment of a crash maybe twice, with the same Idempotency-Key. Messages that a
        ``Spreadbot`` has left in it wait for one. Default None: it is kept in memory.
    :param max_redirects: 0 to 20. Default 20.
    :param compression: asks for compressed answers. Default True.
    :param http2: offers HTTP/2 over TLS. Default True.
    :param network: a ``Network``. Default None: its defaults.
    :param ca_file: short for ``Network(ca_file=…)``.
    :param proxy: short for ``Network(proxy=…)``.
    :param reachability: who says whether there is a network. Default None: the kernel.
    """

    # Who has the tokens; None before the first use, and at the end.
    _owner: Handle | None = None

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {BaseSpreadbotREST.__doc__}"

    def __init__(
        self,
        base_url: str,
        *,
        access_token: str = "",
        refresh_token: str = "",
        auth_url: str | None = None,
        base64_credentials: str = "",
        on_tokens: OnTokens = None,
        headers: HeadersLike | None = None,
        log: bool = False,
        queue_capacity: int = 100,
        queue_overflow: Overflow = "reject_new",
        outbox: StrPath | None = None,
        max_redirects: int = 20,
        compression: bool = True,
        http2: bool = True,
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        reachability: Reachability | None = None,
    ) -> None:
        self._on_tokens = on_tokens
        # What `post_data` sends by the outbox.
        self._sends = Sends(is_durable=True)
        plain = {
            "queue_capacity": queue_capacity,
            "max_redirects": max_redirects,
            "compression": compression,
            "http2": http2,
        }
        self._setup = Options(
            base_url, headers, plain, chosen_network(network, ca_file, proxy), reachability,
            None, None, None,
            Config(base_url, auth_url, access_token, refresh_token, base64_credentials,
                   queue_overflow, log, outbox),
        )  # fmt: skip
        super().__init__(base_url)

    @classmethod
    def from_config(cls: type[Self], config: Mapping[str, Any], **options: Any) -> Self:
        """From a mapping by the original's names: ``baseURL``, ``authURL``, ``accessToken``,
        ``refreshToken``, ``base64Credentials`` and ``log``; None is as if it were not there.

        :param options: further parameters, by the names here; they go before those of `config`.
        :raises InvalidArgument: for another name, or without a baseURL.
        :raises TypeError: for a value that is no str, or a ``log`` that is no bool.
        """
        return cls(**{**keywords(config), **options})

    def _make(self, loop: Handle) -> Handle:
        url = text(self._setup.url, "base_url", rt_status.ERROR_INVALID_URL)
        owner = SPREADBOT.make(loop, url)
        SPREADBOT.add_headers(owner, self._setup.pairs())
        self._setup.apply(SPREADBOT, owner, loop)
        registration = Registration(self)
        for callback in (ON_TOKENS, ON_SENT):
            SPREADBOT.set_callback(registration, owner, callback)
        made = sharing(owner)
        self._owner = owner
        return made

    @property
    def access_token(self) -> str:
        """The one in use, which a refresh may have changed."""
        owner, config = self._owner, self._setup.config
        return config.access_token if owner is None else _read("access", owner)

    @property
    def refresh_token(self) -> str:
        """The one to be spent next."""
        owner, config = self._owner, self._setup.config
        return config.refresh_token if owner is None else _read("refresh", owner)

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        """Sets tokens in the place of those there are, from the next request on."""
        if self._is_closed:
            raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
        if self._owner is not None:
            set_tokens(SPREADBOT, self._owner, access_token, refresh_token)
        else:
            self._note_tokens(access_token, refresh_token)

    def _note_tokens(self, access_token: str, refresh_token: str) -> None:
        was = self._setup.config
        config = replace(was, access_token=access_token, refresh_token=refresh_token)
        self._setup = replace(self._setup, config=config)

    @property
    def on_tokens(self) -> OnTokens:
        return self._on_tokens

    @on_tokens.setter
    def on_tokens(self, handler: OnTokens) -> None:
        self._on_tokens = handler

    def set_bearer_token(self, token: str | None) -> NoReturn:
        """The tokens are ``set_tokens``'."""
        raise InvalidState(rt_status.ERROR_STATE, "tokens are set by set_tokens")

    def set_auth(self, user: str, password: str) -> NoReturn:
        """The tokens are ``set_tokens``'."""
        raise InvalidState(rt_status.ERROR_STATE, "tokens are set by set_tokens")

    def _close(self) -> None:
        super()._close()
        owner, self._owner = self._owner, None
        if owner is not None:
            self._note_tokens(_read("access", owner), _read("refresh", owner))
        self._end_sends()

    def _end_sends(self) -> None:
        message = "the client is closed; the next one with this outbox goes on"
        self._sends.end_all(from_status(rt_status.ERROR_CLOSED, message))

    def _submit(self, send: Send, ended: Ended) -> int:
        """Posts by the outbox."""
        self._live()
        owner = self._owner
        if owner is None:
            raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
        number = self._sends.submit(owner, send, ended)
        if self._owner is None:  # closed by another thread, before there was anything to end
            self._end_sends()
        return number

    @property
    def _is_durable(self) -> bool:
        return self._setup.config.outbox is not None

    def fail(self, error: RealtimeError) -> None:
        super().fail(error)
        self._sends.end_all(error)

    # Inside a dispatch.

    def _sent(
        self, number: int, error: RealtimeError | None, response: RESTResponse | None
    ) -> None:
        self._sends.ended(number, error, response)

    def _refreshed(self, access_token: str, refresh_token: str) -> None:
        if self._on_tokens is not None:
            self._call(self._on_tokens, access_token, refresh_token)


called("SpreadbotREST", BaseSpreadbotREST, Table("spreadbot"))


def sharing(spreadbot: Handle) -> Handle:
    """A client of the C interface's with the tokens of a connection."""
    return new(SPREADBOT.new_rest, lib.rt_rest_free, spreadbot)


def body(payload: Any) -> dict[str, Any]:
    """How `payload` is sent: a str or bytes as they are, all else as JSON."""
    if isinstance(payload, (str, bytes, bytearray, memoryview)):
        return {"content": payload}
    return {"json": payload}


def durable(path: str, payload: Any, options: Mapping[str, Any]) -> Send:
    """A POST that the outbox keeps."""
    if options:
        names = ", ".join(options)
        raise invalid(f"with an outbox a post has no options of its own, as {names}")
    if isinstance(payload, str):
        return posting(path, "text/plain; charset=utf-8", encode(payload, "the payload"))
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return posting(path, "application/octet-stream", bytes(payload))
    return posting(path, "application/json", encode(json_text(payload), "the payload"))


def _read(which: str, owner: Handle) -> str:
    return read_text(getattr(SPREADBOT, f"get_{which}_token"), owner)
