# Makes a list of todos on a Meteor server, and does one after the other.
#
#     todo_models.py URL LIST TEXT…
#
# The server publishes `lists` and `todos`, and allows their writes: see docs/meteor-models.md, or
# run `make serve-meteor`.
import sys
from dataclasses import dataclass, field
from typing import Optional

from librealtime.ddp_models import Reference, random_id, reference, to_many, to_one
from librealtime.sync import DDPClient


@dataclass
class List:
    """A document of the collection `lists`."""

    name: str = ""
    #: The todos whose documents contain this list's id.
    todos: list[Reference["Todo"]] = to_many(inverse="list", storage=False)  # noqa: RUF009
    id: str = field(default_factory=random_id)


@dataclass
class Todo:
    """A document of the collection `todos`. The id of its list is in the field `listId`."""

    text: str = ""
    done: bool = False
    list: Optional[Reference[List]] = to_one(inverse="todos")  # noqa: RUF009
    id: str = field(default_factory=random_id)


url, name, *texts = sys.argv[1:]
with DDPClient(url) as client:
    models = client.models(List, Todo)
    shopping = List(name)
    # As a parameter, an object becomes its id.
    client.load(["lists", ("todos", shopping)])

    # Here these are one change; the server gets an insertion for each.
    models.save(shopping, *(Todo(text, list=reference(shopping)) for text in texts))

    found: dict[str, Todo] = {}
    for changes in models.observe(Todo, {"done": False}, sort={"text": 1}):
        found.update((todo.id, todo) for todo in [*changes.inserted, *changes.updated])
        left = [found[key] for key in changes.ids]
        print(f"{name}: {', '.join(todo.text for todo in left)}")
        if not left:
            break
        # The todo leaves the result now. `completed` also waits for the server.
        left[0].done = True
        models.save(left[0]).completed()

    for made in models.all(List, shopping.id):
        done = sorted(todo.text for todo in models.follow(Todo, made.todos))
        print(f"done: {', '.join(done)}")
