"""From C to requests: one trampoline for each callback type, kept for ever.

A request's user data is an integer, the key of a weak reference to its call. The client keeps the
call until the request ends, or until the function that waits for it is left.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .._core import abi
from .._core.abi import rt_credentials, rt_rest_body, rt_status
from .._core.loader import lib
from .._core.registry import find
from .._core.response import Headers, said
from .call import Call
from .response import RESTResponse

_string_at = ctypes.string_at

_calls: dict[int, weakref.ref[Call]] = {}
_keys = itertools.count(1)


def add(call: Call) -> int:
    key = next(_keys)
    _calls[key] = weakref.ref(call, lambda _: remove(key))
    return key


def remove(key: int, _pop: Callable[..., object] = _calls.pop) -> None:
    """For a request that was not sent, or that nobody waits for any more."""
    _pop(key, None)


def _call(key: int) -> Call | None:
    reference = _calls.get(key)
    return None if reference is None else reference()


def answer(response: int) -> RESTResponse | None:
    """What C shows; None when no answer came."""
    status = lib.rt_rest_response_status(response)
    if not status or proxy_status(response):
        return None
    size = ctypes.c_size_t()
    headers = lib.rt_rest_response_headers(response, None)
    data = lib.rt_rest_response_body(response, ctypes.byref(size))
    wait = lib.rt_rest_response_retry_after_ms(response)
    return RESTResponse(
        status,
        said(lib.rt_rest_response_reason(response)),
        Headers.of_lines(headers),
        lib.rt_rest_response_url(response).decode(),
        lib.rt_rest_response_http_version(response),
        lib.rt_rest_response_attempts(response),
        None if wait < 0 else wait / 1000,
        _string_at(data, size.value),
    )


def proxy_status(response: int) -> int:
    """By which a proxy refused the tunnel; 0 without."""
    if lib.rt_rest_response_error(response) != rt_status.ERROR_PROXY:
        return 0
    status: int = lib.rt_rest_response_status(response)
    return status


def _on_done(response: int, key: int) -> None:
    # It comes once for each request that was sent, and nothing behind it.
    call = _call(key)
    remove(key)
    if call is not None:
        try:
            status = lib.rt_rest_response_error(response)
            message = "" if status == rt_status.OK else _message(response)
            call.finished(status, message, answer(response), proxy_status(response))
        except BaseException as error:
            call.keep(error)


def _message(response: int) -> str:
    text: bytes = lib.rt_rest_response_message(response)
    return text.decode()


def _on_head(response: int, key: int) -> None:
    call = _call(key)
    if call is not None:
        try:
            head = answer(response)
            assert head is not None
            call.begun(head)
        except BaseException as error:
            call.keep(error)


def _on_body(data: int, length: int, key: int) -> None:
    call = _call(key)
    if call is not None:
        try:
            call.came(_string_at(data, length))
        except BaseException as error:
            call.keep(error)


def _on_progress(sent: int, to_send: int, received: int, to_receive: int, key: int) -> None:
    call = _call(key)
    if call is not None:
        try:
            call.progressed(sent, to_send, received, to_receive)
        except BaseException as error:
            call.keep(error)


def _on_source(buffer: Any, capacity: int, key: int) -> int:
    call = _call(key)
    if call is not None:
        try:
            data = call.more(capacity)
            if data is None:
                return rt_rest_body.WAIT
            ctypes.memmove(buffer, data, len(data))
            return len(data)
        except BaseException as error:
            call.body_failed(error)
    return rt_rest_body.FAIL


def _on_rewind(key: int) -> bool:
    call = _call(key)
    if call is not None:
        try:
            return call.rewind()
        except BaseException as error:
            call.body_failed(error)
    return False


def _on_credentials(key: int) -> int:
    client = find(key)
    if client is not None:
        try:
            answer: int = client._asked()
            return answer
        except BaseException as error:
            client._keep(error)
    return rt_credentials.NONE


# Kept as long as the process lives: C may call them at any time.
DONE = abi.rt_rest_done_fn(_on_done)
HEAD = abi.rt_rest_head_fn(_on_head)
BODY = abi.rt_rest_body_fn(_on_body)
PROGRESS = abi.rt_rest_progress_fn(_on_progress)
SOURCE = abi.rt_rest_source_fn(_on_source)
REWIND = abi.rt_rest_rewind_fn(_on_rewind)
CREDENTIALS = abi.rt_rest_credentials_fn(_on_credentials)
NO_DESTROY = abi.rt_destroy_fn()
NO_REWIND = abi.rt_rest_rewind_fn()
