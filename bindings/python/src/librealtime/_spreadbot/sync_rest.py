"""The blocking face of ``SpreadbotREST``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._rest.options import RequestKeywords
from .._rest.response import RESTResponse
from .._rest.sync_client import RESTClient
from .rest_base import BaseSpreadbotREST, body, durable
from .sends import Send, Waiting

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
