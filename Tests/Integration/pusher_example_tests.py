"""The Pusher programs of the README and of docs/pusher.md, against the demo server."""

import contextlib
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator

from demo_process import DemoProcess
from harness import PATIENCE_S, ROOT, Build, expect, swift
from pusher_client import PusherClient
from readme_tests import PYTHON, arguments, languages

EVENT = '{"name":"new-price","channel":"orders","data":"7.10"}'
JOINED, LEFT = "pusher_internal:member_added", "pusher_internal:member_removed"
MESSAGE = "client-message"


class Program:
    """A running example in one of the languages. It writes lines at once, also into a pipe."""

    def __init__(self, build: Build, language: str, name: str, *arguments: str) -> None:
        program: list[str | pathlib.Path] = [sys.executable, PYTHON / "examples" / f"{name}.py"]
        if language != "python":
            program = [build.example(name) if language == "c" else build.swift_example(name)]
        self.process = subprocess.Popen(
            [*program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**build.environment(False), "PYTHONPATH": str(PYTHON / "src")},
        )
        self._guard = threading.Timer(PATIENCE_S, self.process.kill)

    def __enter__(self) -> "Program":
        self._guard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.wait()

    def line(self) -> str:
        """The next line, apart from the library's own events."""
        assert self.process.stdout
        line = "pusher:"
        while line.startswith("pusher:"):
            line = self.process.stdout.readline()
        return line.rstrip("\n")

    def say(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Closes its input."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait()


class Demo:
    """What PusherClient needs of the demo server."""

    host, key, secret = "127.0.0.1", "demo", "demo-secret"

    def __init__(self, process: DemoProcess) -> None:
        self.port = process.port


@contextlib.contextmanager
def published(demo: DemoProcess) -> Iterator[None]:
    """Publishes an event again and again: a program does not say when it has subscribed."""
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(0.1):
            demo.request("POST", "/apps/1/events", EVENT)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        yield
    finally:
        stop.set()
        publisher.join()


@languages
def test_reads_a_channel(build: Build, demo: DemoProcess, language: str) -> None:
    words = arguments("read_channel", demo)
    with Program(build, language, "read_channel", *words) as program, published(demo):
        expect(program.line() == "new-price: 7.10", "an event was expected")


def test_the_published_event_is_that_of_the_documentation() -> None:
    for page in ("docs/examples.md", "docs/pusher.md"):
        expect(EVENT in (ROOT / page).read_text(), f"{page} publishes another event")


@languages
def test_chats(build: Build, demo: DemoProcess, language: str) -> None:
    """With a client that is not ours, which comes first and leaves before the program."""
    channel, name = f"presence-{language}", 'ann "a" \\ b'
    words = ["demo", channel, "127.0.0.1", str(demo.port), name]
    with PusherClient(Demo(demo)) as client:
        client.join(channel, {"user_id": "bo"})
        with Program(build, language, "chat", *words) as program:
            expect(client.data(JOINED, channel)["user_id"] == name, "it did not come")
            lines = {program.line(), program.line()}
            expect(lines == {"bo is here", f"{name} is here"}, f"printed {lines}")
            client.send(MESSAGE, "hello", channel)
            expect(program.line() == "bo: hello", "the message was expected")
            program.say('say "hi" \\ bye')
            message = client.next(MESSAGE, channel)
            expect(message["data"] == 'say "hi" \\ bye', f"received {message}")
            expect(message["user_id"] == name, f"received {message}")
            client.send("pusher:unsubscribe", {"channel": channel})
            expect(program.line() == "bo goes", "it should have gone")
            client.join(channel, {"user_id": "cy"})
            expect(program.line() == "cy comes", "it should have come")
            expect(program.end() == 0, "the program failed")
            expect(client.data(LEFT, channel)["user_id"] == name, "it did not leave")


@swift
def test_uses_the_names_of_pusherswift(build: Build, demo: DemoProcess) -> None:
    words = ["demo", "presence-app", "127.0.0.1", str(demo.port), "token"]
    with Program(build, "swift", "pusher_app", *words) as program:
        lines = [program.line() for _ in range(3)]
        states = ["disconnected -> connecting", "connecting -> connected"]
        expect(lines[:2] == states and "one of 1" in lines[2], f"printed {lines}")
        with PusherClient(Demo(demo)) as client:
            client.join("presence-app", {"user_id": "bo"})
            expect(program.line() == "bo comes", "it should have come")
            event = (
                '{"name":"new-price","channel":"presence-app","data":"{\\"price\\":\\"7.10\\"}"}'
            )
            demo.request("POST", "/apps/1/events", event)
            expect(program.line() == "price: 7.10", "an event was expected")
