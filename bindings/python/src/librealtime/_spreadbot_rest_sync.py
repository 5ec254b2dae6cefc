"""The blocking face of ``SpreadbotREST``."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from ._abi import rt_status
from ._driven import Wheel
from ._handle import Handle
from ._rest_options import RequestKeywords
from ._rest_response import RESTResponse
from ._rest_sync import RESTClient
from ._spreadbot_options import OnTokens
from ._spreadbot_rest_base import BaseSpreadbotREST, body, durable, sharing
from ._spreadbot_sends import Send, Waiting
from .exceptions import InvalidState

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._spreadbot_sync import Spreadbot


class SpreadbotREST(BaseSpreadbotREST, RESTClient):
    """Requests that carry access tokens and have them refreshed: ``get_data``, ``post_data``, and
    all that ``RESTClient`` has; blocking. Any thread may use it, several at once.
    """

    def get_data(self, path: str, **options: Unpack[RequestKeywords]) -> RESTResponse:
        """The answer, whose ``json()`` reads it.

        :param options: those of ``request``.
        :raises HTTPStatusError: for a status that is not one of 200 to 299.
        :raises RealtimeError: when no answer came.
        """
        return self.get(path, **options).raise_for_status()

    def post_data(
        self, path: str, payload: Any, **options: Unpack[RequestKeywords]
    ) -> RESTResponse:
        """Posts a payload; raises as ``get_data`` does.

        With an outbox it is on the disk before this waits, in one order with what the connection
        sends, and has no `options`.

        :param payload: sent as JSON; a str and bytes are sent as they are.
        """
        if self._is_durable:
            answer = self._post_durably(durable(path, payload, options))
            assert answer is not None
            return answer
        return self.post(path, **body(payload), **options).raise_for_status()

    def _post_durably(self, send: Send) -> RESTResponse | None:
        waiting = Waiting()
        number = self._submit(send, waiting.ended)
        try:
            self._until(lambda: waiting.is_over)
        finally:
            if not waiting.is_over:
                self._sends.withdraw(number, self._owner)
            self._let_go()
        return waiting.result()

    def _let_go(self) -> None:
        if not len(self._sends):
            super()._let_go()


class SharedREST(SpreadbotREST):
    """``bot.rest``: ends with the connection whose tokens and loop it shares."""

    def __init__(self, bot: Spreadbot) -> None:
        self._bot = weakref.ref(bot)
        super().__init__(bot._url)

    def _prepare_driving(self, wheel: Wheel | None = None) -> None:
        super()._prepare_driving(self._owning()._wheel)

    def _join(self) -> Handle:
        bot = self._owning()
        made = sharing(bot._require_handle())
        self._loop_handle = bot._loop_handle
        return made

    def _owning(self) -> Spreadbot:
        bot = self._bot()
        if bot is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection of this client is gone")
        return bot

    @property
    def _is_durable(self) -> bool:
        return self._owning()._is_durable

    def _post_durably(self, send: Send) -> RESTResponse | None:
        return self._owning()._send(send, None)

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
