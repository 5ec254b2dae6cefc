"""Runs one test against the asyncio and the blocking client of Meteor servers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pushers import Heard, do

import librealtime
from librealtime import sync

sys.path.append(str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from ddp_server import DDPServer

__all__ = ["FACES", "DDPServer", "Heard", "do", "ended", "offline", "opened"]

FACES = [librealtime.DDPClient, sync.DDPClient]

#: A URL at which nobody listens, for tests of local documents.
NOWHERE = "ws://127.0.0.1:1"


@contextlib.asynccontextmanager
async def opened(face: Any, server: DDPServer, **options: Any) -> AsyncIterator[Any]:
    """A connected client."""
    client = face(server.url, **options)
    try:
        await do(client.connect)
        yield client
    finally:
        await do(client.__exit__ if face is sync.DDPClient else client.__aexit__, None, None, None)


@contextlib.asynccontextmanager
async def offline(face: Any, **options: Any) -> AsyncIterator[Any]:
    """A client that does not connect."""
    client = face(NOWHERE, **options)
    try:
        yield client
    finally:
        client.close()


async def ended(call: Any) -> Any:
    """Waits for the end of a call, or of several."""
    return await (call if hasattr(call, "__await__") else asyncio.to_thread(call.completed))
