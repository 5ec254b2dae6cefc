"""The options of a Meteor client, and how to set them on one in C."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Optional

from .._core.backoff import Backoff
from .._core.errors import RealtimeError
from .._core.headers import HeadersLike
from .._core.option_tables import DDP_OPTIONS, DDPClientKeywords
from .._core.parameters import Given, Options, Setup
from .._core.shared_options import (
    CREDENTIAL,
    REDIRECTS,
    ROUTE,
    CredentialKeywords,
    RedirectKeywords,
    RouteKeywords,
    set_backoff,
)
from .._core.values import texts
from .errors import DDPError
from .objects import DDPChange, DDPStatusChange

OnStatus = Optional[Callable[[DDPStatusChange], object]]
OnOpen = Optional[Callable[[], object]]
OnCurrent = Optional[Callable[[], object]]
OnChange = Optional[Callable[[DDPChange], object]]
OnUser = Optional[Callable[[Optional[str]], object]]
OnResumeFailed = Optional[Callable[[DDPError], object]]
OnQueryEnd = Optional[Callable[[str, RealtimeError], object]]
OnRefused = Optional[Callable[[str, Optional[str]], object]]
OnDebug = Optional[Callable[[str], object]]
LoadToken = Optional[Callable[[], Optional[str]]]
StoreToken = Optional[Callable[[Optional[str]], object]]


class Keywords(CredentialKeywords, RedirectKeywords, RouteKeywords, DDPClientKeywords, total=False):
    """All options of a Meteor client.

    :param headers: of the WebSocket's handshake and of requests: a mapping or pairs. Default None.
    :param backoff: a ``Backoff``: the delays between attempts, instead of 10 ms twice, and then 1 s
        times a power of 2.2, up to 5 minutes, within a quarter more or less at random. They begin
        anew after a connection that lasted for a second, or for its stable time. Its limit of
        attempts is not used. Default None.
    :param versions: the protocol versions to offer, the preferred one first. Default None: ``"1"``,
        ``"pre2"`` and ``"pre1"``.
    :param no_retry_methods: methods whose calls are never sent again, as with ``no_retry``. Default
        None: none.
    :param load_token: returns what `store_token` was called with last, or None, for programs that
        keep the login of a user themselves, and not in a file (`token_file`). Called at the first
        use of the client and before each connection; it must not use the client. Any other text
        counts as None, also the ``token`` of a login's result: ``log_in_with_token`` takes that.
        Default None.
    :param store_token: keeps a text, or None, for `load_token`. Default None.
    :param on_status: called with each ``DDPStatusChange``. A wait for a network is reported once,
        by the failure that led to it or by an RT_ERROR_CONNECT; the status is then offline, and may
        have been before.
    :param on_open: called each time a connection is open. Calls that it makes with ``send`` go
        before all calls that waited for a connection, after the login with a token; one with
        ``wait=True`` is finished before the others are sent. A plain function.
    :param on_current: called when the documents of an earlier run (`document_file`) have been
        replaced by those of the server.
    :param on_change: called with each ``DDPChange`` of the local documents.
    :param on_user: called when another user is logged in, with the id, or nobody is any more, with
        None.
    :param on_resume_failed: called with a ``DDPError`` if the server refuses to log the user in
        again.
    :param on_query_end: called with the name of a collection and an exception when a live query
        over it has ended by itself: its regular expressions need too many steps for documents that
        have changed. Iterations over its changes raise the exception.
    :param on_refused: called with the reason, if the server did not understand a message, and with
        the message or None.
    :param on_debug: called with a line for what is out of the ordinary.
    """

    headers: HeadersLike | None
    backoff: Backoff | None
    versions: Iterable[str] | None
    no_retry_methods: Iterable[str] | None
    load_token: LoadToken
    store_token: StoreToken
    on_status: OnStatus
    on_open: OnOpen
    on_current: OnCurrent
    on_change: OnChange
    on_user: OnUser
    on_resume_failed: OnResumeFailed
    on_query_end: OnQueryEnd
    on_refused: OnRefused
    on_debug: OnDebug


def _add_versions(setup: Setup, given: Given) -> None:
    versions = given["versions"]
    for version in texts(() if versions is None else versions, "versions"):
        setup.add_version(version)


def _add_no_retry_methods(setup: Setup, given: Given) -> None:
    methods = given["no_retry_methods"]
    for method in texts(() if methods is None else methods, "no_retry_methods"):
        setup.add_no_retry_method(method)


OPTIONS = Options(
    Keywords,
    set_backoff,
    _add_versions,
    _add_no_retry_methods,
    shared=(CREDENTIAL, REDIRECTS, ROUTE),
    plain=DDP_OPTIONS,
)

#: The user's functions.
FUNCTIONS: tuple[Any, ...] = (*OPTIONS.handlers, "load_token", "store_token")
