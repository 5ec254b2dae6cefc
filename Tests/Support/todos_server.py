#!/usr/bin/env python3
"""A Meteor server with the app of the examples `todos`, until Ctrl-C. docs/meteor.md shows the same
app as a Meteor program.

    todos_server.py [--port N] [--delay SECONDS]
"""

import argparse
import contextlib
import signal
import sys
from typing import Any

from ddp_server import DDPServer


def serve_todos(control: Any, before_adding: dict[str, Any]) -> None:
    """Declares the app.

    :param before_adding: what the method `addTodo` does first.
    """
    for name in ("lists", "todos"):
        control.collection(name)
    control.publication("lists", cursors=[{"collection": "lists"}])
    # By the list's name, or by its id in the examples with models.
    selectors = ({field: {"$param": 0}} for field in ("list", "listId"))
    cursors = [{"collection": "todos", "selector": selector} for selector in selectors]
    control.publication("todos", cursors=cursors)
    insert = {"op": "insert", "collection": "todos", "doc": {"$param": 0}}
    control.method("addTodo", [before_adding, {**insert, "save": "id"}, RETURN_ID])


RETURN_ID = {"op": "return", "value": {"$var": "id"}}


def main() -> None:
    parser = argparse.ArgumentParser(description="A Meteor server for the examples `todos`.")
    parser.add_argument("--port", type=int, default=3000)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds that addTodo takes")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        try:
            with DDPServer(port=arguments.port) as server:
                serve_todos(server.control, {"op": "sleep", "seconds": arguments.delay})
                print(f"A Meteor server for the examples: {server.http}", flush=True)
                signal.pause()
        except OSError as error:
            sys.exit(f"todos_server: port {arguments.port} cannot be used: {error.strerror}")


if __name__ == "__main__":
    main()
