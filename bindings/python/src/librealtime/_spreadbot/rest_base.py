"""What the asyncio and the blocking ``SpreadbotREST`` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .._core.abi import rt_status
from .._core.awaiting import check_function
from .._core.errors import InvalidState, RealtimeError, check, from_status
from .._core.handle import Handle, new
from .._core.headers import header_pairs
from .._core.loader import lib
from .._core.option_tables import SPREADBOT_OPTIONS
from .._core.parameters import Options, Setup
from .._core.shared_options import (
    HEADERS,
    ROUTE,
    HeaderKeywords,
    RouteKeywords,
)
from .._core.values import StrPath, encode, invalid, text
from .._rest.client_base import Answer, BaseRESTClient, Stream
from .._rest.options import RequestKeywords, json_text
from .._rest.response import RESTResponse
from .callbacks import ON_SENT, ON_TOKENS, SPREADBOT, read_tokens
from .options import ACCOUNT, Account, AccountKeywords, OnTokens, encoded_tokens, set_outbox
from .sends import Ended, Send, Sends, posting

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Keywords(AccountKeywords, HeaderKeywords, RouteKeywords, total=False):
    """All options of a ``SpreadbotREST``.

    :param outbox: a file that keeps what ``post_data`` sends until the server has it. Once the call
        waits, the post survives a crash of the process: the next object with this outbox sends it.
        A post in progress during a crash may be sent twice, with the same Idempotency-Key. Messages
        of a ``Spreadbot`` in the file wait for a ``Spreadbot``. Default None: posts are kept in
        memory.
    """

    outbox: StrPath | None
    queue_capacity: int
    queue_overflow: Literal["reject_new", "drop_oldest"]
    max_redirects: int
    compression: bool
    http2: bool


OPTIONS = Options(
    Keywords,
    set_outbox,
    shared=(ACCOUNT, HEADERS, ROUTE),
    plain=SPREADBOT_OPTIONS.only(
        "queue_capacity", "queue_overflow", "max_redirects", "compression", "http2"
    ),
)


@OPTIONS.shown_by("SpreadbotREST")
class BaseSpreadbotREST(BaseRESTClient[Answer, Stream], Account):
    """
    Each request is tried up to three times; all attempts of a POST have the same Idempotency-Key.
    Without a network requests wait. A refused access token is refreshed once for all requests that
    wait for it, which are then sent again. Only the base URL's origin receives the token.

    Durations are in seconds, sizes in bytes.

    :param base_url: ``http://`` or ``https://`` without a query; paths are appended to it.
    """

    # The object in C that has the tokens; None before the first use, and at the end.
    _owner: Handle | None = None

    def __init__(self, base_url: str, **options: Unpack[Keywords]) -> None:
        self._account = OPTIONS.complete(options)
        check_function(self._account["on_tokens"], "on_tokens")
        self._on_tokens: OnTokens = self._account["on_tokens"]
        # Posts of `post_data` in the outbox.
        self._sends = Sends(is_durable=True)
        self._spreadbot_url = base_url
        super().__init__(base_url)

    def _make(self, loop: Handle) -> Handle:
        url = text(self._spreadbot_url, "base_url", rt_status.ERROR_INVALID_URL)
        owner = SPREADBOT.make(loop, url)
        SPREADBOT.add_headers(owner, header_pairs(self._account["headers"]))
        OPTIONS.apply(Setup(SPREADBOT, owner, loop), self._account)
        SPREADBOT.attach(self, owner, (ON_TOKENS, ON_SENT))
        made = sharing(owner)
        self._owner = owner
        return made

    def get_data(self, path: str, **options: Unpack[RequestKeywords]) -> Answer:
        """The response; ``json()`` parses it.

        :param options: those of ``request``.
        :raises HTTPStatusError: for a status other than 200 to 299.
        :raises RealtimeError: if there was no response.
        """
        return self._successful(self.get(path, **options))

    def post_data(self, path: str, payload: Any, **options: Unpack[RequestKeywords]) -> Answer:
        """Posts a payload; raises the same as ``get_data``.

        With an outbox the payload is on disk before this call waits, in one order with the sends of
        the connection; `options` are not supported then.

        :param payload: sent as JSON; str and bytes are sent as they are.
        """
        if self._is_durable:
            return self._post_durably(durable(path, payload, options))
        return self._successful(self.post(path, **body(payload), **options))

    def _successful(self, answer: Answer) -> Answer:
        """Raises for a status other than 200 to 299."""
        raise NotImplementedError

    def _post_durably(self, send: Send) -> Answer:
        """Posts using the outbox."""
        raise NotImplementedError

    def _tokens(self) -> tuple[str, str]:
        owner, given = self._owner, self._account
        if owner is None:
            return given["access_token"], given["refresh_token"]
        return read_tokens(owner)

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        """Replaces the tokens, from the next request on."""
        if self._is_closed:
            raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
        if self._owner is not None:
            check(SPREADBOT.set_tokens(self._owner, *encoded_tokens(access_token, refresh_token)))
        else:
            self._note_tokens(access_token, refresh_token)

    def _note_tokens(self, access_token: str, refresh_token: str) -> None:
        self._account |= {"access_token": access_token, "refresh_token": refresh_token}

    @property
    def on_tokens(self) -> OnTokens:
        return self._on_tokens

    @on_tokens.setter
    def on_tokens(self, handler: OnTokens) -> None:
        self._on_tokens = handler

    def set_bearer_token(self, token: str | None) -> NoReturn:
        """Not supported; use ``set_tokens``."""
        raise InvalidState(rt_status.ERROR_STATE, "this client has tokens; use set_tokens")

    def set_auth(self, user: str, password: str) -> NoReturn:
        """Not supported; use ``set_tokens``."""
        raise InvalidState(rt_status.ERROR_STATE, "this client has tokens; use set_tokens")

    def _close(self) -> None:
        super()._close()
        owner, self._owner = self._owner, None
        if owner is not None:
            self._note_tokens(*read_tokens(owner))
        self._end_sends()

    def _end_sends(self) -> None:
        message = "the client is closed; the next client with this outbox will send it"
        self._sends.end_all(from_status(rt_status.ERROR_CLOSED, message))

    def _submit(self, send: Send, ended: Ended) -> int:
        """Posts using the outbox."""
        self._live()
        owner = self._owner
        if owner is None:
            raise InvalidState(rt_status.ERROR_STATE, "the client is closed")
        number = self._sends.submit(owner, send, ended)
        if self._owner is None:  # another thread closed it before this send was registered
            self._end_sends()
        return number

    @property
    def _is_durable(self) -> bool:
        return self._account["outbox"] is not None

    def fail(self, error: RealtimeError) -> None:
        super().fail(error)
        self._sends.end_all(error)

    # Called during a dispatch.

    def _sent(
        self, number: int, error: RealtimeError | None, response: RESTResponse | None
    ) -> None:
        self._sends.ended(number, error, response)

    def _refreshed(self, access_token: str, refresh_token: str) -> None:
        if self._on_tokens is not None:
            self._call(self._on_tokens, access_token, refresh_token)


def sharing(spreadbot: Handle) -> Handle:
    """Creates a client in C that shares the tokens of a connection."""
    return new(SPREADBOT.new_rest, lib.rt_rest_free, spreadbot)


def body(payload: Any) -> dict[str, Any]:
    """The body for `payload`: str or bytes as they are, anything else as JSON."""
    if isinstance(payload, (str, bytes, bytearray, memoryview)):
        return {"content": payload}
    return {"json": payload}


def durable(path: str, payload: Any, options: Mapping[str, Any]) -> Send:
    """A POST that the outbox keeps."""
    if options:
        names = ", ".join(options)
        raise invalid(f"with an outbox post_data takes no options, but got {names}")
    if isinstance(payload, str):
        return posting(path, "text/plain; charset=utf-8", encode(payload, "the payload"))
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return posting(path, "application/octet-stream", bytes(payload))
    return posting(path, "application/json", encode(json_text(payload), "the payload"))
