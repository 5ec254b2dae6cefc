"""Programs that Tests/RandomCalls/generate.py makes from the interface. They call every setter from
three threads and from its own destroy function, and the whole interface at random.

Random calls take RANDOM_CALLS_SECONDS in total, by default a minute in the long form.
RANDOM_CALLS_SEED repeats one run for that time; each failure names its seed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

import pytest
from suite import ENVIRONMENT, PROGRAM_SECONDS, ROOT, SCRATCH, compile_c, expect, run, server

CALLS = ROOT / "Tests" / "RandomCalls"
#: How long each seed runs, unless RANDOM_CALLS_SEED chooses one.
SECONDS_EACH = 10


def program(name: str) -> Path:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    generate(SCRATCH)
    return compile_c(CALLS / f"{name}.c", f"-I{SCRATCH}")


def generate(folder: Path) -> None:
    (folder / "calls.inc").write_text(run([sys.executable, CALLS / "generate.py"]))


def call(path: Path, *words: str, seconds: int = PROGRAM_SECONDS) -> str:
    """Runs a program; the addresses of its servers come first in its arguments."""
    with (
        tempfile.TemporaryDirectory() as folder,
        server() as address,
        server("contract_rest") as rest,
        server("contract_pusher") as pusher,
        server("contract_ddp") as ddp,
    ):
        http = address.replace("ws:", "http:")
        command = [path, *words, address, http, rest, pusher, ddp]
        return run(command, cwd=Path(folder), env=ENVIRONMENT, seconds=seconds)


def test_setters_from_threads() -> None:
    expect(call(program("setters"), "threads", "300") == "", "it printed something")


def test_setters_from_destroy() -> None:
    expect(call(program("setters"), "destroy") == "", "it printed something")


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_random_calls(seconds: int) -> None:
    path = program("random")
    total = int(os.environ.get("RANDOM_CALLS_SECONDS", seconds))
    chosen = os.environ.get("RANDOM_CALLS_SEED")
    each = total if chosen else min(total, SECONDS_EACH)
    for _ in range(max(total // each, 1)):
        seed = chosen or str(random.SystemRandom().randrange(1 << 32))
        print(f"seed {seed}: ", end="", flush=True)
        print(call(path, seed, str(each), seconds=each + PROGRAM_SECONDS).strip(), flush=True)
