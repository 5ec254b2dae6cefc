"""Where the shared library is searched, and the error if it is not found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from librealtime._core import abi, loader

LIBRARY = Path(os.environ["LIBREALTIME_PATH"]).resolve()
LOADED = "import librealtime; print(open('/proc/self/maps').read())"


def test_the_environment_comes_first(script, environment, tmp_path):
    elsewhere = tmp_path / "elsewhere.so"
    elsewhere.write_bytes(LIBRARY.read_bytes())
    environment["LIBREALTIME_PATH"] = str(elsewhere)
    result = script(LOADED)
    assert result.returncode == 0, result.stderr
    assert str(elsewhere) in result.stdout


@pytest.mark.skipif(loader.PACKAGED.exists(), reason="the packaged file comes first")
def test_the_systems_library_comes_last(script, environment, tmp_path):
    del environment["LIBREALTIME_PATH"]
    installed = tmp_path / loader.SONAME
    installed.write_bytes(LIBRARY.read_bytes())
    environment["LD_LIBRARY_PATH"] = str(tmp_path)
    result = script(LOADED)
    assert result.returncode == 0, result.stderr
    assert str(installed) in result.stdout


def test_an_import_without_a_library_names_what_was_tried(script, environment):
    environment["LIBREALTIME_PATH"] = "/nowhere/librealtime.so"
    result = script("import librealtime")
    assert result.returncode == 1
    assert "ImportError" in result.stderr
    assert "/nowhere/librealtime.so" in result.stderr
    assert "LIBREALTIME_PATH" in result.stderr


@pytest.mark.skipif(loader.PACKAGED.exists(), reason="the packaged file is found")
def test_without_a_path_every_place_is_named(script, environment):
    del environment["LIBREALTIME_PATH"]
    environment["LD_LIBRARY_PATH"] = "/nowhere"
    program = """
from unittest import mock
with mock.patch("ctypes.CDLL", side_effect=OSError("cannot open")):
    import librealtime
"""
    result = script(program)
    assert result.returncode == 1
    assert f"{loader.SONAME}: cannot open" in result.stderr
    assert str(loader.PACKAGED) in result.stderr


def test_another_library_is_refused(script, environment):
    environment["LIBREALTIME_PATH"] = "libc.so.6"
    result = script("import librealtime")
    assert result.returncode == 1
    assert "ImportError" in result.stderr
    assert "libc.so.6" in result.stderr


def test_the_table_is_the_librarys_version():
    assert loader.lib.rt_version().decode() == abi.VERSION
