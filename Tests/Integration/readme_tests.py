"""The programs that the README shows, against the server that it names."""

import pathlib
import subprocess
import sys
import threading

import pytest
from harness import PATIENCE_S, ROOT, Build, expect, swift
from nchan import Nchan

PYTHON = ROOT / "bindings" / "python"

languages = pytest.mark.parametrize("language", ["c", "python", pytest.param("swift", marks=swift)])


def first_lines(
    build: Build, language: str, name: str, *arguments: str, count: int = 1
) -> list[str]:
    """What it prints first; then it is ended."""
    program: list[str | pathlib.Path] = [sys.executable, PYTHON / "examples" / f"{name}.py"]
    if language != "python":
        program = [build.example(name) if language == "c" else build.swift_example(name)]
    # Swift's print would wait for a full buffer.
    process = subprocess.Popen(
        ["stdbuf", "-oL", *program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**build.environment(False), "PYTHONPATH": str(PYTHON / "src")},
    )
    assert process.stdout is not None
    guard = threading.Timer(PATIENCE_S, process.kill)
    guard.start()
    with process:
        try:
            return [process.stdout.readline().rstrip("\n") for _ in range(count)]
        finally:
            guard.cancel()
            process.kill()


@languages
def test_greets(build: Build, nchan: Nchan, language: str) -> None:
    """Nchan sends a message to all who read the channel, its sender too."""
    lines = first_lines(build, language, "readme", nchan.url(f"/ps/readme_{language}"))
    expect(lines == ["hello"], f"printed {lines}")


@languages
def test_reads_events(build: Build, nchan: Nchan, language: str) -> None:
    channel = f"readme_events_{language}"
    for number in range(3):
        nchan.publish(channel, f"number {number}")
    url = nchan.url(f"/ps/{channel}", "http")
    lines = first_lines(build, language, "read_events", url, count=3)
    expect(lines == [f"message: number {number}" for number in range(3)], f"printed {lines}")


@languages
def test_fetches(build: Build, nchan: Nchan, language: str) -> None:
    lines = first_lines(build, language, "fetch", nchan.url("/rest/protocol", "http"))
    expect(lines == ["HTTP/1.1"], f"printed {lines}")


@languages
def test_reads_messages(build: Build, nchan: Nchan, language: str) -> None:
    channel = f"readme_messages_{language}"
    for number in range(3):
        nchan.publish(channel, f"number {number}")
    base = nchan.url("", "http")
    lines = first_lines(build, language, "read_messages", base, f"ps/{channel}", count=3)
    texts = [line.partition(" ")[2] for line in lines]
    expect(texts == [f"number {number}" for number in range(3)], f"printed {lines}")
