"""Handlers of events by name, on a connection, a channel or a user."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from .._core.naming import kind_of
from .._core.uncopied import Uncopied
from .._core.values import text
from .event import PusherEvent

EventHandler = Callable[[PusherEvent], object]
H = TypeVar("H", bound=EventHandler)
R = TypeVar("R")


class Binding:
    """A handler and its event. Once it is unbound, it is not called."""

    __slots__ = ("event", "handler", "is_bound")

    def __init__(self, event: str | None, handler: EventHandler) -> None:
        self.event = event
        self.handler = handler
        self.is_bound = True


class Bindings:
    """The handlers of one object, in the order in which they were bound.

    Events look them up without a lock, in tuples that every change replaces.
    """

    def __init__(self, owner: Callable[[], Any]) -> None:
        """:param owner: a weak reference to an object whose `_handlers_changed` is called."""
        #: For events whose name has no handler of its own.
        self.others: tuple[Binding, ...] = ()
        #: For each name that has handlers: these and the ones for all events.
        self.named: dict[str, tuple[Binding, ...]] = {}
        self._all: list[Binding] = []
        # Reentrant: the collector may end an iteration, and so unbind it, during a change.
        self._lock = threading.RLock()
        self._owner = owner

    def __bool__(self) -> bool:
        return any(binding.is_bound for binding in self._all)

    def add(self, event: str | None, handler: EventHandler) -> Binding:
        binding = Binding(event, handler)
        with self._lock:
            self._all.append(binding)
            self._arrange(event)
        self._changed()
        return binding

    def remove(self, matches: Callable[[Binding], bool]) -> None:
        with self._lock:
            gone = [binding for binding in self._all if matches(binding)]
            for binding in gone:
                binding.is_bound = False
            self._all = [binding for binding in self._all if binding.is_bound]
            for event in {binding.event for binding in gone}:
                self._arrange(event)
        if gone:
            self._changed()

    def _changed(self) -> None:
        owner = self._owner()
        if owner is not None:
            owner._handlers_changed()

    def _arrange(self, event: str | None) -> None:
        if event is not None:
            found = tuple(one for one in self._all if one.is_bound and one.event in (None, event))
            if any(one.event is not None for one in found):
                self.named[event] = found
            else:
                self.named.pop(event, None)
            return
        self.others = tuple(one for one in self._all if one.is_bound and one.event is None)
        for name in list(self.named):
            self._arrange(name)


class Bindable(Uncopied):
    """An object to which handlers of events are bound."""

    _bindings: Bindings

    # With the type of a handler spelled out, checkers know what a lambda receives.
    @overload
    def bind(self, event: Callable[[PusherEvent], R]) -> Callable[[PusherEvent], R]: ...
    @overload
    def bind(self, event: str | None = None) -> Callable[[H], H]: ...
    @overload
    def bind(
        self, event: str | None, handler: Callable[[PusherEvent], R]
    ) -> Callable[[PusherEvent], R]: ...
    def bind(self, event: Any = None, handler: Any = None) -> Any:
        """Calls a handler with each ``PusherEvent`` of this name, in the order in which handlers
        are bound. Also a decorator: ``@channel.bind("price")``, or ``@channel.bind`` for all.

        :param event: the exact name; None, or left out, for all events.
        :returns: the handler.
        """
        if callable(event) and handler is None:
            event, handler = None, event
        if handler is None:
            return lambda function: self.bind(event, function)
        _check_name(event)
        if not callable(handler):
            raise TypeError(f"a handler is {kind_of(handler)}; a function is expected")
        self._check_open()
        self._begin_binding()
        self._bindings.add(event, handler)
        return handler

    def unbind(
        self, event: str | EventHandler | None = None, handler: EventHandler | None = None
    ) -> None:
        """Removes handlers, even while an event is being handled: removed ones are not called.

        :param event: the name that they are bound to, or None for those of all events; a handler
            alone is removed wherever it is bound.
        :param handler: only this one. Default: all that are bound to this name.
        """
        if callable(event) and handler is None:
            removed: Any = event
            self._bindings.remove(lambda one: bool(one.handler == removed))
            return
        _check_name(event)
        self._bindings.remove(
            lambda one: one.event == event and (handler is None or one.handler == handler)
        )

    def unbind_all(self, event: str | None = None) -> None:
        """Removes the handlers of an event; without a name, all handlers."""
        _check_name(event)
        self._bindings.remove(lambda one: event is None or one.event == event)

    def _check_open(self) -> None:
        """Raises if no events can come any more."""

    def _begin_binding(self) -> None:
        """Called before a handler is bound."""


def _check_name(event: object) -> None:
    if event is not None:
        text(event, "the name of an event")  # type: ignore[arg-type]
