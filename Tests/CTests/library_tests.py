"""The shared library as a file: its exports, its dependencies, and the effects of loading it."""

from __future__ import annotations

import re
import statistics

import pytest
from suite import HERE, LIBRARY, SCRATCH, compile_c, expect, run

#: Of this, Swift's runtime and standard library take 6.9 MiB.
MAX_STRIPPED_BYTES = 9 << 20
MAX_LOAD_MILLISECONDS = 15.0


def dynamic(tag: str) -> list[str]:
    return re.findall(rf"\({tag}\).*\[(.*)\]", run(["readelf", "-d", LIBRARY]))


def test_exports_only_versioned_rt_symbols() -> None:
    lines = run(["nm", "-D", "--defined-only", LIBRARY]).splitlines()
    wrong = [
        line
        for line in lines
        if not re.fullmatch(r"[0-9a-f]+ (T rt_\w+@@REALTIME_0|A REALTIME_0)", line)
    ]
    expect(not wrong, "\n".join(wrong))
    expect(len(lines) > 40, f"only {len(lines)} symbols")


def test_soname_and_links() -> None:
    expect(dynamic("SONAME") == ["librealtime.so.0"], f"soname {dynamic('SONAME')}")
    link = LIBRARY.parent / "librealtime.so.0"
    expect(LIBRARY.is_symlink() and link.is_symlink(), "no soname links")
    expect(LIBRARY.resolve() == link.resolve(), "the links lead to different files")


def test_cannot_be_unloaded() -> None:
    expect("NODELETE" in run(["readelf", "-d", LIBRARY]), "not linked with -z nodelete")


def test_needs_neither_swift_nor_foundation() -> None:
    needed = dynamic("NEEDED")
    expect("libcurl.so.4" in needed, f"needs {needed}")
    known = r"lib(m|c|gcc_s|stdc\+\+|pthread|dl|curl|z|crypto|ssl|sodium)\.so.*|ld-linux.*"
    strangers = [name for name in needed if not re.fullmatch(known, name)]
    expect(not strangers, f"needs {strangers}")
    run_path = dynamic("RUNPATH") + dynamic("RPATH")
    swift = [path for path in run_path if "swift" in path or path.startswith("/")]
    expect(not swift, f"looks for libraries in {swift}")
    foundation = [
        line
        for line in run(["nm", "--format=posix", LIBRARY]).splitlines()
        if re.match(r"\$s(10Foundation|20FoundationEssentials)", line)
    ]
    expect(
        not foundation,
        f"{len(foundation)} symbols of Foundation, such as {foundation[:1]}",
    )


def test_is_small() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    stripped = SCRATCH / "stripped.so"
    run(["strip", "--strip-unneeded", "-o", stripped, LIBRARY.resolve()])
    size = stripped.stat().st_size
    expect(
        size <= MAX_STRIPPED_BYTES,
        f"{size} bytes stripped, {MAX_STRIPPED_BYTES} allowed",
    )


@pytest.mark.alone
def test_loading_has_no_side_effect_and_is_quick() -> None:
    program = compile_c(HERE / "loading.c", "-ldl")
    # Processor time of the loading only, so that other work on the machine does not count. The
    # median, because a cold cache does count.
    times = [float(run([program, LIBRARY])) for _ in range(9)]
    median = statistics.median(times)
    expect(
        median <= MAX_LOAD_MILLISECONDS,
        f"{median:.1f} ms, {MAX_LOAD_MILLISECONDS} allowed",
    )
