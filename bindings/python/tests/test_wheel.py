"""The wheel, installed into a fresh virtual environment where nothing else names the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from websockets.sync.server import ServerConnection, serve

FOLDER = Path(__file__).resolve().parents[1]

# A guard against hanging.
PATIENCE_S = 120

PROGRAM = """
import asyncio, sys
import librealtime
from librealtime._core import loader

with open("/proc/self/maps") as maps:
    assert str(loader.PACKAGED) in maps.read(), "another library was loaded"

async def main(url):
    async with librealtime.connect(url) as ws:
        await ws.send("through the wheel")
        print(await ws.recv())

asyncio.run(main(sys.argv[1]))
with librealtime.sync.connect(sys.argv[1]) as ws:
    ws.send(b"blocking")
    print(ws.recv())
print(librealtime.__version__)
"""


def echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


@pytest.fixture
def echo_url() -> Iterator[str]:
    with serve(echo, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(PATIENCE_S)


@pytest.fixture
def clean_environment() -> dict[str, str]:
    """An environment without anything that leads to a library or a package elsewhere."""
    hidden = ("LIBREALTIME_PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def run(*command: object, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def build_wheel(folder: Path) -> Path:
    library = os.environ["LIBREALTIME_PATH"]
    return Path(run(sys.executable, FOLDER / "build_wheel", library, folder).strip())


def test_a_fresh_environment_uses_the_wheel(
    tmp_path: Path, echo_url: str, clean_environment: dict[str, str]
) -> None:
    wheel = build_wheel(tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", wheel, environment=clean_environment)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    printed = run(python, program, echo_url, environment=clean_environment)
    version = wheel.name.split("-")[1]
    assert printed.splitlines() == ["through the wheel", "b'blocking'", version]


def test_the_wheel_holds_the_package_and_the_library_alone(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    assert wheel.name.endswith(f"-py3-none-linux_{os.uname().machine}.whl")
    source = FOLDER / "src"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        packaged = archive.read("librealtime/_lib/librealtime.so")
    built = Path(os.environ["LIBREALTIME_PATH"])
    stripped = tmp_path / "stripped.so"
    run("strip", "--strip-unneeded", "-o", stripped, built)
    assert packaged == stripped.read_bytes()
    assert len(packaged) <= 4 << 20
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    expected |= {"librealtime/py.typed", "librealtime/_lib/librealtime.so"}
    assert {name for name in names if ".dist-info/" not in name} == expected
    information = {name.split("/")[1] for name in names - expected}
    assert information == {"LICENSE", "METADATA", "RECORD", "WHEEL"}


def test_the_demo_server_is_an_extra(tmp_path: Path) -> None:
    """Without it the package has no dependencies."""
    (found,) = metadata.distributions(path=[str(build_wheel(tmp_path))])
    assert found.metadata.get_all("Provides-Extra") == ["demo"]
    assert found.requires == ["aiohttp>=3.11,<4; extra == 'demo'"]


def test_the_same_input_gives_the_same_wheel(tmp_path: Path) -> None:
    first, second = build_wheel(tmp_path / "first"), build_wheel(tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()


def test_no_library_no_wheel(tmp_path: Path) -> None:
    wrong = tmp_path / "librealtime.so"
    wrong.write_text("not a library")
    command = [sys.executable, str(FOLDER / "build_wheel"), str(wrong), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 1
    assert "is not a shared library" in result.stderr
    assert not list(tmp_path.glob("*.whl"))


@pytest.mark.parametrize(
    ("library", "said"),
    [
        ("libc.so.6", "undefined symbol: rt_version"),
        ("of another version", r"is librealtime \d+\.\d+\.\d+; this package needs 99\.0\.0"),
        ("broken", "is not librealtime .*: OSError: .*file too short"),
        ("missing", "is not a file"),
    ],
)
def test_another_library_is_refused(
    tmp_path: Path, checkout: Path, library: str, said: str
) -> None:
    source = checkout / "bindings" / "python"
    path = Path(os.environ["LIBREALTIME_PATH"])
    if library == "of another version":
        table = source / "src" / "librealtime" / "_core" / "abi.py"
        text = re.sub('^VERSION = ".*"$', 'VERSION = "99.0.0"', table.read_text(), flags=re.M)
        table.write_text(text)
    elif library == "broken":
        path = tmp_path / "broken.so"
        path.write_bytes(b"\x7fELF")
    elif library == "missing":
        path = tmp_path / "missing.so"
    else:
        path = Path(mapped(library))
    command = [sys.executable, str(source / "build_wheel"), str(path), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 1
    assert re.search(said, result.stderr), result.stderr
    assert str(path) in result.stderr
    assert not list(tmp_path.glob("*.whl"))


def mapped(name: str) -> str:
    """The path of a library that this process has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(path for line in lines if Path(path := line.split()[-1]).name.startswith(name))


