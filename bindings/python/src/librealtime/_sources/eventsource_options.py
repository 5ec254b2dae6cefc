"""The options of an event source, and how they are set on one of C's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional

from .._core.backoff import Backoff
from .._core.option_tables import EVENTSOURCE_OPTIONS, EventSourceKeywords
from .._core.parameters import Given, Options, Setup
from .._core.shared_options import set_backoff
from .._core.values import StrPath, encode, invalid, number, path, text
from .server_sent_event import ServerSentEvent
from .source_options import (
    HTTP_SOURCE,
    HTTPSourceKeywords,
    OnError,
    OnOpen,
)

EventHandler = Callable[[ServerSentEvent], object]
OnEvent = Optional[EventHandler]
OnComment = Optional[Callable[[str], object]]
OnStore = Optional[Callable[[str, str], object]]

#: Statuses that pass, of servers behind proxies that restart; for ``retry_statuses=``.
RESILIENT = frozenset((408, 425, 429, 500, 502, 503, 504))


@dataclass(frozen=True, eq=False)
class EventListener:
    """What ``add_event_listener`` returns, for ``remove_event_listener``.

    :ivar event: the type that it listens to.
    :ivar handler: what is called.
    """

    event: str
    handler: EventHandler


class Keywords(HTTPSourceKeywords, EventSourceKeywords, total=False):
    """All that an event source may be given.

    :param on_open: called when a stream begins.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails or a stream ends.
    :param on_message: called with each event of the type "message", named or not.
    :param on_any: called with every event, after the listeners of its type. Handlers are given what
        comes from when they are set on. Once ``recv`` or an iteration has begun it is given the
        same events, and while ``max_queue`` of them wait for it none come, to handlers neither.
    :param on_comment: called with each comment, as it is read.
    :param method: default GET.
    :param content: the body, sent with each attempt. Default None.
    :param last_event_id: what the first request sends, whatever the id file says. Default None.
    :param id_file: a file that keeps the last id between runs, for any number of event sources and
        processes: an id is kept when its handlers have returned, coroutines too, or the next event
        is asked for, so that a crash repeats events and loses none; of several tasks or threads
        that take events, when each is done with those before it. A file with other content, of
        another user or writable by others, and a symbolic link, are a StoreError and stay as they
        are. Default None.
    :param store_key: under what this one's id is kept, there and by on_store. Default None: its
        URL, the one that it starts with, whatever `on_request` sets.
    :param on_store: called with the key and the id that is to be kept, at most once a second and
        at the end.
    :param retry_statuses: HTTP statuses that it comes back from; ``RESILIENT`` has those that pass.
        Default ().
    :param backoff: a ``Backoff`` that delays attempts, and limits them, in the place of
        ``reconnection_time``, ``max_delay``, ``max_reconnects`` and ``stable_time``; a ``retry``
        field of the server still sets the initial delay. Default None: by those.
    """

    on_open: OnOpen
    on_error: OnError
    on_message: OnEvent
    on_any: OnEvent
    on_comment: OnComment
    method: str
    content: str | bytes | None
    last_event_id: str | None
    id_file: StrPath | None
    store_key: str | None
    on_store: OnStore
    retry_statuses: Iterable[int]
    backoff: Backoff | None


def _set_stream(setup: Setup, given: Given) -> None:
    setup.set_method(text(given["method"], "method"))
    if given["content"] is not None:
        body = _body(given["content"])
        setup.set_body(body, len(body))
    _set_ids(setup, given)
    for status in given["retry_statuses"]:
        setup.add_retry_status(number(status, "a status of retry_statuses", 400, 599))
    set_backoff(setup, given)


def _set_ids(setup: Setup, given: Given) -> None:
    if given["last_event_id"] is not None:
        setup.set_last_event_id(text(given["last_event_id"], "last_event_id"))
    id_file, store_key = given["id_file"], given["store_key"]
    if id_file is None and store_key is None:
        return
    if id_file is None and given["on_store"] is None:
        raise invalid("store_key needs an id_file or on_store")
    file = None if id_file is None else path(id_file, "id_file")
    setup.set_id_file(file, None if store_key is None else text(store_key, "store_key"))


def _body(content: object) -> bytes:
    if isinstance(content, str):
        return encode(content, "content")
    if not isinstance(content, (bytes, bytearray, memoryview)):
        # The bytes of a number are so many NULs.
        raise TypeError(f"content is a {type(content).__name__}; str or bytes are expected")
    return bytes(content)


OPTIONS = Options(
    Keywords,
    _set_stream,
    shared=HTTP_SOURCE,
    plain=EVENTSOURCE_OPTIONS,
    method="GET",
    retry_statuses=(),
)
