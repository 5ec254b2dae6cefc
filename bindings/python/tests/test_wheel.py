"""The wheel, installed into a fresh virtual environment where nothing else names the library."""

from __future__ import annotations

import os
import subprocess
import sys
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
