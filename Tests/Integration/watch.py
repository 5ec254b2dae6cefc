"""Event sources of the shipped library through Python, for tests: records all their events in
order."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import librealtime
from harness import PATIENCE_S, Failed, expect
from librealtime import ErrorEvent, ReadyState, ServerSentEvent
from streams import Exchange, Script, StreamServer

__all__ = ["Exchange", "ReadyState", "Script", "StreamServer", "Watch", "watching"]

#: A reconnection time for which tests need not wait.
SOON_S = 0.01


class Watch:
    """An event source and its reports: "open", events, `ErrorEvent`s, ("comment", text)."""

    def __init__(self, url: str, *, comments: bool = False, **options: Any) -> None:
        self.news: asyncio.Queue[object] = asyncio.Queue()
        #: The state inside each error handler.
        self.states: list[ReadyState] = []
        options.setdefault("reconnection_time", SOON_S)
        options.setdefault("min_reconnection_time", SOON_S)
        if comments:
            options["on_comment"] = lambda text: self.news.put_nowait(("comment", text))
        self.source = librealtime.EventSource(
            url,
            on_open=lambda: self.news.put_nowait("open"),
            on_error=self._note_error,
            on_any=self.news.put_nowait,
            **options,
        )

    def _note_error(self, event: ErrorEvent) -> None:
        self.states.append(self.source.ready_state)
        self.news.put_nowait(event)

    async def next(self) -> object:
        return await asyncio.wait_for(self.news.get(), PATIENCE_S)

    async def opened(self) -> None:
        item = await self.next()
        expect(item == "open", f"expected it to open, received {item}")

    async def event(self) -> ServerSentEvent:
        """The next event; skips openings and failures that are not fatal."""
        while True:
            item = await self.next()
            if isinstance(item, ServerSentEvent):
                return item
            if isinstance(item, ErrorEvent) and item.fatal:
                raise Failed(f"it is closed: {item.error}")

    async def error(self) -> ErrorEvent:
        """The next failure; skips openings."""
        while True:
            item = await self.next()
            if isinstance(item, ErrorEvent):
                return item
            expect(item == "open", f"expected an error, received {item}")

    async def fails(self, name: str, text: str = "", http_status: int = 0) -> ErrorEvent:
        """The next failure must be fatal and have this name."""
        error = await self.error()
        expect(error.fatal, f"not fatal: {error}")
        expect(error.error.name == name, f"expected {name}, received {error.error.name}: {error}")
        expect(text in error.error.message, f"expected {text!r} in {error.error.message!r}")
        expect(error.http_status == http_status, f"{error.http_status} instead of {http_status}")
        expect(self.source.ready_state is ReadyState.CLOSED, "it is not closed")
        return error

    async def loses(self, name: str, text: str = "") -> ErrorEvent:
        """The next failure must be one after which it reconnects."""
        error = await self.error()
        expect(not error.fatal, f"fatal: {error}")
        expect(error.error.name == name, f"expected {name}, received {error.error.name}: {error}")
        expect(text in error.error.message, f"expected {text!r} in {error.error.message!r}")
        return error

    async def data(self, *expected: str) -> None:
        """The next events must have these data."""
        for wanted in expected:
            event = await self.event()
            expect(event.data == wanted, f"expected {wanted!r:.200}, received {event.data!r:.200}")


@contextlib.asynccontextmanager
async def watching(
    script: Script, path: str = "/", context: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[Watch, StreamServer]]:
    """A server with this script, and an event source that watches it."""
    with StreamServer(script, context) as server:
        watch = Watch(server.url(path), **options)
        with contextlib.closing(watch.source):
            yield watch, server
