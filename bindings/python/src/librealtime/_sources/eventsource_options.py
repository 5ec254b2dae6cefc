"""The options of an event source, and how they are set on one of C's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional

from .._core.errors import check
from .._core.handle import Handle
from .._core.kind import Kind
from .._core.option_tables import EVENTSOURCE_OPTIONS
from .._core.values import StrPath, encode, invalid, number, path, text
from .server_sent_event import ServerSentEvent
from .source_options import HTTPSourceHandlers, HTTPSourceOptions

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


@dataclass
class Handlers(HTTPSourceHandlers[ServerSentEvent]):
    """The caller's functions, all called inside a dispatch."""

    on_any: OnEvent
    on_comment: OnComment
    on_store: OnStore

    @property
    def take_items(self) -> bool:
        takers = (self.on_message, self.on_any, self.on_comment)
        return any(handler is not None for handler in takers)


@dataclass(frozen=True)
class Ids:
    """Which id the first request sends, and where ids are kept."""

    last_event_id: str | None
    id_file: StrPath | None
    store_key: str | None
    # Whether there is an on_store, which a key is for as well.
    has_callback: bool

    def apply(self, kind: Kind, source: Handle) -> None:
        if self.last_event_id is not None:
            check(kind.set_last_event_id(source, text(self.last_event_id, "last_event_id")))
        if self.id_file is None and self.store_key is None:
            return
        if self.id_file is None and not self.has_callback:
            raise invalid("store_key needs an id_file or on_store")
        file = None if self.id_file is None else path(self.id_file, "id_file")
        key = None if self.store_key is None else text(self.store_key, "store_key")
        check(kind.set_id_file(source, file, key))


@dataclass(frozen=True)
class Options(HTTPSourceOptions):
    """What an event source was given, the same for both faces."""

    table = EVENTSOURCE_OPTIONS

    method: str
    content: str | bytes | None
    ids: Ids
    retry_statuses: Iterable[int]

    def apply(self, kind: Kind, source: Handle, loop: Handle) -> None:
        super().apply(kind, source, loop)
        check(kind.set_method(source, text(self.method, "method")))
        if self.content is not None:
            body = _body(self.content)
            check(kind.set_body(source, body, len(body)))
        self.ids.apply(kind, source)
        for status in self.retry_statuses:
            wanted = number(status, "a status of retry_statuses", 400, 599)
            check(kind.add_retry_status(source, wanted))


def _body(content: object) -> bytes:
    if isinstance(content, str):
        return encode(content, "content")
    if not isinstance(content, (bytes, bytearray, memoryview)):
        # The bytes of a number are so many NULs.
        raise TypeError(f"content is a {type(content).__name__}; str or bytes are expected")
    return bytes(content)
