"""Runs one C program for each rule of the contract: it must print nothing and exit with 0."""

from __future__ import annotations

import pytest
from suite import ENVIRONMENT, HERE, LIBRARY, SCRATCH, compile_c, expect, run, server

MEMCHECK = [
    "valgrind",
    "--quiet",
    # Threads take turns; otherwise one that is always ready would starve the others.
    "--fair-sched=yes",
    f"--suppressions={HERE / 'embedded.supp'}",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
]

#: These end a process abruptly, or leave the parent's handles alone in a child, so they leak.
KEEPS_MEMORY = {"contract_eventsource_exit", "contract_exit", "contract_fork"}

#: These must be faster than the peer, or measure time.
ALONE = {"contract_decoding", "contract_fairness", "contract_inflate", "contract_rest_turns"}

#: These do so, too, or have an allocator or signals of their own.
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
    """The same under valgrind: no invalid access, no leak."""
    program = compile_c(SOURCES[name])
    # valgrind 3.19 cannot read this compiler's debugging information; function names are enough.
    folder = SCRATCH / "without_debug"
    folder.mkdir(parents=True, exist_ok=True)
    run(["strip", "-g", "-o", folder / "librealtime.so.0", LIBRARY.resolve()])
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": str(folder)}
    with server(name) as address:
        output = run([*MEMCHECK, program, address], env=environment)
    expect(output == "", f"printed:\n{output}")
