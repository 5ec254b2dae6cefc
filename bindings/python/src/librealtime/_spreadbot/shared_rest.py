"""``bot.rest``, for asyncio and blocking programs."""

from __future__ import annotations

import weakref
from typing import Any, NoReturn

from .._core.abi import rt_status
from .._core.errors import InvalidState
from .._rest.client_base import Answer, Stream
from .connection_base import BaseSpreadbot
from .options import OnTokens
from .rest_base import BaseSpreadbotREST


class BaseSharedREST(BaseSpreadbotREST[Answer, Stream]):
    """``bot.rest``: ends with the connection whose tokens it shares."""

    def __init__(self, bot: BaseSpreadbot) -> None:
        self._bot = weakref.ref(bot)
        super().__init__(bot._url)

    def _owning(self) -> Any:
        bot = self._bot()
        if bot is None:
            raise InvalidState(rt_status.ERROR_STATE, "the connection of this client is gone")
        return bot

    @property
    def _is_durable(self) -> bool:
        return bool(self._owning()._is_durable)

    def _tokens(self) -> tuple[str, str]:
        tokens: tuple[str, str] = self._owning()._tokens()
        return tokens

    def set_tokens(self, access_token: str, refresh_token: str = "") -> None:
        self._owning().set_tokens(access_token, refresh_token)

    @property
    def on_tokens(self) -> OnTokens:
        handler: OnTokens = self._owning().on_tokens
        return handler

    @on_tokens.setter
    def on_tokens(self, handler: OnTokens) -> NoReturn:
        message = "the tokens belong to the connection; set on_tokens of the Spreadbot"
        raise InvalidState(rt_status.ERROR_STATE, message)
