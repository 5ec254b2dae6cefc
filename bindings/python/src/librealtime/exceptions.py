"""Exceptions, by kind of failure.

Every exception of the library is a ``RealtimeError``. Where Python has a class for the kind of
failure (``ValueError``, ``TimeoutError``, ``ConnectionError``), it also derives from that.
"""

from ._core import errors
from ._core.errors import *  # noqa: F403
from ._ddp import errors as ddp_errors
from ._ddp.errors import *  # noqa: F403
from ._pusher import errors as pusher_errors
from ._pusher.errors import *  # noqa: F403
from ._rest.response import HTTPStatusError

__all__ = ["HTTPStatusError"]
__all__ += errors.__all__
__all__ += ddp_errors.__all__
__all__ += pusher_errors.__all__

for _name in __all__:
    globals()[_name].__module__ = __name__
