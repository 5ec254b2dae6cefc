"""The programs of docs/ in the style of Spreadbot_iOS and IKEventSource."""

import contextlib
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator

from harness import PATIENCE_S, Build, expect, swift
from nchan import Nchan
from streams import Exchange, StreamServer


@contextlib.contextmanager
def running(
    program: pathlib.Path, *arguments: str, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A program whose lines can be read; it is killed at the end."""
    process = subprocess.Popen(
        [program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    guard = threading.Timer(PATIENCE_S, process.kill)
    guard.start()
    with process:
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def lines_until(process: subprocess.Popen[str], last: str) -> list[str]:
    """The lines up to this one, without "open", which may come before its handler is set."""
    assert process.stdout is not None
    printed: list[str] = []
    while not printed or printed[-1] != last:
        line = process.stdout.readline()
        expect(bool(line), f"it ended after {printed}")
        printed.append(line.rstrip("\n"))
    return [line for line in printed if line != "open"]


def numbered(exchange: Exchange) -> None:
    """Sends the three events after the id that the client sent."""
    exchange.begin()
    last = int(exchange.headers.get("last-event-id", "0"))
    for number in range(last + 1, last + 4):
        exchange.send(f"id: {number}\nevent: tick\ndata: {number}\n\n")
    exchange.hold()


@swift
def test_handlers_of_a_user_interface(build: Build, nchan: Nchan) -> None:
    for number in range(3):
        nchan.publish("app", f"number {number}")
    program = build.swift_example("spreadbot_app")
    with running(program, nchan.url("", "http"), "ps/app") as app:
        printed = lines_until(app, "3: number 2")
    expect(printed == [f"{n + 1}: number {n}" for n in range(3)], f"printed {printed}")


@swift
def test_next_run_continues(build: Build, tmp_path: pathlib.Path) -> None:
    program = build.swift_example("eventsource_app")
    ids = tmp_path / "librealtime" / "event-ids" / "eventsource_app"
    with StreamServer(numbered) as server:
        for first in (1, 4):
            with running(program, server.url("/"), XDG_STATE_HOME=str(tmp_path)) as app:
                expected = [f"{n} tick: {n}" for n in range(first, first + 3)]
                printed = lines_until(app, expected[-1])
                expect(printed == expected, f"printed {printed}")
                expect("authorization" in server.request().headers, "no credentials")
                end = time.monotonic() + PATIENCE_S
                while not (ids.exists() and f" {first + 2}\n" in ids.read_text()):
                    expect(time.monotonic() < end, "the id is not stored")
                    time.sleep(0.01)


@swift
def test_without_a_place_for_ids(build: Build, tmp_path: pathlib.Path) -> None:
    program = build.swift_example("eventsource_app")
    (tmp_path / "file").touch()
    with (
        StreamServer(numbered) as server,
        running(program, server.url("/"), XDG_STATE_HOME=str(tmp_path / "file")) as app,
    ):
        first, *others = lines_until(app, "3 tick: 3")
        expect(first.startswith("last event ids are not kept for the next run: "), first)
        expect(len(others) == 3, f"printed {others}")
