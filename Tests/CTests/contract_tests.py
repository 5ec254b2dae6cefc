"""One C program for each rule of the contract: silent and status 0, or it says where it broke."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from suite import HERE, add, compile_c, expect, run, server

# Swift's own crash handler would take the signal of a crash, and can hang.
ENVIRONMENT = {"SWIFT_BACKTRACE": "enable=no", "MALLOC_PERTURB_": "165"}


def check(source: Path) -> None:
    program = compile_c(source)
    with server() as address:
        output = run([program, address], env=ENVIRONMENT)
    expect(output == "", f"printed:\n{output}")


for source in sorted(HERE.glob("contract_*.c")):
    add(source.stem, partial(check, source))