# The same by pip and by other tools that build packages.


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which the library is not built; only its folders and the binding are there."""
    root = tmp_path / "checkout"
    shutil.copytree(
        FOLDER,
        root / "bindings" / "python",
        ignore=shutil.ignore_patterns("__pycache__", "librealtime.so", "tests"),
    )
    (root / "Sources" / "RealtimeABI").mkdir(parents=True)
    shutil.copy(FOLDER.parents[1] / "LICENSE", root)
    return root


def pip_wheel(
    source: Path, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "-w"]
    return subprocess.run(
        [*command, str(folder), str(source)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def sdist(source: Path, folder: Path, environment: dict[str, str]) -> tuple[Path, str]:
    """What `build` does, which calls the same function; and what it prints."""
    folder.mkdir()
    program = "import build_backend, sys; print(build_backend.build_sdist(sys.argv[1]))"
    result = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    return folder / result.stdout.strip(), result.stderr


def test_pip_builds_the_same_wheel(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    environment = {**clean_environment, "LIBREALTIME_PATH": os.environ["LIBREALTIME_PATH"]}
    result = pip_wheel(FOLDER, tmp_path / "pip", environment)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = (tmp_path / "pip").iterdir()
    own = build_wheel(tmp_path / "own")
    assert (wheel.name, wheel.read_bytes()) == (own.name, own.read_bytes())


def test_pip_takes_the_library_of_a_checkout(
    tmp_path: Path, checkout: Path, clean_environment: dict[str, str]
) -> None:
    result = pip_wheel(checkout / "bindings" / "python", tmp_path / "pip", clean_environment)
    assert result.returncode != 0
    assert "build/librealtime.so is missing" in result.stderr
    assert "make build" in result.stderr
    (checkout / "build").mkdir()
    built = checkout / "build" / "librealtime.so"
    built.write_text("not a library")
    result = pip_wheel(checkout / "bindings" / "python", tmp_path / "pip", clean_environment)
    assert result.returncode != 0
    assert "is not a shared library" in result.stderr
    shutil.copy(os.environ["LIBREALTIME_PATH"], built)
    result = pip_wheel(checkout / "bindings" / "python", tmp_path / "pip", clean_environment)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = (tmp_path / "pip").iterdir()
    assert wheel.read_bytes() == build_wheel(tmp_path / "own").read_bytes()


def test_a_source_distribution_says_what_it_lacks(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    archive, said = sdist(FOLDER, tmp_path / "sdist", clean_environment)
    assert "only the Python part" in said
    result = pip_wheel(archive, tmp_path / "pip", clean_environment)
    assert result.returncode != 0
    assert "only the Python part" in result.stderr
    assert "LIBREALTIME_PATH" in result.stderr
    environment = {**clean_environment, "LIBREALTIME_PATH": os.environ["LIBREALTIME_PATH"]}
    result = pip_wheel(archive, tmp_path / "pip", environment)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = (tmp_path / "pip").iterdir()
    assert wheel.read_bytes() == build_wheel(tmp_path / "own").read_bytes()
    again, _ = sdist(FOLDER, tmp_path / "again", clean_environment)
    assert again.read_bytes() == archive.read_bytes()


def test_a_relative_path_is_explained(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    """Tools build in folders of their own, so it would lead to another file, or to none."""
    path = os.path.relpath(os.environ["LIBREALTIME_PATH"])
    result = pip_wheel(FOLDER, tmp_path, {**clean_environment, "LIBREALTIME_PATH": path})
    assert result.returncode != 0
    assert f"LIBREALTIME_PATH is {path}, a relative path" in result.stderr
    assert "give the whole path" in result.stderr


def test_the_links_of_a_source_distribution_lead_somewhere(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    archive, _ = sdist(FOLDER, tmp_path / "sdist", clean_environment)
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2]: name for name in tar.getnames()}
        pages = [name for name in names if name.endswith(".md")]
        links = [
            link
            for page in pages
            for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", read_text(tar, names[page]))
            # The others are pages of the checkout.
            if not link.startswith("../")
        ]
    assert "RUNNING.md" in links
    assert not [link for link in links if link not in names]


def read_text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(name)
    assert file is not None
    return file.read().decode()


def test_an_editable_installation_finds_the_library(
    tmp_path: Path, checkout: Path, echo_url: str, clean_environment: dict[str, str]
) -> None:
    (checkout / "build").mkdir()
    shutil.copy(os.environ["LIBREALTIME_PATH"], checkout / "build")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    source = checkout / "bindings" / "python"
    install = [python, "-m", "pip", "install", "--no-index", "-e", source]
    for _ in range(2):
        run(*install, environment=clean_environment)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("str(loader.PACKAGED)", "str(loader.PACKAGED.resolve())"))
    printed = run(python, program, echo_url, environment=clean_environment)
    assert printed.splitlines()[:2] == ["through the wheel", "b'blocking'"]
    (source / "src" / "librealtime" / "added.py").write_text("VALUE = 5")
    added = run(python, "-c", "import librealtime.added as it; print(it.VALUE)")
    assert added == "5\n"
