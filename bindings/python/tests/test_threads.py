"""The blocking API in several threads, and interrupts."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from servers import WebSocketServer

import librealtime
from librealtime._core.wheel import wait_for
from librealtime.sync import Connection, connect

# A guard against hanging.
PATIENCE_S = 60


class Worker(threading.Thread):
    """A thread that passes on the exception that ended it."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._outcome: queue.Queue[object] = queue.Queue()
        self.start()

    def run(self) -> None:
        try:
            self._outcome.put(self._work())
        except BaseException as error:
            self._outcome.put(error)

    def result(self) -> object:
        outcome = self._outcome.get(timeout=PATIENCE_S)
        self.join(PATIENCE_S)
        return outcome


def wait_until_driven(ws: Connection) -> None:
    """Waits until a call of another thread is inside the library."""
    deadline = time.monotonic() + PATIENCE_S
    while (turn := ws._wheel.last) is ws._keeper.turn or wait_for(turn, 0):
        assert time.monotonic() < deadline, "nobody drives the connection"
        time.sleep(0.001)


@pytest.fixture
def ws(server: WebSocketServer) -> Iterator[Connection]:
    with connect(server.url + "/echo") as connection:
        yield connection


def test_a_send_passes_a_thread_that_waits_to_receive(ws: Connection) -> None:
    receiver = Worker(lambda: [ws.recv() for _ in range(200)])
    wait_until_driven(ws)
    for number in range(200):
        ws.send(str(number))
    assert receiver.result() == [str(number) for number in range(200)]


def test_each_send_is_answered_before_the_next(ws: Connection) -> None:
    """Only the sends themselves wake the waiting thread."""
    answers: queue.Queue[object] = queue.Queue()

    def receive() -> None:
        for message in ws:
            answers.put(message)

    receiver = Worker(receive)
    for number in range(100):
        ws.send(str(number))
        assert answers.get(timeout=PATIENCE_S) == str(number)
    ws.close()
    assert receiver.result() is None


def test_many_threads_send_and_receive(ws: Connection) -> None:
    senders, receivers, each = 8, 3, 250
    received: queue.Queue[object] = queue.Queue()

    def send(sender: int) -> None:
        for number in range(each):
            ws.send(f"{sender}:{number}")

    def receive() -> None:
        for message in ws:
            received.put(message)

    workers = [Worker(receive) for _ in range(receivers)]
    workers += [Worker(functools.partial(send, sender)) for sender in range(senders)]
    messages = [received.get(timeout=PATIENCE_S) for _ in range(senders * each)]
    ws.close()
    assert [worker.result() for worker in workers] == [None] * len(workers)
    assert received.empty()
    assert set(messages) == {f"{sender}:{n}" for sender in range(senders) for n in range(each)}


def test_closing_ends_a_receive_on_another_thread(ws: Connection) -> None:
    receiver = Worker(ws.recv)
    wait_until_driven(ws)
    ws.close(3001, "enough")
    error = receiver.result()
    assert isinstance(error, librealtime.ConnectionClosedError)
    assert (error.code, error.reason) == (3001, "enough")


def test_a_ping_passes_a_thread_that_waits_to_receive(ws: Connection) -> None:
    receiver = Worker(ws.recv)
    wait_until_driven(ws)
    pong = ws.ping()
    assert pong.wait(timeout=PATIENCE_S)
    assert pong.latency is not None
    assert 0 < pong.latency < PATIENCE_S
    assert ws.latency == pong.latency
    ws.send("done")
    assert receiver.result() == "done"


def test_a_time_limit_holds_while_another_thread_waits(ws: Connection) -> None:
    receiver = Worker(ws.recv)
    wait_until_driven(ws)
    with pytest.raises(TimeoutError, match=r"no message within 0\.05 s"):
        ws.recv(timeout=0.05)
    assert receiver.is_alive()
    ws.send("done")
    assert receiver.result() == "done"


def test_a_slow_reader_holds_up_senders_and_loses_nothing(own_server: WebSocketServer) -> None:
    count, size, write_limit = 2000, 16384, 65536
    with connect(
        own_server.url + "/late", write_limit=write_limit, compression=None, ping_interval=None
    ) as ws:
        sent = 0

        def send() -> None:
            nonlocal sent
            for number in range(count):
                ws.send(number.to_bytes(4, "big") * (size // 4))
                sent += 1

        sender = Worker(send)
        # It has stopped when the library holds more than the limit and makes no progress.
        deadline = time.monotonic() + PATIENCE_S
        last = -1
        while sent != last or ws._buffered() <= write_limit:
            assert time.monotonic() < deadline
            last = sent
            time.sleep(0.1)
        assert 0 < sent < count
        assert ws._buffered() <= write_limit + 2 * size
        own_server.go.set()
        assert sender.result() is None
        assert ws.ping().wait(timeout=PATIENCE_S)
    numbers = [int.from_bytes(message[:4], "big") for message in own_server.received]
    assert numbers == list(range(count))


def test_ctrl_c_interrupts_a_receive_and_the_connection_stays_open(ws: Connection) -> None:
    main = threading.get_ident()
    # Processes in a shell's background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        wait_until_driven(ws)
        signal.pthread_kill(main, signal.SIGINT)

    interrupter = Worker(interrupt)
    with pytest.raises(KeyboardInterrupt):
        ws.recv(timeout=PATIENCE_S)
    assert interrupter.result() is None
    ws.send("still there")
    assert ws.recv() == "still there"


def test_a_callback_that_fails_fails_the_call_that_drives(server: WebSocketServer) -> None:
    received: list[object] = []

    def on_message(message: str | bytes) -> None:
        received.append(message)
        if message == "bad":
            raise ValueError("no such message")
        if message == "end":
            ws.close()

    ws = connect(server.url + "/echo", on_message=on_message)
    failures = 0
    for message in ("good", "bad", "end"):
        with contextlib.suppress(ValueError):
            ws.send(message)
            continue
        failures += 1
    while ws.close_code is None:
        try:
            ws.wait_closed(PATIENCE_S)
        except ValueError as error:
            assert str(error) == "no such message"
            failures += 1
    assert failures == 1
    assert received == ["good", "bad", "end"]


def test_a_callback_cannot_wait_for_its_own_connection(server: WebSocketServer) -> None:
    failures: list[str] = []

    def on_message(message: str | bytes) -> None:
        for wait in (lambda: ws.ping().wait(), ws.wait_closed):
            try:
                wait()
            except librealtime.RealtimeError as error:
                failures.append(error.name)
        ws.close()

    ws = connect(server.url + "/echo", on_message=on_message)
    ws.send("go")
    ws.wait_closed(PATIENCE_S)
    assert failures == ["RT_ERROR_REENTRANT"] * 2


def test_descriptors_are_released(server: WebSocketServer) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with connect(server.url + "/echo") as ws:
            ws.send("x")
            assert ws.recv() == "x"
    assert len(os.listdir("/proc/self/fd")) <= before + 1
