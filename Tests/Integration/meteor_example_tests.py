"""The Meteor programs of the README and of docs/meteor.md, against the Meteor test server."""

import json
import re
import signal
import subprocess
import sys

import pytest
from command_line import Tool
from ddp_server import DDPServer
from demo_todos import complaint
from harness import ROOT, Build, expect, swift
from pusher_example_tests import Program
from readme_tests import languages
from todos_server import serve_todos


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    """A server whose method waits."""
    serve_todos(ddp_server.control, {"op": "hold"})
    return ddp_server


def add(server: DDPServer, tool: Tool, text: str) -> str:
    """Adds a todo by the tool; returns its id."""
    todo = f'{{"list":"home","text":"{text}","done":false}}'
    result = tool.start("ddp", server.http, "call", "addTodo", todo)
    server.control.wait_held()
    server.control.release()
    said, _ = result.communicate()
    expect(result.returncode == 0, f"exit code {result.returncode}")
    return str(json.loads(said))


@languages
def test_shares_todos(build: Build, server: DDPServer, language: str) -> None:
    lines: list[str] = []
    with Program(build, language, "todos", server.http) as program:

        def read_until(begin: str) -> None:
            while not (lines and lines[-1].startswith(begin)):
                lines.append(program.line().strip())
                expect(lines[-1] != "", f"it ended after {lines}")

        # Ann sees her todo while the method has not even begun to write.
        server.control.wait_held()
        read_until("-- Ann adds")
        read_until("Ann sees")
        expect(server.control.find("todos") == [], "the server has it already")
        server.control.release()
        # Ben's change goes to another connection than his subscription.
        read_until("-- Ann removes")
        expect(len(server.control.log(what="open")) == 3, "Ben's connection was not lost")
        read_until("Ben sees an empty")
        while line := program.line().strip():
            lines.append(line)
        expect(program.end() == 0, f"it failed after {lines}")
    expect(complaint(lines) is None, f"{complaint(lines)}: {lines}")
    expect(server.control.find("todos") == [], "the server still has it")


@languages
def test_todos_reports_refusals(build: Build, ddp_server: DDPServer, language: str) -> None:
    """The server has no such publication."""
    with Program(build, language, "todos", ddp_server.http) as program:
        program.process.wait()
        expect(program.process.returncode not in (0, -signal.SIGKILL), "it did not fail")


@languages
def test_reads_todos(build: Build, server: DDPServer, tool: Tool, language: str) -> None:
    bread = add(server, tool, "Buy bread")
    with Program(build, language, "read_todos", server.http, "home") as program:
        expect(program.line() == "The list:", "the list was expected")
        expect("Buy bread" in program.line(), "the todo was expected")
        add(server, tool, "Buy a hat")
        lines = [program.line() for _ in range(3)]
        expect(lines[0] == "The list:" and "a hat" in lines[1] and "bread" in lines[2], f"{lines}")
        server.control.end("reset")
        server.control.remove("todos", bread)
        lines = [program.line() for _ in range(2)]
        expect(lines[0] == "The list:" and "a hat" in lines[1], f"{lines}")


@pytest.mark.parametrize("language", ["python", pytest.param("swift", marks=swift)])
def test_models(build: Build, ddp_server: DDPServer, language: str) -> None:
    control = ddp_server.control
    for name in ("lists", "todos"):
        control.collection(name)
    control.publication("lists", cursors=[{"collection": "lists"}])
    selector = {"listId": {"$param": 0}}
    control.publication("todos", cursors=[{"collection": "todos", "selector": selector}])
    # A todo of another list, which the program must not see.
    control.insert("todos", many=[{"_id": "t", "text": "rest", "done": False, "listId": "l"}])

    words = ("Groceries", "milk", "eggs", "bread")
    with Program(build, language, "todo_models", ddp_server.http, *words) as program:
        assert program.process.stdout
        lines = program.process.stdout.read().splitlines()
        expect(program.end() == 0, f"it failed after {lines}")
    expect(
        lines
        == [
            "Groceries: bread, eggs, milk",
            "Groceries: eggs, milk",
            "Groceries: milk",
            "Groceries: ",
            "done: bread, eggs, milk",
        ],
        f"it printed {lines}",
    )
    lists = control.find("lists")
    expect([entry["name"] for entry in lists] == ["Groceries"], f"the lists are {lists}")
    todos = {entry["text"]: entry for entry in control.find("todos")}
    for text in ("milk", "eggs", "bread"):
        todo = todos[text]
        expect(todo["done"] is True and todo["listId"] == lists[0]["_id"], f"{text} is {todo}")
    expect(todos["rest"]["done"] is False, "the other list's todo has changed")


def test_the_server_of_the_guide(build: Build, tool: Tool) -> None:
    """`make serve-meteor` serves what the guide calls."""
    command = [sys.executable, ROOT / "Tests/Support/todos_server.py", "--port", "0"]
    with subprocess.Popen([*command, "--delay", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().split()[-1]
            page = (ROOT / "docs/meteor.md").read_text()
            found = re.search(r"realtime ddp http://127.0.0.1:3000 call addTodo '(.*)'", page)
            assert found
            id = json.loads(tool.run("ddp", url, "call", "addTodo", found[1]).stdout)
            said = tool.run("ddp", url, "sub", "todos", "home", "--once").stdout
            expect(said.startswith(f"added todos {id} "), said)
            process.send_signal(signal.SIGINT)
            expect(process.wait() == 0, "it failed")
        finally:
            process.kill()
