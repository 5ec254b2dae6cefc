#!/usr/bin/env python3
"""The demo: programs in C, Python and Swift receive the same messages from a real nginx with Nchan
while they are published, by WebSocket, as Server-Sent Events and by long polling, side by side.
Then Spreadbot programs listen while one transport after the other is cut off. Then programs in the
three languages meet on a presence channel of Pusher. At last, each of them shares a list of todos
on a Meteor server between two clients. Exit code 0 if each program received everything.

    demo.py [--library FOLDER] [--count N]
"""

import argparse
import dataclasses
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import demo_chat
import demo_todos
from fault_proxy import Then
from leg_gate import Leg, LegGate, Treat
from nchan import Nchan, NchanError
from servers import Servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_SOURCES = ROOT / "examples-c"
PYTHON_SOURCE = ROOT / "bindings" / "python" / "examples" / "subscribe.py"
#: Where CMake's target demo_examples builds the Swift programs.
SWIFT_PRODUCTS = ROOT / "build" / "swift" / "release"
CHANNEL = "demo"
LADDER = "ladder"
# Guards against hanging, far above what the slowest machine needs.
START_PATIENCE_S = 60
END_PATIENCE_S = 60
# Slow enough for a reader to see the messages arrive; nothing depends on it.
PACE_S = 0.02


NUMBERS_A_LINE = 20
SEQUENCE = "messages, in order, each once"
LANGUAGES = ("C", "Python", "Swift")
TRANSPORTS = ("WebSocket", "SSE", "long poll")
#: What the examples `listen` call a transport.
WAYS = {Leg.WEBSOCKET: ["websocket"], Leg.SSE: ["sse", "server-sent"], Leg.POLL: ["poll"]}


class DemoError(Exception):
    """The demo could not be completed."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that receives messages by one transport; arguments follow its command."""

    language: str
    transport: str
    command: list[str]
    #: It prints each message on a line; the demo counts the messages.
    prints_lines: bool = False

    @property
    def name(self) -> str:
        return f"{self.language} {self.transport}"


