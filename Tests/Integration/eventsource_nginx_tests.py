"""Event sources against nginx and Nchan: channels, codings, HTTP/2, statuses."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator

import librealtime
import pytest
from harness import PATIENCE_S, expect
from nchan import Nchan
from patience import patiently
from watch import Watch

_channels = itertools.count(1)


def channel() -> str:
    return f"events{next(_channels)}"


@contextlib.asynccontextmanager
async def reading(
    nchan: Nchan, path: str, scheme: str = "http", **options: object
) -> AsyncIterator[Watch]:
    if scheme == "https":
        options["ca_file"] = nchan.ca_file
    watch = Watch(nchan.url(path, scheme), **options)  # type: ignore[arg-type]
    with contextlib.closing(watch.source):
        yield watch


async def publish(nchan: Nchan, name: str, *texts: str) -> None:
    for text in texts:
        await asyncio.to_thread(nchan.publish, name, text)


async def test_events(nchan: Nchan) -> None:
    name = channel()
    async with reading(nchan, f"/ps/{name}", comments=True) as watch:
        await watch.opened()
        expect(await watch.next() == ("comment", " hi"), "no greeting")
        await asyncio.to_thread(nchan.publish, name, "one")
        await asyncio.to_thread(nchan.publish, name, "two\nlines", "tick")
        first, second = await watch.event(), await watch.event()
        expect((first.event, first.data) == ("message", "one"), str(first))
        expect((second.event, second.data) == ("tick", "two\nlines"), str(second))
        expect(first.had_id and second.had_id and first.id != second.id, "ids")
        expect(watch.source.last_event_id == second.id, watch.source.last_event_id)


async def test_continues(nchan: Nchan) -> None:
    """A new event source with an id starts after that event; restart repeats no event."""
    name = channel()
    await publish(nchan, name, "one", "two", "three")
    async with reading(nchan, f"/ps/{name}") as watch:
        first = await watch.event()
    async with reading(nchan, f"/ps/{name}", last_event_id=first.id) as watch:
        await watch.data("two", "three")
        watch.source.restart()
        await publish(nchan, name, "four")
        await watch.data("four")


async def test_pings(nchan: Nchan) -> None:
    """The server sends only pings for longer than the idle timeout, one each second."""
    for attempt in patiently(1.5):
        with attempt as limit:
            name = channel()
            async with reading(nchan, f"/beat/{name}", idle_timeout=limit) as watch:
                await watch.opened()
                with contextlib.suppress(asyncio.TimeoutError):
                    told = await asyncio.wait_for(watch.news.get(), 2 * limit)
                    expect(False, f"received {told}")
                await publish(nchan, name, "after all")
                await watch.data("after all")


async def test_times_out(nchan: Nchan) -> None:
    name = channel()
    async with reading(nchan, f"/to/{name}", comments=True) as watch:
        expect([await watch.next() for _ in range(2)] == ["open", ("comment", " hi")], "hi")
        kind, text = await watch.next()  # type: ignore[misc]
        expect(kind == "comment" and "408" in text, text)
        await watch.loses("RT_ERROR_CLOSED")
        await watch.opened()


async def test_is_gone(nchan: Nchan) -> None:
    name = channel()
    await publish(nchan, name, "one")
    async with reading(nchan, f"/ps/{name}", comments=True) as watch:
        await watch.event()
        await asyncio.to_thread(nchan.delete, name)
        kind, text = await watch.next()  # type: ignore[misc]
        expect(kind == "comment" and "410" in text, text)
        await watch.loses("RT_ERROR_CLOSED")
        await watch.opened()


async def test_reload(nchan: Nchan) -> None:
    name = channel()
    await publish(nchan, name, "before")
    async with reading(nchan, f"/ps/{name}") as watch:
        await watch.data("before")
        nchan.reload()
        expect(not (await watch.error()).fatal, "fatal")
        await watch.opened()
        await publish(nchan, name, "after")
        await watch.data("after")


@pytest.mark.parametrize(("folder", "coding"), [("gz", "gzip"), ("br", "br")], ids=("gzip", "br"))
async def test_coded(folder: str, coding: str, nchan: Nchan) -> None:
    """Each event comes before the next is sent, and the server's log names the coding."""
    name = channel()
    path = f"/{folder}/{name}"
    async with reading(nchan, path) as watch:
        await watch.opened()
        for number in range(20):
            text = f"event {number} " * 50
            await publish(nchan, name, text)
            await watch.data(text)
    await logged(nchan, f"{path} {coding}")


