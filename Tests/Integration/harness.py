"""What the integration tests share: compiling, running, and a WebSocket client driven by lines."""

import functools
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "Support"))
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))

# A callback need not use all it is given.
COMPILER_FLAGS = [
    *("-Wall", "-Wextra", "-Wno-unused-parameter", "-pedantic", "-Werror"),
    *("-std=c11", "-O1", "-g"),
]
# A guard against hanging, far above what any step needs, also under valgrind on a busy machine.
PATIENCE_S = 120
# How many callbacks probe.c sets, each with user data to be destroyed.
CALLBACKS = 9
VALGRIND = [
    "valgrind",
    "--quiet",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect,possible",
    "--errors-for-leak-kinds=definite,indirect,possible",
    "--error-exitcode=9",
    f"--suppressions={ROOT / 'Tests' / 'Support' / 'valgrind.supp'}",
]


class Failed(Exception):
    """A test's expectation was not met."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise Failed(message)


class Build:
    """Compiles C programs against the library, and knows how to run them."""

    def __init__(self, library: pathlib.Path, include: pathlib.Path) -> None:
        self.include = include
        self.library = library
        self._folder = tempfile.TemporaryDirectory(prefix="integration-")
        self.folder = pathlib.Path(self._folder.name)
        # valgrind 3.19 cannot read the debugging information of this compiler; symbols suffice.
        self.plain = self.folder / "without-debug"
        self.plain.mkdir()
        source = (library / "librealtime.so").resolve()
        for name in ("librealtime.so", soname(source)):
            subprocess.run(["objcopy", "--strip-debug", source, self.plain / name], check=True)

    def close(self) -> None:
        self._folder.cleanup()

    def program(self, source: pathlib.Path, *libraries: str) -> pathlib.Path:
        output = self.folder / source.stem
        if output.exists():
            return output
        # clock_gettime, setrlimit and the like are POSIX, which -std=c11 alone hides.
        result = subprocess.run(
            ["cc", *COMPILER_FLAGS, "-D_POSIX_C_SOURCE=200809L", f"-I{self.include}", str(source)]
            + ["-o", str(output), f"-L{self.library}", "-lrealtime", "-pthread", *libraries],
            capture_output=True,
            text=True,
        )
        expect(result.returncode == 0, f"{source.name} does not compile:\n{result.stderr}")
        return output

    def example(self, name: str) -> pathlib.Path:
        return self.program(ROOT / "examples-c" / f"{name}.c")

    def swift_example(self, name: str) -> pathlib.Path:
        """Built where the demo finds it too."""
        scratch = ROOT / "build" / "examples-swift"
        command = ["swift", "build", "--package-path", str(ROOT / "examples-swift")]
        command += ["--scratch-path", str(scratch), "--product", name]
        result = subprocess.run(command, capture_output=True, text=True)
        expect(result.returncode == 0, f"{name} does not build:\n{result.stdout}{result.stderr}")
        return scratch / "debug" / name

    def helper(self, name: str, *libraries: str) -> pathlib.Path:
        return self.program(ROOT / "Tests" / "Integration" / f"{name}.c", *libraries)

    def command(self, program: pathlib.Path, valgrind: bool) -> list[str]:
        return [*(VALGRIND if valgrind else []), str(program)]

    def environment(self, valgrind: bool) -> dict[str, str]:
        folder = self.plain if valgrind else self.library
        # Proxies of this machine's environment are none of the tests'.
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        return {**kept, "LD_LIBRARY_PATH": str(folder)}

    def run(
        self, program: pathlib.Path, *arguments: str, text: str = "", valgrind: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Runs to the end. Under valgrind an error of its own is a failure in any case."""
        result = subprocess.run(
            [*self.command(program, valgrind), *arguments],
            input=text,
            capture_output=True,
            text=True,
            env=self.environment(valgrind),
            timeout=PATIENCE_S,
        )
        if valgrind:
            expect(result.returncode != 9, f"valgrind:\n{result.stderr}")
        return result


