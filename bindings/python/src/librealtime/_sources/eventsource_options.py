"""The options of an event source, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional

from .._core.backoff import Backoff
from .._core.naming import kind_of
from .._core.option_tables import EVENTSOURCE_OPTIONS, EventSourceKeywords
from .._core.parameters import Given, Options, Setup
from .._core.shared_options import set_backoff
from .._core.values import StrPath, encode, invalid, numbers, path, text
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

#: Temporary statuses, for example of proxies whose server restarts; for ``retry_statuses=``.
RESILIENT = frozenset((408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 530))


@dataclass(frozen=True, eq=False)
class EventListener:
    """What ``add_event_listener`` returns, for ``remove_event_listener``.

    :ivar event: the type of events.
    :ivar handler: the function to call.
    """

    event: str
    handler: EventHandler


class Keywords(HTTPSourceKeywords, EventSourceKeywords, total=False):
    """All options of an event source.

    :param on_open: called when a stream begins.
    :param on_error: called with an ``ErrorEvent`` when an attempt fails or a stream ends. A wait
        for a network is reported once, by that or by an RT_ERROR_CONNECT.
    :param on_message: called with each event of type "message", the type of unnamed events.
    :param on_any: called with every event, after the listeners of its type. Handlers receive events
        from the time they are set. Once ``recv`` or an iteration has begun, it receives the same
        events; while ``max_queue`` events wait for it, handlers receive none either.
    :param on_comment: called with each comment as it is read.
    :param method: default GET.
    :param content: the body, sent with each attempt. Default None.
    :param last_event_id: sent with the first request, instead of the id file's. Default None.
    :param id_file: a file that stores the last id between runs, for any number of event sources and
        processes. An id is stored when the event's handlers, coroutines included, have returned or
        the next event is requested, so a crash repeats events but loses none. If several tasks or
        threads take events, all earlier events must be finished, too. A file that has other
        content, belongs to another user or is writable by others, or a symbolic link, raises
        StoreError and is left unchanged. Default None.
    :param store_key: the key of this event source's id, in the file and for on_store. Default None:
        the URL it starts with, whatever `on_request` sets.
    :param on_store: called with the key and the id to store, at most once a second and at the end.
    :param retry_statuses: HTTP statuses after which it reconnects; ``RESILIENT`` has the temporary
        ones. Default ().
    :param backoff: a ``Backoff`` that delays and limits attempts; replaces ``reconnection_time``,
        ``max_delay``, ``max_reconnects`` and ``stable_time``. A ``retry`` field of the server still
        sets the initial delay. Default None: use those options.
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
    for status in numbers(given["retry_statuses"], "retry_statuses", 400, 599):
        setup.add_retry_status(status)
    set_backoff(setup, given)


def _set_ids(setup: Setup, given: Given) -> None:
    if given["last_event_id"] is not None:
        setup.set_last_event_id(text(given["last_event_id"], "last_event_id"))
    id_file, store_key = given["id_file"], given["store_key"]
    if id_file is None and store_key is None:
        return
    if id_file is None and given["on_store"] is None:
        raise invalid("store_key is given without id_file or on_store")
    file = None if id_file is None else path(id_file, "id_file")
    setup.set_id_file(file, None if store_key is None else text(store_key, "store_key"))


def _body(content: object) -> bytes:
    if isinstance(content, str):
        return encode(content, "content")
    if not isinstance(content, (bytes, bytearray, memoryview)):
        # bytes(n) would be n NUL bytes.
        raise TypeError(f"content is {kind_of(content)}; str or bytes are expected")
    return bytes(content)


OPTIONS = Options(
    Keywords,
    _set_stream,
    shared=HTTP_SOURCE,
    plain=EVENTSOURCE_OPTIONS,
    method="GET",
    retry_statuses=(),
)
