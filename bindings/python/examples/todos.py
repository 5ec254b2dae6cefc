# Ann and Ben share a list of todos on a Meteor server. Each sees their own change at once, and the
# other's when the server has made it. Ben even makes one while his connection is lost.
#
#     todos.py [URL]
import asyncio
import secrets
import sys
from typing import Any

from librealtime import DDPChange, DDPClient, DDPStatusChange, DDPStub

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:3000"
# Each run has a list of its own.
LIST = secrets.token_hex(4)


def add_todo(run: DDPStub, todo: dict[str, Any]) -> None:
    """A stub: does here what the server's method will do."""
    run.insert("todos", todo)


class Person:
    """Prints the list whenever it changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = asyncio.Event()
        self.client = DDPClient(URL, on_status=self.print_status)
        self.client.set_stub("addTodo", add_todo)
        self.todos = self.client.collection("todos")
        self.todos.observe(self.print_list)

    def print_status(self, change: DDPStatusChange) -> None:
        print(f"{self.name} is {change.status}" + (f": {change.error}" if change.error else ""))

    def print_list(self, change: DDPChange) -> None:
        if change.is_last:
            todos = self.todos.find(sort={"text": 1})
            texts = [f"[{'x' if todo['done'] else ' '}] {todo['text']}" for todo in todos]
            print(f"{self.name} sees {', '.join(texts) or 'an empty list'}")
            self.changed.set()

    async def sees(self, *todos: dict[str, Any]) -> None:
        """Waits until the list has these, and no others."""
        while self.todos.find(fields={"text": 1, "done": 1, "_id": 0}) != list(todos):
            self.changed.clear()
            await self.changed.wait()


async def main() -> None:
    ann, ben = Person("Ann"), Person("Ben")
    async with ann.client, ben.client:
        await ann.client.subscribe("todos", LIST)
        await ben.client.subscribe("todos", LIST)

        print("-- Ann adds a todo. She sees it before the server has answered.")
        milk = {"text": "Buy milk", "done": False}
        await ann.client.call("addTodo", {"list": LIST, **milk})
        print("-- The server has added it, so Ben sees it, too.")
        await ben.sees(milk)

        print("-- Ben's connection is lost. He does the todo, and sees that at once.")
        ben.client.reconnect()
        [todo] = ben.todos.find()
        await ben.todos.update(todo["_id"], {"$set": {"done": True}})
        print("-- He is connected again, and his change has reached the server.")
        await ann.sees({**milk, "done": True})

        print("-- Ann removes the todo.")
        await ann.todos.remove(todo["_id"])
        await ben.sees()


asyncio.run(main())