class Subscriber:
    """A running program; prints its lines after its name."""

    #: What it reports about transports, apart from messages.
    notes: list[str]

    def __init__(self, program: Program, arguments: list[str], environment: dict[str, str]) -> None:
        self.program = program
        self.lines: list[str] = []
        self.notes = []
        command = [*program.command, *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._thread = threading.Thread(target=self._print_lines, daemon=True)
        self._thread.start()

    def _print_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if self._is_note(line):
                self._take_note(line.split(": ", 1)[1].strip())
            elif line.strip():
                self.lines.append(line.strip())
                self._show()

    def _take_note(self, note: str) -> None:
        """Does nothing: programs with one transport report none."""

    def _is_note(self, line: str) -> bool:
        """Whether a line is a report of the program, which begins with its name."""
        name = pathlib.Path(self.program.command[-1]).stem
        return self.program.prints_lines and line.startswith(f"{name}: ")

    def _show(self) -> None:
        text = self.lines[-1] if self.lines else ""
        if self.program.prints_lines:
            if len(self.lines) % NUMBERS_A_LINE:
                return
            text = " ".join(line.split()[-1] for line in self.lines[-NUMBERS_A_LINE:])
        self._print(text)

    def _print(self, text: str) -> None:
        # Line end included: a single write, which other threads' lines cannot split.
        print(f"  {self.program.name:<17}| {text}\n", end="", flush=True)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def succeeded(self, count: int) -> bool:
        """Waits for the end: all messages, in order, each once, and exit code 0."""
        try:
            code = self._process.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return False
        self._thread.join()
        if self.program.prints_lines:
            numbers = [line.split()[-1] for line in self.lines]
            return code == 0 and numbers == [str(number) for number in range(count)]
        return code == 0 and self.lines[-1:] == [f"ok: {count} of {count} {SEQUENCE}"]

    def stop(self) -> None:
        if not self.has_ended:
            self._process.kill()
        self._process.wait()
        self._thread.join()


class Listener(Subscriber):
    """A program that switches between transports, and reports each."""

    def _take_note(self, note: str) -> None:
        if note.startswith("by "):
            self.notes.append(note)
            self._print(f"--- {note}")

    def is_by(self, leg: Leg) -> bool:
        names = WAYS[leg]
        return bool(self.notes) and any(name in self.notes[-1].lower() for name in names)


def build(library: pathlib.Path, folder: pathlib.Path) -> list[Program]:
    print("Building examples-c and examples-swift ...", flush=True)
    compiler = os.environ.get("CC", "cc")
    for name in ("subscribe", "events", "poll", "listen", "chat", "todos"):
        command = [compiler, "-std=c11", "-O2", "-Wall", "-Wextra", f"-I{ROOT / 'include'}"]
        command += [str(C_SOURCES / f"{name}.c"), "-o", str(folder / name)]
        run([*command, f"-L{library}", "-lrealtime"])
    # In the scratch folder of the command-line tool, which has most of their modules.
    run(["cmake", "--build", str(ROOT / "build"), "--target", "demo_examples"])
    if not PYTHON_SOURCE.exists():
        raise DemoError(f"{PYTHON_SOURCE.relative_to(ROOT)} is missing")
    programs = [
        Program("C", "WebSocket", [str(folder / "subscribe")]),
        Program("C", "SSE", [str(folder / "events")], prints_lines=True),
        Program("C", "long poll", [str(folder / "poll")], prints_lines=True),
    ]
    others = {
        "Python": [sys.executable, "-u", str(PYTHON_SOURCE)],
        "Swift": [str(SWIFT_PRODUCTS / "subscribe")],
    }
    for language, program in others.items():
        for transport in TRANSPORTS:
            extra = ["--poll"] if transport == "long poll" else []
            programs.append(Program(language, transport, [*program, *extra]))
    return programs


def run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise DemoError(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")


def wait_for_subscribers(server: Nchan, subscribers: list[Subscriber]) -> None:
    """Waits until nginx counts them all, so that no message comes before a connection is open."""
    deadline = time.monotonic() + START_PATIENCE_S
    while (present := subscriber_count(server)) < len(subscribers):
        ended = [subscriber.program.name for subscriber in subscribers if subscriber.has_ended]
        if ended:
            raise DemoError(f"{', '.join(ended)} ended before the first message")
        if time.monotonic() > deadline:
            raise DemoError(f"only {present} of {len(subscribers)} have subscribed")
        time.sleep(PACE_S)


def subscriber_count(server: Nchan) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=START_PATIENCE_S)
    try:
        connection.request("GET", f"/pub/{CHANNEL}", headers={"Accept": "text/json"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    return int(json.loads(body)["subscribers"]) if answer.status == 200 else 0


def environment_with(library: pathlib.Path) -> dict[str, str]:
    """What the programs need to find the library in this folder."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "LIBREALTIME_PATH": str(library / "librealtime.so"),
        "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
    }


def show(programs: list[Program], library: pathlib.Path, count: int) -> bool:
    environment = environment_with(library)
    with Nchan() as server:
        path = f"/ps/{CHANNEL}"
        print(f"nginx with Nchan serves {server.url(path, 'http')}", flush=True)
        subscribers: list[Subscriber] = []
        try:
            for program in programs:
                url = server.url(path, "ws" if program.transport == "WebSocket" else "http")
                subscribers.append(Subscriber(program, [url, str(count)], environment))
            wait_for_subscribers(server, subscribers)
            print(f"{len(programs)} programs have subscribed; publishing {count} messages:\n")
            for number in range(count):
                server.publish(CHANNEL, str(number))
                time.sleep(PACE_S)
            results = {each.program.name: each.succeeded(count) for each in subscribers}
        finally:
            for subscriber in subscribers:
                subscriber.stop()
    print("\n  " + "".join(f"{title:<12}" for title in ("", *TRANSPORTS)))
    for language in LANGUAGES:
        words = ["ok" if results[f"{language} {each}"] else "FAILED" for each in TRANSPORTS]
        print("  " + "".join(f"{word:<12}" for word in (language, *words)))
    passed = all(results.values())
    verdict = "each received every message, in order, once" if passed else "messages are missing"
    print(f"\ndemo: {'ok' if passed else 'FAILED'}: {verdict}")
    return passed


def listeners(folder: pathlib.Path) -> list[Program]:
    """The programs that choose their transport."""
    commands = {
        "C": [str(folder / "listen")],
        "Python": [sys.executable, "-u", str(PYTHON_SOURCE.with_name("listen.py"))],
        "Swift": [str(SWIFT_PRODUCTS / "listen")],
    }
    return [
        Program(language, "listen", command, prints_lines=True)
        for language, command in commands.items()
    ]


def ladder(library: pathlib.Path, folder: pathlib.Path, count: int) -> bool:
    """Cuts off the WebSocket, then events too; then restores both."""
    # They return to the WebSocket soon after it works again.
    environment = {**environment_with(library), "UPGRADE_MS": "500"}
    with Nchan() as server, Servers() as servers:
        gate = LegGate(servers, "127.0.0.1", server.port)
        running: list[Listener] = []
        published = 0

        def publish(until: int) -> None:
            nonlocal published
            while published < until:
                server.publish(LADDER, str(published))
                published += 1
                time.sleep(PACE_S)

        try:
            arguments = [gate.url, f"ps/{LADDER}", str(count)]
            running += [Listener(each, arguments, environment) for each in listeners(folder)]
            wait_for_way(running, Leg.WEBSOCKET)
            print("\nNow one transport after the other is cut off:\n")
            publish(count // 4)
            for closed, way in (
                ([Leg.WEBSOCKET], Leg.SSE),
                ([Leg.WEBSOCKET, Leg.SSE], Leg.POLL),
            ):
                for leg in closed:
                    gate.set(leg, to=404)
                gate.cut(Then.RESET)
                # While they look for another transport.
                publish(published + count // 6)
                wait_for_way(running, way)
            gate.set(Leg.WEBSOCKET, to=Treat.PASS)
            publish(published + count // 6)
            wait_for_way(running, Leg.WEBSOCKET)
            publish(count)
            results = [each.succeeded(count) for each in running]
        finally:
            for each in running:
                each.stop()
    for each, passed in zip(running, results, strict=True):
        ways = " -> ".join(note.removeprefix("by ").split(",")[0] for note in each.notes)
        print(f"  {each.program.name:<17}{'ok' if passed else 'FAILED'}: {ways}")
    passed = all(results)
    verdict = "no message is missing" if passed else "messages are missing"
    print(f"\nladder: {'ok' if passed else 'FAILED'}: {verdict}")
    return passed


def wait_for_way(running: list[Listener], way: Leg) -> None:
    deadline = time.monotonic() + START_PATIENCE_S
    while waiting := [each for each in running if not each.is_by(way)]:
        names = ", ".join(each.program.name for each in waiting)
        if any(each.has_ended for each in waiting) or time.monotonic() > deadline:
            raise DemoError(f"{names} did not connect by {way.name}")
        time.sleep(PACE_S)


def main() -> int:
    parser = argparse.ArgumentParser(description="C, Python and Swift receive the same messages.")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--count", type=int, default=50)
    arguments = parser.parse_args()
    library = arguments.library.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="demo-") as folder:
            programs = build(library, pathlib.Path(folder))
            passed = show(programs, library, arguments.count)
            passed = ladder(library, pathlib.Path(folder), arguments.count) and passed
            visitors = demo_chat.commands(pathlib.Path(folder), SWIFT_PRODUCTS)
            passed = demo_chat.chat(visitors, library, pathlib.Path(folder)) and passed
            sharing = demo_todos.commands(pathlib.Path(folder), SWIFT_PRODUCTS)
            passed = demo_todos.todos(sharing, library) and passed
            return 0 if passed else 1
    except (DemoError, NchanError, OSError) as error:
        print(f"demo: FAILED: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
