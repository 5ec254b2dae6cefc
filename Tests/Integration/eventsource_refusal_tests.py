"""Event sources that are refused: credentials, and statuses that are retried."""

import asyncio
import contextlib
import logging
import time
from email.utils import formatdate
from typing import Any

import librealtime
from harness import expect
from librealtime import ErrorEvent, ServerSentEvent, StreamRefused
from watch import Exchange, StreamServer, Watch, watching


def stream(exchange: Exchange) -> None:
    exchange.begin()
    exchange.send("data: here\n\n")
    exchange.hold()


def guarded(exchange: Exchange) -> None:
    if exchange.headers.get("authorization") == "Bearer good":
        return stream(exchange)
    return exchange.answer("401 Who", "WWW-Authenticate: Bearer")


async def test_refused_twice() -> None:
    asked: list[int] = []

    def give(status: int) -> dict[str, str]:
        asked.append(status)
        return {"Authorization": "Bearer bad"}

    async with watching(guarded, credentials=give) as (watch, server):
        error = await watch.fails("RT_ERROR_HTTP_STATUS", "401", 401)
        refusal = error.error
        expect(isinstance(refusal, StreamRefused) and refusal.http_status == 401, f"{error}")
        expect(asked == [401] and server.requests.qsize() == 2, f"{asked}")


async def test_no_credentials() -> None:
    async def later(status: int) -> None:
        await asyncio.sleep(0)

    for give in (lambda status: None, later):
        async with watching(guarded, credentials=give) as (watch, server):
            await watch.fails("RT_ERROR_HTTP_STATUS", "401", 401)
            expect(server.requests.qsize() == 1, "it was sent again")


async def test_later_credentials() -> None:
    async def give(status: int) -> list[tuple[str, str]]:
        await asyncio.sleep(0.01)
        return [("authorization", "Bearer good")]

    options = {"credentials": give, "headers": {"Authorization": "Bearer old", "X-A": "1"}}
    async with watching(guarded, **options) as (watch, server):
        await watch.data("here")
        first, second = server.request().headers, server.request().headers
        expect(first["authorization"] == "Bearer old", f"{first}")
        expect(second["authorization"] == "Bearer good" and second["x-a"] == "1", f"{second}")


async def test_failing_credentials() -> None:
    async def give_later(status: int) -> dict[str, str]:
        raise LookupError("the vault is shut")

    def give(status: int) -> dict[str, str]:
        raise LookupError("the vault is shut")

    for credentials in (give, give_later):
        async with watching(guarded, credentials=credentials) as (watch, _):
            error = await watch.fails("RT_ERROR_CANCELLED", "vault is shut")
            expect(isinstance(error.error.__cause__, LookupError), f"{error}")


async def test_closed_meanwhile() -> None:
    was_cancelled = asyncio.Event()
    was_asked = asyncio.Event()

    async def give(status: int) -> None:
        was_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    async with watching(guarded, credentials=give) as (watch, server):
        await was_asked.wait()
        watch.source.close()
        await was_cancelled.wait()
        expect(server.requests.qsize() == 1 and watch.news.empty(), "an event or a request came")


async def test_proxy_status() -> None:
    def script(exchange: Exchange) -> None:
        if "proxy-authorization" in exchange.headers:
            return stream(exchange)
        return exchange.answer("407 Proxy")

    def give(status: int) -> dict[str, str]:
        expect(status == 407, f"{status}")
        return {"Proxy-Authorization": "Basic eDp5"}

    async with watching(script, credentials=give) as (watch, _):
        await watch.data("here")


async def test_proxy_refuses() -> None:
    """The proxy gets the request with its whole URL, and the error names it if it wants
    credentials."""
    with StreamServer(lambda exchange: exchange.answer("407 Proxy")) as proxy:
        watch = Watch("http://name.invalid/x?y", proxy=proxy.url("/").rstrip("/"))
        try:
            named = f"the proxy 127.0.0.1:{proxy.port}, asked for name.invalid:80, answered 407"
            await watch.fails("RT_ERROR_HTTP_STATUS", named, 407)
            target = proxy.request().target
            expect(target == "http://name.invalid/x?y", target)
        finally:
            watch.source.close()


