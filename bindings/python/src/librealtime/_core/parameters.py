"""Keyword parameters of objects. One place defines type, text and default of each parameter, and
one place sets it on the object in C.

Parameters that are plain values are in tables that abigen prints. The others are in groups, some
of which several objects share.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, TypeVar

from .errors import InvalidArgument, InvalidURI, check, naming
from .handle import Handle
from .hints import OF_OBJECTS, hint
from .kind import Kind
from .option_kinds import Table
from .uncopied import Uncopied

T = TypeVar("T", bound="type[Configured]")

#: The given parameters, with the defaults of the groups.
Given = Mapping[str, Any]


class Setup:
    """An object in C that has not started: its functions, which raise an exception on errors."""

    #: The parameters for functions that are called otherwise.
    _OTHERS: ClassVar[Mapping[str, str]] = {
        "set_basic_auth": "auth",
        "set_cookie": "cookies",
        "set_cursor": "id_query_param",
        "set_tokens": "access_token",
        "set_user_agent": "user_agent_header",
    }

    def __init__(self, kind: Kind, handle: Handle, loop: Handle) -> None:
        """:param loop: the loop of the object."""
        self._kind = kind
        self._handle = handle
        self.loop = loop
        #: The names of the parameters of the object.
        self.names: Collection[str] = ()

    def __getattr__(self, name: str) -> Callable[..., None]:
        # No function of its own: a traceback would keep it, and with it the handle.
        return functools.partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> None:
        function: Callable[..., int] = getattr(self._kind, name)
        try:
            check(function(self._handle, *arguments))
        except InvalidArgument as error:
            raise self._named(error, name) from None

    def _named(self, error: InvalidArgument, function: str) -> Exception:
        """What C refuses, such as a URL, with the name of the parameter that has it."""
        stem = function.partition("_")[2]
        other = self._OTHERS.get(function, "")
        if function == "set_auth":
            other = "auth_url" if isinstance(error, InvalidURI) else "base64_credentials"
        for name in (other, stem, f"{stem}s", f"additional_{stem}s"):
            if name in self.names:
                return naming(name, error)
        return error

    def apply(self, table: Table, given: Given) -> None:
        """Sets options that are plain values."""
        table.apply(self._handle, given)


class Group:
    """Parameters that belong together.

    :ivar doc: a ``:param:`` for each, for a docstring that is indented by four.
    """

    def __init__(
        self,
        keywords: type,
        *apply: Callable[[Setup, Given], None],
        others: Collection[str] = (),
        **defaults: Any,
    ) -> None:
        """
        :param keywords: a ``TypedDict`` with their types; its docstring has a ``:param:`` for each.
        :param apply: functions that set them.
        :param others: keywords in it that belong to other groups.
        :param defaults: the defaults that are not None.
        """
        text = inspect.cleandoc(keywords.__doc__ or "")
        self.doc = textwrap.indent("".join(text.partition(":param ")[1:]), " " * 4)
        own = (name for name in keywords.__annotations__ if name not in others)
        self.defaults = dict.fromkeys(own) | defaults
        self.apply = apply


class Options:
    """All keyword parameters of an object: its own, shared ones, and plain values."""

    def __init__(
        self,
        keywords: type,
        *apply: Callable[[Setup, Given], None],
        shared: tuple[Group, ...] = (),
        plain: Table,
        **defaults: Any,
    ) -> None:
        """:param keywords: a ``TypedDict`` with the types of all, and the text of its own."""
        self._types = keywords.__annotations__
        self._plain = plain
        others = [option.name for option in plain]
        others += [name for group in shared for name in group.defaults]
        self._groups = (Group(keywords, *apply, others=others, **defaults), *shared)
        self._defaults: dict[str, Any] = {}
        for group in self._groups:
            self._defaults |= group.defaults
        #: The names of the callbacks.
        self.handlers = [name for name in self._defaults if name.startswith("on_")]

    def complete(self, given: Given) -> dict[str, Any]:
        """The given parameters, with the defaults of all but the plain values."""
        return {**self._defaults, **given}

    def apply(self, setup: Setup, given: Given) -> None:
        setup.names = self._types.keys()
        # First, so that a Backoff overrides delays that are given one by one.
        setup.apply(self._plain, given)
        for group in self._groups:
            for apply in group.apply:
                apply(setup, given)

    @property
    def doc(self) -> str:
        return "\n\n".join([*(group.doc for group in self._groups), self._plain.doc])

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """How a signature shows them."""
        defaults = self._defaults | {option.name: option.default for option in self._plain}
        return [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=getattr(self._types[name], "__forward_arg__", self._types[name]),
            )
            for name, default in defaults.items()
        ]

    def shown_by(self, name: str) -> Callable[[T], T]:
        """Decorates a class whose constructor takes them as ``**options``.

        ``help`` shows them for the class and for each class that derives from it.

        :param name: the public name of the class, for errors about arguments, which also suggest
            what the caller may have meant.
        """

        def decorate(kind: T) -> T:
            make: Callable[..., None] = kind.__init__
            make.__qualname__ = name
            shown = self.parameters
            known = [one.name for one in shown]
            names = frozenset(known)

            @functools.wraps(make)
            def checked(self: object, *arguments: Any, **options: Any) -> None:
                for option in options:
                    if option not in names and option not in make.__annotations__:
                        advice = hint(option, known, OF_OBJECTS)
                        text = f"{name}() got an unexpected keyword argument {option!r}{advice}"
                        raise TypeError(text)
                make(self, *arguments, **options)

            signature = inspect.signature(make)
            own = [one for one in signature.parameters.values() if one.name != "options"]
            checked.__signature__ = signature.replace(  # type: ignore[attr-defined]
                parameters=[*own, *shown]
            )
            kind.__init__ = checked  # type: ignore[method-assign]
            kind._parameters = f"{(kind.__doc__ or '').rstrip()}\n\n{self.doc}\n    "
            return kind

        return decorate


class Configured(Uncopied):
    """Base class of objects that take keyword parameters."""

    #: The part of the docstring that describes them.
    _parameters: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Adds the parameters to the docstring of each subclass that has no ``__init__``."""
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls) and cls._parameters:
            cls.__doc__ = f"{cls.__doc__}\n    {cls._parameters}"
