"""Models: dataclasses whose objects are documents of a Meteor server.

    @dataclass
    class TodoList:
        name: str = ""
        todos: list[Reference["Todo"]] = to_many(inverse="list", storage=False)
        id: str = field(default_factory=random_id)

    @dataclass
    class Todo:
        text: str = ""
        done: bool = False
        due: Optional[datetime] = None
        list: Optional[Reference[TodoList]] = to_one(inverse="todos")
        id: str = field(default_factory=random_id)

    models = client.models(TodoList, Todo)
    for todo in models.all(Todo, {"done": False}, sort={"text": 1}):
        todo_list = models.follow(TodoList, todo.list)
        todo.done = True
        models.save(todo)

A class needs the field ``id``, a str or an ``ObjectID``; it is ``_id`` in documents. The collection
is named after the class, ``todoLists``; the attribute ``__collection__`` names another one. Each
field has the same name in documents; ``stored`` gives it another one. Fields with ``init=False``
are not stored.

A field of type ``Optional[Reference[Other]]`` or ``list[Reference[Other]]`` is a relationship, with
the field ``listId`` or ``todoIds``; ``to_one`` and ``to_many`` say more about it. Here only todos
contain references (one-way storage): ``todos`` of a list is found by searching the todos when the
list is read, and to save it changes the todos. With two-way storage, which is the default, both
documents contain references, and saving one side changes the other one too.

Values may be all those of ``ejson``, enumerations, other dataclasses, lists, tuples and dicts of
them. An object of another dataclass is one field: it is written as a whole. A field that a document
lacks has its default, because publications choose which fields they publish. None is stored as a
missing field, or as null if the default is not None.
"""

from ._ddp.errors import DDPModelError
from ._ddp.model_fields import (
    Reference,
    random_id,
    random_object_id,
    reference,
    stored,
    to_many,
    to_one,
)
from ._ddp.models import DDPModelChanges, DDPObject, DDPObjectChanges

__all__ = [
    "DDPModelChanges",
    "DDPModelError",
    "DDPObject",
    "DDPObjectChanges",
    "Reference",
    "random_id",
    "random_object_id",
    "reference",
    "stored",
    "to_many",
    "to_one",
]
