"""Blocking objects stay active while the program does something other than calling them.

Tests wait for the server or a handler, never for a call of the object.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import threading
import time

import pytest
from conftest import PATIENCE_S
from servers import AsyncServer
from websockets.asyncio.server import serve

from librealtime import ConnectionClosedError, RealtimeError, State
from librealtime.sync import EventSource, LongPoll, RESTClient, Spreadbot, connect, reconnect


class StrictServer(AsyncServer):
    """A WebSocket server that sends pings, and does not continue until each is answered.

    It sends a number after each ping that was answered, and echoes.
    """

    def __init__(self, interval: float, count: int) -> None:
        super().__init__(self._begin)
        self._interval, self._count = interval, count
        #: Set when that many pings were answered.
        self.is_content = threading.Event()

    async def _begin(self):
        server = await serve(
            self._handle, "127.0.0.1", 0, ping_interval=None, close_timeout=self._interval
        )

        async def stop():
            server.close()
            await server.wait_closed()

        return next(iter(server.sockets)).getsockname()[1], stop

    async def _handle(self, ws):
        pinging = asyncio.ensure_future(self._ping(ws))
        async for message in ws:
            await ws.send(message)
        pinging.cancel()

    async def _ping(self, ws):
        for number in range(self._count):
            await asyncio.sleep(self._interval)
            await (await ws.ping())
            await ws.send(str(number))
        self.is_content.set()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "librealtime"]


@pytest.fixture(autouse=True)
def no_threads():
    """Checks after each test that no thread of the library is left."""
    yield
    gc.collect()
    for thread in threads():
        thread.join(PATIENCE_S)
    assert not threads()


@pytest.mark.parametrize(
    ("interval", "count"), [(0.2, 8), pytest.param(1, 30, marks=pytest.mark.long)]
)
def test_a_program_that_is_busy_stays_connected(interval, count):
    with StrictServer(interval, count) as server, connect(server.url) as ws:
        assert server.is_content.wait(PATIENCE_S)
        assert ws.state is State.OPEN
        assert [ws.recv(timeout=PATIENCE_S) for _ in range(count)] == list(map(str, range(count)))
        ws.send("still there")
        assert ws.recv(timeout=PATIENCE_S) == "still there"


def test_handlers_are_called_while_the_program_computes():
    seen = []
    with StrictServer(0.05, 5) as server, connect(server.url, on_message=seen.append) as ws:
        until = time.monotonic() + PATIENCE_S
        while len(seen) < 5:  # never releases the interpreter's lock by itself
            assert time.monotonic() < until
        ws.send("after the others")
        while len(seen) < 6:
            assert time.monotonic() < until
    assert seen == [*map(str, range(5)), "after the others"]


def test_messages_sent_without_waiting_are_sent(server):
    came = threading.Event()
    with connect(server.url + "/echo", on_message=lambda message: came.set()) as ws:
        # Driven by the thread, or not driven yet.
        for pause in (0.1, 0):
            threading.Event().wait(pause)
            ws.send_nowait("hello")
            assert came.wait(PATIENCE_S)
            came.clear()


def test_an_event_source(events):
    came, seen = threading.Event(), []
    with EventSource(events.url + "/held", on_message=lambda event: came.set()):
        assert came.wait(PATIENCE_S)
    with EventSource(events.url + "/retries") as source:
        source.on_any = lambda event: seen.append(event.data) or (len(seen) == 3 and came.set())
        came.clear()
        assert came.wait(PATIENCE_S)
    assert seen == ["1", "2", "3"]


def test_a_long_poll(events):
    came = threading.Event()
    with LongPoll(events.url + "/poll", on_message=lambda message: came.set()):
        assert came.wait(PATIENCE_S)


def test_a_request_that_is_under_way(serve):
    done, size = threading.Event(), 512 << 10

    def answer(connection, number):
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(8):
            connection.sendall(bytes(size // 8))

    def on_progress(sent, to_send, received, to_receive):
        if received == size:
            done.set()

    with (
        RESTClient(serve(answer).url) as client,
        client.stream("GET", "/", on_progress=on_progress) as response,
    ):
        assert done.wait(PATIENCE_S)
        assert response.read() == bytes(size)


def test_a_spreadbot_connection(bots):
    came, sent = threading.Event(), threading.Event()
    with Spreadbot(bots.url, on_message=lambda message: came.set()) as bot:
        bot.establish_connection("echo", wait=False)
        bot.on_open = lambda transport, resumed: bot.send_nowait("hello", lambda error: sent.set())
        assert sent.wait(PATIENCE_S)
        assert came.wait(PATIENCE_S)


def test_handler_exceptions_are_raised_by_the_next_call_that_waits(events, caplog):
    failed = threading.Event()

    def on_message(event):
        failed.set()
        raise ZeroDivisionError("late")

    source = EventSource(events.url + "/held", on_message=on_message)
    assert failed.wait(PATIENCE_S)
    with pytest.raises(ZeroDivisionError, match="late"):
        source.wait_closed(timeout=PATIENCE_S)
    source.close()
    assert not caplog.records


def test_exceptions_that_no_call_raises_are_logged(events, caplog):
    failed = threading.Event()

    def on_message(event):
        failed.set()
        raise ZeroDivisionError("never raised")

    with caplog.at_level(logging.ERROR, "librealtime"):
        source = EventSource(events.url + "/held", on_message=on_message)
        assert failed.wait(PATIENCE_S)
        source.close()
        # The thread may still be inside the handler.
        for thread in threads():
            thread.join(PATIENCE_S)
        del source
        gc.collect()
    assert [record.exc_info[1].args for record in caplog.records] == [("never raised",)]


def test_a_handler_cannot_wait_for_its_own_connection(server):
    raised, errors = threading.Event(), []

    def on_message(message):
        try:
            ws.ping().wait()
        except RealtimeError as error:
            errors.append(error.name)
        raised.set()

    with connect(server.url + "/echo", on_message=on_message) as ws:
        ws.send_nowait("hello")
        assert raised.wait(PATIENCE_S)
    assert errors == ["RT_ERROR_REENTRANT"]


def test_a_handler_closes(server):
    closed = threading.Event()

    def on_message(message):
        ws.close()
        closed.set()

    with connect(server.url + "/echo", on_message=on_message) as ws:
        ws.send_nowait("hello")
        assert closed.wait(PATIENCE_S)
        ws.wait_closed(timeout=PATIENCE_S)


def test_the_thread_of_a_dropped_object_ends(server):
    with pytest.warns(ResourceWarning, match="unclosed"):
        ws = connect(server.url + "/silent")
        # Wait until its thread drives it.
        while ws._keeper._dispatched is None:
            time.sleep(0.001)
        (thread,) = threads()
        del ws
        gc.collect()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_one_connection_after_the_other(server):
    for number, ws in enumerate(reconnect(server.url + "/echo")):
        while ws._keeper._dispatched is None:
            time.sleep(0.001)
        ws.send(str(number))
        assert ws.recv(timeout=PATIENCE_S) == str(number)
        if number == 2:
            break
    with contextlib.suppress(ConnectionClosedError):
        ws.close()


def test_a_forked_child_does_not_wait(server):
    with connect(server.url + "/echo") as ws:
        while ws._keeper._dispatched is None:
            time.sleep(0.001)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                ws.recv(timeout=PATIENCE_S)
            except RealtimeError as error:
                code = 0 if error.name == "RT_ERROR_FORKED" else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ws.send("parent")
        assert ws.recv(timeout=PATIENCE_S) == "parent"


@pytest.mark.parametrize("handler", ["None", "print", "lambda message: time.sleep(0.01)"])
def test_a_program_ends_with_an_open_connection(server, script, handler):
    result = script(
        f"""
import sys, time, warnings
from librealtime.sync import connect
warnings.simplefilter("ignore")
ws = connect(sys.argv[1], on_message={handler})
while ws._keeper._dispatched is None:
    time.sleep(0.001)
""",
        server.url + "/blocks?to=100000&size=10",
    )
    assert (result.returncode, result.stderr) == (0, "")
