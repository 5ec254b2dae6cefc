"""Ctrl-C at any moment: nothing leaks, nothing hangs, and only KeyboardInterrupt is raised."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import librealtime
from librealtime import sync
from librealtime._core import handle as _handle
from librealtime._core import interrupts as _interrupts
from librealtime._core.loader import lib
from librealtime._spreadbot import sends as _spreadbot_sends

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer


@pytest.fixture
def rest_server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


PRELUDE = """
import faulthandler, gc, os, random, signal, sys, threading, time, warnings
faulthandler.dump_traceback_later(50, exit=True)
warnings.simplefilter("ignore", ResourceWarning)
import librealtime
from librealtime import sync
from librealtime._core import handle as _handle
from librealtime._core import registry as _registry
from librealtime._rest import callbacks as _rest_callbacks

ws_url, sse_url, bot_url, seed = sys.argv[1:]
draw = random.Random(int(seed))
COUNT = 300

caught = threading.Semaphore(0)
begun, over = threading.Event(), threading.Event()
sent = 0

def interrupt():
    '''One signal at a time, at any moment; again if a finalizer or callback has swallowed it.'''
    global sent
    begun.wait()
    while not over.is_set():
        time.sleep(draw.random() * draw.choice((0.0005, 0.004)))
        sent += 1
        os.kill(os.getpid(), signal.SIGINT)
        # A guard against hanging.
        caught.acquire(timeout=5)

def swallowed(failure):
    if failure.exc_type is KeyboardInterrupt:
        caught.release()
    else:
        sys.__unraisablehook__(failure)

sys.unraisablehook = swallowed

def storm(work):
    sender = threading.Thread(target=interrupt)
    hits = 0
    sender.start()
    while hits < COUNT:
        try:
            begun.set()
            while True:
                work()
        except KeyboardInterrupt:
            hits += 1
            if hits == COUNT:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                over.set()
            caught.release()
    sender.join()

def left():
    gc.collect()
    kinds = (sync.Connection, sync.RESTClient, sync.EventSource, sync.LongPoll, sync.Spreadbot,
             _handle.Handle)
    found = [thing for thing in gc.get_objects() if isinstance(thing, kinds)]
    handles = [watch for watch in _handle._watches if watch.ownership._unfreed]
    polls = [name for name in os.listdir("/proc/self/fd")
             if os.path.islink(p := "/proc/self/fd/" + name) and "eventpoll" in os.readlink(p)]
    return found, handles, _registry._entries, _rest_callbacks._calls, polls

def look():
    # The next finalizer frees what interrupted finalizers have missed.
    del_me = _handle.new_loop()
    del del_me
    found, handles, entries, calls, polls = left()
    assert not found, found[:5]
    assert not handles, len(handles)
    assert not entries, len(entries)
    assert not calls, len(calls)
    assert not polls, polls
    # Finalizers swallow some interrupts, because Python cannot raise there: up to one in nine.
    print("clean", COUNT / sent > 0.8 or (COUNT, sent))
"""

REST = """
def work():
    with sync.RESTClient(sse_url) as client:
        client.get("/page")
        with client.stream("GET", "/page") as answer:
            answer.read()
storm(work)
look()
"""

KEPT = """
# One client outlives all interrupts.
client = sync.RESTClient(sse_url)
storm(lambda: client.get("/page"))
assert client.get("/page").status_code == 200
client.close()
assert not client._calls and client._loop_handle is None
del client
look()
"""

WEBSOCKET = """
def work():
    with sync.connect(ws_url + "/echo") as ws:
        for number in range(3):
            ws.send(str(number))
            ws.recv()
        ws.ping().wait()
storm(work)
look()
"""

SOURCES = """
def work():
    with sync.EventSource(sse_url + "/count?to=3") as source:
        source.recv()
    with sync.LongPoll(sse_url + "/poll") as poll:
        poll.recv()
    with sync.Spreadbot(bot_url) as bot:
        bot.establish_connection("echo")
        bot.send_message_string("x")
        bot.recv()
storm(work)
look()
"""

SHARED = """
# Another thread uses the same client and connection at the same time.
client = sync.RESTClient(sse_url, timeout=20)
ws = sync.connect(ws_url + "/echo", open_timeout=20)
answers, failures = [], []

def ask():
    try:
        while not over.is_set():
            assert client.get("/page").status_code == 200
            ws.send("x")
            ws.recv(timeout=20)
            answers.append(1)
    except BaseException as error:
        failures.append(error)

