"""An id is stored when its event and all earlier ones are finished, for any consumers (C14)."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from streams import EventServer

import librealtime
from librealtime import sync
from librealtime._sources.taken import Taken

COUNT = 6
OPTIONS: dict[str, Any] = {
    "store_key": "k",
    "reconnection_time": 0.01,
    "min_reconnection_time": 0.01,
}


def kept(path: Path) -> str:
    """The id in the file; "" for none."""
    if not path.exists():
        return ""
    return path.read_text().split("\n")[-2].split()[-1].strip('"')


def test_of_several_takers_the_slowest_counts() -> None:
    told: list[str] = []
    gone: set[str] = set()
    taken = Taken(lambda taker, is_leaving: taker in gone)

    def step(taker: str, number: int) -> list[str]:
        taken.finished(taker, told.append)
        taken.took(taker, str(number))
        return told

    assert step("a", 1) == []
    assert step("b", 2) == []
    assert step("b", 3) == []
    assert step("a", 4) == ["2"]
    assert step("c", 5) == ["2"]
    assert step("b", 6) == ["2", "3"]
    # Items of consumers that are gone no longer count as unfinished.
    gone.add("a")
    assert step("c", 7) == ["2", "3", "5"]
    taken.finished("b", told.append)
    taken.finished("c", told.append)
    taken.finished("c", told.append)
    assert told == ["2", "3", "5", "6", "7"]


def test_taken_items_can_be_forgotten() -> None:
    told: list[str] = []
    taken = Taken(lambda taker, is_leaving: False)

    def step(taker: str, id_: str) -> list[str]:
        taken.finished(taker, told.append)
        taken.took(taker, id_)
        return told

    step("a", "1")
    step("b", "2")
    taken.forget()
    # This item has no id of its own.
    assert step("a", "2") == []
    assert step("b", "3") == []
    assert step("a", "4") == []
    assert step("b", "5") == ["3"]


@pytest.mark.parametrize("is_done", [False, True])
def test_threads_that_share_events(events: EventServer, tmp_path: Path, is_done: bool) -> None:
    path = tmp_path / "ids"
    is_working, may_end = threading.Event(), threading.Event()
    with sync.EventSource(events.url + "/count", id_file=path, **OPTIONS) as source:

        def slow() -> None:
            assert source.recv(60).id == "1"
            is_working.set()
            may_end.wait(60)

        thread = threading.Thread(target=slow)
        thread.start()
        assert is_working.wait(60)
        for number in range(2, COUNT + 1):
            assert source.recv(60).id == str(number)
        if is_done:
            may_end.set()
            thread.join(60)
    may_end.set()
    thread.join(60)
    assert kept(path) == (str(COUNT) if is_done else "")


@pytest.mark.parametrize("is_done", [False, True])
def test_tasks_that_share_events(
    events: EventServer, tmp_path: Path, run: Any, is_done: bool
) -> None:
    path = tmp_path / "ids"

    async def main() -> None:
        url = events.url + "/count"
        async with librealtime.EventSource(url, id_file=path, **OPTIONS) as source:
            is_working, may_end = asyncio.Event(), asyncio.Event()

            async def slow() -> None:
                async for event in source:
                    assert event.id == "1"
                    is_working.set()
                    await may_end.wait()
                    break

            task = asyncio.create_task(slow())
            await is_working.wait()
            for number in range(2, COUNT + 1):
                assert (await source.recv()).id == str(number)
            if is_done:
                may_end.set()
                await task
        if not is_done:
            task.cancel()

    run(main())
    assert kept(path) == (str(COUNT) if is_done else "")


@pytest.mark.parametrize("has_second", [False, True])
def test_a_handler_that_the_end_of_with_waits_for(
    events: EventServer, tmp_path: Path, run: Any, has_second: bool
) -> None:
    """Its event counts as finished, unless another handler of it was still to be called."""
    path = tmp_path / "ids"

    async def main() -> None:
        has_begun = asyncio.Event()

        async def take(event: librealtime.ServerSentEvent) -> None:
            has_begun.set()
            await asyncio.sleep(0.05)

        url = events.url + "/count"
        async with librealtime.EventSource(url, id_file=path, **OPTIONS) as source:
            source.add_event_listener("odd", take)
            source.add_event_listener("message", take)
            if has_second:
                source.on_any = take
            await has_begun.wait()
        # An id is stored within a second, while the loop runs.
        for _ in range(20 if has_second else 500):
            if not kept(path):
                await asyncio.sleep(0.01)

    run(main())
    assert kept(path) == ("" if has_second else "1")


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_task_that_was_cancelled(
    events: EventServer, tmp_path: Path, run: Any, goes_on: bool
) -> None:
    """Its event is unfinished and not stored, but does not hold up others that continue."""
    path = tmp_path / "ids"

    async def main() -> None:
        url = events.url + "/count"
        async with librealtime.EventSource(url, id_file=path, **OPTIONS) as source:
            has_taken = asyncio.Event()

            async def client() -> None:
                async for _ in source:
                    has_taken.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(client())
            await has_taken.wait()
            task.cancel()
            await asyncio.wait([task])
            reference = weakref.ref(task)
            del task, client
            await asyncio.sleep(0)
            gc.collect()
            assert reference() is None
            if goes_on:
                assert (await source.recv()).id == "2"

    run(main())
    assert kept(path) == ("2" if goes_on else "")
