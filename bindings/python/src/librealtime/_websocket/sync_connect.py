"""Connecting in blocking programs: once, or repeatedly."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .._core.forgetting import forget
from .._core.handle import Handle, new_loop
from .._core.wheel import Wheel
from .connector import Connector
from .sync_connection import Connection

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


class reconnect(Connector):  # noqa: N801
    """Yields one connection after another: ``for ws in reconnect(url)``.

    Each connection is closed when the loop body has finished. A failed attempt is repeated after a
    delay of ``reconnect_delays``, unless ``process_exception`` decides against it.
    """

    def __iter__(self) -> Iterator[Connection]:
        retries = self._retries()
        # One loop for all connections: each new one would read the system's certificates again.
        loop, wheel = new_loop(), Wheel()
        try:
            while True:
                try:
                    connection = self._connect(loop, wheel)
                except Exception as error:
                    forget(error)
                    time.sleep(retries.after_failure(error))
                    continue
                opened_at = time.monotonic()
                try:
                    yield connection
                finally:
                    lasted, end = time.monotonic() - opened_at, connection._own_end()
                    connection.close()
                time.sleep(retries.after_end(lasted, end))
        finally:
            # An exception that the program keeps must not keep the loop.
            del loop

    def _connect(self, loop: Handle, wheel: Wheel | None = None) -> Connection:
        return Connection(loop, self._url, self._given, wheel)._open()


def _connecting(connector: Callable[P, reconnect]) -> Callable[P, Connection]:
    def connect(*arguments: P.args, **options: P.kwargs) -> Connection:
        try:
            return connector(*arguments, **options)._connect(new_loop())
        except BaseException as error:
            forget(error)
            raise

    connect.__doc__ = f"""Connects to a WebSocket server: ``with connect(url) as ws``.

    ``on_message`` and the other functions are called in the call that waits, or in a thread of the
    connection while no call does. The call that waits, or the next one, raises what they raise.

    {Connector._parameters}"""
    connect.__signature__ = inspect.signature(connector)  # type: ignore[attr-defined]
    return connect


connect = _connecting(reconnect)
