"""One C program for each rule of the contract: silent and status 0, or it says where it broke."""

from __future__ import annotations

import pytest
from suite import HERE, LIBRARY, SCRATCH, compile_c, expect, run, server

# Swift's own crash handler would take the signal of a crash, and can hang.
ENVIRONMENT = {"SWIFT_BACKTRACE": "enable=no", "MALLOC_PERTURB_": "165"}

MEMCHECK = [
    "valgrind",
    "--quiet",
    # Threads take turns: one that is always ready would keep the others out.
    "--fair-sched=yes",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
]

#: What ends a process in the middle, or leaves the parent's handles alone in a child, keeps memory.
KEEPS_MEMORY = {"contract_exit", "contract_fork"}

#: Needs to be faster than the peer, or measures itself.
ALONE = {"contract_decoding", "contract_fairness", "contract_inflate", "contract_rest_turns"}

#: So do those with an allocator or signals of their own.
NOT_UNDER_VALGRIND = ALONE | {"contract_allocations", "contract_signals"}


SOURCES = {source.stem: source for source in sorted(HERE.glob("contract_*.c"))}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.alone if name in ALONE else ()) for name in SOURCES],
)
def test_rule(name: str) -> None:
    program = compile_c(SOURCES[name])
    with server(name) as address:
        output = run([program, address], env=ENVIRONMENT)
    expect(output == "", f"printed:\n{output}")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SOURCES.keys() - KEEPS_MEMORY - NOT_UNDER_VALGRIND))
def test_memory(name: str) -> None:
    """The same under valgrind: nothing invalid is read or written, nothing is lost."""
    program = compile_c(SOURCES[name])
    # valgrind 3.19 cannot read this compiler's debugging information; names are enough.
    folder = SCRATCH / "without_debug"
    folder.mkdir(parents=True, exist_ok=True)
    run(["strip", "-g", "-o", folder / "librealtime.so.0", LIBRARY.resolve()])
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": str(folder)}
    with server(name) as address:
        output = run([*MEMCHECK, program, address], env=environment)
    expect(output == "", f"printed:\n{output}")
