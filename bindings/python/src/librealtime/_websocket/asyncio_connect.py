"""Connecting with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Any

from .._core.forgetting import forget
from .._core.reactor import Reactor
from .asyncio_connection import Connection
from .connector import Connector


class connect(Connector):  # noqa: N801
    """Connects to a WebSocket server: ``async with connect(url) as ws`` or ``await connect(url)``.

    ``async for ws in connect(url)`` yields one connection after another and closes each when the
    loop body has finished. A failed attempt is repeated after a delay of ``reconnect_delays``,
    unless ``process_exception`` decides against it.
    """

    _connection: Connection | None = None

    async def _connect(self) -> Connection:
        reactor = Reactor.current()
        try:
            connection = Connection(reactor, self._url, self._given)
        except BaseException as error:
            forget(error)
            reactor.release_when_idle()
            raise
        return await connection._open()

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._connect().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self
        return self._connection

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if self._connection is not None:
            await self._connection.__aexit__(kind, error, trace)

    async def __aiter__(self) -> AsyncIterator[Connection]:
        retries = self._retries()
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection = await self
            except Exception as error:
                await asyncio.sleep(retries.after_failure(error))
                continue
            opened_at = loop.time()
            try:
                yield connection
            finally:
                lasted, end = loop.time() - opened_at, connection._own_end()
                try:
                    await connection.close()
                except BaseException:
                    # Cancelled because asyncio.run ends: nobody is left to wait.
                    connection._abandon()
                    raise
            await asyncio.sleep(retries.after_end(lasted, end))
