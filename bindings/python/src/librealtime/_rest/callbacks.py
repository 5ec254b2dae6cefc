"""The callbacks that C makes for requests: one trampoline for each callback type, kept forever.

A request's user data is an integer, the key of a weak reference to its call. The client keeps the
call until the request ends or the function that waits for it returns.
"""

from __future__ import annotations

import collections
import ctypes
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .._core import abi
from .._core.abi import rt_credentials, rt_rest_body, rt_status
from .._core.errors import InvalidState
from .._core.failure import Failure
from .._core.kind import Kind, callback, trampoline
from .._core.loader import lib
from .._core.response import Opened
from .call import Call
from .response import RESTResponse

REST = Kind("rest", "client", "answer")

_string_at = ctypes.string_at

_calls: dict[int, weakref.ref[Call]] = {}
# The last requests whose end nobody waited for, or whose call was being finalized.
_ended: collections.deque[int] = collections.deque(maxlen=1000)
_keys = itertools.count(1)


def add(call: Call) -> int:
    call.key = key = next(_keys)
    _calls[key] = weakref.ref(call, lambda _: remove(key))
    return key


def revive(call: Call) -> None:
    """Lets C call back a call again that is about to be awaited in a finalizer, see ``registry``.
    Ends a call of which C has reported the end in vain."""
    reference = _calls.get(call.key)
    if call.is_over or (reference is not None and reference() is not None):
        return
    if call.key in _ended:
        message = "the request ended while the collector finalized the program's objects"
        call.failed(InvalidState(rt_status.ERROR_STATE, message))
    else:
        _calls[call.key] = weakref.ref(call, lambda _: remove(call.key))


def remove(key: int, _pop: Callable[..., object] = _calls.pop) -> None:
    """For a request that was not sent, or that is no longer waited for."""
    _pop(key, None)


def _call(key: int) -> Call | None:
    reference = _calls.get(key)
    return None if reference is None else reference()


def answer(response: int) -> RESTResponse | None:
    """Copies C's response; None if there is none."""
    address = lib.rt_rest_response_opened(response)
    if not address:
        return None
    opened = Opened.at(address)
    head = opened.response
    assert head is not None
    size = ctypes.c_size_t()
    data = lib.rt_rest_response_body(response, ctypes.byref(size))
    wait = lib.rt_rest_response_retry_after_ms(response)
    return RESTResponse(
        head.status_code,
        head.reason_phrase,
        head.headers,
        lib.rt_rest_response_url(response).decode(),
        lib.rt_rest_response_http_version(response),
        lib.rt_rest_response_attempts(response),
        None if wait < 0 else wait / 1000,
        _string_at(data, size.value),
        opened,
    )


def proxy_status(response: int) -> int:
    """The status with which a proxy refused the tunnel; 0 without one."""
    if lib.rt_rest_response_error(response) != rt_status.ERROR_PROXY:
        return 0
    status: int = lib.rt_rest_response_status(response)
    return status


def _on_done(response: int, key: int) -> None:
    # Called once for each request that was sent, and no other callback follows.
    call = _call(key)
    remove(key)
    if call is None:
        _ended.append(key)
    else:
        try:
            status = lib.rt_rest_response_error(response)
            message = "" if status == rt_status.OK else _message(response)
            call.finished(status, message, answer(response), proxy_status(response))
        except BaseException as error:
            call.keep(error)


def _message(response: int) -> str:
    text: bytes = lib.rt_rest_response_message(response)
    return text.decode()


def _head(call: Call, response: int) -> None:
    head = answer(response)
    assert head is not None
    call.begun(head)


def _progress(call: Call, address: int) -> None:
    view = abi.rt_rest_progress.from_address(address)
    call.progressed(view.sent, view.to_send, view.received, view.to_receive)


def _source(call: Call, buffer: Any, capacity: int) -> int:
    data = call.more(capacity)
    if data is None:
        return rt_rest_body.WAIT
    ctypes.memmove(buffer, data, len(data))
    return len(data)


def _of_request(call: Callable[..., Any]) -> Callable[..., Any]:
    return trampoline(call, None, _call, lambda call, error: call.keep(error))


def _of_body(call: Callable[..., Any], default: Any) -> Callable[..., Any]:
    """Keeps what the body raised, for the caller that waits for the request."""
    return trampoline(call, default, _call, Call.body_failed)


# Kept as long as the process lives, because C may call them at any time.
DONE = abi.rt_rest_done_fn(_on_done)
HEAD = abi.rt_rest_head_fn(_of_request(_head))
BODY = abi.rt_rest_body_fn(
    _of_request(lambda call, data, length: call.came(_string_at(data, length)))
)
PROGRESS = abi.rt_rest_progress_fn(_of_request(_progress))
RETRY = abi.rt_failure_fn(_of_request(lambda call, view: call.retries(Failure.at(view))))
SOURCE = abi.rt_rest_source_fn(_of_body(_source, rt_rest_body.FAIL))
REWIND = abi.rt_rest_rewind_fn(_of_body(Call.rewind, False))
ON_CREDENTIALS = callback(
    "credentials",
    abi.rt_credentials_fn,
    lambda client, refusal: client._asked(),
    rt_credentials.NONE,
)
NO_DESTROY = abi.rt_destroy_fn()
NO_REWIND = abi.rt_rest_rewind_fn()
