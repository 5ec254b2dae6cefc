"""Collections in memory, with the small part of Mongo's language that the server needs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ddp_server.ejson import ObjectID, equal, id_to_wire
from ddp_server.errors import MeteorError

#: A document's fields, without its id.
Document = dict[str, Any]
#: Receives the id, and the fields before and after a change; None where the document is absent.
Observer = Callable[[Any, "Document | None", "Document | None"], None]


class Collection:
    """Its observers are notified of each change at once."""

    def __init__(self, name: str, ids: str = "string") -> None:
        self.name = name
        self.ids = ids  # or objectId: what new ids are
        #: What clients may do by themselves. A collection without a name has no such methods.
        self.allows = {"insert": True, "update": True, "remove": True}
        self.observers: list[Observer] = []
        # By their ids in wire form.
        self._documents: dict[str, tuple[Any, Document]] = {}

    def all(self) -> list[tuple[Any, Document]]:
        return list(self._documents.values())

    def get(self, id: Any) -> Document | None:
        found = self._documents.get(id_to_wire(id))
        return found[1] if found else None

    def insert(self, id: Any, fields: Document) -> None:
        key = id_to_wire(id)
        if key in self._documents:
            raise MeteorError(409, f"E11000 duplicate key error collection: {self.name} {key}")
        self._set(id, None, copy.deepcopy(fields))

    def update(self, id: Any, modifier: Any) -> int:
        """Changes a document; returns how many there are, 0 or 1."""
        before = self.get(id)
        if before is None:
            return 0
        self._set(id, before, modified(before, modifier))
        return 1

    def remove(self, id: Any) -> int:
        before = self.get(id)
        if before is None:
            return 0
        self._set(id, before, None)
        return 1

    def _set(self, id: Any, before: Document | None, after: Document | None) -> None:
        key = id_to_wire(id)
        if after is None:
            del self._documents[key]
        else:
            self._documents[key] = (id, after)
        for observer in list(self.observers):
            observer(id, before, after)


# Selectors


def selects(selector: Any, id: Any, fields: Document) -> bool:
    """Whether a document matches: an id, or values for dotted paths, with $in, $ne and $exists."""
    if not isinstance(selector, dict):
        return equal(selector, id)
    return all(
        _matches(wanted, _at({"_id": id, **fields}, key)) for key, wanted in selector.items()
    )


def _matches(wanted: Any, values: list[Any]) -> bool:
    """values: what there is at a path; an array's elements follow it."""
    if isinstance(wanted, dict) and wanted and all(key.startswith("$") for key in wanted):
        return all(_operate(operator, operand, values) for operator, operand in wanted.items())
    return any(equal(wanted, value) for value in values) or (wanted is None and not values)


def _operate(operator: str, operand: Any, values: list[Any]) -> bool:
    if operator == "$in":
        return any(_matches(one, values) for one in operand)
    if operator == "$ne":
        return not _matches(operand, values)
    if operator == "$exists":
        return bool(values) == bool(operand)
    raise ValueError(f"the server does not know {operator}")


def _at(value: Any, path: str) -> list[Any]:
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    return [value, *value] if isinstance(value, list) else [value]


def id_of(selector: Any) -> Any:
    """The id that a client's selector names. Clients may not name documents otherwise."""
    if isinstance(selector, dict) and set(selector) == {"_id"}:
        selector = selector["_id"]
    if not isinstance(selector, (str, ObjectID)):
        reason = "Not permitted. Untrusted code may only change documents by ID."
        raise MeteorError(403, reason)
    return selector


def projected(fields: Document, names: list[str] | None) -> Document:
    """The top-level fields that a publication sends."""
    return {key: value for key, value in fields.items() if names is None or key in names}


# Modifiers


def modified(fields: Document, modifier: Any) -> Document:
    """The fields after a modifier, or the modifier itself if it is a plain document."""
    if not isinstance(modifier, dict):
        raise MeteorError(400, "Match failed")
    operators = [key for key in modifier if key.startswith("$")]
    if not operators:
        return copy.deepcopy({key: value for key, value in modifier.items() if key != "_id"})
    if len(operators) < len(modifier):
        raise MeteorError(
            409, "Update parameter cannot have both modifier and non-modifier fields."
        )
    changed = copy.deepcopy(fields)
    for operator, changes in modifier.items():
        if operator not in _OPERATORS or not isinstance(changes, dict):
            raise MeteorError(403, f"Access denied. Operator {operator} not allowed.")
        for path, operand in changes.items():
            if path == "_id":
                raise MeteorError(409, "Mod on _id not allowed")
            _OPERATORS[operator](*_parent(changed, path, operator != "$unset"), operand)
    return changed


def _parent(value: Any, path: str, makes: bool) -> tuple[Any, str]:
    """The object or array that has the last part of a path, and that part."""
    *parts, last = path.split(".")
    for part in parts:
        if isinstance(value, list):
            index = int(part) if part.isdigit() else -1
            value = value[index] if 0 <= index < len(value) else None
        elif isinstance(value, dict):
            if part not in value and makes:
                value[part] = {}
            value = value.get(part)
    if not isinstance(value, (dict, list)) and makes:
        raise MeteorError(409, f"Cannot create a field at {path}")
    return value, last


def _get(parent: Any, key: str) -> Any:
    if isinstance(parent, list):
        return parent[int(key)] if key.isdigit() and int(key) < len(parent) else None
    return parent.get(key)


def _set(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = copy.deepcopy(value)
    elif not key.isdigit():
        raise MeteorError(409, f"Cannot create field {key} in an array")
    else:
        parent.extend([None] * (int(key) + 1 - len(parent)))
        parent[int(key)] = copy.deepcopy(value)


def _unset(parent: Any, key: str, _: Any) -> None:
    if isinstance(parent, dict):
        parent.pop(key, None)
    elif isinstance(parent, list) and _get(parent, key) is not None:
        parent[int(key)] = None


def _increase(parent: Any, key: str, amount: Any) -> None:
    present = _get(parent, key)
    for value in (0 if present is None else present, amount):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise MeteorError(409, f"Cannot apply $inc to {key}: not a number")
    _set(parent, key, (present or 0) + amount)


def _push(parent: Any, key: str, value: Any) -> None:
    present = _get(parent, key)
    if present is not None and not isinstance(present, list):
        raise MeteorError(409, f"Cannot apply $push to {key}: not an array")
    is_each = isinstance(value, dict) and set(value) == {"$each"}
    _set(parent, key, [*(present or []), *(value["$each"] if is_each else [value])])


_OPERATORS: dict[str, Callable[[Any, str, Any], None]] = {
    "$set": _set,
    "$unset": _unset,
    "$inc": _increase,
    "$push": _push,
}
