"""Handlers that can be replaced at any time."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, overload

from .awaiting import check_function

F = TypeVar("F")


class Handler(Generic[F]):
    """A handler attribute of an object that has `_handlers`; the last value set counts."""

    def __init__(self, doc: str = "May be set at any time; None removes it.") -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Handler[F]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> F: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else getattr(owner._handlers, self._name)

    def __set__(self, owner: Any, handler: F) -> None:
        check_function(handler, self._name)
        owner._set_handler(self._name, handler)
