"""The web platform's tests of EventSource that need a connection, each under its name there."""

import asyncio
import contextlib
import functools
import queue
from typing import Any

import librealtime
from harness import Suite, expect
from watch import Exchange, ReadyState, StreamServer, Test, Watch, add_async, watching

WPT: dict[str, Test] = {}


def wpt(name: str) -> Any:
    def register(test: Test) -> Test:
        WPT[name] = test
        return test

    return register


def add(suite: Suite) -> None:
    for status in (301, 302, 303, 307):
        WPT[f"request-redirect {status}"] = functools.partial(redirected, status)
    for status in (204, 205, 210, 299, 404, 410, 503):
        WPT[f"request-status-error {status}"] = functools.partial(refused, status)
    for kind in ("x bogus", "text/x-bogus", "text/event-streamx", "", "text/event-stream-x; a=b"):
        WPT[f"format-mime-bogus {kind!r}"] = functools.partial(bogus_type, kind)
    for kind in (
        "text/event-stream;",
        "TEXT/Event-Stream; charset=windows-1252",
        "text/event-stream; x",
    ):
        WPT[f"format-mime-trailing-semicolon {kind!r}"] = functools.partial(good_type, kind)
    add_async(suite, {f"web platform: {name}": test for name, test in WPT.items()})


def one_then_hold(exchange: Exchange) -> None:
    exchange.begin()
    exchange.send("data: one\n\n")
    exchange.hold()


@wpt("eventsource-close")
async def close() -> None:
    """CONNECTING, OPEN, CLOSED; CONNECTING inside of error at a reconnect, CLOSED at the end."""

    def script(exchange: Exchange) -> None:
        if exchange.number == 2:
            return exchange.answer("404 Not Found")
        exchange.begin()
        exchange.send("data: x\n\n")

    async with watching(script) as (watch, _):
        expect(watch.source.ready_state is ReadyState.CONNECTING, "not connecting at first")
        await watch.opened()
        for _ in range(2):
            await watch.data("x")
            await watch.loses("RT_ERROR_CLOSED")
        await watch.fails("RT_ERROR_HTTP_STATUS", "404", 404)
        connecting = ReadyState.CONNECTING
        expect(watch.states == [connecting, connecting, ReadyState.CLOSED], str(watch.states))
    async with watching(one_then_hold) as (watch, _):
        await watch.event()
        expect(watch.source.ready_state is ReadyState.OPEN, "not open")
        watch.source.close()
        expect(watch.source.ready_state is ReadyState.CLOSED, "not closed")


@wpt("eventsource-reconnect")
async def reconnect() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send(f"data: {exchange.number}\n\n")

    async with watching(script) as (watch, _):
        for number in range(3):
            await watch.opened()
            await watch.data(str(number))
            await watch.loses("RT_ERROR_CLOSED")
            expect(watch.states[-1] is ReadyState.CONNECTING, "not connecting")


@wpt("eventsource-request-cancellation")
async def cancellation() -> None:
    """Nothing is told after close, and the server sees that the client has gone."""
    gone: queue.Queue[bool] = queue.Queue()

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("data: 1\n\ndata: 2\n\n")
        exchange.hold()
        gone.put(True)

    with StreamServer(script) as server:
        told: list[str] = []
        closed = asyncio.Event()

        def close_at_once(event: librealtime.ServerSentEvent) -> None:
            told.append(event.data)
            source.close()
            closed.set()

        source = librealtime.EventSource(server.url(), on_message=close_at_once)
        await closed.wait()
        await asyncio.to_thread(gone.get, True, 60)
        expect(told == ["1"], f"told {told}")


@wpt("eventsource-onopen")
async def onopen() -> None:
    async with watching(one_then_hold) as (watch, _):
        await watch.opened()


@wpt("eventsource-onmessage")
async def onmessage() -> None:
    with StreamServer(one_then_hold) as server:
        events: asyncio.Queue[librealtime.ServerSentEvent] = asyncio.Queue()
        async with librealtime.EventSource(server.url()) as source:
            source.on_message = events.put_nowait
            event = await events.get()
        expect((event.event, event.data, event.id) == ("message", "one", ""), str(event))
        expect(not event.had_id, "it has an id")