def kinds() -> list[Any]:
    return [librealtime.EventSource, librealtime.LongPoll]


async def test_tunnel_is_refused() -> None:
    """Only the proxy gets its credentials, and its refusal is reported like a server's."""
    asked: list[int] = []

    def give(status: int) -> dict[str, str]:
        asked.append(status)
        return {"Proxy-Authorization": "Basic eDp5", "X-Server": "secret"}

    with StreamServer(lambda exchange: exchange.answer("407 Proxy")) as proxy:
        options: dict[str, Any] = {"proxy": proxy.origin}
        named = f"the proxy 127.0.0.1:{proxy.port}, asked for name.invalid:443, answered 407"
        for kind in kinds():
            asked.clear()
            async with kind("https://name.invalid/", credentials=give, **options) as source:
                try:
                    await source.recv()
                    expect(False, "it received something")
                except librealtime.StreamRefused as refusal:
                    expect(refusal.http_status == 407 and named in str(refusal), f"{refusal}")
            first, second = proxy.request(), proxy.request()
            expect(asked == [407], f"asked {asked}")
            expect(first.method == "CONNECT" and "proxy-authorization" not in first.headers, "")
            expect(second.headers["proxy-authorization"] == "Basic eDp5", f"{second.headers}")
            expect("x-server" not in second.headers, f"{second.headers}")
        async with librealtime.RESTClient(**options) as client:
            answer = await client.get("https://name.invalid/")
            expect(answer.status_code == 407 and answer.attempts == 1, f"{answer}")
            expect(answer.http_version == "HTTP/1.1", answer.http_version)
        proxy.request()
        expect(proxy.requests.empty(), "it was asked again")


async def test_tunnel_is_not_opened() -> None:
    """Retried: a rule of the proxy may change, or the server may come within its reach."""
    with StreamServer(lambda exchange: exchange.answer("403 No")) as proxy:
        watch = Watch("https://name.invalid/", proxy=proxy.origin, max_delay=0.01)
        with contextlib.closing(watch.source):
            for _ in range(2):
                named = f"the proxy 127.0.0.1:{proxy.port} answered 403 to CONNECT name.invalid:443"
                error = await watch.loses("RT_ERROR_PROXY", named)
                expect(error.http_status == 403, f"{error}")


async def test_restarted_meanwhile() -> None:
    """While credentials are being fetched, a restart must not repeat the refused request."""
    for kind in kinds():
        was_asked, may_answer = asyncio.Event(), asyncio.Event()

        async def give(
            status: int, asked: asyncio.Event = was_asked, may: asyncio.Event = may_answer
        ) -> dict[str, str]:
            asked.set()
            await may.wait()
            return {"Authorization": "Bearer good"}

        def script(exchange: Exchange, kind: Any = kind) -> None:
            if exchange.headers.get("authorization") != "Bearer good":
                return exchange.answer("401 Who")
            if kind is librealtime.EventSource:
                return stream(exchange)
            return exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")

        with StreamServer(script) as server:
            async with kind(server.url(), credentials=give) as source:
                taken = asyncio.create_task(source.recv())
                await was_asked.wait()
                source.restart()
                may_answer.set()
                expect((await taken).data in ("here", b"here"), "")
            expect(server.requests.qsize() >= 2, "it was not asked")


