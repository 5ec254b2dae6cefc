"""Shared by the integration tests: builds and runs programs; a client driven by commands."""

import functools
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "Support"))
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))

# Callbacks need not use all their parameters.
COMPILER_FLAGS = [
    *("-Wall", "-Wextra", "-Wno-unused-parameter", "-pedantic", "-Werror"),
    *("-std=c11", "-O1", "-g"),
]
# A guard against hanging, far above what any step needs, also under valgrind on a busy machine, or
# when others keep the disk busy that ids are flushed to.
PATIENCE_S = 300
# The number of callbacks that probe.c sets, each with user data to be destroyed.
CALLBACKS = 7
VALGRIND = [
    "valgrind",
    "--quiet",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect,possible",
    "--errors-for-leak-kinds=definite,indirect,possible",
    "--error-exitcode=9",
    f"--suppressions={ROOT / 'Tests' / 'Support' / 'valgrind.supp'}",
]


#: Marks the half of a test that runs its clients under valgrind.
valgrind = pytest.mark.long
#: For a test that uses `grind`, or clients: runs it again with clients under valgrind.
also_under_valgrind = pytest.mark.parametrize(
    "grind", [False, pytest.param(True, marks=valgrind)], ids=["plain", "valgrind"]
)
#: Tests that need the Swift examples run one after the other, because a folder has one build at a
#: time.
swift = pytest.mark.xdist_group("swift")
#: Skips the test if network namespaces cannot be created.
in_namespaces = pytest.mark.usefixtures("namespaces")


class Failed(AssertionError):
    """A test's expectation was not met."""


def expect(condition: bool, message: str) -> None:
    __tracebackhide__ = True
    if not condition:
        raise Failed(message)


class Build:
    """Compiles C programs against the library, and runs them."""

    def __init__(self, library: pathlib.Path, include: pathlib.Path) -> None:
        self.include = include
        self.library = library
        self._folder = tempfile.TemporaryDirectory(prefix="integration-")
        self.folder = pathlib.Path(self._folder.name)
        # valgrind 3.19 cannot read this compiler's debugging information; symbols are enough.
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
        # -std=c11 hides clock_gettime, setrlimit and other functions of POSIX.
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
        """Builds all Swift examples; for tests that are marked `swift`."""
        return self._swift_examples / name

    @functools.cached_property
    def _swift_examples(self) -> pathlib.Path:
        # The folder of `swift test`, which has compiled the library's modules.
        scratch = ROOT / ".build"
        command = ["swift", "build", "--package-path", str(ROOT / "examples-swift")]
        # A cached plan misses files that were added to or removed from the library.
        command += ["--disable-build-manifest-caching"]
        result = subprocess.run(
            [*command, "--scratch-path", str(scratch)], capture_output=True, text=True
        )
        expect(result.returncode == 0, f"they do not build:\n{result.stdout}{result.stderr}")
        return scratch / "debug"

    def helper(self, name: str, *libraries: str) -> pathlib.Path:
        return self.program(ROOT / "Tests" / "Integration" / f"{name}.c", *libraries)

    def command(self, program: pathlib.Path, valgrind: bool) -> list[str]:
        return [*(VALGRIND if valgrind else []), str(program)]

    def environment(self, valgrind: bool) -> dict[str, str]:
        folder = self.plain if valgrind else self.library
        # Tests must not use this machine's proxies.
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        return {**kept, "LD_LIBRARY_PATH": str(folder)}

    def run(
        self, program: pathlib.Path, *arguments: str, text: str = "", valgrind: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Runs the program to its end. An error that valgrind reports is a failure in any case."""
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
    """The name that programs look for, which `swift build` does not set."""
    text = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"\(SONAME\).*\[(.*)\]", text)
    return found[1] if found else library.name


class Probe:
    """Tests/Integration/probe.c: commands in, events out; each event line is read once."""

    # The logs and events of all clients, to search for text that must never be there.
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
            raise Failed("the client prints nothing") from None
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
        """Checks that, after the close event, all user data is destroyed and the exit code is 0."""
        self.expect(f"destroyed {CALLBACKS}")
        code = self._process.wait(PATIENCE_S)
        self._threads[1].join()
        expect(code == 0, f"exit code {code}: {''.join(self._errors)}")

    def close(self) -> None:
        """Closes normally and checks the end."""
        self.ask("close 1000 bye", "close 1000 clean.*")
        self.end()


def refused(probe: Probe, status: str, *, text: str = "") -> None:
    """Expects an error with this status and text."""
    found = probe.expect(r"error (\w+) (.*)")
    expect(found[1] == status, f"expected {status}, received {found[0]!r}")
    expect(text in found[2], f"expected {text!r} in {found[2]!r}")


def fails(probe: Probe, status: str, *, text: str = "") -> None:
    """Expects an error, then the close callback and the end, and nothing else."""
    refused(probe, status, text=text)
    probe.expect("close 1006 unclean.*")
    probe.end()
