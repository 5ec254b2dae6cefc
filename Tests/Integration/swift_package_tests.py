"""The Swift package as a dependency: it downloads nothing, and a release builds."""

import json
import os
import pathlib
import subprocess

import pytest
from harness import ROOT, expect, in_namespaces

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "program",
    dependencies: [.package({requirement})],
    targets: [
        .executableTarget(
            name: "program",
            dependencies: [.product(name: "Realtime", package: "librealtime")],
            path: ".", sources: ["main.swift"])
    ]
)
"""
PROGRAM = """import Realtime

print(Library.version)
"""
VERSION = (ROOT / "VERSION").read_text().strip()


def dependent(folder: pathlib.Path, requirement: str) -> pathlib.Path:
    """A package that uses only the product `Realtime`."""
    folder.mkdir()
    (folder / "Package.swift").write_text(MANIFEST.format(requirement=requirement))
    (folder / "main.swift").write_text(PROGRAM)
    return folder


def swift(package: pathlib.Path, *arguments: str) -> str:
    """Runs `swift` in a package, without network and with a new home directory, which has its
    caches."""
    done = subprocess.run(
        ["unshare", "--net", "swift", *arguments],
        cwd=package,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(package), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    expect(done.returncode == 0, f"{arguments}:\n{done.stdout}{done.stderr}")
    return done.stdout


def release(folder: pathlib.Path) -> pathlib.Path:
    """A git repository of this tree, with a tag for its version."""
    folder.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(
        ["cp", "--parents", "-t", folder, *filter(None, listed.stdout.decode().split("\0"))],
        cwd=ROOT,
        check=True,
    )
    author = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", VERSION]):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    return folder


@in_namespaces
def test_has_no_dependencies(tmp_path: pathlib.Path) -> None:
    package = dependent(tmp_path / "program", f'name: "librealtime", path: "{ROOT}"')
    graph = json.loads(swift(package, "package", "show-dependencies", "--format", "json"))
    (library,) = graph["dependencies"]
    expect(library["dependencies"] == [], f"it depends on {library['dependencies']}")


@in_namespaces
@pytest.mark.long
def test_release_builds_without_network(tmp_path: pathlib.Path) -> None:
    repository = release(tmp_path / "librealtime")
    requirement = f'url: "file://{repository}", from: "{VERSION}"'
    package = dependent(tmp_path / "program", requirement)
    said = swift(package, "run", "--quiet", "program")
    expect(said == f"{VERSION}\n", f"printed {said!r}")
