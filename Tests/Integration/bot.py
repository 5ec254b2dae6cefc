"""A Spreadbot connection in C that tests drive."""

import dataclasses
import queue
import re
import subprocess
import threading
import time
from collections.abc import Sequence

from harness import PATIENCE_S, Build, Failed, expect

WEBSOCKET, SSE, POLL = 1, 2, 3
#: Every credential in these tests contains this word.
SECRET = "s3cret"
#: Options that retry without delay.
QUICKLY: dict[str, object] = {"max_delay": 20}


@dataclasses.dataclass(frozen=True)
class Message:
    id: str
    had_id: bool
    event: str
    data: str


class Bot:
    """Tests/Integration/spreadbot.c: commands in, lines out, each read once. Its log, which
    contains the texts of errors, must not contain a credential."""

    def __init__(
        self,
        build: Build,
        url: str,
        path: str | None = "",
        grind: bool = False,
        prefix: Sequence[str] = (),
        **options: object,
    ) -> None:
        """path: establish this at once; None to wait for a command."""
        # Above the library's five seconds, for servers on a busy machine.
        options = {"answer_timeout": 60_000, **options}
        arguments = [
            f"{name}={int(value) if isinstance(value, bool) else value}"
            for name, values in options.items()
            for value in (values if isinstance(values, list) else [values])
        ]
        program = build.helper("spreadbot")
        self._process = subprocess.Popen(
            [*prefix, *build.command(program, grind), url, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=build.environment(grind),
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        #: The lines that this program logged.
        self.log: list[str] = []
        #: The messages that `until` has skipped.
        self.messages: list[Message] = []
        self._threads = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_log, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        if path is not None:
            self.tell(f"establish {path}")

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        self.log.extend(self._process.stderr)

    def __enter__(self) -> "Bot":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        if kind is None:
            guilty = [line for line in self.log if SECRET in line]
            expect(not guilty, f"{len(guilty)} lines of its log have a credential: {guilty[:1]}")

    def has_logged(self, *signs: str) -> None:
        """Checks that its log has these, so that the search for credentials is not in vain."""
        log = "".join(self.log)
        for sign in signs:
            expect(sign in log, f"{sign!r} is not in the log")

    def wait_until_logged(self, sign: str) -> None:
        """Waits until its log has this."""
        end = time.monotonic() + PATIENCE_S
        while not any(sign in line for line in self.log):
            expect(time.monotonic() < end, f"{sign!r} is not in the log: {self.log[-20:]}")
            time.sleep(0.001)

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def next(self, patience: float = PATIENCE_S) -> str:
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise Failed("the client prints nothing; its log: " + "".join(self.log[-20:])) from None
        if line is None:
            self._process.wait()
            code = self._process.returncode
            raise Failed(f"the client has ended ({code}): " + "".join(self.log[-20:]))
        return line

    def expect(self, *patterns: str) -> re.Match[str]:
        """Reads the next lines, which must match; returns the last match."""
        for pattern in patterns:
            line = self.next()
            found = re.fullmatch(pattern, line)
            if found is None:
                log = "".join(self.log[-20:])
                raise Failed(f"expected {pattern!r}, received {line!r}; its log: {log}")
        assert found is not None
        return found

    def expect_interleaved(self, *threads: Sequence[str]) -> None:
        """Reads the lines of several threads: each thread's in order, between them in any order."""
        missing = [list(lines) for lines in threads]
        while any(missing):
            line = self.next()
            due = [lines for lines in missing if lines and re.fullmatch(lines[0], line)]
            expect(due != [], f"received {line!r}, and these are missing: {missing}")
            due[0].pop(0)

    def until(self, pattern: str, *known: str) -> re.Match[str]:
        """Reads until a line matches, and returns it. Lines before it must be messages or match
        `known`."""
        while True:
            line = self.next()
            if line.startswith("message "):
                self.messages.append(parse(line))
            if found := re.fullmatch(pattern, line):
                return found
            if line.startswith("message "):
                continue
            if known and not any(re.fullmatch(one, line) for one in known):
                raise Failed(f"expected {pattern!r}, received {line!r}")

    def message(self) -> Message:
        """Reads the next line, which must be a message."""
        line = self.next()
        expect(line.startswith("message "), f"expected a message, received {line!r}")
        return parse(line)

    def send(self, text: str, kind: str = "text") -> int:
        """Sends a message, and returns its number, by which its end is reported."""
        self.tell(f"{kind} {text}")
        return int(self.expect(r"numbered (\d+)")[1])

    def wait_for_state(self, wanted: str) -> None:
        """Asks until the state is as wanted: state, phase, leg and id. No other line may come."""
        while True:
            self.tell("state")
            if self.expect("state (.*)")[1] == wanted:
                return

    def waits_for_network(self) -> None:
        """Checks that it reports, once, that it waits for a network."""
        self.expect("error RT_ERROR_CONNECT 0 0 -1 0")

    def is_silent(self) -> None:
        """Checks that it has printed nothing else: the response to a command is the next line."""
        self.tell("state")
        self.expect("state .*")

    def end(self) -> None:
        """Makes it free everything, and checks its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join()
        expect(code == 0, f"exit code {code}: {''.join(self.log)}")


def parse(line: str) -> Message:
    _, name, had_id, event, data = line.split(" ", 4)
    return Message("" if name == "-" else name, had_id == "1", event, data)
