"""Readers of event streams."""

from collections.abc import AsyncIterator

from meter import Meter
from peers import NotSupportedError


async def read_events(name: str, meter: Meter) -> None:
    readers = {
        "librealtime": _librealtime,
        "httpx-sse": _httpx_sse,
        "aiohttp-sse-client2": _aiohttp_sse_client,
    }
    if name not in readers:
        raise NotSupportedError
    total = meter.task.count
    count = size = 0
    data = ""
    meter.start()
    async for data in readers[name](meter.task.url):
        count += 1
        size += len(data)
        if count == total:
            break
    meter.stop(count, size, data)


async def _librealtime(url: str) -> AsyncIterator[str]:
    import librealtime

    async with librealtime.EventSource(url) as source:
        async for event in source:
            yield event.data


async def _httpx_sse(url: str) -> AsyncIterator[str]:
    import httpx
    import httpx_sse

    async with (
        httpx.AsyncClient(timeout=None) as client,
        httpx_sse.aconnect_sse(client, "GET", url) as source,
    ):
        async for event in source.aiter_sse():
            yield event.data


async def _aiohttp_sse_client(url: str) -> AsyncIterator[str]:
    from aiohttp_sse_client2 import client

    async with client.EventSource(url) as source:
        async for event in source:
            yield event.data
