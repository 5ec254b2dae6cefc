"""The event stream parser, for streams from other sources."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Union

from .._core import abi
from .._core.abi import rt_status
from .._core.awaiting import check_function, plain
from .._core.errors import check, from_status
from .._core.handle import new
from .._core.loader import lib
from .._core.memory import memory, text_at
from .._core.option_kinds import describe
from .._core.option_tables import EVENTSTREAM_PARSER_OPTIONS, EventStreamParserKeywords
from .._core.parameters import Configured, Options
from .._core.values import text
from .server_sent_event import ServerSentEvent

if TYPE_CHECKING:
    from typing_extensions import Unpack

Data = Union[bytes, bytearray, memoryview]


@Options(EventStreamParserKeywords, plain=EVENTSTREAM_PARSER_OPTIONS).shown_by("EventStreamParser")
class EventStreamParser(Configured):
    """Parses an event stream from pieces, split anywhere::

        parser = librealtime.EventStreamParser()
        for chunk in response.iter_bytes():
            for sse in parser.feed(chunk):
                print(sse.event, sse.data, sse.id)

    It may be used by one thread at a time.

    :param last_event_id: the id of events until the stream sends one.
    :param on_comment: called inside ``feed`` with each comment. Default None: comments are skipped.
    """

    def __init__(
        self,
        *,
        last_event_id: str = "",
        on_comment: Callable[[str], object] | None = None,
        **options: Unpack[EventStreamParserKeywords],
    ) -> None:
        self._handle = handle = new(lib.rt_eventstream_parser_new, lib.rt_eventstream_parser_free)
        given = text(last_event_id, "last_event_id")
        check(lib.rt_eventstream_parser_set_last_event_id(handle, given))
        EVENTSTREAM_PARSER_OPTIONS.apply(handle, options)
        check_function(on_comment, "on_comment")
        self._on_comment = plain(on_comment, "on_comment")
        self._events: list[ServerSentEvent] = []
        self._retry: int | None = None
        self._failure: BaseException | None = None
        self._key = key = next(_keys)
        check(lib.rt_eventstream_parser_on_event(handle, _ON_EVENT, key, _NOTHING))
        check(lib.rt_eventstream_parser_on_retry(handle, _ON_RETRY, key, _NOTHING))
        if on_comment is not None:
            check(lib.rt_eventstream_parser_on_comment(handle, _ON_COMMENT, key, _NOTHING))

    def feed(self, data: Data) -> list[ServerSentEvent]:
        """Parses the next bytes.

        Above a limit it raises RealtimeError with the name RT_ERROR_TOO_LARGE, until ``finish`` or
        ``reset``. It also raises what ``on_comment`` raised. In both cases the events that these
        bytes completed are lost.

        :returns: the events that these bytes complete, of every type.
        :raises InvalidState: inside its own ``on_comment``; these bytes are not parsed.
        """
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        if self._key in _feeding:
            message = "feed was called inside the parser's own on_comment; call it afterwards"
            raise from_status(rt_status.ERROR_REENTRANT, message)
        _feeding[self._key] = self
        try:
            check(lib.rt_eventstream_parser_feed(self._handle, data, len(data)))
        finally:
            del _feeding[self._key]
            events, self._events = self._events, []
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return events

    def finish(self) -> None:
        """Ends the stream. As in the standard, an incomplete event is discarded.

        The next bytes begin another stream, whose events keep the last id until it sends one.

        :raises InvalidState: inside its own ``on_comment``.
        """
        check(lib.rt_eventstream_parser_finish(self._handle))
        self._retry = None

    def reset(self) -> None:
        """Resets the parser, including id and reconnection time.

        :raises InvalidState: inside its own ``on_comment``.
        """
        check(lib.rt_eventstream_parser_reset(self._handle))
        self._retry = None

    @property
    def last_event_id(self) -> str:
        """The value for a Last-Event-ID header; ``""`` for none."""
        length = ctypes.c_size_t()
        get = lib.rt_eventstream_parser_get_last_event_id
        check(get(self._handle, None, 0, ctypes.byref(length)))
        buffer = ctypes.create_string_buffer(length.value + 1)
        check(get(self._handle, buffer, len(buffer), None))
        return buffer.raw[: length.value].decode(errors="replace")

    @property
    def reconnection_time(self) -> int | None:
        """The last one that the stream sent, in milliseconds; None before."""
        time = lib.rt_eventstream_parser_get_reconnection_time_ms(self._handle)
        return None if time < 0 else time


# Parsers that are being fed: C calls back only inside that call.
_feeding: dict[int, EventStreamParser] = {}
_keys = itertools.count(1)


def _on_event(address: int, key: int) -> None:
    parser = _feeding[key]
    view = abi.rt_event.from_address(address)
    id_, event, id_length = view.id, view.event, view.id_length
    kind = memory[event : event + view.event_length].decode()
    name = memory[id_ : id_ + id_length].decode() if id_length else ""
    text = text_at(view.data, view.data_length)
    sse = ServerSentEvent(kind, text, name, parser._retry)
    parser._retry = None
    parser._events.append(sse)


def _on_comment(comment: int, length: int, key: int) -> None:
    parser = _feeding[key]
    on_comment = parser._on_comment
    if on_comment is not None and parser._failure is None:
        try:
            on_comment(memory[comment : comment + length].decode())
        except BaseException as error:
            parser._failure = error


def _on_retry(time_ms: int, key: int) -> None:
    _feeding[key]._retry = time_ms


# Kept as long as the process lives.
_ON_EVENT = abi.rt_event_fn(_on_event)
_ON_COMMENT = abi.rt_eventsource_comment_fn(_on_comment)
_ON_RETRY = abi.rt_eventsource_retry_fn(_on_retry)
_NOTHING = abi.rt_destroy_fn(0)


describe(EventStreamParser, EVENTSTREAM_PARSER_OPTIONS)