@wpt("eventsource-eventtarget")
async def eventtarget() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("event: error\ndata: e\n\nevent: open\ndata: o\n\ndata: m\n\n")
        exchange.hold()

    with StreamServer(script) as server:
        told: asyncio.Queue[str] = asyncio.Queue()
        errors: list[object] = []
        async with librealtime.EventSource(server.url(), on_error=errors.append) as source:
            for name in ("error", "open", "message"):
                source.add_event_listener(name, lambda event: told.put_nowait(event.data))
            expect(source.event_names() == ["error", "message", "open"], "names")
            expect([await told.get() for _ in range(3)] == ["e", "o", "m"], "order")
        expect(not errors, f"events called error are none: {errors}")


@wpt("eventsource-url")
async def url() -> None:
    with StreamServer(one_then_hold) as server:
        async with librealtime.EventSource(server.url("/a?b=c", user="me:secret@")) as source:
            expect(source.url == server.url("/a?b=c"), source.url)
            request = await asyncio.to_thread(server.request)
            expect(request.headers["authorization"] == librealtime.basic_auth("me", "secret"), "")


@wpt("eventsource-constructor-url-bogus")
async def bogus_url() -> None:
    for text in ("http://this is invalid/", "", "events", "ftp://127.0.0.1/", "http://"):
        try:
            librealtime.EventSource(text)
        except librealtime.InvalidURI:
            continue
        expect(False, f"{text!r} was accepted")


@wpt("eventsource-prototype")
async def prototype() -> None:
    numbers = [int(state) for state in (ReadyState.CONNECTING, ReadyState.OPEN, ReadyState.CLOSED)]
    expect(numbers == [0, 1, 2], str(numbers))
    for face in (librealtime.EventSource, librealtime.sync.EventSource):
        for name in ("close", "add_event_listener", "remove_event_listener", "restart"):
            expect(callable(getattr(face, name)), name)


@wpt("eventsource-cross-origin-redirect-origin")
async def redirect_origin() -> None:
    with StreamServer(one_then_hold) as other:
        target = other.url("/elsewhere")
        with StreamServer(lambda e: e.answer("307 Go", f"Location: {target}")) as server:
            watch = Watch(server.url())
            with contextlib.closing(watch.source):
                expect(watch.source.origin == server.origin, watch.source.origin)
                await watch.event()
                expect(watch.source.origin == other.origin, watch.source.origin)
                expect(watch.source.url == server.url(), watch.source.url)


@wpt("format-data-before-final-empty-line")
async def unfinished_block() -> None:
    """It is dropped at the end of the stream, and its id is not used."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number == 0:
            return exchange.send("retry:10\ndata:test1\n\nid:test\ndata:test2")
        exchange.send(f"data:{exchange.headers.get('last-event-id', 'none')}\n\n")
        return exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("test1", "none")


@wpt("format-field-id-2")
async def non_ascii_id() -> None:
    """It goes back as UTF-8, and stays on events without one of later connections."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number == 0:
            return exchange.send("id: …\nretry: 10\ndata: hello\n\n")
        sent = exchange.headers.get("last-event-id", "none")
        exchange.send(f"data: {sent}\n\n")
        return None if exchange.number < 3 else exchange.hold()

    async with watching(script) as (watch, _):
        expect((await watch.event()).id == "…", "the first")
        for _ in range(3):
            event = await watch.event()
            expect((event.id, event.data, event.had_id) == ("…", "…", False), str(event))


@wpt("format-field-id-3")
async def id_is_reset() -> None:
    """By `id:` and by `id`."""
    for line in ("id:", "id"):

        def script(exchange: Exchange, line: str = line) -> None:
            exchange.begin()
            if exchange.number == 0:
                return exchange.send(f"id: 1\ndata: a\n\n{line}\ndata: b\n\n")
            exchange.send(f"data: {exchange.headers.get('last-event-id', 'none')}\n\n")
            return exchange.hold()

        async with watching(script) as (watch, _):
            ids = [(event.id, event.data) for event in [await watch.event() for _ in range(3)]]
            expect(ids == [("1", "a"), ("", "b"), ("", "none")], str(ids))


