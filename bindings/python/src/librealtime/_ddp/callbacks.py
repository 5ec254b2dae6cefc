"""The callbacks that C makes for a Meteor client."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import ejson
from .._core import abi
from .._core.abi import rt_ddp_stage, rt_ddp_subscription, rt_status
from .._core.collecting import add, collect
from .._core.errors import check, from_status, with_python_names
from .._core.kind import Kind, callback, trampoline
from .._core.memory import shown_at, text_at
from .._core.values import names_of
from .errors import DDPError
from .errors import Kind as ErrorKind
from .objects import DDPChange, DDPIndexChanges, DDPStatusChange, Status

DDP = Kind("ddp", "Meteor client", "change")

STATUSES: dict[int, Status] = {value: name for name, value in names_of(abi.rt_ddp_status).items()}
_KINDS: dict[int, ErrorKind] = {
    value: name for name, value in names_of(abi.rt_ddp_error_kind).items()
}
_CHANGES: dict[int, Any] = {value: name for name, value in names_of(abi.rt_ddp_change_kind).items()}


def _value(address: int, length: int) -> Any:
    return ejson.loads(ctypes.string_at(address, length))


def error_at(address: int | None) -> DDPError | None:
    if not address:
        return None
    view = abi.rt_ddp_error.from_address(address)
    details = _value(view.details, view.details_length) if view.details_length else None
    return DDPError(
        shown_at(view.code, view.code_length),
        with_python_names(shown_at(view.reason, view.reason_length)) or None,
        details,
        kind=_KINDS[view.kind],
        code_is_number=view.code_is_number,
        source=shown_at(view.source, view.source_length),
        status=rt_status.ERROR_METHOD,
    )


def _status(target: Any, address: int) -> None:
    view = abi.rt_ddp_status_change.from_address(address)
    message = view.message.decode("utf-8", "replace")
    target._status_changed(
        DDPStatusChange(
            STATUSES[view.new_status],
            view.retry_count,
            None if view.retry_in_ms < 0 else view.retry_in_ms / 1000,
            shown_at(view.reason, view.reason_length),
            None if view.status == rt_status.OK else from_status(view.status, message),
        )
    )


def _change(address: int) -> DDPChange:
    view = abi.rt_ddp_change.from_address(address)
    return DDPChange(
        _CHANGES[view.kind],
        text_at(view.collection, view.collection_length),
        _value(view.id, view.id_length),
        _value(view.fields, view.fields_length),
        _value(view.cleared, view.cleared_length),
        _value(view.before, view.before_length) if view.before_length else None,
        view.initial,
        view.last,
    )


def _index_changes(address: int) -> DDPIndexChanges:
    view: Any = abi.rt_ddp_index_changes.from_address(address)
    return DDPIndexChanges(
        view.initial,
        tuple(view.deleted[: view.deleted_count]),
        tuple(view.inserted[: view.inserted_count]),
        tuple((one.old_index, one.new_index) for one in view.moved[: view.moved_count]),
        tuple((one.old_index, one.new_index) for one in view.updated[: view.updated_count]),
        tuple(_value(view.ids, view.ids_length)),
    )


class Step(NamedTuple):
    """What happened to one document of a live query's result. Its texts are those that the feed
    was made with; None for the others."""

    id: Any
    #: Its position in the old result; -1 if it is new.
    old: int
    #: Its position in the new result; -1 if it is gone.
    new: int
    moved: bool
    changed: bool
    document: Any
    fields: Any
    cleared: Any
    before: Any


class Batch(NamedTuple):
    """Changes of a live query's result that were taken together."""

    is_initial: bool
    steps: list[Step]


def batch_at(batch: abi.rt_ddp_batch) -> Batch:
    changes: Any = batch.changes
    return Batch(batch.initial, [_step(one) for one in changes[: batch.change_count]])


def _step(view: abi.rt_ddp_feed_change) -> Step:
    def value(address: int, length: int) -> Any:
        return _value(address, length) if length else None

    return Step(
        _value(view.id, view.id_length),
        view.old_index,
        view.new_index,
        view.moved,
        view.changed,
        value(view.document, view.document_length),
        value(view.fields, view.fields_length),
        value(view.cleared, view.cleared_length),
        value(view.before, view.before_length),
    )


def _account(target: Any, address: int) -> None:
    view = abi.rt_ddp_account_event.from_address(address)
    target._account_changed(
        view.event,
        text_at(view.user_id, view.user_id_length) or None,
        view.logging_in,
        text_at(view.token, view.token_length),
        error_at(view.error),
    )


