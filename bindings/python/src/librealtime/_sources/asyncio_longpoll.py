"""The asyncio long poll."""

from __future__ import annotations

from .asyncio_source import AsyncSource
from .longpoll_base import BaseLongPoll
from .longpoll_options import PollMessage


class LongPoll(AsyncSource[PollMessage], BaseLongPoll):
    """Receives messages by requests that the server answers when there is something new.

    ``async for message in LongPoll(url)`` ends after ``close`` and raises fatal errors. The object
    uses the running asyncio loop and belongs to that loop's thread. Handlers may be coroutine
    functions, which are awaited one after the other.
    """
