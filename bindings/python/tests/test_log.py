"""The library's log in Python's logging."""

from __future__ import annotations

import logging
import re
import threading

import pytest
from wire import OK, read

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


def test_lines_have_pythons_levels_and_no_secrets(server, caplog):
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


def test_other_levels_are_logged(server):
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


def test_a_websocket_that_never_opens_tells_why_alone(caplog):
    caplog.set_level(logging.INFO, "librealtime")
    librealtime.set_log_level("INFO")
    with pytest.raises(librealtime.ConnectFailed):
        librealtime.sync.connect("ws://127.0.0.1:1")
    assert [record.message for record in caplog.records] == [
        "connecting to 127.0.0.1:1",
        "cannot connect to 127.0.0.1:1: connection refused",
    ]


def test_a_request_tells_its_answer_each_retry_and_why(serve, caplog):
    def answer(connection, number):
        while read(connection):
            if number == 1:
                connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
                number = 2
            else:
                connection.sendall(OK)

    server = serve(answer)
    caplog.set_level(logging.INFO, "librealtime")
    librealtime.set_log_level("INFO")
    with librealtime.sync.RESTClient(server.url, base_delay=0.02, max_delay=0.02) as client:
        client.get("/page?key=secret", bearer_token="secret")
    lines = [record.message for record in caplog.records]
    assert "secret" not in caplog.text
    where = re.escape(f"GET {server.url}/page")
    wanted = [
        rf"REST \d+: {where}: attempt 2 of 3 in \d+ ms: .* was answered with 503 .*",
        rf"REST \d+: {where} was answered with 200 after 2 attempts",
    ]
    assert len(lines) == len(wanted), lines
    for line, pattern in zip(lines, wanted):
        assert re.fullmatch(pattern, line), line


def test_a_request_that_fails_tells_why(caplog):
    caplog.set_level(logging.DEBUG, "librealtime")
    librealtime.set_log_level("DEBUG")
    client = librealtime.sync.RESTClient("http://127.0.0.1:1", base_delay=0.02, attempts=2)
    with client, pytest.raises(librealtime.ConnectFailed):
        client.get("/page")
    lines = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert len(lines) == 2, lines
    assert ": attempt 2 of 2 in " in lines[0]
    assert "/page failed after 2 attempts: " in lines[1]
    assert all("127.0.0.1:1" in line for line in lines)
    begun = [record.message for record in caplog.records if ", attempt " in record.message]
    assert [line[-14:] for line in begun] == ["attempt 1 of 2", "attempt 2 of 2"]


def test_a_source_tells_its_connections(events, caplog):
    caplog.set_level(logging.INFO, "librealtime")
    librealtime.set_log_level("INFO")
    with librealtime.sync.EventSource(events.url + "/count", reconnection_time=0.02) as source:
        for _ in range(4):
            source.recv()
    text = caplog.text
    assert text.count("the event stream is open") == 2
    assert re.search(r"127\.0\.0\.1:\d+ ended the stream; attempt \d+ in \d+ ms", text), text
    assert "is closed" in text


def test_a_spreadbot_connection_tells_its_legs(bots, caplog):
    caplog.set_level(logging.INFO, "librealtime")
    librealtime.set_log_level("INFO")
    with librealtime.sync.Spreadbot(bots.url) as bot:
        bot.establish_connection("events")
    text = caplog.text
    assert "trying WebSocket" in text
    # Refused there, the line says where, why, and when the next leg follows.
    assert re.search(r"WARNING .*WebSocket: .*404.*; the next attempt at once", text), text
    assert re.search(r"connected by SSE", text), text