other = threading.Thread(target=ask)
other.start()

def work():
    client.get("/page")
    ws.ping().wait()

storm(work)
other.join(20)
assert not other.is_alive(), "the other thread waits forever"
assert not failures, failures
assert len(answers) > 10, answers
assert client.get("/page").status_code == 200
ws.close()
client.close()
del ws, client, other
look()
"""

PROGRAMS = {"rest": REST, "kept": KEPT, "ws": WEBSOCKET, "sources": SOURCES, "shared": SHARED}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_any_moment_leaks_nothing(script, server, events, bots, name):
    result = script(PRELUDE + PROGRAMS[name], server.url, events.url, bots.url, "1")
    assert (result.returncode, result.stdout) == (0, "clean True\n"), result.stderr[-6000:]


HANDLER = """
import os, queue, signal, sys, threading, time
from librealtime import sync

def press(times):
    def interrupt():
        entered.wait()
        for _ in range(times):
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread

def forever(message):
    entered.set()
    while True:
        pass

# Blocks in the standard library, which counts as ours: the second interrupt ends it.
class Full(queue.Queue):
    def _put(self, item):
        entered.set()
        super()._put(item)

# Receives as many messages as it takes to block: an interrupt is followed by the other messages.
for handler, times in ((forever, 1), (Full(1).put, 2)):
    entered = threading.Event()
    thread = press(times)
    ws = sync.connect(sys.argv[1] + f"/count?to={times}", on_message=handler)
    try:
        ws.wait_closed()
    except KeyboardInterrupt:
        print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    thread.join()
    ws.close()
"""


def test_a_handler_that_never_returns_is_interrupted(script, server):
    result = script(HANDLER, server.url)
    assert (result.returncode, result.stdout) == (0, "interrupted True\n" * 2), result.stderr


def ours(text, **names):
    """A function that counts as our code, because of its file name."""
    return eval(compile(text, _interrupts._OURS + "any.py", "eval"), names)


def test_a_dispatch_inside_another_leaves_it_its_interrupt():
    seen = []
    arrive = ours("lambda: raise_signal(2)", raise_signal=signal.raise_signal)

    def handler():
        assert _interrupts.deferring(lambda: 1) == 1
        seen.append("left alone")

    with pytest.raises(KeyboardInterrupt):
        _interrupts.deferring(ours("lambda: (arrive(), handler())", arrive=arrive, handler=handler))

    def other_handler():
        with pytest.raises(KeyboardInterrupt):
            _interrupts.deferring(arrive)
        seen.append("raised")

    _interrupts.deferring(other_handler)
    assert seen == ["left alone", "raised"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_that_an_interrupt_met_is_cancelled(
    run: Any, rest_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt arrives as soon as the request is sent, which holds up later ones."""
    send = lib.rt_rest_request_send
    interrupts = [1]

    def interrupted(*arguments: Any) -> int:
        status: int = send(*arguments)
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return status

    monkeypatch.setattr(lib, "rt_rest_request_send", interrupted)
    with sync.RESTClient(rest_server.url, timeout=5, attempts=1) as client:
        with pytest.raises(KeyboardInterrupt):
            client.post("/silent/a/1", timeout=None, deadline=None)
        assert client.post("/echo", deadline=5).status_code == 200
        assert not client._calls

    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, timeout=5, attempts=1) as client:
            interrupts.append(1)
            with pytest.raises(KeyboardInterrupt):
                await client.post("/silent/b/1", timeout=None, deadline=None)
            assert (await client.post("/echo", deadline=5)).status_code == 200
            assert not client._calls

    run(main())


@pytest.mark.parametrize(("is_durable", "withdrawn"), [(False, [7]), (True, [])])
def test_a_send_that_an_interrupt_met_is_withdrawn(
    is_durable: bool, withdrawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[int] = []
    monkeypatch.setattr(
        _spreadbot_sends,
        "SPREADBOT",
        SimpleNamespace(cancel=lambda handle, number: cancelled.append(number) or 0),
    )

    def send(handle: Any, place: Any) -> int:
        place._obj.value = 7
        raise KeyboardInterrupt

    sends = _spreadbot_sends.Sends(is_durable)
    with pytest.raises(KeyboardInterrupt):
        sends.submit(_handle.Handle(), send, lambda error, response: None)
    assert (cancelled, len(sends)) == (withdrawn, 0)
