"""Runs one test against the asyncio and the blocking Pusher connection."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import queue
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import librealtime
from librealtime import sync

sys.path.append(str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from certificates import TLS
from pusher_server import PusherServer

__all__ = ["FACES", "TLS", "Heard", "PusherServer", "do", "opened", "options"]

FACES = [librealtime.Pusher, sync.Pusher]

#: A guard against hanging; tests wait for events, not for a time.
PATIENCE_S = 60


def options(server: PusherServer, **more: Any) -> dict[str, Any]:
    """The options for connecting to a server, which authorizes channels and users."""
    return {
        "host": server.host,
        "port": server.port,
        "use_tls": False,
        "auth_endpoint": server.http + "/pusher/auth",
        "user_auth_endpoint": server.http + "/pusher/user-auth",
        **more,
    }


async def do(function: Any, *arguments: Any, **named: Any) -> Any:
    """Calls a method, a blocking one on another thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments, **named)
    return await asyncio.to_thread(function, *arguments, **named)


@contextlib.asynccontextmanager
async def opened(face: Any, server: PusherServer, **more: Any) -> AsyncIterator[Any]:
    """A connected connection."""
    pusher = face(server.key, **options(server, **more))
    try:
        await do(pusher.connect)
        yield pusher
    finally:
        await do(pusher.__exit__ if face is sync.Pusher else pusher.__aexit__, None, None, None)


class Heard:
    """What handlers were called with, in order."""

    def __init__(self) -> None:
        self._calls: queue.Queue[Any] = queue.Queue()

    def __call__(self, *arguments: Any) -> None:
        self._calls.put(arguments[0] if len(arguments) == 1 else arguments)

    async def next(self) -> Any:
        return await asyncio.to_thread(self.wait)

    def wait(self) -> Any:
        return self._calls.get(timeout=PATIENCE_S)

    def rest(self) -> list[Any]:
        """All that were not taken."""
        calls = []
        with contextlib.suppress(queue.Empty):
            while True:
                calls.append(self._calls.get_nowait())
        return calls
