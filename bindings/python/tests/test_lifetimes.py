"""What is released, and when: by collection, the end of a loop or of the process, and a fork."""

from __future__ import annotations

import asyncio
import gc

import pytest

import librealtime
from librealtime._core import reactor


def has_reactor() -> bool:
    return hasattr(asyncio.get_running_loop(), reactor._ATTRIBUTE)


def test_the_loop_is_released_with_the_last_connection(run, no_linger, server):
    async def main():
        assert not has_reactor()
        first = await librealtime.connect(server.url + "/echo")
        second = await librealtime.connect(server.url + "/echo")
        assert first._reactor is second._reactor
        await first.close()
        assert has_reactor()
        await second.close()
        while has_reactor():
            await asyncio.sleep(0)
        async with librealtime.connect(server.url + "/echo") as third:
            await third.send("a new loop")
            assert await third.recv() == "a new loop"
        with pytest.raises(librealtime.ConnectFailed):
            await librealtime.connect("ws://127.0.0.1:1/")
        while has_reactor():
            await asyncio.sleep(0)
        with pytest.raises(librealtime.InvalidURI):
            await librealtime.connect("nonsense")
        while has_reactor():
            await asyncio.sleep(0)

    run(main())


def test_the_loop_is_kept_for_the_next_connection(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as first:
            pass
        assert has_reactor()
        async with librealtime.connect(server.url + "/echo") as second:
            assert second._reactor is first._reactor
            assert second.loop_statistics.connections == 2
            assert first._reactor._linger is None

    run(main())


def test_a_connection_that_is_forgotten_warns_and_is_dropped(run, no_linger, own_server):
    async def main():
        ws = await librealtime.connect(own_server.url + "/silent")
        with pytest.warns(ResourceWarning, match=r"unclosed connection <.*OPEN>"):
            del ws
            gc.collect()
        while has_reactor():
            await asyncio.sleep(0)

    run(main())
    assert own_server.closes.get(timeout=30)[0] in (1001, 1006)


def test_a_blocking_connection_that_is_forgotten_warns_and_is_dropped(own_server):
    ws = librealtime.sync.connect(own_server.url + "/silent")
    with pytest.warns(ResourceWarning, match=r"unclosed connection <.*OPEN>"):
        del ws
        gc.collect()
    assert own_server.closes.get(timeout=30)[0] in (1001, 1006)


def test_a_connection_that_a_task_waits_for_is_not_collected(run, server):
    async def main():
        async def receive():
            ws = await librealtime.connect(server.url + "/count?to=3")
            return [message async for message in ws]

        task = asyncio.ensure_future(receive())
        while not task.done():
            gc.collect()
            await asyncio.sleep(0.001)
        assert await task == ["0", "1", "2"]

    run(main())


def test_a_loop_that_ends_before_its_connection(own_server):
    async def main():
        return await librealtime.connect(own_server.url + "/silent")

    ws = asyncio.run(main())
    with pytest.warns(ResourceWarning, match=r"unclosed connection <.*OPEN>"):
        del ws
        gc.collect()
    assert own_server.closes.get(timeout=30)[0] in (1001, 1006)


EXITS = {
    "asyncio": """
import asyncio, sys, librealtime
async def main():
    global ws
    ws = await librealtime.connect(sys.argv[1] + "/count?to=100000")
    print(await ws.recv())
asyncio.run(main())
""",
    "blocking": """
import sys
from librealtime.sync import connect
ws = connect(sys.argv[1] + "/echo")
keep = [ws]
ws.send("0")
print(ws.recv())
""",
    "a thread that receives": """
import sys, threading, time
from librealtime._core.wheel import wait_for
from librealtime.sync import connect
ws = connect(sys.argv[1] + "/silent")
threading.Thread(target=ws.recv, daemon=True).start()
while (turn := ws._wheel.last) is ws._keeper.turn or wait_for(turn, 0):
    time.sleep(0.001)
print(0)
""",
    "a thread with a callback": """
import sys, threading
from librealtime.sync import connect
begun = threading.Event()
ws = connect(sys.argv[1] + "/count?to=100000000", on_message=lambda message: begun.set())
threading.Thread(target=ws.wait_closed, daemon=True).start()
begun.wait()
print(0)
""",
    "a callback exits": """
import asyncio, sys, librealtime
def on_message(message):
    print(0)
    sys.exit(0)
async def main():
    ws = await librealtime.connect(sys.argv[1] + "/count?to=1", on_message=on_message)
    await ws.wait_closed()
asyncio.run(main())
""",
}


@pytest.mark.parametrize("name", EXITS)
def test_a_process_ends_with_open_connections(script, server, name):
    result = script(EXITS[name], server.url)
    assert (result.returncode, result.stdout) == (0, "0\n"), result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


FORKED_BLOCKING = """
import os, sys
from librealtime.sync import connect
ws = connect(sys.argv[1] + "/echo")
child = os.fork()
if child == 0:
    for call in (lambda: ws.send("x"), lambda: ws.recv(timeout=1), ws.ping, ws.close):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, error.name, flush=True)
    print(repr(ws).split()[-1], flush=True)
    with connect(sys.argv[1] + "/echo") as own:
        own.send("the child's own")
        print(own.recv(), flush=True)
    del ws
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ws.send("the parent's")
print(ws.recv())
ws.close()
"""

FORKED_ASYNCIO = """
import asyncio, gc, os, sys, warnings
import librealtime
async def main():
    box = [await librealtime.connect(sys.argv[1] + "/echo", ca_file=sys.argv[2])]
    child = os.fork()
    if child == 0:
        try:
            box[0].send_nowait("x")
        except librealtime.RealtimeError as error:
            print(error.name, flush=True)
        warnings.simplefilter("ignore")
        box.clear()
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    await box[0].send("the parent's")
    print(await box[0].recv())
    await box[0].close()
asyncio.run(main())
"""


def test_a_forked_process_gets_errors_and_the_parent_continues(script, server):
    result = script(FORKED_BLOCKING, server.url)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        *["InvalidState RT_ERROR_FORKED"] * 4,
        "RT_ERROR_FORKED>",
        "the child's own",
        "the parent's",
    ]
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize("name", ["server", "tls_server"])
def test_a_child_that_collects_a_connection_leaves_the_parents_alone(
    script, request, ca_file, name
):
    """Over TLS it must not send close_notify to the peer either."""
    result = script(FORKED_ASYNCIO, request.getfixturevalue(name).url, str(ca_file))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["RT_ERROR_FORKED", "the parent's"]
    assert "Exception ignored" not in result.stderr
