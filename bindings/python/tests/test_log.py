"""The library's log in Python's logging."""

from __future__ import annotations

import logging
import threading

import pytest

import librealtime


@pytest.fixture(autouse=True)
def quiet():
    yield
    librealtime.set_log_level(None)


def converse(server) -> None:
    headers = {"Authorization": "Bearer secret-token"}
    with librealtime.sync.connect(server.url + "/echo", additional_headers=headers) as ws:
        ws.send("secret-payload")
        ws.recv()


def test_lines_come_with_pythons_levels_and_no_secrets(server, caplog):
    caplog.set_level(logging.DEBUG, "librealtime")
    librealtime.set_log_level("debug")
    converse(server)
    levels = {record.levelno for record in caplog.records}
    assert levels == {logging.INFO, logging.DEBUG}
    assert "is open" in caplog.text
    assert "secret" not in caplog.text


def test_a_level_is_a_limit(server, caplog):
    caplog.set_level(logging.DEBUG, "librealtime")
    librealtime.set_log_level(logging.INFO)
    converse(server)
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_it_is_off_by_default_and_again(server, caplog):
    caplog.set_level(logging.DEBUG, "librealtime")
    converse(server)
    librealtime.set_log_level("INFO")
    librealtime.set_log_level(None)
    converse(server)
    assert not caplog.records


def test_other_levels_are_told(server):
    for level in ("LOUD", True, 1.5):
        with pytest.raises((ValueError, TypeError)):
            librealtime.set_log_level(level)


def test_lines_of_other_threads_arrive(server, caplog):
    caplog.set_level(logging.INFO, "librealtime")
    librealtime.set_log_level("INFO")
    threads = [threading.Thread(target=converse, args=(server,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("is open" in record.message for record in caplog.records) == 4
