"""Every object delays its attempts by its ``Backoff``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from librealtime import Backoff, InvalidArgument, ReconnectsExhausted, sync

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer

# No server listens there: each attempt fails at once.
NOBODY = "http://127.0.0.1:1/"
ONE_MORE = Backoff(initial_delay=0.007, jitter="none", max_attempts=1)


@pytest.mark.parametrize("kind", [sync.EventSource, sync.LongPoll])
def test_a_source_is_delayed_and_limited(kind):
    told = []
    with (
        kind(NOBODY, backoff=ONE_MORE, on_error=told.append) as source,
        pytest.raises(ReconnectsExhausted, match="max_attempts"),
    ):
        next(iter(source))
    assert [(event.fatal, event.retry_in) for event in told] == [(False, 0.007), (True, None)]


def test_a_spreadbot_has_its_own_delay_and_count_options():
    told = []
    with (
        sync.Spreadbot(
            NOBODY,
            transports=["poll"],
            backoff=ONE_MORE,
            max_reconnects=2,
            on_error=told.append,
        ) as bot,
        pytest.raises(ReconnectsExhausted),
    ):
        bot.establish_connection("path")
    assert [event.retry_in for event in told] == [0.007, 0.014, None]


@pytest.fixture
def rest_server():
    with RESTServer() as running:
        yield running


def test_a_client_is_delayed_and_counts_by_attempts(rest_server):
    with sync.RESTClient(rest_server.url, backoff=ONE_MORE, attempts=3) as client:
        assert client.get("/flaky/backoff/2").raise_for_status().attempts == 3
    # The deadline would cut off a delay, so none begins.
    hour = Backoff(initial_delay=3600, max_delay=3600)
    with sync.RESTClient(rest_server.url, backoff=hour) as client:
        assert client.get("/flaky/hour/2").attempts == 1


@pytest.mark.parametrize("kind", [sync.EventSource, sync.LongPoll, sync.Spreadbot])
def test_it_is_checked(kind):
    with pytest.raises(InvalidArgument):
        kind(NOBODY, backoff=Backoff(factor=0))
