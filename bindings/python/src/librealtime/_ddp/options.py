"""The options of a Meteor client, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from .._core.headers import HeadersLike
from .._core.option_tables import DDP_OPTIONS, DDPClientKeywords
from .._core.parameters import Options
from .._core.shared_options import ROUTE, SAFE_HEADERS, RouteKeywords, SafeHeaderKeywords
from .errors import DDPError
from .objects import DDPChange, DDPStatusChange

OnStatus = Optional[Callable[[DDPStatusChange], object]]
OnChange = Optional[Callable[[DDPChange], object]]
OnUser = Optional[Callable[[Optional[str]], object]]
OnResumeFailed = Optional[Callable[[DDPError], object]]
OnRefused = Optional[Callable[[str, Optional[str]], object]]
OnDebug = Optional[Callable[[str], object]]
LoadToken = Optional[Callable[[], Optional[str]]]
StoreToken = Optional[Callable[[Optional[str]], object]]


class Keywords(SafeHeaderKeywords, RouteKeywords, DDPClientKeywords, total=False):
    """All options of a Meteor client.

    :param headers: of the WebSocket's handshake and of requests: a mapping or pairs. Default None.
    :param load_token: returns the token of an earlier login, for programs that keep it themselves,
        and not in a file (`token_file`). Called at the first use of the client and before each
        connection; it must not use the client. Default None.
    :param store_token: keeps a token for `load_token`; None removes it. Default None.
    :param on_status: called with each ``DDPStatusChange``.
    :param on_change: called with each ``DDPChange`` of the local documents.
    :param on_user: called with the id of the user who is logged in now, or None.
    :param on_resume_failed: called with a ``DDPError`` if the server refuses to log the user in
        again.
    :param on_refused: called with the reason, if the server did not understand a message, and with
        the message or None.
    :param on_debug: called with a line for what is out of the ordinary.
    """

    headers: HeadersLike | None
    load_token: LoadToken
    store_token: StoreToken
    on_status: OnStatus
    on_change: OnChange
    on_user: OnUser
    on_resume_failed: OnResumeFailed
    on_refused: OnRefused
    on_debug: OnDebug


OPTIONS = Options(Keywords, shared=(SAFE_HEADERS, ROUTE), plain=DDP_OPTIONS)

#: The user's functions.
FUNCTIONS: tuple[Any, ...] = (*OPTIONS.handlers, "load_token", "store_token")