async def test_retry_after_and_flaps() -> None:
    """When the network returns, the delay that the server asked for is not shortened."""
    for kind in kinds():
        net = librealtime.Reachability("manual")
        with StreamServer(lambda exchange: exchange.answer("503 Busy", "Retry-After: 2")) as server:
            told: asyncio.Queue[Any] = asyncio.Queue()
            more = {"retry_statuses": [503]} if kind is librealtime.EventSource else {}
            async with kind(
                server.url(), reachability=net, on_error=told.put_nowait, **more
            ) as source:
                taken = asyncio.create_task(source.recv())
                began = time.monotonic()
                await told.get()
                for online in (False, True) * 3:
                    net.set_online(online)
                    await asyncio.sleep(0.01)
                # The waits for the network are reported, too.
                while not (await told.get()).retry_in:
                    pass
                passed = time.monotonic() - began
                expect(passed >= 2, f"it reconnected after {passed} s")
                taken.cancel()


async def test_retry_after() -> None:
    """In seconds or as a date by the server's clock, up to a limit; anything else is ignored."""
    now = 1_000_000_000
    dated = (f"Date: {formatdate(now, usegmt=True)}",)
    for value, fields, least, most in (
        ("7", (), 7, 7),
        ("99999999999999999999", (), 300, 300),
        (formatdate(now + 9, usegmt=True), dated, 9, 9),
        (formatdate(now - 9, usegmt=True), dated, 0.01, 0.02),
        ("soon", (), 0.01, 0.02),
        ("-5", (), 0.01, 0.02),
    ):

        def script(exchange: Exchange, fields: Any = (f"Retry-After: {value}", *fields)) -> None:
            exchange.answer("503 Busy", *fields)

        async with watching(script, retry_statuses=librealtime.RESILIENT) as (watch, _):
            error = await watch.loses("RT_ERROR_HTTP_STATUS", "503")
            wait = error.retry_in
            expect(wait is not None and least <= wait <= most, f"{value}: {wait}")


async def test_chosen_statuses() -> None:
    statuses = [429, 500, 599, 403]

    def script(exchange: Exchange) -> None:
        exchange.answer(f"{statuses[exchange.number]} No")

    options = {"retry_statuses": [429, 500, 599], "max_delay": 0.01}
    async with watching(script, **options) as (watch, _):
        for status in statuses[:3]:
            expect((await watch.loses("RT_ERROR_HTTP_STATUS")).http_status == status, f"{status}")
        await watch.fails("RT_ERROR_HTTP_STATUS", "403", 403)


async def test_silence() -> None:
    """No credential is logged, wherever the request goes, even at the most detailed level."""
    lines: list[str] = []
    logger = logging.getLogger("librealtime")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    level, logger.level = logger.level, logging.DEBUG
    librealtime.set_log_level("DEBUG")
    try:
        await use_secrets()
    finally:
        librealtime.set_log_level(None)
        logger.level = level
        logger.removeHandler(handler)
    expect(any("requesting an event stream" in line for line in lines), f"{lines}")
    leaks = [line for line in lines if "secret" in line]
    expect(not leaks, f"{leaks}")


async def use_secrets() -> None:
    def script(exchange: Exchange) -> None:
        if exchange.path == "/":
            location = f"http://me:secret-redirect@127.0.0.1:{server.port}/there?key=secret-query"
            return exchange.answer("302 Go", f"Location: {location}")
        if "secret-good" in exchange.headers.get("authorization", ""):
            return stream(exchange)
        return exchange.answer("401 Who", "Set-Cookie: a=secret-cookie")

    headers = {"Cookie": "a=secret-cookie", "X-Api-Key": "secret-key"}
    with StreamServer(script) as server:
        for user, options in (
            ("me:secret-password@", {}),
            ("", {"auth": ("me", "secret-password")}),
            ("", {"bearer_token": "secret-token"}),
            ("", {"credentials": lambda _: {"Authorization": "Bearer secret-bad"}}),
            ("", {"credentials": lambda _: {"Authorization": "Bearer secret-good"}}),
        ):
            chosen: dict[str, Any] = {"headers": headers, "content": "secret-body", **options}
            watch = Watch(server.url("/", user=user), method="POST", **chosen)
            with contextlib.closing(watch.source):
                while not isinstance(await watch.next(), (ServerSentEvent, ErrorEvent)):
                    pass
