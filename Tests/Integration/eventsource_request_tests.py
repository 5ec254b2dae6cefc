"""The requests of event sources: redirects, headers, ids, bodies."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import librealtime
import pytest
from harness import expect
from servers import Servers
from watch import Exchange, StreamServer, Watch, watching

HEADERS = {
    "Authorization": "Bearer secret-token",
    "Cookie": "a=secret-cookie",
    "X-Api-Key": "secret-key",
    "X-Listed": "yes",
    "Accept-Language": "sv",
}


def stream(exchange: Exchange) -> None:
    exchange.begin()
    exchange.send("data: here\n\n")
    exchange.hold()


@contextlib.asynccontextmanager
async def redirecting(
    path: str = "/", back: bool = False, user: str = "", **options: Any
) -> AsyncIterator[tuple[StreamServer, StreamServer, Watch]]:
    """One server redirects to the other, which has the stream; with `back` that redirects to the
    first."""

    def second(exchange: Exchange) -> None:
        if back:
            return exchange.answer("302 Back", f"Location: {one.url('/end')}")
        return stream(exchange)

    def first(exchange: Exchange) -> None:
        if exchange.path == "/end":
            return stream(exchange)
        return exchange.answer("302 Go", f"Location: {two.url(path, user='x:redirect-secret@')}")

    with StreamServer(second) as two, StreamServer(first) as one:
        watch = Watch(one.url("/start", user=user), **options)
        with contextlib.closing(watch.source):
            await watch.data("here")
            yield one, two, watch


async def test_other_origin() -> None:
    """Only the headers that G8 or the caller lists are sent; userinfo in Location is dropped."""
    options = {"headers": HEADERS, "safe_headers": ["x-listed"], "last_event_id": "7"}
    async with redirecting(**options) as (one, two, _):
        first, second = one.request().headers, two.request().headers
        for name, value in HEADERS.items():
            expect(first[name.lower()] == value, f"{name} was not sent")
        for name in ("authorization", "cookie", "x-api-key"):
            expect(name not in second, f"{name} went along: {second}")
        expect(second["x-listed"] == "yes" and second["accept-language"] == "sv", f"{second}")
        expect(second["last-event-id"] == "7", f"{second}")
        for name in ("accept", "cache-control", "user-agent", "accept-encoding"):
            expect(second[name] == first[name], f"{name}: {second}")
        expect("secret" not in str(second), f"{second}")


async def test_back_again() -> None:
    async with redirecting(back=True, headers=HEADERS) as (one, _, _watch):
        expect(one.request().path == "/start", "the first")
        last = one.request()
        expect(last.path == "/end" and "secret" not in str(last.headers), f"{last.headers}")


async def test_userinfo() -> None:
    async with redirecting(user="me:secret@") as (one, two, _):
        expect(one.request().headers["authorization"] == librealtime.basic_auth("me", "secret"), "")
        expect("authorization" not in two.request().headers, "it went along")


async def test_same_origin() -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            return exchange.answer("307 Go", "Location: there?x=1#y")
        return stream(exchange)

    async with watching(script, headers=HEADERS) as (watch, server):
        await watch.data("here")
        server.request()
        last = server.request()
        expect(last.target == "/there?x=1", last.target)
        expect(last.headers["x-api-key"] == "secret-key", f"{last.headers}")


async def test_endless() -> None:
    async with watching(lambda e: e.answer("302 Go", "Location: /")) as (watch, server):
        await watch.fails("RT_ERROR_REDIRECT", "after 20 redirects", 302)
        expect(server.requests.qsize() == 21, f"{server.requests.qsize()} requests")


async def test_few_redirects() -> None:
    def script(exchange: Exchange) -> None:
        exchange.answer("302 Go", "Location: /")

    async with watching(script, max_redirects=1) as (watch, server):
        await watch.fails("RT_ERROR_REDIRECT", http_status=302)
        expect(server.requests.qsize() == 2, f"{server.requests.qsize()} requests")
    async with watching(script, max_redirects=0) as (watch, server):
        await watch.fails("RT_ERROR_HTTP_STATUS", "302", 302)
        expect(server.requests.qsize() == 1, f"{server.requests.qsize()} requests")


@pytest.mark.parametrize("location", (None, "", "http://[x", "mailto:x"))
async def test_bad_location(location: str | None) -> None:
    """A bad location is an error, never a silent retry."""
    fields = [] if location is None else [f"Location: {location}"]
    async with watching(lambda e: e.answer("301 Go", *fields)) as (watch, server):
        error = await watch.error()
        names = ("RT_ERROR_REDIRECT", "RT_ERROR_UNSUPPORTED_SCHEME")
        expect(error.fatal and error.error.name in names, f"{error}")
        expect(server.requests.qsize() == 1, "it reconnected")


async def test_insecure(servers: Servers) -> None:
    tls = servers.tls()
    with StreamServer(stream) as plain:
        target = f"Location: {plain.url('/plain')}"
        options: dict[str, Any] = {"context": tls.context, "ca_file": tls.ca_file}
        async with watching(lambda e: e.answer("302 Go", target), **options) as (watch, _):
            await watch.fails("RT_ERROR_INSECURE_REDIRECT", http_status=302)
        expect(plain.requests.empty(), "it was followed")
        options |= {"allow_insecure_redirects": True, "headers": HEADERS}
        async with watching(lambda e: e.answer("302 Go", target), **options) as (watch, _):
            await watch.data("here")
            expect("secret" not in str(plain.request().headers), "secrets went along")


@pytest.mark.parametrize(
    ("status", "method", "sent"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"),
        (308, "PUT", "PUT"), (301, "REPORT", "REPORT"),
    ],
)  # fmt: skip
async def test_redirected_body(status: int, method: str, sent: str) -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            return exchange.answer(f"{status} Go", "Location: /there")
        return stream(exchange)

    options = {"method": method, "content": "a body", "headers": {"Content-Type": "a/b"}}
    async with watching(script, **options) as (watch, server):
        await watch.data("here")
        first, second = server.request(), server.request()
        expect((first.method, first.body) == (method, b"a body"), f"{first.method}")
        expect(second.method == sent, f"{second.method} instead of {sent}")
        kept = sent == method
        expect(second.body == (b"a body" if kept else b""), f"{second.body!r}")
        expect(("content-type" in second.headers) == kept, f"{second.headers}")


async def test_first_url_again() -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            return exchange.answer("307 Go", f"Location: /{exchange.number}")
        exchange.begin()
        return exchange.send("data: x\n\n")

    async with watching(script) as (watch, server):
        await watch.data("x", "x")
        paths = [server.request().path for _ in range(4)]
        expect(paths == ["/", "/0", "/", "/2"], f"{paths}")


async def test_body() -> None:
    """The body is sent unchanged in each attempt; its type is text unless the caller sets one."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("data: x\n\n")

    post = {"method": "POST", "content": "smörgås", "retry_unsafe": True}
    async with watching(script, **post) as (watch, server):
        await watch.data("x", "x")
        for _ in range(2):
            request = server.request()
            expect(request.body == "smörgås".encode(), f"{request.body!r}")
            expect(request.headers["content-type"] == "text/plain; charset=utf-8", "type")
            expect("expect" not in request.headers, "Expect")
    content = bytes(range(256)) * 400
    async with watching(script, method="REPORT", content=content) as (watch, server):
        await watch.data("x")
        request = server.request()
        expect((request.method, request.body) == ("REPORT", content), request.method)


