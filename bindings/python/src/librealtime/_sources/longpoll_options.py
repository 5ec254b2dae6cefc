"""The options of a long poll, and how they are set on one of C's."""

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


class Keywords(HTTPSourceKeywords, LongPollKeywords, total=False):
    """All that a long poll may be given.

    :param on_open: called when the server answers, or has held a poll for its whole time: for the
        first time, or again after a failure.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails.
    :param on_message: called with each ``PollMessage``, in the place of an iteration.
    :param cursor: how polls say what they have seen: ``"validators"`` (the default), the latest
        answer's Last-Modified and ETag; ``"header_id"``, the id as Last-Event-ID; ``"query_id"``,
        the id as a query parameter; ``"none"``.
    :param id_query_param: the name of that parameter. Default ``"last_event_id"``.
    :param last_event_id: begins behind the message with this id. Default ``""``.
    :param backoff: a ``Backoff`` that delays attempts after one that failed, in the place of
        ``max_delay``. When it limits attempts and none is left, the long poll ends with a
        ``ReconnectsExhausted``. Its ``stable_time`` is not used: a good answer counts at once.
        Default None: by that option, with no limit.
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
