"""C projects can use an installed tree by pkg-config and find_package, even after it was moved."""

from __future__ import annotations

import shutil
from pathlib import Path

from suite import BUILD, ROOT, SCRATCH, Failure, expect, run, server

EXAMPLE = ROOT / "examples-c" / "echo.c"
LINES = "one\ntwo\n"


def installed() -> Path:
    """A new installation. It is moved after the install, so no file may contain its first path."""
    first, prefix = SCRATCH / "first", SCRATCH / "prefix"
    for folder in (first, prefix):
        shutil.rmtree(folder, ignore_errors=True)
    run(["cmake", "--install", BUILD, "--prefix", first])
    first.rename(prefix)
    return prefix


def run_example(program: Path) -> None:
    with server() as address:
        output = run([program, f"{address}/echo"], stdin=LINES)
    echoed = [line for line in output.splitlines() if line in LINES.splitlines()]
    expect(echoed == LINES.splitlines(), f"the example printed:\n{output}")


def test_installed_files() -> None:
    prefix = installed()
    version = (ROOT / "VERSION").read_text().strip()
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    expected = {
        "bin/realtime",
        "include/realtime.h",
        "lib/librealtime.so",
        "lib/librealtime.so.0",
        f"lib/librealtime.so.{version}",
        "lib/pkgconfig/realtime.pc",
        "lib/cmake/Realtime/RealtimeConfig.cmake",
        "lib/cmake/Realtime/RealtimeConfigVersion.cmake",
    }
    expect(
        files == expected,
        f"installed and expected differ in {sorted(files ^ expected)}",
    )
    for name in ("lib/librealtime.so", "bin/realtime"):
        sections = run(["readelf", "-S", "--wide", prefix / name])
        expect(".debug_info" not in sections, f"the installed {name} is not stripped")


def test_installed_tool_runs() -> None:
    prefix = installed()
    version = (ROOT / "VERSION").read_text().strip()
    with server() as address:
        arguments = ["ws", f"{address}/echo", "--count", "2"]
        output = run([prefix / "bin/realtime", *arguments], stdin=LINES)
    echoed = [line for line in output.splitlines() if line in LINES.splitlines()]
    expect(echoed == LINES.splitlines(), f"the tool printed:\n{output}")
    said = run([prefix / "bin/realtime", "--version"])
    expect(said == f"realtime {version}\n", said)


def test_example_by_pkg_config() -> None:
    prefix = installed()
    path = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    version = run(["pkg-config", "--modversion", "realtime"], env=path).strip()
    expect(version == (ROOT / "VERSION").read_text().strip(), f"version {version}")
    flags = run(["pkg-config", "--cflags", "--libs", "realtime"], env=path).split()
    program = SCRATCH / "echo_by_pkg_config"
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    folder = f"-Wl,-rpath,{prefix / 'lib'}"
    run(
        [
            "gcc",
            "-std=c11",
            *warnings,
            EXAMPLE,
            "-o",
            program,
            *flags,
            folder,
            "-pthread",
        ]
    )
    run_example(program)


PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(Realtime {version} REQUIRED)
add_executable(echo_by_find_package {source})
target_link_libraries(echo_by_find_package PRIVATE Realtime::realtime)
"""


def configure(prefix: Path, version: str) -> Path:
    project = SCRATCH / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    (project / "CMakeLists.txt").write_text(PROJECT.format(version=version, source=EXAMPLE))
    run(
        [
            "cmake",
            "-S",
            project,
            "-B",
            project / "build",
            f"-DCMAKE_PREFIX_PATH={prefix}",
        ]
    )
    return project / "build"


def test_example_by_find_package() -> None:
    build = configure(installed(), "0.1")
    run(["cmake", "--build", build])
    run_example(build / "echo_by_find_package")


def test_find_package_refuses_another_version() -> None:
    prefix = installed()
    try:
        configure(prefix, "9.0")
    except Failure as refusal:
        expect("9.0" in str(refusal) and "Realtime" in str(refusal), str(refusal))
    else:
        raise Failure("find_package(Realtime 9.0) succeeded")
