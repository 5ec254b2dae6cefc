"""An exception that the program keeps does not keep the descriptors of what could not be made."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import PATIENCE_S, loops_since

import librealtime
from librealtime import sync

BAD = "htp://x"

MAKERS: dict[str, Callable[[Any], Any]] = {
    "websocket": lambda face: face.connect(BAD),
    "websocket option": lambda face: face.connect("ws://127.0.0.1:1/", ping_interval=-1),
    "websocket refused": lambda face: face.connect("ws://127.0.0.1:1/", proxy=None),
    "event source": lambda face: face.EventSource(BAD),
    "event source option": lambda face: face.EventSource("http://x/", idle_timeout=-1),
    "event source method": lambda face: face.EventSource("http://x/", method="G T"),
    "long poll": lambda face: face.LongPoll(BAD),
    "long poll option": lambda face: face.LongPoll("http://x/", interval=-1),
    "requests": lambda face: face.RESTClient(BAD),
    "requests option": lambda face: face.RESTClient("http://x/", timeout=-1),
    "spreadbot": lambda face: face.Spreadbot(BAD),
    "spreadbot outbox": lambda face: face.Spreadbot("http://x", outbox="/nowhere/at/all"),
    "spreadbot requests": lambda face: face.SpreadbotREST(BAD),
    "pusher": lambda face: face.Pusher("key", cluster="not one"),
    "pusher option": lambda face: face.Pusher("key", cluster="eu", activity_timeout=-1),
    "meteor": lambda face: face.DDPClient(BAD),
    "meteor option": lambda face: face.DDPClient("http://x", buffer_interval=-1),
}
ASKED_LATER = ("requests", "requests option", "spreadbot requests")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_blocking(make: Callable[[Any], object]) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(librealtime.RealtimeError) as kept:
        make(sync)
    assert not loops_since(before)
    assert kept.tb is not None


def test_attempts() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(librealtime.RealtimeError) as kept:
        next(iter(sync.reconnect("ws://127.0.0.1:1/", proxy=None, process_exception=lambda e: e)))
    assert not loops_since(before)
    assert kept.tb is not None


@pytest.mark.parametrize("name", MAKERS)
def test_asyncio(run: Any, no_linger: None, name: str) -> None:
    async def main() -> None:
        before = set(os.listdir("/proc/self/fd"))
        with pytest.raises(librealtime.RealtimeError) as kept:
            made = MAKERS[name](librealtime)
            await (made.get("x") if name in ASKED_LATER else made)
        end = time.monotonic() + PATIENCE_S
        while loops_since(before) and time.monotonic() < end:
            await asyncio.sleep(0)
        assert not loops_since(before)
        assert kept.tb is not None

    run(main())


def test_the_program_keeps_its_variables() -> None:
    """Only the library's functions forget theirs."""

    def headers() -> dict[str, str]:
        mine = "kept"
        raise ValueError(mine)

    class Headers(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            return headers().items()

    with pytest.raises(ValueError) as raised:
        sync.EventSource("http://x/", headers=Headers(a="b"))
    assert raised.traceback[-1].frame.f_locals["mine"] == "kept"
