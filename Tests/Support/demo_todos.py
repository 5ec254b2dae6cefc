"""The part of the demo in which programs in C, Python and Swift share a list on a Meteor server:
each runs two clients, sees changes at once, and loses a connection without a flicker."""

import os
import pathlib
import subprocess
import sys
import threading

from ddp_server import DDPServer
from todos_server import serve_todos

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON_TODOS = ROOT / "bindings" / "python" / "examples" / "todos.py"
# So slow that a reader can see which change comes before the server's answer.
ADDING_S = 0.5
# A guard against hanging.
PATIENCE_S = 60
NOTHING = "an empty list"


def lists(lines: list[str], name: str) -> list[str]:
    """The lists that a person has seen, in short: C prints the documents as EJSON."""
    seen = [line.partition(" sees ")[2] for line in lines if line.startswith(f"{name} sees ")]
    short = {
        '{"text":"Buy milk","done":false}': "[ ] Buy milk",
        '{"text":"Buy milk","done":true}': "[x] Buy milk",
    }
    return [short.get(one, one) for one in seen]


def complaint(lines: list[str]) -> str | None:
    """What is wrong with the lines of a program. Each person must see each list once: a list that
    comes back, even for a moment, would be a flicker."""
    expected = ["[ ] Buy milk", "[x] Buy milk", NOTHING]
    for name in ("Ann", "Ben"):
        seen = lists(lines, name)
        # Swift also reports the empty list that a query begins with.
        if (seen[1:] if seen[:1] == [NOTHING] else seen) != expected:
            return f"{name} saw {seen}, and not {expected}"
    if lines.count("Ben is connected") != 2 or lines.count("Ann is connected") != 1:
        return "Ann must connect once, and Ben twice"
    answered = next(n for n, line in enumerate(lines) if line.startswith("-- The server has added"))
    if expected[0] not in lists(lines[:answered], "Ann"):
        return "Ann saw her change only after the server had answered"
    if expected[0] in lists(lines[:answered], "Ben"):
        return "Ben saw Ann's change before the server had made it"
    return None


def todos(commands: dict[str, list[str]], library: pathlib.Path) -> bool:
    """Runs the programs, which the languages name, one after the other."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "LIBREALTIME_PATH": str(library / "librealtime.so"),
        "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
    }
    print("\nNow two clients share a list on a Meteor server, and one loses its connection:")
    with DDPServer() as server:
        serve_todos(server.control, {"op": "sleep", "seconds": ADDING_S})
        for language, command in commands.items():
            print(f"\n  {language}: todos {server.http}", flush=True)
            lines = run(language, [*command, server.http], environment)
            if wrong := complaint(lines):
                print(f"\ntodos: FAILED: {language}: {wrong}")
                return False
    print("\ntodos: ok: each saw every change once, and nothing flickered")
    return True


def run(language: str, command: list[str], environment: dict[str, str]) -> list[str]:
    """Runs a program to its end and prints its lines as they come."""
    lines = []
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )
    guard = threading.Timer(PATIENCE_S, process.kill)
    guard.start()
    assert process.stdout
    for line in process.stdout:
        lines.append(line.rstrip())
        print(f"  {language:<7}| {lines[-1]}", flush=True)
    code = process.wait()
    guard.cancel()
    return lines if code == 0 else [*lines, f"ended with code {code}"]


def commands(folder: pathlib.Path, swift: pathlib.Path) -> dict[str, list[str]]:
    """The programs, built into two folders."""
    return {
        "C": [str(folder / "todos")],
        "Python": [sys.executable, str(PYTHON_TODOS)],
        "Swift": [str(swift / "todos")],
    }
