"""The parameters of a long poll, the same for both faces, and what it gives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional

from .._core.abi import rt_longpoll_cursor
from .._core.backoff import Backoff
from .._core.errors import check
from .._core.handle import Handle
from .._core.headers import HeadersLike
from .._core.hints import called
from .._core.kind import Kind
from .._core.network import Network, chosen_network
from .._core.option_tables import LONGPOLL_OPTIONS, LongPollKeywords
from .._core.reachability import Reachability
from .._core.values import StrPath, invalid, text
from .source_options import (
    Credentials,
    HeaderProvider,
    HTTPSourceHandlers,
    HTTPSourceOptions,
    OnError,
    OnOpen,
    OnRequest,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Cursor = Literal["validators", "header_id", "query_id", "none"]

_CURSORS = {
    "validators": rt_longpoll_cursor.VALIDATORS,
    "header_id": rt_longpoll_cursor.HEADER_ID,
    "query_id": rt_longpoll_cursor.QUERY_ID,
    "none": rt_longpoll_cursor.NONE,
}


@dataclass(frozen=True)
class PollMessage:
    """What a poll brought.

    :ivar data: its bytes.
    :ivar content_type: its media type; ``""`` when the server did not say.
    :ivar id: how far the messages have come; ``""`` before the server said so. It serves
        ``last_event_id``, and with Nchan the other transports too.
    :ivar had_id: whether it has an id of its own: of a batch only the last has.
    """

    data: bytes
    content_type: str = ""
    id: str = ""
    had_id: bool = False

    @property
    def text(self) -> str:
        """The data as UTF-8; what is ill-formed is replaced."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The data read as JSON."""
        return json.loads(self.data)


OnMessage = Optional[Callable[[PollMessage], object]]


#: The caller's functions.
Handlers = HTTPSourceHandlers[PollMessage]


@dataclass(frozen=True)
class Options(HTTPSourceOptions):
    """What a long poll was given, the same for both faces."""

    table = LONGPOLL_OPTIONS

    cursor: str
    id_query_param: str
    last_event_id: str

    def apply(self, kind: Kind, source: Handle, loop: Handle) -> None:
        super().apply(kind, source, loop)
        if self.cursor not in _CURSORS:
            known = ", ".join(f'"{name}"' for name in _CURSORS)
            raise invalid(f"cursor is {self.cursor!r}; one of {known} is expected")
        parameter = text(self.id_query_param, "id_query_param")
        check(kind.set_cursor(source, _CURSORS[self.cursor], parameter))
        check(kind.set_last_event_id(source, text(self.last_event_id, "last_event_id")))


class Parameters:
    """It begins to poll when it is made; messages wait for the handler or the iteration. Polls go
    on while up to ``max_queue`` of them wait to be taken.

    Durations are in seconds, sizes in bytes; None switches off what it can be given for.

    :param url: ``http://`` or ``https://``; a user and password in it become a basic Authorization.
    :param on_open: called when the server answers, or has held a poll for its whole time: for the
        first time, or again after a failure.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails.
    :param on_message: called with each ``PollMessage``, in the place of an iteration.
    :param on_request: called with an ``Attempt`` before each poll, whose URL and headers it may
        change; it closes the long poll by returning False.

    :param headers: a mapping or pairs; Accept takes anything unless it is among them. Default None.
    :param auth: user and password for a basic Authorization header. Default None.
    :param bearer_token: for an Authorization header. Default None.
    :param header_provider: called with the number of each attempt, 1 unless the last one failed;
        the headers it returns are laid over the others for that poll. Default None.
    :param credentials: called with the status when the server answers 401, or the proxy 407, once
        a poll: returns headers (Proxy-Authorization for the proxy), with which the request is sent
        again, or None, which is fatal. In asyncio it may be a coroutine function. Default None.
    :param safe_headers: names of headers that go along to another origin. Default ().

    :param cursor: how polls say what they have seen: ``"validators"`` (the default), the latest
        answer's Last-Modified and ETag; ``"header_id"``, the id as Last-Event-ID; ``"query_id"``,
        the id as a query parameter; ``"none"``.
    :param id_query_param: the name of that parameter. Default ``"last_event_id"``.
    :param last_event_id: begins behind the message with this id. Default ``""``.


    :param backoff: a ``Backoff`` that delays attempts after one that failed, in the place of
        ``max_delay``. When it limits attempts and none is left, the long poll ends with a
        ``ReconnectsExhausted``. Its ``stable_time`` is not used: a good answer counts at once.
        Default None: by that option, with no limit.
    :param network: a ``Network``: TLS, proxies, addresses, sockets. Default None: its defaults.
    :param ca_file: a PEM file of certificates to trust instead of the system's; goes before the
        network's. Default None.
    :param proxy: the URL of a proxy, or None for no proxy; goes before the network's. Default True:
        as the network says.
    :param reachability: a ``Reachability``: while it is offline no poll is made and none is
        counted. Default None: as the kernel tells.
    :param max_queue: how many messages may wait to be taken before no poll is made. Default 1024.
    :param max_queue_bytes: the same by their size. Default 8 MiB.
    """

    def __init_subclass__(cls) -> None:
        """``help`` shows the parameters with each of them."""
        cls.__doc__ = f"{cls.__doc__}\n    {Parameters.__doc__}"

    def __init__(
        self,
        url: str,
        *,
        on_open: OnOpen = None,
        on_error: OnError = None,
        on_message: OnMessage = None,
        on_request: OnRequest = None,
        # The request.
        headers: HeadersLike | None = None,
        auth: tuple[str, str] | None = None,
        bearer_token: str | None = None,
        header_provider: HeaderProvider = None,
        credentials: Credentials = None,
        safe_headers: Iterable[str] = (),
        # How far it has come.
        cursor: Cursor = "validators",
        id_query_param: str = "last_event_id",
        last_event_id: str = "",
        # The network.
        backoff: Backoff | None = None,
        network: Network | None = None,
        ca_file: StrPath | None = None,
        proxy: str | Literal[True] | None = True,
        reachability: Reachability | None = None,
        max_queue: int | None = 1024,
        max_queue_bytes: int | None = 2**23,
        **options: Unpack[LongPollKeywords],
    ) -> None:
        given = Options(
            url, headers, options, chosen_network(network, ca_file, proxy), reachability,
            backoff, max_queue, max_queue_bytes, auth, bearer_token, safe_headers,
            cursor, id_query_param, last_event_id,
        )  # fmt: skip
        handlers = Handlers(on_open, on_error, on_message, on_request, header_provider, credentials)
        self._make(given, handlers)

    def _make(self, options: Options, handlers: Handlers) -> None:
        raise NotImplementedError


called("LongPoll", Parameters, LONGPOLL_OPTIONS)