def soname(library: pathlib.Path) -> str:
    """The name programs look for, which `swift build` does not set."""
    text = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"\(SONAME\).*\[(.*)\]", text)
    return found[1] if found else library.name


class Probe:
    """Tests/Integration/probe.c: commands in, events out; each event line is read once."""

    # What all of them said in their logs, and all their events: for what must never be there.
    said: ClassVar[list[str]] = []

    def __init__(
        self,
        build: Build,
        url: str,
        valgrind: bool = False,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **options: object,
    ) -> None:
        program = build.helper("probe", "-lz")
        arguments = [
            f"{name}={int(value) if isinstance(value, bool) else value}"
            for name, values in options.items()
            for value in (values if isinstance(values, list) else [values])
        ]
        self._process = subprocess.Popen(
            [*prefix, *build.command(program, valgrind), url, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**build.environment(valgrind), **(environment or {})},
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        Probe.said += self._errors

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
            Probe.said.append(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def next(self, patience: float = PATIENCE_S) -> str:
        """The next event line."""
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise Failed("the client says nothing") from None
        if line is None:
            raise Failed("the client has ended: " + "".join(self._errors))
        return line

    def expect(self, pattern: str) -> re.Match[str]:
        """The next event, which must match."""
        line = self.next()
        found = re.fullmatch(pattern, line)
        if found is None:
            raise Failed(f"expected {pattern!r}, received {line!r}")
        return found

    def ask(self, command: str, pattern: str) -> re.Match[str]:
        self.tell(command)
        return self.expect(pattern)

    def end(self) -> None:
        """After the close event: all user data destroyed, exit code 0."""
        self.expect(f"destroyed {CALLBACKS}")
        code = self._process.wait(PATIENCE_S)
        self._threads[1].join()
        expect(code == 0, f"exit code {code}: {''.join(self._errors)}")

    def close(self) -> None:
        """Closes in order and checks the end."""
        self.ask("close 1000 bye", "close 1000 clean.*")
        self.end()


def refused(probe: Probe, status: str, *, text: str = "") -> None:
    """The connection fails with this status, and the text says why."""
    found = probe.expect(r"error (\w+) (.*)")
    expect(found[1] == status, f"expected {status}, received {found[0]!r}")
    expect(text in found[2], f"expected {text!r} in {found[2]!r}")


def fails(probe: Probe, status: str, *, text: str = "") -> None:
    """As `refused`, then the close callback and the end, and nothing else."""
    refused(probe, status, text=text)
    probe.expect("close 1006 unclean.*")
    probe.end()


class Suite:
    """Tests in the order they were written; a name each, several at once for a table."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, Callable[[], None]]] = []

    def add(self, name: str, function: Callable[[], None]) -> None:
        self.tests.append((name, function))

    def run(self, pattern: str) -> int:
        passed, failed = 0, []
        for name, function in self.tests:
            if not re.search(pattern, name):
                continue
            start = time.monotonic()
            try:
                function()
            except Exception as error:  # A test may fail in any way; the others go on.
                failed.append(name)
                print(f"FAILED  {name}", flush=True)
                known = isinstance(error, Failed | subprocess.TimeoutExpired)
                text = str(error) if known else traceback.format_exc()
                print("        " + text.strip().replace("\n", "\n        "), flush=True)
            else:
                passed += 1
                print(f"ok      {name} ({time.monotonic() - start:.1f} s)", flush=True)
        for name in failed:
            print(f"failed: {name}")
        print(f"{passed} passed, {len(failed)} failed")
        return 1 if failed or not passed else 0


def add_probed(
    suite: Suite,
    build: Build,
    tests: list[Callable[..., None]],
    *servers: object,
    valgrind: bool = True,
    **options: object,
) -> None:
    """Adds each test, named after its function, and again with the client under valgrind. It is
    called with a maker of clients, which have these options, and `servers`."""
    for test in tests:
        for grind in (False, True) if valgrind else (False,):
            name = test.__name__.replace("_", " ") + (", valgrind" if grind else "")
            make = functools.partial(Probe, build, valgrind=grind, **options)
            suite.add(name, functools.partial(test, make, *servers))