async def test_id_in_query() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: ä &2\ndata: x\n\n")
        if exchange.number:
            exchange.hold()

    options = {"id_query_param": "since", "path": "/e?a=b&since=old"}
    async with watching(script, **options) as (watch, server):
        await watch.data("x", "x")
        expect(server.request().target == "/e?a=b&since=old", "the first")
        second = server.request()
        expect(second.query == "a=b&since=%C3%A4%20%262", second.query)
        expect(second.headers["last-event-id"] == "ä &2", f"{second.headers}")


async def test_long_id() -> None:
    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send("id: ", "x" * 70_000, "\ndata: x\n\n")
        exchange.hold()

    async with watching(script, max_name_size=None) as (watch, _):
        await watch.data("x")
    async with watching(script) as (watch, _):
        await watch.fails("RT_ERROR_TOO_LARGE", "(max_name_size)")


async def test_initial_id() -> None:
    async with watching(stream, last_event_id="ü 7") as (watch, server):
        event = await watch.event()
        expect((event.id, event.had_id) == ("ü 7", False), f"{event}")
        expect(server.request().headers["last-event-id"] == "ü 7", "the request")
    async with watching(stream, last_event_id="") as (watch, server):
        await watch.event()
        expect("last-event-id" not in server.request().headers, "an empty id was sent")