@wpt("format-field-id-null")
async def id_with_null() -> None:
    for ignored in ("\0\0", "x\0", "\0x", "x\0x", " \0"):

        def script(exchange: Exchange, ignored: str = ignored) -> None:
            exchange.begin()
            if exchange.number == 0:
                return exchange.send(f"id: {ignored}\ndata: hello\n\n")
            exchange.send(f"data: {exchange.headers.get('last-event-id', 'none')}\n\n")
            return exchange.hold()

        async with watching(script) as (watch, _):
            await watch.data("hello", "none")


@wpt("format-field-retry")
async def retry() -> None:
    """03000 is 3000, and the delay is within a quarter of it."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("retry:03000\ndata:x\n\n")
        if exchange.number:
            exchange.hold()

    async with watching(script) as (watch, _):
        event = await watch.event()
        expect(event.retry == 3000, f"{event.retry}")
        expect(watch.source.reconnection_time == 3, f"{watch.source.reconnection_time}")
        error = await watch.loses("RT_ERROR_CLOSED")
        expect(error.retry_in is not None and 3 <= error.retry_in <= 3.75, f"{error.retry_in}")
        # Not the test's time: the delay was told.
        watch.source.restart()
        await watch.event()


@wpt("format-field-retry-bogus")
async def retry_bogus() -> None:
    """What is no number is ignored; the value before it stays."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number:
            return exchange.hold()
        for value in ("1000x", "-5", "+5", "1.5", "", "٣"):
            exchange.send(f"retry:40\nretry:{value}\ndata:x\n\n")
        return None

    async with watching(script) as (watch, _):
        for _ in range(6):
            event = await watch.event()
            expect(event.retry == 40, f"{event}")
            expect(watch.source.reconnection_time == 0.04, f"{watch.source.reconnection_time}")
        error = await watch.loses("RT_ERROR_CLOSED")
        expect(error.retry_in is not None and 0.04 <= error.retry_in <= 0.05, f"{error}")


@wpt("format-field-retry-empty")
async def retry_empty() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("retry\ndata:test\n\n")
        exchange.hold()

    async with watching(script, reconnection_time=1.5) as (watch, _):
        await watch.data("test")
        expect(watch.source.reconnection_time == 1.5, f"{watch.source.reconnection_time}")


@wpt("format-mime-valid-bogus")
async def valid_bogus_type() -> None:
    await bogus_type("text/x-bogus")


@wpt("format-utf-8")
async def utf_8() -> None:
    """Whatever charset the answer names."""

    def script(exchange: Exchange) -> None:
        exchange.begin(kind="text/event-stream;charset=windows-1252")
        exchange.send("data:ok…\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("ok…")


@wpt("request-accept")
async def accept() -> None:
    """A caller's is kept when it names the type."""
    for given, sent in ((None, None), ("a/b, text/event-stream;q=0.5", True), ("a/b", None)):
        headers = {"accept": given} if given else {}
        async with watching(one_then_hold, headers=headers) as (watch, server):
            await watch.event()
            accepted = server.request().headers["accept"]
            expect(accepted == (given if sent else "text/event-stream"), accepted)


@wpt("request-cache-control")
async def cache_control() -> None:
    async with watching(one_then_hold) as (watch, server):
        await watch.event()
        expect(server.request().headers["cache-control"] == "no-cache", "cache-control")


async def redirected(status: int) -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            return exchange.answer(f"{status} Go", "Location: /there")
        return one_then_hold(exchange)

    async with watching(script) as (watch, _):
        await watch.opened()
        await watch.data("one")


async def refused(status: int) -> None:
    async with watching(lambda e: e.answer(f"{status} No")) as (watch, _):
        name = "RT_ERROR_NO_CONTENT" if status == 204 else "RT_ERROR_HTTP_STATUS"
        await watch.fails(name, str(status), status)


async def bogus_type(kind: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin(kind=kind)
        exchange.send("data: data\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.fails("RT_ERROR_CONTENT_TYPE", kind, 200)


async def good_type(kind: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin(kind=kind)
        exchange.send("data: data\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("data")
