"""What can go wrong, by family.

Every exception of the library is a ``RealtimeError``; where Python has a class of its own for the
kind of failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it is that, too.
"""

from ._core import errors
from ._core.errors import *  # noqa: F403
from ._rest.response import HTTPStatusError

__all__ = ["HTTPStatusError"]
__all__ += errors.__all__

for _name in __all__:
    globals()[_name].__module__ = __name__
