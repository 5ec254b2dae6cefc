"""Tools that the test files share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "Tests" / "CTests"
BUILD = ROOT / "build"
#: `make coverage` uses a library elsewhere.
FOLDER = Path(os.environ.get("LIBREALTIME_FOLDER", BUILD))
LIBRARY = FOLDER / "librealtime.so"
INCLUDE = ROOT / "include"
#: Each worker has its own folder.
SCRATCH = BUILD / "ctests" / os.environ.get("PYTEST_XDIST_WORKER", "alone")

#: Swift's crash handler would catch the signal of a crash, and can hang.
ENVIRONMENT = {"SWIFT_BACKTRACE": "enable=no", "MALLOC_PERTURB_": "165"}

#: A program that runs longer than this many seconds is killed and counts as failed.
PROGRAM_SECONDS = 120


class Failure(AssertionError):
    """A failed test, with an explanation."""


def expect(condition: bool, message: str) -> None:
    __tracebackhide__ = True
    if not condition:
        raise Failure(message)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    status: int = 0,
    seconds: int = PROGRAM_SECONDS,
) -> str:
    """Runs a command and returns its output. Another exit status is a failure."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise Failure(f"{words[0]} is not installed")
    try:
        done = subprocess.run(
            words,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as expired:
        raise Failure(f"{' '.join(words)}: still running after {seconds} s") from expired
    if done.returncode != status:
        raise Failure(f"{' '.join(words)}: status {done.returncode}\n{done.stdout.rstrip()}")
    return done.stdout


def compile_c(source: Path, *extra: str) -> Path:
    """Builds a program with the library in the build folder."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    program = SCRATCH / source.stem
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [
        "gcc",
        "-std=c11",
        "-D_GNU_SOURCE",
        "-g",
        *warnings,
        f"-I{INCLUDE}",
        f"-I{HERE}",
    ]
    libraries = [f"-L{FOLDER}", "-lrealtime", f"-Wl,-rpath,{FOLDER}", "-pthread"]
    run([*command, source, "-o", program, *libraries, *extra])
    return program


def model() -> dict[str, Any]:
    """The interface's model, as abigen printed it."""
    loaded: dict[str, Any] = json.loads((INCLUDE / "realtime.abi.json").read_text())
    return loaded


@contextmanager
def server(program: str = "") -> Iterator[str]:
    """Runs a contract program's peer; yields its address, ws://127.0.0.1:PORT except for REST."""
    support = ROOT / "Tests" / "Support"
    is_rest = program.startswith("contract_rest")
    script = HERE / "server.py"
    if is_rest:
        script = support / "rest_server.py"
    elif program.startswith("contract_pusher"):
        script = support / "pusher_server"
    elif program.startswith("contract_ddp"):
        script = support / "ddp_server"
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        said = process.stdout.readline().strip()
        if not said:
            raise Failure(f"{script.name} did not start")
        try:
            # These servers also print what it needs for TLS.
            yield said if is_rest else f"ws://127.0.0.1:{said.split()[0]}"
        finally:
            process.stdin.close()  # end of input ends it
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
