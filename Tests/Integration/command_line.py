"""Runs the command-line tool, in pipes and in a terminal."""

import contextlib
import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness import PATIENCE_S, Build, Failed, expect
from patience import patiently as growing_limits
from servers import Peer

DONE, OTHER, UNREACHABLE, UNTRUSTED, REFUSED, LOST, CLOSED, USAGE, INTERRUPTED, UNREAD = (
    0, 1, 2, 3, 4, 5, 6, 64, 130, 141,
)  # fmt: skip

Script = Callable[[Peer], Any]


class Tool:
    """Runs the tool."""

    def __init__(self, build: Build) -> None:
        self.program = str(build.library / "bin" / "realtime")
        self.environment = build.environment(False)

    def start(
        self, *arguments: str, prefix: Sequence[str] = (), **options: Any
    ) -> subprocess.Popen[bytes]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [*prefix, self.program, *arguments], **{"env": self.environment, **pipes, **options}
        )

    def run(
        self, *arguments: str, text: str = "", status: int = DONE
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to the end; the exit code must be this one."""
        result = subprocess.run(
            [self.program, *arguments],
            input=text,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=PATIENCE_S,
        )
        said = f"{result.stdout}{result.stderr}"
        expect(result.returncode == status, f"exit code {result.returncode}, said: {said}")
        return result

    def json(self, *arguments: str, text: str = "", status: int = DONE) -> list[dict[str, Any]]:
        result = self.run(*arguments, "--json", text=text, status=status)
        expect(result.stderr == "", f"also on standard error: {result.stderr}")
        return [json.loads(line) for line in result.stdout.splitlines()]


def patiently(check: Callable[[str], None]) -> None:
    """Calls a check with growing time limits in seconds, for the tool; see patience.py."""
    for attempt in growing_limits():
        with attempt as limit:
            check(f"{limit:g}")


def promptly(seconds: float, duration: Callable[[], float]) -> None:
    """Calls a function that returns how long something took, until that is short enough. A busy
    machine may make it late once, but what waits for a longer time limit is late each time."""
    took = [duration()]
    while took[-1] >= seconds and len(took) < 3:
        took.append(duration())
    expect(took[-1] < seconds, f"it took {took} s")


def shown(limit: str | float) -> str:
    """A limit as the library's messages show it."""
    milliseconds = round(float(limit) * 1000)
    return f"{milliseconds} ms" if milliseconds % 1000 else f"{milliseconds // 1000} s"


@contextlib.contextmanager
def running(tool: Tool, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the test does not wait for; it is ended with the test in any case."""
    process = tool.start(*arguments, **options)
    guard = threading.Timer(PATIENCE_S, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def line_of(process: subprocess.Popen[bytes], name: str = "stdout") -> str:
    line: bytes = getattr(process, name).readline()
    expect(line != b"", "it has ended")
    return line.decode().rstrip("\n")


def ends(process: subprocess.Popen[bytes], status: int) -> None:
    code = process.wait(PATIENCE_S)
    expect(code == status, f"exit code {code}, not {status}")


class Terminal:
    """A pseudo-terminal that the tool runs in."""

    def __init__(
        self,
        tool: Tool,
        *arguments: str,
        rows: int = 24,
        columns: int = 80,
        echo: bool = False,
        **options: Any,
    ) -> None:
        self._master, slave = pty.openpty()
        self._name = os.ttyname(slave)
        self.resize(rows, columns)
        attributes = termios.tcgetattr(slave)
        if not echo:
            attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        expect(self.echoes == echo, "the terminal does not echo as it should")

        def control() -> None:
            # In a session of its own, Ctrl-C becomes a signal.
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
        options = {"env": {**tool.environment, "TERM": "xterm"}, **options}
        self.process = tool.start(*arguments, preexec_fn=control, **pipes, **options)
        os.close(slave)
        self.said = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """Closes it, as a window is closed; the kernel sends the tool a signal."""
        with contextlib.suppress(OSError):
            os.close(self._master)
        self._master = -1

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    @property
    def unread(self) -> int:
        """How many bytes were typed and not read; without those of an unfinished line."""
        terminal = os.open(self._name, os.O_RDONLY | os.O_NOCTTY)
        count = fcntl.ioctl(terminal, termios.FIONREAD, bytes(4))
        os.close(terminal)
        return int.from_bytes(count, sys.byteorder)

    def wait_for_unread(self, condition: Callable[[int], bool]) -> None:
        """Waits until this holds of `unread`."""
        end = time.monotonic() + PATIENCE_S
        while not condition(self.unread):
            expect(time.monotonic() < end, f"{self.unread} bytes were typed and not read")

    def resize(self, rows: int, columns: int) -> None:
        """Gives the terminal another size; the kernel sends the tool a signal."""
        termios.tcsetwinsize(self._master, (rows, columns))

    def expect(self, text: str) -> None:
        self.wait_until(lambda: text in self.said, repr(text))

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Reads until this holds of what was said."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            try:
                more = os.read(self._master, 65536) if ready else b""
            except OSError:
                more = b""
            if not more:
                raise Failed(f"{what} is not in {self.said!r}")
            self.said += more.decode()

    def read_to_end(self) -> None:
        """Reads the rest of the output of a tool that has ended."""
        with contextlib.suppress(OSError):
            while more := os.read(self._master, 65536):
                self.said += more.decode()


def says(*answer: str, body: str = "") -> Script:
    """Sends an HTTP response and disconnects."""

    async def script(peer: Peer) -> None:
        await peer.send("\r\n".join([*answer, "", body]).encode())

    return script


def http(url: str) -> str:
    return url.replace("ws", "http", 1)
