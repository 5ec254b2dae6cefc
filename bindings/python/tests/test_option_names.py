"""Errors name the options that limit something as Python does, and only those it has."""

from __future__ import annotations

import pytest

from librealtime._core import option_tables
from librealtime._core.abi import rt_status
from librealtime._core.errors import OPTION_NAMES, from_status
from librealtime._core.loader import lib


def message(text: str) -> str:
    return str(from_status(rt_status.ERROR_TIMEOUT, text))


@pytest.mark.parametrize(
    ("setter", "keyword"),
    [
        ("rt_websocket_set_pong_timeout_ms", "ping_timeout"),
        ("rt_pusher_set_pong_timeout_ms", "pong_timeout"),
        ("rt_longpoll_set_max_body_bytes", "max_size"),
        ("rt_rest_set_max_body_bytes", "max_body_size"),
        ("rt_rest_set_attempt_timeout_ms", "timeout"),
        ("rt_pusher_set_reconnect_limits", "max_reconnects"),
    ],
)
def test_each_object_has_its_own_name(setter: str, keyword: str) -> None:
    assert f"no answer within 1 s ({keyword}); wait" in message(
        f"h gave no answer within 1 s ({setter}); wait"
    )


def test_an_option_that_python_does_not_have_is_left_out() -> None:
    assert "within 1 s; wait" in message("within 1 s (rt_websocket_set_unknown); wait")


def test_every_name_is_that_of_a_setter() -> None:
    assert option_tables.WEBSOCKET_OPTIONS
    missing = [setter for setter in OPTION_NAMES if not hasattr(lib, setter)]
    assert not missing
