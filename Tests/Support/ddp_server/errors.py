"""The errors that a Meteor server sends."""

from __future__ import annotations

from typing import Any


class MeteorError(Exception):
    """An error that clients may see. Any other exception becomes 500 for them."""

    def __init__(self, error: int | str, reason: str | None = None, details: Any = None) -> None:
        super().__init__(error, reason)
        self.error, self.reason, self.details = error, reason, details

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"isClientSafe": True, "error": self.error}
        if self.reason is not None:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = self.details
        found["message"] = f"{self.reason} [{self.error}]" if self.reason else f"[{self.error}]"
        return {**found, "errorType": "Meteor.Error"}


def visible(error: Exception) -> MeteorError:
    """What the client sees of an error."""
    return error if isinstance(error, MeteorError) else MeteorError(500, "Internal server error")


def check(params: list[Any], kinds: list[str]) -> None:
    """Checks the kinds of the parameters, as methods and publications do with `check`."""
    for index, kind in enumerate(kinds):
        value = params[index] if index < len(params) else None
        if not isinstance(value, KINDS[kind]) or (kind == "number" and isinstance(value, bool)):
            raise MeteorError(400, "Match failed")


KINDS: dict[str, type | tuple[type, ...]] = {
    "any": object,
    "array": list,
    "boolean": bool,
    "number": (int, float),
    "object": dict,
    "string": str,
}
