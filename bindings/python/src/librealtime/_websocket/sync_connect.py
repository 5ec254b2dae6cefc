"""The blocking ways to a connection: one, or one after the other."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .._core.handle import Handle, new_loop
from .._core.wheel import Wheel
from .connector import Connector
from .sync_connection import Connection

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


class reconnect(Connector):  # noqa: N801
    """Gives one connection after the other: ``for ws in reconnect(url)``.

    The next comes when the body of the loop is done with the last, which is closed then. An attempt
    that fails is repeated after a delay of ``reconnect_delays``, unless ``process_exception`` says
    that it is of no use.
    """

    def __iter__(self) -> Iterator[Connection]:
        retries = self._retries()
        # One for all: each would read the system's certificates again.
        loop, wheel = new_loop(), Wheel()
        while True:
            try:
                connection = self._connect(loop, wheel)
            except Exception as error:
                time.sleep(retries.after_failure(error))
                continue
            opened_at = time.monotonic()
            try:
                yield connection
            finally:
                lasted, end = time.monotonic() - opened_at, connection._own_end()
                connection.close()
            time.sleep(retries.after_end(lasted, end))

    def _connect(self, loop: Handle, wheel: Wheel | None = None) -> Connection:
        return Connection(loop, self._url, self._given, wheel)._open()


def _connecting(connector: Callable[P, reconnect]) -> Callable[P, Connection]:
    def connect(*arguments: P.args, **options: P.kwargs) -> Connection:
        return connector(*arguments, **options)._connect(new_loop())

    connect.__doc__ = f"""Connects to a WebSocket server: ``with connect(url) as ws``.

    ``on_message`` and the other functions are called in the call that waits, or in a thread of the
    connection while none does. What they raise is raised by that call, or by the next that waits.

    {Connector._parameters}"""
    connect.__signature__ = inspect.signature(connector)  # type: ignore[attr-defined]
    return connect


connect = _connecting(reconnect)
