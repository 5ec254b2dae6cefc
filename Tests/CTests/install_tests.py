"""C projects can use an installed tree by pkg-config and find_package, even after it was moved, and
this tree by add_subdirectory and FetchContent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from suite import BUILD, LIBRARY, ROOT, SCRATCH, Failure, expect, run, server

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


SUPERPROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
# What a project of that size may have.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${{CMAKE_BINARY_DIR}}/elsewhere)
set(CMAKE_DEBUG_POSTFIX d)
foreach(name tool simulate demo install_all)
  add_custom_target(${{name}})
endforeach()
{how}
add_executable(echo {source})
target_link_libraries(echo PRIVATE Realtime::realtime)
install(TARGETS echo)
"""
SUBDIRECTORY = f'add_subdirectory("{ROOT}" realtime)'
FETCHED = f"""\
include(FetchContent)
FetchContent_Declare(realtime SOURCE_DIR "{ROOT}")
FetchContent_MakeAvailable(realtime)"""

# The compilation of the library takes minutes: these take what `make build` has made, and leave the
# rest to the real compiler.
SWIFTC = """\
#!/bin/sh
for last; do :; done
case "$*" in
  *" -c -o "*) cp "{object}" "$last" ;;
  *) exec "{swiftc}" "$@" ;;
esac
"""
SWIFT = """\
#!/bin/sh
while [ "$1" != --scratch-path ]; do shift; done
mkdir -p "$2/release" && cp "{library}" "$2/release/librealtime.so"
"""


def compilers(folder: Path) -> list[str]:
    """Settings of CMake for compilers that need no time."""
    folder.mkdir(parents=True)
    # Its name decides what it does, so the symbolic link is not followed.
    real = shutil.which("swiftc") or "swiftc"
    compiled = BUILD / "embedded" / "realtime.o"
    for name, text in (
        ("swiftc", SWIFTC.format(object=compiled, swiftc=real)),
        ("swift", SWIFT.format(library=LIBRARY.resolve())),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "ld.lld").symlink_to(Path(real).resolve().with_name("ld.lld"))
    return [f"-DSWIFTC_EXECUTABLE={folder}/swiftc", f"-DSWIFT_EXECUTABLE={folder}/swift"]


@pytest.mark.parametrize("how", [SUBDIRECTORY, FETCHED], ids=["add_subdirectory", "FetchContent"])
@pytest.mark.parametrize("embedded", ["ON", "OFF"])
def test_example_in_a_larger_project(how: str, embedded: str) -> None:
    """The target has the library and its header, and nothing else is built or installed."""
    project = SCRATCH / "superproject"
    shutil.rmtree(project, ignore_errors=True)
    settings = compilers(project / "compilers")
    (project / "CMakeLists.txt").write_text(SUPERPROJECT.format(how=how, source=EXAMPLE))
    build = project / "build"
    settings += [f"-DREALTIME_EMBEDDED={embedded}", "-DCMAKE_BUILD_TYPE=Debug"]
    run(["cmake", "-S", project, "-B", build, "-G", "Ninja", *settings])
    run(["cmake", "--build", build])
    run_example(build / "echo")
    expect(not list(build.rglob("bin/realtime")), "the tool was built")
    run(["cmake", "--install", build, "--prefix", project / "prefix"])
    installed = [str(path.relative_to(project)) for path in (project / "prefix").rglob("*.*")]
    expect(installed == [], f"also installed: {installed}")
