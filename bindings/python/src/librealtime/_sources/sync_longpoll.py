"""The blocking long poll."""

from __future__ import annotations

from .longpoll_base import BaseLongPoll
from .longpoll_options import PollMessage
from .sync_source import BlockingSource


class LongPoll(BlockingSource[PollMessage], BaseLongPoll):
    """Receives messages by requests that the server answers when there is something new; blocking.

    ``for message in LongPoll(url)`` ends after ``close`` and raises fatal errors. Several threads
    may use it at once. Messages are received and handlers called whatever the program does: in the
    call that waits, or in a thread of the object while no call does. The call that waits, or the
    next one, raises what handlers raise.
    """
