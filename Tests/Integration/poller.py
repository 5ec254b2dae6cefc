"""A long poll in C that tests drive."""

import contextlib
import subprocess
import threading
from collections.abc import Callable

from harness import PATIENCE_S, Build, Failed, expect

TOKEN = "good"


class Poller:
    """Tests/Integration/polling.c: its lines, each read once; `poll` lines are left out."""

    # All output of all clients, to search for text that must never be there.
    said: list[str] = []

    def __init__(self, build: Build, grind: bool, url: str, **options: object) -> None:
        arguments = [f"{name}={value}" for name, value in options.items()]
        command = [*build.command(build.helper("polling"), grind), url, *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=build.environment(grind),
        )
        self._guard = threading.Timer(PATIENCE_S, self._process.kill)
        self._guard.start()
        self._errors: list[str] = []
        self._drain = threading.Thread(target=self._read_errors)
        self._drain.start()
        self.polls = 0

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def __enter__(self) -> "Poller":
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._drain.join()
        Poller.said += self._errors

    def line(self) -> str:
        """The next line; lines about polls are only counted."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            Poller.said.append(line)
            if not line.startswith("poll "):
                return line.rstrip("\n")
            self.polls += 1
        raise Failed("the client has ended: " + "".join(self._errors))

    def tell(self, request: str) -> None:
        """Makes it send a request beside the poll: PATH TEXT."""
        assert self._process.stdin is not None
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()

    def wait_for_polls(self, count: int) -> None:
        """Waits until this many have begun; meanwhile only the server's answer may come."""
        assert self._process.stdout is not None
        while self.polls < count:
            line = self._process.stdout.readline()
            expect(line.startswith("poll ") or line == "open\n", f"received {line!r}")
            self.polls += line.startswith("poll ")

    def expect(self, *lines: str) -> None:
        for wanted in lines:
            line = self.line()
            expect(line == wanted, f"expected {wanted!r}, received {line!r}")

    def message(self) -> tuple[str, bool, str, str]:
        """The id, whether the message has its own, the type and the text."""
        line = self.line()
        if line == "open":
            line = self.line()
        word, _, rest = line.partition(" ")
        expect(word == "message", f"expected a message, received {line!r}")
        name, own, kind, text = rest.split(" ", 3)
        return name, own == "1", kind, text

    def end(self) -> str:
        """Closes it, and returns its last id."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        line = self.line()
        while not line.startswith("end "):
            line = self.line()
        code = self._process.wait(PATIENCE_S)
        expect(code == 0, f"exit code {code}: {''.join(self._errors)}")
        return line[4:]


Make = Callable[..., Poller]
