"""The blocking face of long polls."""

from __future__ import annotations

from .longpoll_base import BaseLongPoll
from .longpoll_options import PollMessage
from .sync_source import BlockingSource


class LongPoll(BlockingSource[PollMessage], BaseLongPoll):
    """Messages by requests that the server answers when there is something new; blocking.

    ``for message in LongPoll(url)`` ends after ``close``, and raises what is fatal. Any thread may
    use it, several at once. Messages come and handlers are called whatever the program does: in the
    call that waits, or in a thread of its own while none does. What handlers raise is raised by
    that call, or by the next that waits.
    """
