"""The blocking API in one thread; test_threads.py tests it with several."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque

import pytest
from conftest import PATIENCE_S
from wire import read

import librealtime
from librealtime import ConnectionClosedError, ConnectionClosedOK, Deflate, State
from librealtime.sync import EventSource, connect

MESSAGES = ["hello", "", "grüße \0 🙂", b"", os.urandom(3 << 20), "é" * (1 << 20)]


@pytest.mark.parametrize("compression", [None, "deflate", Deflate(level=6, min_size=0)], ids=repr)
def test_echo(server, compression):
    with connect(server.url + "/echo", compression=compression) as ws:
        assert ws.state is State.OPEN
        for message in MESSAGES:
            ws.send(message)
            echoed = ws.recv(timeout=30)
            assert type(echoed) is type(message)
            assert echoed == message
        for message in (bytearray(b"abc"), memoryview(b"a-b-c")[::2]):
            ws.send(message)
            assert ws.recv() == bytes(message)
    assert ws.state is State.CLOSED


def test_a_receive_with_a_time_limit(server):
    with connect(server.url + "/echo") as ws:
        for timeout in (0, 0.01):
            with pytest.raises(TimeoutError, match=f"within {timeout} s"):
                ws.recv(timeout=timeout)
        ws.send("in time")
        assert ws.recv(timeout=30) == "in time"


def test_a_time_limit_holds_while_another_thread_takes_the_messages(server, serve):
    until = time.monotonic() + PATIENCE_S

    class Robbed(deque):
        """Plays the other thread: takes a message that is waited for before the waiter can.

        The waiter checks the length; then taking checks whether there is a message.
        """

        def __init__(self, then):
            self._then = then

        def __bool__(self):
            assert time.monotonic() < until, "the time limit begins again with each message"
            if len(self):
                self.clear()
                self._then()
            return False

    with connect(server.url + "/echo") as ws:
        ws._inbox.messages = Robbed(lambda: ws.send_nowait("another"))
        ws.send_nowait("first")
        with pytest.raises(TimeoutError, match=r"within 0\.25 s"):
            ws.recv(timeout=0.25)

    def events(connection, number):
        read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:
            connection.sendall(b"data: x\n\n")
            threading.Event().wait(0.1)

    with EventSource(serve(events).url) as source:
        source._inbox.messages = Robbed(lambda: None)
        with pytest.raises(TimeoutError, match=r"within 0\.25 s"):
            source.recv(timeout=0.25)


def test_iteration_ends_or_raises(server):
    with connect(server.url + "/count?to=100") as ws:
        assert list(ws) == [str(number) for number in range(100)]
        with pytest.raises(ConnectionClosedOK):
            ws.recv()
    seen = []
    ws = connect(server.url + "/count?to=2&then=3000")
    with pytest.raises(ConnectionClosedError) as raised:
        for message in ws:
            seen.append(message)
    assert (seen, raised.value.code) == (["0", "1"], 3000)


def test_subprotocol_and_headers(server):
    with connect(
        server.url + "/record", subprotocols=["echo"], additional_headers={"X-One": "1"}
    ) as ws:
        request, subprotocol, _ = server.requests.get(timeout=30)
        assert ws.subprotocol == subprotocol == "echo"
        assert request.headers["X-One"] == "1"


def test_close_code_and_reason(own_server):
    with connect(own_server.url + "/silent") as ws:
        ws.close(3210, "türe zu")
        ws.close()
        assert (ws.close_code, ws.close_reason) == (3210, "türe zu")
    assert own_server.closes.get(timeout=30) == (3210, "türe zu")
    with pytest.raises(ZeroDivisionError), connect(own_server.url + "/silent"):
        raise ZeroDivisionError
    assert own_server.closes.get(timeout=30)[0] == 1011


def test_ping(server):
    with connect(server.url + "/echo") as ws:
        assert ws.latency == 0
        pong = ws.ping()
        assert pong.wait(timeout=30)
        assert 0 < pong.latency == ws.latency


def test_nothing_can_be_done_after_the_end(server):
    with connect(server.url + "/echo") as ws:
        pass
    for use in (lambda: ws.send("x"), ws.recv, ws.ping, lambda: ws.send_nowait("x")):
        with pytest.raises(ConnectionClosedOK):
            use()
    ws.close()
    ws.wait_closed()


def test_a_broken_connection(server):
    with connect(server.url + "/abort") as ws:
        assert ws.recv() == "last words"
        with pytest.raises(ConnectionClosedError) as raised:
            ws.recv()
    assert raised.value.code == ws.close_code == 1006


def test_a_slow_consumer_holds_up_the_server(server):
    count, size, limit = 1000, 16_384, 1 << 17
    url = f"{server.url}/blocks?to={count}&size={size}"
    numbers = []
    with connect(url, max_queue_bytes=limit, compression=None) as ws:
        for block in ws:
            numbers.append(int.from_bytes(block[:4], "big"))
            # The messages of one read may exceed the limit.
            assert len(ws._inbox.messages) * size <= limit + (1 << 20)
    assert numbers == list(range(count))


def test_other_types_than_messages_are_refused(server):
    with connect(server.url + "/echo") as ws:
        for message in (None, 1, {"a": "b"}, [1]):
            with pytest.raises(TypeError, match=r"str(, | or )bytes"):
                ws.send(message)
        with pytest.raises(librealtime.InvalidArgument, match="surrogate"):
            ws.send("\ud800")
        with pytest.raises(librealtime.InvalidArgument):
            ws.close(1005)
        ws.send("unharmed")
        assert ws.recv() == "unharmed"


def test_every_failure_of_a_callback_is_raised_or_logged(server, caplog):
    def on_message(message):
        raise ValueError(message)

    ws = connect(server.url + "/count?to=3", on_message=on_message)
    raised = []
    while ws.close_code is None:
        try:
            ws.wait_closed()
        except ValueError as error:
            # Kept with its traceback, which must not keep the library's loop: see no_leaks.
            raised.append(error)
    logged = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert raised
    assert sorted(str(error) for error in raised + logged) == ["0", "1", "2"]


def test_handlers_may_be_set_at_any_time_from_any_thread(server):
    told: queue.Queue[str] = queue.Queue()
    with connect(server.url + "/echo") as ws:
        ended = []

        def receive():
            with pytest.raises(librealtime.InvalidState) as caught:
                ws.recv()
            ended.append(caught.value)

        receiving = threading.Thread(target=receive)
        receiving.start()
        ws.on_message = told.put
        receiving.join()
        assert len(ended) == 1
        ws.send("told")
        assert told.get() == "told"
        ws.on_message = None
        ws.send("waits")
        assert ws.recv() == "waits"
