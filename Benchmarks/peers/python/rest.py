"""Clients for requests over HTTP, each with a pool of connections and its default headers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from meter import Meter
from peers import NotSupportedError

#: Sends one request and returns the body of a 200.
Ask = Callable[[], Awaitable[bytes]]


async def send_requests(name: str, meter: Meter, parallel: int) -> None:
    """Sends ``parallel`` requests at a time, each after the response to the one before."""
    clients = {"librealtime": _librealtime, "httpx": _httpx, "aiohttp": _aiohttp}
    if name not in clients:
        raise NotSupportedError
    left, size, last = meter.task.count, 0, b""

    async def in_turn(ask: Ask) -> None:
        nonlocal left, size, last
        while left:
            left -= 1
            last = await ask()
            size += len(last)

    async with clients[name](meter.task.url, parallel) as ask:
        meter.start()
        if parallel == 1:
            await in_turn(ask)
        else:
            await asyncio.gather(*(in_turn(ask) for _ in range(parallel)))
        meter.stop(meter.task.count, size, last)


def _checked(status: int, body: bytes) -> bytes:
    if status != 200:
        raise AssertionError(f"the status is {status}")
    return body


@contextlib.asynccontextmanager
async def _librealtime(url: str, parallel: int) -> AsyncIterator[Ask]:
    import librealtime

    async def ask() -> bytes:
        response = await client.get(url)
        return _checked(response.status_code, response.content)

    async with librealtime.RESTClient(max_per_host=parallel) as client:
        yield ask


@contextlib.asynccontextmanager
async def _httpx(url: str, parallel: int) -> AsyncIterator[Ask]:
    import httpx

    async def ask() -> bytes:
        response = await client.get(url)
        return _checked(response.status_code, response.content)

    async with httpx.AsyncClient() as client:
        yield ask


@contextlib.asynccontextmanager
async def _aiohttp(url: str, parallel: int) -> AsyncIterator[Ask]:
    import aiohttp

    async def ask() -> bytes:
        async with client.get(url) as response:
            return _checked(response.status, await response.read())

    async with aiohttp.ClientSession() as client:
        yield ask
