"""The asyncio ``SpreadbotREST``."""

from __future__ import annotations

import asyncio
from typing import Any

from .._rest.asyncio_client import Answer, RESTClient, Stream
from .._rest.response import RESTResponse
from .rest_base import BaseSpreadbotREST
from .sends import Send, ending


class SpreadbotREST(BaseSpreadbotREST[Answer, Stream], RESTClient):
    """Requests that carry access tokens and have them refreshed: ``get_data``, ``post_data``, and
    everything of ``RESTClient``.

    It uses the asyncio loop that runs at the first request, and belongs to that loop's thread.
    """

    async def _successful(self, answer: Answer) -> RESTResponse:
        return (await answer).raise_for_status()

    async def _post_durably(self, send: Send) -> RESTResponse:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        number = self._submit(send, ending(future))
        reactor = self._reactor
        assert reactor is not None
        # No other object may refer to it.
        reactor.hold(self)
        try:
            answer: RESTResponse = await future
            return answer
        except asyncio.CancelledError:
            self._sends.withdraw(number, self._owner)
            raise
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if not len(self._sends):
            super()._let_go()

    def _await(self, awaitable: Any, size: int) -> None:
        tasks = self.__dict__.setdefault("_tasks", set())
        task = asyncio.ensure_future(self._watch(awaitable))
        # Keep a reference, as asyncio refers to tasks weakly.
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _watch(self, awaitable: Any) -> None:
        try:
            await awaitable
        except Exception as error:
            context = {"message": "a handler of a client failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
