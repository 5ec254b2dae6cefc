"""The blocking ``SpreadbotREST``."""

from __future__ import annotations

from .._rest.response import RESTResponse
from .._rest.sync_client import RESTClient, Stream
from .rest_base import BaseSpreadbotREST
from .sends import Send, Waiting


class SpreadbotREST(BaseSpreadbotREST[RESTResponse, Stream], RESTClient):
    """Requests that carry access tokens and have them refreshed: ``get_data``, ``post_data``, and
    everything of ``RESTClient``; blocking. Several threads may use it at once.
    """

    def _successful(self, answer: RESTResponse) -> RESTResponse:
        return answer.raise_for_status()

    def _post_durably(self, send: Send) -> RESTResponse:
        waiting = Waiting()
        number = self._submit(send, waiting.ended)
        try:
            self._until(lambda: waiting.is_over)
        finally:
            if not waiting.is_over:
                self._sends.withdraw(number, self._owner)
            self._let_go()
        answer = waiting.result()
        assert answer is not None
        return answer

    def _let_go(self) -> None:
        if not len(self._sends):
            super()._let_go()
