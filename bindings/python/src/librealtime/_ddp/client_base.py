"""What the asyncio and the blocking client of Meteor servers share."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._core.abi import rt_ddp_account, rt_ddp_ids, rt_ddp_status, rt_status
from .._core.awaiting import at_once, check_function, handlers_of, plain
from .._core.errors import InvalidState, RealtimeError, checked, final, timed_out
from .._core.handle import Handle
from .._core.handlers import Handler
from .._core.headers import header_pairs
from .._core.inbox import Inbox
from .._core.kind import Callback, read_opened, read_text
from .._core.naming import kind_of
from .._core.option_tables import DDP_OPTIONS
from .._core.outcome import Outcome, Result
from .._core.parameters import Configured, Given, Setup
from .._core.values import milliseconds, text
from .accounts import Accounts
from .callbacks import ALWAYS, DDP, ON_CHANGE, ON_DEBUG, ON_LOAD_TOKEN, STATUSES
from .calls import BaseCall, BaseLoader, BaseSubscription, call_options, publication
from .checking import check
from .errors import DDPError, closed
from .live import DDPLiveQuery
from .model_coding import parameter
from .objects import DDPChange, DDPStatusChange, Status
from .options import (
    FUNCTIONS,
    OPTIONS,
    Keywords,
    OnChange,
    OnCurrent,
    OnDebug,
    OnOpen,
    OnQueryEnd,
    OnRefused,
    OnResumeFailed,
    OnStatus,
    OnUser,
)
from .streams import StreamEntry, Streams
from .stub import StubEntry, encoded
from .stubs import Stubs

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CONNECTED = int(rt_ddp_status.CONNECTED)


@OPTIONS.shown_by("DDPClient")
class BaseDDPClient(Accounts, Streams, Stubs, Configured):
    """Nothing is sent before ``connect``; an ``async with`` or ``with`` block connects. A lost
    connection is established again; then the user is logged in, subscriptions are repeated, and
    calls that have no result yet are sent again. Calls and subscriptions may be made at any time:
    they wait for a connection.

    Values are those of ``ejson``: dicts with ``datetime``, ``bytes``, ``ObjectID`` and so on.
    Durations are in seconds, sizes in bytes.

    :param url: of the server: ``https://host/path``, ``http``, ``wss`` or ``ws``.
    """

    _kind = DDP
    _call_type: ClassVar[Any]
    _subscription_type: ClassVar[Any]
    _loader_type: ClassVar[Any]
    _has_on_change = False
    _has_on_debug = False

    def __init__(self, url: str, **options: Unpack[Keywords]) -> None:
        self._begin(url, OPTIONS.complete(options))

    def _begin(self, url: str, given: Given) -> None:
        """Creates the object in C."""
        plain(given["load_token"], "load_token")
        plain(given["store_token"], "store_token")
        plain(given["on_open"], "on_open")
        self._handlers = handlers_of(given, FUNCTIONS)
        self._inbox = Inbox(0, 0)
        # What C will report on; and which of them have a handler of the program.
        self._pending: set[Any] = set()
        self._telling: set[Any] = set()
        self._stubs: dict[str, StubEntry] = {}
        self._streams: dict[str, StreamEntry] = {}
        # Classes whose objects stand for their ids.
        self._models: set[type] = set()
        # The names of collections.
        self._declared: set[str] = set()
        self._token: Any = None
        self._failure: RealtimeError | None = None
        # Whether it is connected, or tries to be.
        self._is_on = False
        self._reports_own_stops = bool(DDP_OPTIONS.get("report_own_stops", given))
        loop = self._join()
        self._loop_handle: Handle | None = loop
        handle = DDP.make(loop, text(url, "url", rt_status.ERROR_INVALID_URL))
        DDP.add_headers(handle, header_pairs(given["headers"]))
        OPTIONS.apply(Setup(DDP, handle, loop), given)
        self._registration = DDP.attach(self, handle, self._callbacks())
        self._handle = handle
        self._is_closed = False

    def _callbacks(self) -> list[Callback]:
        handlers, callbacks = self._handlers, list(ALWAYS)
        if handlers.load_token is not None:
            callbacks.append(ON_LOAD_TOKEN)
        if handlers.on_change is not None:
            self._has_on_change = True
            callbacks.append(ON_CHANGE)
        if handlers.on_debug is not None:
            self._has_on_debug = True
            callbacks.append(ON_DEBUG)
        return callbacks

    def _join(self) -> Handle:
        """The library's loop to use."""
        raise NotImplementedError

    # State.

    @property
    def status(self) -> Status:
        """``"offline"``, ``"connecting"``, ``"connected"``, ``"waiting"`` for the next attempt, or
        ``"failed"`` for good."""
        handle = self._handle
        return "offline" if handle is None else STATUSES[checked(DDP.get_status(handle))]

    @property
    def retry_count(self) -> int:
        """How many attempts in a row have failed."""
        handle = self._handle
        return 0 if handle is None else checked(DDP.get_retry_count(handle))

    @property
    def retry_in(self) -> float | None:
        """How many seconds it is until the next attempt; None unless ``"waiting"``."""
        handle, delay = self._handle, ctypes.c_int64(-1)
        if handle is not None:
            check(DDP.get_retry_in_ms(handle, ctypes.byref(delay)))
        return None if delay.value < 0 else delay.value / 1000

    @property
    def reason(self) -> str | None:
        """Why the client has failed; None unless ``"failed"``."""
        handle = self._handle
        return None if handle is None else read_text(DDP.get_reason, handle) or None

    @property
    def version(self) -> str | None:
        """The protocol version that was agreed; None unless connected."""
        handle = self._handle
        return None if handle is None else read_text(DDP.get_version, handle) or None

    @property
    def has_stale_documents(self) -> bool:
        """Whether documents of the last run (`document_file`) may be outdated. They may until the
        subscriptions of that run are ready again; if it had none, or they are not ready in time,
        until a connection has lasted for `quiescence_limit`, or 30 s without a limit. Then
        `on_current` is called."""
        handle = self._handle
        return handle is not None and checked(DDP.has_stale_documents(handle)) == 1

    # Handlers.

    on_status: Handler[OnStatus] = Handler()
    on_open: Handler[OnOpen] = Handler()
    on_current: Handler[OnCurrent] = Handler()
    on_change: Handler[OnChange] = Handler()
    on_user: Handler[OnUser] = Handler()
    on_resume_failed: Handler[OnResumeFailed] = Handler()
    on_query_end: Handler[OnQueryEnd] = Handler()
    on_refused: Handler[OnRefused] = Handler()
    on_debug: Handler[OnDebug] = Handler()

    def _set_handler(self, name: str, handler: Any) -> None:
        if name == "on_open":
            plain(handler, name)
        handle = self._handle
        if handle is not None and name == "on_debug" and not self._has_on_debug:
            self._has_on_debug = True
            DDP.set_callback(self._registration, handle, ON_DEBUG)
        if handle is not None and name == "on_change" and not self._has_on_change:
            self._has_on_change = True
            DDP.set_callback(self._registration, handle, ON_CHANGE)
        super()._set_handler(name, handler)
        self._changed()

    # What C reports.

    def _tell(self, name: str, *arguments: object) -> None:
        # C continues as long as something refers to the handle.
        if not self._is_closed:
            super()._tell(name, *arguments)

    #: Why the last attempt failed; None once it is connected.
    _attempt_error: RealtimeError | None = None

    def _status_changed(self, change: DDPStatusChange) -> None:
        if change.status == "connected" or change.error is not None:
            self._attempt_error = change.error
        if change.status == "failed":
            reason = change.reason or "the client gave up"
            self._failure = final(change.error or RealtimeError(rt_status.ERROR_HANDSHAKE, reason))
            self._is_on = False
        self._changed()
        self._tell("on_status", change)

    def _connection_opened(self) -> None:
        if self._handle is not None:
            self._opened = read_opened(DDP.get_opened, self._handle)
        handler = self._handlers.on_open
        if handler is not None:
            at_once(handler(), "on_open")

    def _documents_changed(self, change: DDPChange) -> None:
        self._tell("on_change", change)

    def _query_ended(self, number: int, collection: str, error: RealtimeError) -> None:
        for one in tuple(self._pending):
            if isinstance(one, DDPLiveQuery) and one._number == number:
                one._fail(error)
        self._tell("on_query_end", collection, error)

    def _account_changed(
        self, event: int, user_id: str | None, logging_in: bool, token: str, error: DDPError | None
    ) -> None:
        self._changed()
        if event == rt_ddp_account.USER:
            self._tell("on_user", user_id)
        elif event == rt_ddp_account.RESUME_FAILED:
            self._tell("on_resume_failed", error)
        elif event == rt_ddp_account.STORE:
            self._tell("store_token", token)
        elif event == rt_ddp_account.FORGET:
            self._tell("store_token", None)

    def _loads(self) -> int | None:
        token = at_once(self._handlers.load_token(), "load_token")
        if token is None:
            return None
        # Kept until the next call, as C reads it after this one has returned.
        self._token = ctypes.create_string_buffer(text(token, "the token"))
        return ctypes.addressof(self._token)

    # Connecting.

    def disconnect(self) -> None:
        """Ends the connection and all attempts. Calls and subscriptions wait for the next
        ``connect``."""
        self._is_on = False
        check(DDP.close(self._require_handle()))
        self._changed()

    def reconnect(self) -> None:
        """Drops the connection, also if it is fine, and connects again."""
        self._is_on = True
        check(DDP.restart(self._require_handle()))

    def network_changed(self, is_reachable: bool) -> None:
        """Reports what the program knows about the network, besides what `reachability` observes.
        If the network is reachable, an attempt that waits is made at once. If it is not, none is
        made until it is, and ``connect`` waits."""
        check(DDP.network_changed(self._require_handle(), bool(is_reachable)))

    def enter_background(self) -> None:
        """Reports that the program moves to the background: the connection is kept for a while
        (`background_grace`), and no new attempt is made."""
        check(DDP.enter_background(self._require_handle()))

    def enter_foreground(self) -> None:
        """Reports that the program is in the foreground again: a client that was connected
        connects."""
        check(DDP.enter_foreground(self._require_handle()))

    def _begin_connecting(self) -> Outcome:
        handle = self._require_handle()
        self._is_on = True
        check(DDP.start(handle))
        self._changed()
        return Outcome(self._connection_result)

    def _connection_result(self) -> Result:
        handle = self._handle
        if handle is not None and DDP.get_status(handle) == _CONNECTED:
            return True
        # A client that has failed stays so.
        return None if self._is_on and self._failure is None else self._end()

    def _not_connected(self, timeout: float | None) -> RealtimeError:
        """The exception for a wait that has ended too early; it names the last attempt's error."""
        cause = self._attempt_error
        error = timed_out(f"there is no answer after {timeout} s{f': {cause}' if cause else ''}")
        error.__cause__ = cause
        return error

    # Calls.

    def _make_call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        encoded_options = call_options(**options)
        call: BaseCall = self._call_type(self)
        call._start(function, *arguments, ctypes.byref(encoded_options))
        return call

    def _encoded(self, params: Any) -> bytes:
        """Parameters of a method or subscription, for C."""
        return encoded(params, functools.partial(parameter, self._models))

    def _add_models(self, classes: Iterable[type]) -> None:
        self._models = {*self._models, *classes}

    def _declare(self, name: str, object_ids: bool) -> None:
        ids = rt_ddp_ids.OBJECT_IDS if object_ids else rt_ddp_ids.STRINGS
        check(DDP.declare(self._require_handle(), text(name, "name"), ids))
        self._declared.add(name)

    def _declare_once(self, name: str) -> None:
        if name not in self._declared:
            self._declare(name, object_ids=False)

    def _make_subscription(
        self, name: str, params: tuple[Any, ...], keep: float | None, on_stopped: Any
    ) -> Any:
        check_function(on_stopped, "on_stopped")
        encoded_name, list_ = text(name, "name"), self._encoded(params)
        keep_ms = -1 if keep is None else milliseconds(keep, "keep", least=0)
        handle = self._require_handle()
        made: BaseSubscription = self._subscription_type(self, name, params, on_stopped)
        arguments = encoded_name, list_, keep_ms
        made._number = made._begin(DDP.subscribe, handle, arguments, made._trampoline, None)
        if on_stopped is not None:
            made._tell()
        return made

    def _make_loader(self, publications: Iterable[Any]) -> Any:
        if isinstance(publications, (str, Mapping)) or not isinstance(publications, Iterable):
            kind = kind_of(publications)
            raise TypeError(f"publications is {kind}; a list is expected, such as ['name']")
        wanted = [publication(one) for one in publications]
        encoded_list, handle = self._encoded(wanted), self._require_handle()
        made: BaseLoader = self._loader_type(self)
        made._number = made._begin(DDP.load, handle, (encoded_list,), made._trampoline, None)
        return made

    # The end.

    def close(self) -> None:
        """Ends the connection, and tells the server, which then does not keep the session. Over a
        WebSocket, earlier calls are sent, as far as the system takes them at once; only waiting for
        a call tells what became of it. Calls that have no result yet fail, and nothing is reported
        any more. The file for the documents (`document_file`) is complete when this returns."""
        if not self._is_closed:
            self._ended()

    def _ended(self) -> None:
        self._is_on = False
        super()._ended()
        self._pending.clear()
        self._telling.clear()
        self._stubs.clear()
        self._streams.clear()
        self._changed()

    def _missed(self, handle: Handle) -> None:
        status = self.status
        if status == "failed":
            reason = self.reason or "the client gave up"
            self._failure = self._failure or RealtimeError(rt_status.ERROR_HANDSHAKE, reason)
        self._is_on = self._is_on and status not in ("failed", "offline")

    def fail(self, error: RealtimeError) -> None:
        """Called when the loop itself failed."""
        self._failure = error
        self._ended()

    def _end(self) -> RealtimeError:
        if self._failure is not None:
            return self._failure
        if self._is_closed:
            return closed("the client is closed")
        return InvalidState(rt_status.ERROR_STATE, "it is disconnected")

    def _describe(self) -> str:
        return self.status

    @property
    def _calls_back(self) -> bool:
        """Whether events have somewhere to go even if nobody refers to this object."""
        handlers = vars(self._handlers).values()
        has_handlers = bool(self._telling or self._streams)
        has_handlers = has_handlers or any(function is not None for function in handlers)
        return self._is_on and has_handlers

    def _streams_changed(self) -> None:
        self._changed()

    # Overridden by the asyncio and the blocking class.

    def _changed(self) -> None:
        """Called when something has changed, so that waiters check their conditions."""
        raise NotImplementedError
