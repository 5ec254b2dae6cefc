"""The options of a long poll, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .._core.abi import rt_longpoll_cursor
from .._core.backoff import Backoff
from .._core.option_tables import LONGPOLL_OPTIONS, LongPollKeywords
from .._core.parameters import Given, Options, Setup
from .._core.payload import Received
from .._core.shared_options import set_backoff
from .._core.values import choice, names_of, text
from .source_options import (
    HTTP_SOURCE,
    HTTPSourceKeywords,
    OnError,
    OnOpen,
)

Cursor = Literal["validators", "header_id", "query_id", "none"]


@dataclass(frozen=True)
class PollMessage(Received):
    """A message received by a poll.

    :ivar data: its bytes.
    :ivar content_type: its media type; ``""`` if the server sent none.
    :ivar id: the position in the sequence of messages; ``""`` before the server sent one. It can be
        passed as ``last_event_id`` and, with Nchan, also to the other transports.
    :ivar had_id: whether it has its own id: of a batch, only the last message has.
    """

    data: bytes
    content_type: str = ""
    id: str = ""
    had_id: bool = False


class Keywords(HTTPSourceKeywords, LongPollKeywords, total=False):
    """All options of a long poll.

    :param on_open: called when the server responds, or has held a poll for its whole time: for the
        first time, or again after a failure.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails. A wait for a network is
        reported once, by that or by an RT_ERROR_CONNECT.
    :param on_message: called with each ``PollMessage``, instead of an iteration.
    :param cursor: how polls tell the server what they have received: ``"validators"`` (the
        default), the latest response's Last-Modified and ETag; ``"header_id"``, the id as
        Last-Event-ID; ``"query_id"``, the id as a query parameter; ``"none"``.
    :param id_query_param: the name of that parameter. Default ``"last_event_id"``.
    :param last_event_id: continues after the message with this id. Default ``""``.
    :param backoff: a ``Backoff`` that delays attempts after a failure; replaces ``max_delay``. If
        it limits attempts and none is left, the long poll ends with ``ReconnectsExhausted``. Its
        ``stable_time`` is not used: any good response resets the count. Default None: use
        ``max_delay``, with no limit.
    """

    on_open: OnOpen
    on_error: OnError
    on_message: Callable[[PollMessage], object] | None
    cursor: Cursor
    id_query_param: str
    last_event_id: str
    backoff: Backoff | None


def _set_poll(setup: Setup, given: Given) -> None:
    cursor = choice(given["cursor"], names_of(rt_longpoll_cursor), "cursor")
    setup.set_cursor(cursor, text(given["id_query_param"], "id_query_param"))
    setup.set_last_event_id(text(given["last_event_id"], "last_event_id"))
    set_backoff(setup, given)


OPTIONS = Options(
    Keywords,
    _set_poll,
    shared=HTTP_SOURCE,
    plain=LONGPOLL_OPTIONS,
    cursor="validators",
    id_query_param="last_event_id",
    last_event_id="",
)
