"""The asyncio face of ``SpreadbotREST``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .._rest.asyncio_client import RESTClient
from .._rest.options import RequestKeywords
from .._rest.response import RESTResponse
from .rest_base import BaseSpreadbotREST, body, durable
from .sends import Send, ending

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SpreadbotREST(BaseSpreadbotREST, RESTClient):
    """Requests that carry access tokens and have them refreshed: ``get_data``, ``post_data``, and
    all that ``RESTClient`` has.

    It lives on the asyncio loop that runs at the first request, and belongs to that loop's thread.
    """

    async def get_data(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """The answer, whose ``json()`` reads it.

        :param options: those of ``request``.
        :raises HTTPStatusError: for a status that is not one of 200 to 299.
        :raises RealtimeError: when no answer came.
        """
        return (await self.get(path, **options)).raise_for_status()

    async def post_data(
        self, path: str, payload: Any, **options: Unpack[RequestKeywords]
    ) -> RESTResponse:
        """Posts a payload; raises as ``get_data`` does.

        With an outbox it is on the disk before this waits, in one order with what the connection
        sends, and has no `options`.

        :param payload: sent as JSON; a str and bytes are sent as they are.
        """
        if self._is_durable:
            answer = await self._post_durably(durable(path, payload, options))
            assert answer is not None
            return answer
        return (await self.post(path, **body(payload), **options)).raise_for_status()

    async def _post_durably(self, send: Send) -> RESTResponse | None:
        future: asyncio.Future[RESTResponse | None] = asyncio.get_running_loop().create_future()
        number = self._submit(send, ending(future))
        reactor = self._reactor
        assert reactor is not None
        # Nobody else may refer to it.
        reactor.hold(self)
        try:
            return await future
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
        # The loop refers to tasks weakly.
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _watch(self, awaitable: Any) -> None:
        try:
            await awaitable
        except Exception as error:
            context = {"message": "a handler of a client failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
