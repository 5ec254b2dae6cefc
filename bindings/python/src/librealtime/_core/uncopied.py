"""Objects that have something of the library, which a copy would use and end, too."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

from .naming import article


class Uncopied:
    """An object that ``copy`` and ``pickle`` refuse."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        kind = article(type(self).__name__)
        raise TypeError(f"{kind} cannot be copied or pickled; use the same object, or make another")