def _refused(target: Any, reason: int, length: int, offending: int, size: int) -> None:
    target._tell("on_refused", shown_at(reason, length), text_at(offending, size) or None)


def _query_ended(target: Any, address: int) -> None:
    view = abi.rt_ddp_query_end.from_address(address)
    collection = text_at(view.collection, view.collection_length)
    message = view.message.decode("utf-8", "replace")
    target._query_ended(view.query, collection, from_status(view.status, message))


ALWAYS = (
    callback("status", abi.rt_ddp_status_fn, _status),
    callback("open", abi.rt_ddp_open_fn, lambda target: target._connection_opened()),
    callback("current", abi.rt_ddp_current_fn, lambda target: target._tell("on_current")),
    callback("account", abi.rt_ddp_account_fn, _account),
    callback("refused", abi.rt_ddp_refused_fn, _refused),
    callback("query_end", abi.rt_ddp_query_end_fn, _query_ended),
)
ON_CHANGE = callback(
    "change",
    abi.rt_ddp_change_fn,
    lambda target, address: target._documents_changed(_change(address)),
)
ON_DEBUG = callback(
    "debug",
    abi.rt_ddp_debug_fn,
    lambda target, line: target._tell("on_debug", line.decode("utf-8", "replace")),
)
ON_LOAD_TOKEN = callback("load_token", abi.rt_ddp_load_token_fn, lambda target: target._loads())


def _outcome(target: Any, address: int) -> None:
    view = abi.rt_ddp_outcome.from_address(address)
    error = error_at(view.error)
    value = None if error is not None else _value(view.value, view.value_length)
    target._reached(view.stage, view.index, value, error)


#: The stages that calls ask for.
STAGES = sum(1 << int(stage) for stage in rt_ddp_stage)
#: For the objects of calls, subscriptions, loaders, live queries and stubs.
OUTCOME = abi.rt_ddp_outcome_fn(trampoline(_outcome))
SUBSCRIPTION = abi.rt_ddp_subscription_fn(
    trampoline(
        lambda target, address: target._happened(
            abi.rt_ddp_subscription_event.from_address(address).event == rt_ddp_subscription.READY,
            error_at(abi.rt_ddp_subscription_event.from_address(address).error),
        )
    )
)
LOADED = abi.rt_ddp_loaded_fn(trampoline(lambda target, error: target._loaded(error_at(error))))
LIVE = abi.rt_ddp_change_fn(trampoline(lambda target, address: target._changed(_change(address))))
INDEXES = abi.rt_ddp_index_changes_fn(
    trampoline(lambda target, address: target._changed(_index_changes(address)))
)
FEED = abi.rt_ddp_feed_fn(trampoline(lambda target: target._was_filled()))
STUB = abi.rt_ddp_stub_fn(trampoline(lambda target, stub, params, _: target._run(stub, params)))


def ensure_room(frames: int = 100) -> None:
    """Raises ``RecursionError`` unless callbacks have room: what they raise inside C is lost."""
    if frames:
        ensure_room(frames - 1)


def _document(address: int, key: int) -> None:
    view = abi.rt_ddp_document.from_address(address)
    # Decoded later: a failure here would be lost.
    id_ = ctypes.string_at(view.id, view.id_length)
    add(key, (id_, ctypes.string_at(view.document, view.document_length)))


def _stage(address: int, key: int) -> None:
    view = abi.rt_ddp_outcome.from_address(address)
    error = error_at(view.error)
    text = ctypes.string_at(view.value, view.value_length)
    add(key, text if error is None else error)


_DOCUMENT = abi.rt_ddp_document_fn(_document)
_OUTCOME = abi.rt_ddp_outcome_fn(_stage)


def _collect(callback: Any, call: Callable[[Any, int], int]) -> tuple[int, list[Any]]:
    ensure_room()
    return collect(callback, call)


def documents(call: Callable[[Any, int], int]) -> list[tuple[Any, dict[str, Any]]]:
    """The documents, with their ids, that a function of the C interface passes to its callback."""
    status, found = _collect(_DOCUMENT, call)
    if status != rt_status.ERROR_NOT_FOUND:
        check(status)
    return [(ejson.loads(id_), ejson.loads(document)) for id_, document in found]


def outcome(call: Callable[[Any, int], int]) -> Any:
    """The value that a function passes to its callback.

    :raises DDPError: if it passes an error.
    """
    status, found = _collect(_OUTCOME, call)
    if found and isinstance(found[0], DDPError):
        raise found[0]
    check(status)
    return ejson.loads(found[0])