async def test_bad_ids() -> None:
    for text in ("a\r", "\n", "a\0b"):
        try:
            librealtime.EventSource("http://127.0.0.1/", last_event_id=text)
        except librealtime.InvalidArgument:
            continue
        expect(False, f"{text!r} was accepted")


def flaky(exchange: Exchange) -> None:
    """Ends each of the first streams after its event, and holds the third."""
    exchange.begin()
    exchange.send("data: here\n\n")
    if exchange.number >= 2:
        exchange.hold()


async def test_blank_ids() -> None:
    """Only an empty id sends no header. HTTP removes blanks at its ends."""
    ids = ["  ", "\t", " x "]

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send(f"id: {ids[exchange.number % 3]}\ndata: here\n\n")

    async with watching(script) as (watch, server):
        await watch.data("here", "here", "here", "here")
        sent = [server.request().headers.get("last-event-id") for _ in range(4)]
        expect(sent == [None, "", "", "x"], f"{sent}")


async def test_provider() -> None:
    """The provider's headers replace the others, for its attempt only."""
    given: list[dict[str, str] | None] = [{"X-A": "2", "x-b": "3"}, None, {"X-C": "4"}]

    def provide(attempt: int) -> dict[str, str] | None:
        expect(attempt == 1, f"attempt {attempt}: each was stable")
        return given.pop(0)

    options = {"headers": {"X-A": "1"}, "bearer_token": "t", "header_provider": provide}
    async with watching(flaky, **options) as (watch, server):
        await watch.data("here", "here", "here")
        seen = [server.request().headers for _ in range(3)]
        expect([h.get("x-a") for h in seen] == ["2", "1", "1"], f"{seen}")
        expect([h.get("x-b") for h in seen] == ["3", None, None], f"{seen}")
        expect([h.get("x-c") for h in seen] == [None, None, "4"], f"{seen}")
        expect(all(h["authorization"] == "Bearer t" for h in seen), f"{seen}")


async def test_failing_provider() -> None:
    def provide(attempt: int) -> dict[str, str]:
        raise LookupError("no token")

    async with watching(stream, header_provider=provide) as (watch, server):
        error = await watch.fails("RT_ERROR_CANCELLED", "no token")
        expect(isinstance(error.error.__cause__, LookupError), f"{error.error.__cause__}")
        expect(server.requests.empty(), "it sent a request")


async def test_changed_request() -> None:
    def change(attempt: librealtime.Attempt) -> None:
        attempt.set_header("X-Number", str(attempt.number))
        attempt.set_url(f"{server.origin}/changed")

    async with watching(stream, on_request=change) as (watch, server):
        await watch.data("here")
        request = server.request()
        expect((request.path, request.headers["x-number"]) == ("/changed", "1"), request.path)


async def test_declined_request() -> None:
    """Returning False closes the source, without an error."""
    with StreamServer(stream) as server:
        async with librealtime.EventSource(server.url(), on_request=lambda _: False) as source:
            events = [event async for event in source]
            expect(events == [] and source.ready_state == 2, f"{source}")
        expect(server.requests.empty(), "it sent a request")


async def test_restart() -> None:
    """A restart reconnects at once, whatever the delay, without an error."""

    def script(exchange: Exchange) -> None:
        exchange.begin()
        exchange.send(f"id: {exchange.number}\ndata: x\n\n")
        if exchange.number != 1:
            exchange.hold()

    async with watching(script, reconnection_time=1000) as (watch, server):
        await watch.data("x")
        watch.source.restart()
        await watch.opened()
        await watch.data("x")
        await watch.loses("RT_ERROR_CLOSED")
        watch.source.restart()
        await watch.opened()
        await watch.data("x")
        ids = [server.request().headers.get("last-event-id") for _ in range(3)]
        expect(ids == [None, "0", "1"], f"{ids}")
