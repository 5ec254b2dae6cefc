"""The examples of METEOR.md run as they are, against a server that behaves like Meteor."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from meteor import opened

import librealtime

GUIDE = (Path(__file__).parents[1] / "METEOR.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def block(part: str) -> str:
    """The only example that contains this text."""
    (found,) = [one for one in BLOCKS if part in one]
    return found


class Printed:
    """Takes the place of `print`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, *values: Any) -> None:
        self.lines.append(" ".join(map(str, values)))
        self._changed.set()

    async def until(self, line: str) -> None:
        while line not in self.lines:
            self._changed.clear()
            await self._changed.wait()


async def runs(text: str, last_line: str, names: dict[str, Any]) -> list[str]:
    """Runs an example until it prints a line; it may be endless.

    :returns: what it has printed.
    """
    printed = names["print"] = Printed()
    code = compile(
        text, "METEOR.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    made: Any = eval(code, names)
    task = asyncio.ensure_future(made) if inspect.isawaitable(made) else None
    waiting = asyncio.ensure_future(printed.until(last_line))
    done, _ = await asyncio.wait(
        [one for one in (task, waiting) if one], return_when=asyncio.FIRST_COMPLETED
    )
    if waiting not in done:
        assert task is not None
        await task
        waiting.cancel()
        assert last_line in printed.lines
    if task is not None and not task.done():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    return printed.lines


@pytest.fixture
def tasks_app(app):
    control = app.control
    control.settings(logins=0)
    for name in ("tasks", "todos", "lists", "todoLists"):
        control.collection(name, insert=True, update=True, remove=True)
        for document in control.find(name):
            control.remove(name, document["_id"])
    control.insert(
        "tasks",
        {"_id": "b", "text": "bread", "done": False},
        {"_id": "c", "text": "cake", "done": False},
    )
    control.insert("todoLists", {"_id": "l", "name": "Groceries"})
    names = ("tasks", "todos", "todoLists")
    control.publication("tasks", cursors=[{"collection": name} for name in names])
    made = {"text": {"$param": 0}, "done": False}
    control.method("addTask", [{"op": "insert", "collection": "tasks", "doc": made}])
    if not any(one.get("username") == "ada" for one in control.find("users")):
        control.user(username="ada", password="secret")
    return app


def test_each_example_is_known():
    assert len(BLOCKS) == 7


def test_the_first_example(run, tasks_app, tmp_path, monkeypatch):
    async def main():
        monkeypatch.chdir(tmp_path)  # for the file of tokens
        text = block("token_file").replace("https://example.org", tasks_app.url)
        lines = await runs(text, "['Buy milk', 'bread', 'cake']", {"librealtime": librealtime})
        assert "bread" in lines[0]

    run(main())


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (".observe():", ["added b before None", "added c before None"]),
        ("observe_indexes", ["['bread', 'cake']"]),
    ],
)
def test_live_queries(run, tasks_app, part, lines):
    async def main():
        async with opened(librealtime.DDPClient, tasks_app) as client:
            await client.subscribe("tasks")
            names = {"tasks": client.collection("tasks")}
            assert await runs(block(part), lines[-1], names) == lines

    run(main())


def test_batches_and_stubs(run, tasks_app):
    async def main():
        async with opened(librealtime.DDPClient, tasks_app) as client:
            await client.subscribe("tasks")
            tasks, names = client.collection("tasks"), {"client": client}
            await runs(block("batch") + "print('end')", "end", names)
            assert [one["text"] for one in tasks.find(sort={"text": 1})] == ["bread", "milk"]
            made = names["milk"].stub_value
            assert names["print"].lines[0] == f"{made} {[made, 1, 1]}"

    async def stub():
        async with opened(librealtime.DDPClient, tasks_app) as client:
            await client.subscribe("tasks")
            await runs(block("@client.stub") + "print('end')", "end", {"client": client})
            call = client.send("addTask", "tea")
            tea = client.collection("tasks").find_one({"text": "tea"})
            assert len(tea["key"]) == 6
            await call

    run(main())
    run(stub())


def test_documents_of_the_last_run(run, tasks_app, tmp_path, monkeypatch):
    async def main():
        monkeypatch.chdir(tmp_path)
        text = block("document_file").replace("https://example.org", tasks_app.url)
        for last in ("up to date []", "up to date ['bread', 'cake']"):
            names = {"librealtime": librealtime}
            lines = await runs(text + "print('end')", "end", names)
            assert last in lines
        assert lines[0] == "as of the last run ['bread', 'cake']"

    run(main())


def test_models(run, tasks_app, monkeypatch):
    async def main():
        # Classes belong to a module.
        module = types.ModuleType("guide")
        monkeypatch.setitem(sys.modules, "guide", module)
        async with opened(librealtime.DDPClient, tasks_app) as client:
            await client.subscribe("tasks")
            module.client = client
            lines = await runs(block("TodoList"), "['milk']", vars(module))
            vars(module).clear()
            assert lines == ["Groceries milk", "['milk']"]

    run(main())
