"""The asyncio face of long polls."""

from __future__ import annotations

from .asyncio_source import AsyncSource
from .longpoll_base import BaseLongPoll
from .longpoll_options import PollMessage


class LongPoll(AsyncSource[PollMessage], BaseLongPoll):
    """Messages by requests that the server answers when there is something new.

    ``async for message in LongPoll(url)`` ends after ``close``, and raises what is fatal. It lives
    on the running asyncio loop, and belongs to that loop's thread. Handlers may be coroutine
    functions, which are awaited one after the other.
    """
