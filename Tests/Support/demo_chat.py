"""The part of the demo in which programs in C, Python and Swift meet on a presence channel of the
demo server: they see one another come, speak and go."""

import contextlib
import dataclasses
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

from demo_process import DemoProcess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON_CHAT = ROOT / "bindings" / "python" / "examples" / "chat.py"
CHANNEL = "presence-lobby"
# A guard against hanging.
PATIENCE_S = 60


@dataclasses.dataclass
class Visitor:
    """A running chat program, whose lines are printed as they come."""

    language: str
    name: str
    process: subprocess.Popen[str]
    lines: queue.Queue[str | None] = dataclasses.field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            # Line end included: a single write, which other threads' lines cannot split.
            print(f"  {self.language:<7}| {line.rstrip()}\n", end="", flush=True)
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def expects(self, *lines: str) -> None:
        """Waits until the program has printed these lines, and only these."""
        deadline = time.monotonic() + PATIENCE_S
        for line in lines:
            try:
                printed = self.lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                printed = "nothing"
            if printed != line:
                raise ChatError(f"{self.language} printed {printed!r} instead of {line!r}")

    def says(self, text: str) -> None:
        assert self.process.stdin
        print(f"  {self.language:<7}> {text}\n", end="", flush=True)
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def leaves(self) -> None:
        """Ends the program's input, and waits for its end."""
        assert self.process.stdin
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._thread.join()
        if code or (rest := self.lines.get()) is not None:
            raise ChatError(f"{self.language} ended with code {code}, or printed {rest!r}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class ChatError(Exception):
    """A program did not do what the others expect."""


def chat(commands: dict[str, list[str]], library: pathlib.Path, folder: pathlib.Path) -> bool:
    """Runs the programs, which the languages name, one after the other into the same channel."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "LIBREALTIME_PATH": str(library / "librealtime.so"),
        "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
    }
    print(f"\nNow {', '.join(commands)} meet on the Pusher channel {CHANNEL}:\n", flush=True)
    server = DemoProcess(folder / "demo_server", environment=environment)
    present: list[Visitor] = []
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(server.stop)
        try:
            for (language, command), name in zip(
                commands.items(), ("ann", "bo", "cy"), strict=True
            ):
                arguments = ["demo", CHANNEL, "127.0.0.1", str(server.port), name]
                process = subprocess.Popen(
                    [*command, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env=environment,
                )
                visitor = Visitor(language, name, process)
                cleanup.callback(visitor.stop)
                present.append(visitor)
                visitor.expects(*(f"{each.name} is here" for each in present))
                for other in present[:-1]:
                    other.expects(f"{name} comes")
            for visitor in present:
                text = f"Hello from {visitor.language}."
                visitor.says(text)
                for other in present:
                    if other is not visitor:
                        other.expects(f"{visitor.name}: {text}")
            while present:
                visitor = present.pop()
                visitor.leaves()
                for other in present:
                    other.expects(f"{visitor.name} goes")
        except ChatError as error:
            print(f"\nchat: FAILED: {error}")
            return False
    print("\nchat: ok: each saw the others come, speak and go")
    return True


def commands(folder: pathlib.Path, swift: pathlib.Path) -> dict[str, list[str]]:
    """The chat programs, built into two folders."""
    return {
        "C": [str(folder / "chat")],
        "Python": [sys.executable, str(PYTHON_CHAT)],
        "Swift": [str(swift / "chat")],
    }
