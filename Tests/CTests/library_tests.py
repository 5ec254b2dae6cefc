"""The shared library as a file: its exports, its dependencies, and the effects of loading it."""

from __future__ import annotations

import pathlib
import re

import pytest
from suite import HERE, LIBRARY, ROOT, SCRATCH, compile_c, expect, run, server

MAX_STRIPPED_BYTES = 4 << 20
#: Loading takes so much longer than loading libcurl and what that needs, which is most of the time:
#: 4 ms on a processor on which the library takes 0.4 ms.
MAX_LOAD_RATIO = 0.15
#: With Swift's runtime and standard library inside, two thirds of it. This is not what is shipped.
MAX_STATIC_STRIPPED_BYTES = 12 << 20
MAX_STATIC_LOAD_RATIO = 4.0


def dynamic(tag: str, library: pathlib.Path = LIBRARY) -> list[str]:
    return re.findall(rf"\({tag}\).*\[(.*)\]", run(["readelf", "-d", library]))


def stripped_bytes(library: pathlib.Path) -> int:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    stripped = SCRATCH / "stripped.so"
    run(["strip", "--strip-unneeded", "-o", stripped, library.resolve()])
    return stripped.stat().st_size


def load_ratio(library: pathlib.Path) -> float:
    """Processor time of loading, in times that of libcurl. Fails if loading has a side effect.

    Of sixty runs the quickest counts: caches are cold in the first, and other work on the machine
    disturbs most of the others.
    """
    program = compile_c(HERE / "loading.c", "-ldl")
    times = [run([program, library]).split() for _ in range(60)]
    whole = min(float(whole) for whole, _ in times)
    own = min(float(own) for _, own in times)
    return own / (whole - own)


def check_exports(library: pathlib.Path) -> None:
    lines = run(["nm", "-D", "--defined-only", library]).splitlines()
    wrong = [
        line
        for line in lines
        if not re.fullmatch(r"[0-9a-f]+ (T rt_\w+@@REALTIME_0|A REALTIME_0)", line)
    ]
    expect(not wrong, "\n".join(wrong))
    expect(len(lines) > 40, f"only {len(lines)} symbols")


def test_exports_only_versioned_rt_symbols() -> None:
    check_exports(LIBRARY)


def test_soname_and_links() -> None:
    expect(dynamic("SONAME") == ["librealtime.so.0"], f"soname {dynamic('SONAME')}")
    link = LIBRARY.parent / "librealtime.so.0"
    expect(LIBRARY.is_symlink() and link.is_symlink(), "no soname links")
    expect(LIBRARY.resolve() == link.resolve(), "the links lead to different files")


def test_cannot_be_unloaded() -> None:
    expect("NODELETE" in run(["readelf", "-d", LIBRARY]), "not linked with -z nodelete")


def test_needs_no_swift() -> None:
    needed = dynamic("NEEDED")
    expect("libcurl.so.4" in needed, f"needs {needed}")
    known = r"lib(m|c|gcc_s|pthread|dl|curl|z|crypto|ssl|sodium)\.so.*|ld-linux.*"
    strangers = [name for name in needed if not re.fullmatch(known, name)]
    expect(not strangers, f"needs {strangers}")
    run_path = dynamic("RUNPATH") + dynamic("RPATH")
    expect(not run_path, f"looks for libraries in {run_path}")
    wanted = run(["nm", "-D", "--undefined-only", "--format=posix", LIBRARY]).splitlines()
    swift = [line for line in wanted if re.match(r"_?swift|\$s|\$e", line)]
    expect(not swift, f"needs {swift}")


def glibc_versions(file: pathlib.Path) -> set[str]:
    """The versions of glibc that the loader demands: of symbols, and of features such as packed
    relocations (GLIBC_ABI_DT_RELR), which no symbol shows."""
    needs = run(["readelf", "-VW", file])
    return set(re.findall(r"Name: GLIBC_(\S+)", needs))


@pytest.mark.parametrize("name, newest", [("librealtime.so", 34), ("bin/realtime", 35)])
def test_needs_no_newer_glibc_than_readme_says(name: str, newest: int) -> None:
    versions = glibc_versions(LIBRARY.parent / name)
    expect("2.2.5" in versions, f"{name} names no glibc at all: {versions}")
    features = {version for version in versions if not re.fullmatch(r"2\.[\d.]+", version)}
    expect(not features, f"{name} needs {features}")
    found = max(int(version.split(".")[1]) for version in versions - features)
    expect(found <= newest, f"{name} needs glibc 2.{found}")
    readme = " ".join((ROOT / "README.md").read_text().split())
    sentence = {34: "glibc 2.34 or later", 35: "The tool needs glibc 2.35"}[newest]
    expect(sentence in readme, f"README does not say: {sentence}")


def test_is_small() -> None:
    size = stripped_bytes(LIBRARY)
    expect(size <= MAX_STRIPPED_BYTES, f"{size} bytes stripped, {MAX_STRIPPED_BYTES} allowed")


@pytest.mark.alone
def test_loading_has_no_side_effect_and_is_quick() -> None:
    ratio = load_ratio(LIBRARY)
    expect(ratio <= MAX_LOAD_RATIO, f"{ratio:.2f} times libcurl, {MAX_LOAD_RATIO} allowed")


@pytest.mark.long
def test_the_build_with_a_static_runtime() -> None:
    """For toolchains without Embedded Swift: it builds, loads, and a program runs on it."""
    build = SCRATCH / "static"
    options = ["-DREALTIME_EMBEDDED=OFF", "-DREALTIME_CLI=OFF"]
    run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *options])
    run(["cmake", "--build", build], seconds=900)
    library = build / "librealtime.so"
    check_exports(library)
    size = stripped_bytes(library)
    expect(size <= MAX_STATIC_STRIPPED_BYTES, f"{size} bytes stripped")
    ratio = load_ratio(library)
    expect(ratio <= MAX_STATIC_LOAD_RATIO, f"loads in {ratio:.2f} times the time of libcurl")
    program = compile_c(ROOT / "examples-c/readme.c")
    with server() as address:
        said = run([program, f"{address}/echo"], env={"LD_PRELOAD": str(library)})
    expect(said == "hello\n", said)
