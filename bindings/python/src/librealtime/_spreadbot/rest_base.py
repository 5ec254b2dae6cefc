"""What the asyncio and the blocking ``SpreadbotREST`` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .._core.abi import rt_status
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
    """All that a ``SpreadbotREST`` may be given.

    :param outbox: a file that keeps what ``post_data`` sends until the server has it: what has
        begun to wait is sent after a crash of the process, too, by the next object with this
        outbox; in the moment of a crash maybe twice, with the same Idempotency-Key. Messages that a
        ``Spreadbot`` has left in it wait for one. Default None: it is kept in memory.
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
    Each request is tried up to three times, a POST by an Idempotency-Key that is the same in all
    attempts; without a network they wait. An access token that is refused is refreshed once for all
    that wait for it, and they go out again; the base URL's origin alone is shown it.

    Durations are in seconds, sizes in bytes.

    :param base_url: ``http://`` or ``https://`` without a query; paths are appended to it.
    """

    # Who has the tokens; None before the first use, and at the end.
    _owner: Handle | None = None

    def __init__(self, base_url: str, **options: Unpack[Keywords]) -> None:
        self._account = OPTIONS.complete(options)
        self._on_tokens: OnTokens = self._account["on_tokens"]
        # What `post_data` sends by the outbox.
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
        """The answer, whose ``json()`` reads it.

        :param options: those of ``request``.
        :raises HTTPStatusError: for a status that is not one of 200 to 299.
        :raises RealtimeError: when no answer came.
        """
        return self._successful(self.get(path, **options))

    def post_data(self, path: str, payload: Any, **options: Unpack[RequestKeywords]) -> Answer:
        """Posts a payload; raises as ``get_data`` does.

        With an outbox it is on the disk before this waits, in one order with what the connection
        sends, and has no `options`.

        :param payload: sent as JSON; a str and bytes are sent as they are.
        """
        if self._is_durable:
            return self._post_durably(durable(path, payload, options))
        return self._successful(self.post(path, **body(payload), **options))

    def _successful(self, answer: Answer) -> Answer:
        """Raises for another status than 200 to 299."""
        raise NotImplementedError

    def _post_durably(self, send: Send) -> Answer:
        """Posts by the outbox."""
        raise NotImplementedError

    def _tokens(self) -> tuple[str, str]:
        owner, given = self._owner, self._account
        if owner is None:
            return given["access_token"], given["refresh_token"]
        return read_tokens(owner)

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        """Sets tokens in the place of those there are, from the next request on."""
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
        """The tokens are ``set_tokens``'."""
        raise InvalidState(rt_status.ERROR_STATE, "tokens are set by set_tokens")

    def set_auth(self, user: str, password: str) -> NoReturn:
        """The tokens are ``set_tokens``'."""
        raise InvalidState(rt_status.ERROR_STATE, "tokens are set by set_tokens")

    def _close(self) -> None:
        super()._close()
        owner, self._owner = self._owner, None
        if owner is not None:
            self._note_tokens(*read_tokens(owner))
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
        return self._account["outbox"] is not None

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
