"""The web platform's tests of EventSource that need a connection. The names are the same, with `_`
for `-` and without `eventsource-`."""

import asyncio
import contextlib
import queue

import librealtime
import pytest
from harness import expect
from watch import Exchange, ReadyState, StreamServer, Watch, watching


def one_then_hold(exchange: Exchange) -> None:
    exchange.begin()
    exchange.send("data: one\n\n")
    exchange.hold()


async def test_close() -> None:
    """CONNECTING, OPEN, CLOSED. In the error handler CONNECTING before a reconnect, CLOSED at the
    end."""

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


async def test_reconnect() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send(f"data: {exchange.number}\n\n")

    async with watching(script) as (watch, _):
        for number in range(3):
            await watch.opened()
            await watch.data(str(number))
            await watch.loses("RT_ERROR_CLOSED")
            expect(watch.states[-1] is ReadyState.CONNECTING, "not connecting")


async def test_request_cancellation() -> None:
    """No event comes after close, and the server sees that the client has disconnected."""
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
        expect(told == ["1"], f"received {told}")


async def test_onopen() -> None:
    async with watching(one_then_hold) as (watch, _):
        await watch.opened()


async def test_onmessage() -> None:
    with StreamServer(one_then_hold) as server:
        events: asyncio.Queue[librealtime.ServerSentEvent] = asyncio.Queue()
        async with librealtime.EventSource(server.url()) as source:
            source.on_message = events.put_nowait
            event = await events.get()
        expect((event.event, event.data, event.id) == ("message", "one", ""), str(event))
        expect(not event.had_id, "it has an id")


async def test_eventtarget() -> None:
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


async def test_url() -> None:
    with StreamServer(one_then_hold) as server:
        async with librealtime.EventSource(server.url("/a?b=c", user="me:secret@")) as source:
            expect(source.url == server.url("/a?b=c"), source.url)
            request = await asyncio.to_thread(server.request)
            expect(request.headers["authorization"] == librealtime.basic_auth("me", "secret"), "")


async def test_constructor_url_bogus() -> None:
    for text in ("http://this is invalid/", "", "events", "ftp://127.0.0.1/", "http://"):
        try:
            librealtime.EventSource(text)
        except librealtime.InvalidURI:
            continue
        expect(False, f"{text!r} was accepted")


async def test_prototype() -> None:
    numbers = [int(state) for state in (ReadyState.CONNECTING, ReadyState.OPEN, ReadyState.CLOSED)]
    expect(numbers == [0, 1, 2], str(numbers))
    for face in (librealtime.EventSource, librealtime.sync.EventSource):
        for name in ("close", "add_event_listener", "remove_event_listener", "restart"):
            expect(callable(getattr(face, name)), name)


async def test_cross_origin_redirect_origin() -> None:
    with StreamServer(one_then_hold) as other:
        target = other.url("/elsewhere")
        with StreamServer(lambda e: e.answer("307 Go", f"Location: {target}")) as server:
            watch = Watch(server.url())
            with contextlib.closing(watch.source):
                expect(watch.source.origin == server.origin, watch.source.origin)
                await watch.event()
                expect(watch.source.origin == other.origin, watch.source.origin)
                expect(watch.source.url == server.url(), watch.source.url)


async def test_format_data_before_final_empty_line() -> None:
    """The event is dropped at the end of the stream, and its id is not used."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        if exchange.number == 0:
            return exchange.send("retry:10\ndata:test1\n\nid:test\ndata:test2")
        exchange.send(f"data:{exchange.headers.get('last-event-id', 'none')}\n\n")
        return exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("test1", "none")


async def test_format_field_id_2() -> None:
    """The id is sent back as UTF-8, and events of later connections without an id keep it."""

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


async def test_format_field_id_3() -> None:
    """The line is `id:` or `id`."""
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


async def test_format_field_id_null() -> None:
    for ignored in ("\0\0", "x\0", "\0x", "x\0x", " \0"):

        def script(exchange: Exchange, ignored: str = ignored) -> None:
            exchange.begin()
            if exchange.number == 0:
                return exchange.send(f"id: {ignored}\ndata: hello\n\n")
            exchange.send(f"data: {exchange.headers.get('last-event-id', 'none')}\n\n")
            return exchange.hold()

        async with watching(script) as (watch, _):
            await watch.data("hello", "none")


async def test_format_field_retry() -> None:
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
        # Do not wait: the delay was reported.
        watch.source.restart()
        await watch.event()


async def test_format_field_retry_bogus() -> None:
    """A value that is not a number is ignored; the value before it stays."""

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


async def test_format_field_retry_empty() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("retry\ndata:test\n\n")
        exchange.hold()

    async with watching(script, reconnection_time=1.5) as (watch, _):
        await watch.data("test")
        expect(watch.source.reconnection_time == 1.5, f"{watch.source.reconnection_time}")


async def test_format_mime_valid_bogus() -> None:
    await test_format_mime_bogus("text/x-bogus")


async def test_format_utf_8() -> None:
    """Text is UTF-8, whatever charset the response names."""

    def script(exchange: Exchange) -> None:
        exchange.begin(kind="text/event-stream;charset=windows-1252")
        exchange.send("data:ok…\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("ok…")


async def test_request_accept() -> None:
    """The caller's header is kept if it names the type."""
    for given, sent in ((None, None), ("a/b, text/event-stream;q=0.5", True), ("a/b", None)):
        headers = {"accept": given} if given else {}
        async with watching(one_then_hold, headers=headers) as (watch, server):
            await watch.event()
            accepted = server.request().headers["accept"]
            expect(accepted == (given if sent else "text/event-stream"), accepted)


async def test_request_cache_control() -> None:
    async with watching(one_then_hold) as (watch, server):
        await watch.event()
        expect(server.request().headers["cache-control"] == "no-cache", "cache-control")


@pytest.mark.parametrize("status", (301, 302, 303, 307))
async def test_request_redirect(status: int) -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            return exchange.answer(f"{status} Go", "Location: /there")
        return one_then_hold(exchange)

    async with watching(script) as (watch, _):
        await watch.opened()
        await watch.data("one")


@pytest.mark.parametrize("status", (204, 205, 210, 299, 404, 410, 503))
async def test_request_status_error(status: int) -> None:
    async with watching(lambda e: e.answer(f"{status} No")) as (watch, _):
        name = "RT_ERROR_NO_CONTENT" if status == 204 else "RT_ERROR_HTTP_STATUS"
        await watch.fails(name, str(status), status)


@pytest.mark.parametrize(
    "kind", ("x bogus", "text/x-bogus", "text/event-streamx", "", "text/event-stream-x; a=b")
)
async def test_format_mime_bogus(kind: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin(kind=kind)
        exchange.send("data: data\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.fails("RT_ERROR_CONTENT_TYPE", kind, 200)


@pytest.mark.parametrize(
    "kind",
    ("text/event-stream;", "TEXT/Event-Stream; charset=windows-1252", "text/event-stream; x"),
)
async def test_format_mime_trailing_semicolon(kind: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin(kind=kind)
        exchange.send("data: data\n\n")
        exchange.hold()

    async with watching(script) as (watch, _):
        await watch.data("data")
