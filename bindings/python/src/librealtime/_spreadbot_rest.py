"""The asyncio face of ``SpreadbotREST``."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from ._abi import rt_status
from ._handle import Handle
from ._reactor import Reactor
from ._rest import RESTClient
from ._rest_options import RequestKeywords
from ._rest_response import RESTResponse
from ._spreadbot_options import OnTokens
from ._spreadbot_rest_base import BaseSpreadbotREST, body, durable, sharing
from ._spreadbot_sends import Send, ending
from .exceptions import InvalidState

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._spreadbot import Spreadbot


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


class SharedREST(SpreadbotREST):
    """``bot.rest``: ends with the connection whose tokens it shares."""

    def __init__(self, bot: Spreadbot) -> None:
        self._bot = weakref.ref(bot)
        super().__init__(bot._url)

    def _owning(self) -> Spreadbot:
        bot = self._bot()
        if bot is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection of this client is gone")
        return bot

    def _find_reactor(self) -> Reactor:
        bot = self._owning()
        bot._check_loop()
        return bot._reactor

    def _make(self, loop: Handle) -> Handle:
        return sharing(self._owning()._require_handle())

    @property
    def _is_durable(self) -> bool:
        return self._owning()._is_durable

    async def _post_durably(self, send: Send) -> RESTResponse | None:
        return await self._owning()._send(send)

    @property
    def access_token(self) -> str:
        return self._owning().access_token

    @property
    def refresh_token(self) -> str:
        return self._owning().refresh_token

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        self._owning().set_tokens(access_token, refresh_token)

    @property
    def on_tokens(self) -> OnTokens:
        return self._owning().on_tokens

    @on_tokens.setter
    def on_tokens(self, handler: OnTokens) -> NoReturn:
        message = "the tokens are the connection's; see Spreadbot.on_tokens"
        raise InvalidState(rt_status.ERROR_STATE, message)
