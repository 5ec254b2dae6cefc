"""The programs of the README and docs/examples.md, against the demo server and against Nchan."""

import pathlib
import re
import subprocess
import sys
import threading

import pytest
from command_line import Tool
from demo_process import DemoProcess
from harness import PATIENCE_S, ROOT, Build, expect, swift
from nchan import Nchan

PYTHON = ROOT / "bindings" / "python"
DEMO = "127.0.0.1:8080"

languages = pytest.mark.parametrize("language", ["c", "python", pytest.param("swift", marks=swift)])


def arguments(program: str, demo: DemoProcess) -> list[str]:
    """What the table of docs/examples.md says, for this run's server."""
    page = (ROOT / "docs" / "examples.md").read_text()
    found = re.search(rf"^\| \[?`{program}`\S* \| `(.*?)`", page, re.M)
    assert found, f"docs/examples.md has no row for {program}"
    words = found[1].replace(DEMO, demo.address)
    return words.replace(DEMO.replace(":", " "), demo.address.replace(":", " ")).split()


def first_lines(
    build: Build, language: str, name: str, *arguments: str, count: int = 1
) -> list[str]:
    """Returns the program's first lines, which it writes into a pipe at once; then ends it."""
    program: list[str | pathlib.Path] = [sys.executable, PYTHON / "examples" / f"{name}.py"]
    if language != "python":
        program = [build.example(name) if language == "c" else build.swift_example(name)]
    process = subprocess.Popen(
        [*program, *arguments],
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
@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("readme", "hello"),
        ("read_events", r"tick: [-0-9]+T[:0-9]+Z"),
        ("fetch", "attempt 3 succeeds"),
    ],
)
def test_against_the_demo_server(
    build: Build, demo: DemoProcess, language: str, program: str, line: str
) -> None:
    (printed,) = first_lines(build, language, program, *arguments(program, demo))
    expect(re.fullmatch(line, printed) is not None, f"printed {printed!r}")


@languages
def test_reads_messages_from_the_demo_server(
    build: Build, demo: DemoProcess, language: str
) -> None:
    base, path = arguments("read_messages", demo)
    path = f"{path}_{language}"
    texts = [f"number {number}" for number in range(3)]
    demo.publish(path.removeprefix("channel/"), *texts)
    lines = first_lines(build, language, "read_messages", base, path, count=3)
    expect([line.partition(" ")[2] for line in lines] == texts, f"printed {lines}")


def test_the_tool_against_the_demo_server(tool: Tool, demo: DemoProcess) -> None:
    """The examples of --help, which take the demo server's address."""
    text = tool.run("--help").stdout.replace(DEMO, demo.address)
    options = {"ws": ["--close"], "sse": ["--count", "1"], "listen": ["--count", "1"], "post": []}
    lines = dict(re.findall(rf"^  realtime (\w+) (.*{demo.address}.*)$", text, re.M))
    expect(lines.keys() == options.keys(), text)
    # What `listen` prints is published before.
    for command in reversed(options):
        printed = tool.run(
            command, *lines[command].split(), *options[command], text="hello\n"
        ).stdout
        expected = {"sse": r"[-0-9]+T[:0-9]+Z", "post": r"\{\s+\"id\": .*\s+\}"}.get(
            command, "hello"
        )
        expect(re.fullmatch(expected, printed.strip()) is not None, f"{command}: {printed}")


@languages
def test_greets(build: Build, nchan: Nchan, language: str) -> None:
    """Nchan sends a message to all subscribers of the channel, including its sender."""
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