async def test_uncompressed(nchan: Nchan) -> None:
    name = channel()
    async with reading(nchan, f"/gz/{name}", compression=False) as watch:
        await publish(nchan, name, "plain " * 100)
        await watch.data("plain " * 100)
    await logged(nchan, f"/gz/{name} -")


async def logged(nchan: Nchan, line: str) -> None:
    """Waits for a line in nginx's log, which has one for each finished request."""
    log = nchan.folder / "coding.log"
    deadline = time.monotonic() + PATIENCE_S
    while line not in log.read_text().splitlines():
        expect(time.monotonic() < deadline, f"{line!r} is not in {log.read_text()!r}")
        await asyncio.sleep(0.02)


async def test_http2(nchan: Nchan) -> None:
    async with reading(nchan, "/protocol", "https") as watch:
        await watch.data("HTTP/2.0")
    name = channel()
    async with reading(nchan, f"/ps/{name}", "https") as watch:
        await watch.opened()
        for number in range(20):
            await publish(nchan, name, f"event {number}")
            await watch.data(f"event {number}")
        nchan.reload()
        expect(not (await watch.error()).fatal, "fatal")
        await watch.opened()


async def test_several_sources_over_http2(nchan: Nchan) -> None:
    """Several sources on one loop: closing one does not affect the others."""
    names = [channel() for _ in range(5)]
    async with contextlib.AsyncExitStack() as stack:
        watches = [
            await stack.enter_async_context(reading(nchan, f"/ps/{name}", "https"))
            for name in names
        ]
        for round_ in range(5):
            for name, watch in zip(names[round_:], watches[round_:], strict=True):
                await publish(nchan, name, f"{name} {round_}")
                await watch.data(f"{name} {round_}")
            watches[round_].source.close()


async def test_http1(nchan: Nchan) -> None:
    async with reading(nchan, "/protocol", "https", http2=False) as watch:
        await watch.data("HTTP/1.1")
    async with reading(nchan, "/protocol") as watch:
        await watch.data("HTTP/1.1")


async def test_moved(nchan: Nchan) -> None:
    name = channel()
    await publish(nchan, name, "one")
    async with reading(nchan, f"/moved/{name}") as watch:
        await watch.data("one")


async def test_stop(nchan: Nchan) -> None:
    async with reading(nchan, "/stop") as watch:
        await watch.fails("RT_ERROR_NO_CONTENT", http_status=204)


async def test_busy(nchan: Nchan) -> None:
    """The server's delay is used if it is longer than our own."""
    async with reading(nchan, "/busy", retry_statuses=librealtime.RESILIENT) as watch:
        error = await watch.loses("RT_ERROR_HTTP_STATUS")
        expect(error.http_status == 503 and error.retry_in == 2, f"{error}")
    options = {"retry_statuses": [503], "reconnection_time": 60}
    async with reading(nchan, "/busy", **options) as watch:
        error = await watch.loses("RT_ERROR_HTTP_STATUS")
        expect(error.retry_in is not None and 60 <= error.retry_in <= 72, f"{error}")


async def test_busy_is_fatal(nchan: Nchan) -> None:
    async with reading(nchan, "/busy") as watch:
        await watch.fails("RT_ERROR_HTTP_STATUS", "503", 503)


async def test_token(nchan: Nchan) -> None:
    name = channel()
    await publish(nchan, name, "secret")
    asked: list[int] = []

    async def credentials(status: int) -> dict[str, str]:
        asked.append(status)
        await asyncio.sleep(0)
        return {"Authorization": "Bearer good"}

    async with reading(nchan, f"/tok/{name}", credentials=credentials) as watch:
        await watch.data("secret")
        # The token is kept for later connections.
        watch.source.restart()
        await publish(nchan, name, "more")
        await watch.data("more")
    expect(asked == [401], f"asked {asked}")
    async with reading(nchan, f"/tok/{name}", bearer_token="bad") as watch:
        await watch.fails("RT_ERROR_HTTP_STATUS", "401", 401)
