"""Blocking calls in programs that gevent has patched: other greenlets run while one waits.

In each program a greenlet does what another one waits for, so a call that blocks the whole thread
never returns.
"""

from __future__ import annotations

import json

import pytest
from pushers import options

PATCH = "from gevent import monkey\nmonkey.patch_all()\n"
IMPORT = """
import json, sys
import gevent
import gevent.event
import librealtime
from librealtime import sync
URL, OPTIONS = sys.argv[1], json.loads(sys.argv[2])
"""

PROGRAMS = {
    "connection": (
        "server",
        """
with sync.connect(URL + "/echo") as ws:
    def send():
        ws.send("from another greenlet")
    gevent.spawn(send)
    assert ws.recv() == "from another greenlet"
    pong = ws.ping()
    assert pong.wait(30)
    try:
        ws.recv(timeout=0.05)
    except librealtime.ConnectionTimeout:
        print("done")
""",
    ),
    "many connections": (
        "server",
        """
def work(number):
    with sync.connect(URL + "/echo") as ws:
        for message in range(10):
            ws.send(f"{number} {message}")
            assert ws.recv() == f"{number} {message}"
    return number
jobs = [gevent.spawn(work, number) for number in range(20)]
gevent.joinall(jobs, raise_error=True)
assert [job.value for job in jobs] == list(range(20))
print("done")
""",
    ),
    "one connection in many greenlets": (
        "server",
        """
with sync.connect(URL + "/echo") as ws:
    jobs = [gevent.spawn(ws.recv) for _ in range(20)]
    for number in range(20):
        ws.send(str(number))
    gevent.joinall(jobs, raise_error=True)
    assert {job.value for job in jobs} == set(map(str, range(20)))
print("done")
""",
    ),
    "a handler that waits": (
        "server",
        """
seen, go = [], gevent.event.Event()
def on_message(message):
    # Other connections work meanwhile.
    with sync.connect(URL + "/echo") as other:
        other.send(message)
        seen.append(other.recv())
    go.set()
ws = sync.connect(URL + "/echo", on_message=on_message)
ws.send_nowait("hello")
go.wait()
assert seen == ["hello"]
ws.close()
print("done")
""",
    ),
    "sources": (
        "events",
        """
source, poll = sync.EventSource(URL + "/three"), sync.LongPoll(URL + "/poll")
def take(items, count):
    return [items.recv() for _ in range(count)]
jobs = [gevent.spawn(take, source, 3), gevent.spawn(take, poll, 5)]
gevent.joinall(jobs, raise_error=True)
waiting = gevent.spawn(list, source)
gevent.spawn(source.close)
assert waiting.get() == []
poll.close()
print("done")
""",
    ),
    "requests": (
        "events",
        """
with sync.RESTClient(URL) as client:
    jobs = [gevent.spawn(client.get, "page") for _ in range(10)]
    gevent.joinall(jobs, raise_error=True)
    assert {job.value.text for job in jobs} == {"no stream"}
    with client.stream("GET", "page") as response:
        assert response.read() == b"no stream"
print("done")
""",
    ),
    "spreadbot": (
        "bots",
        """
with sync.Spreadbot(URL) as bot:
    bot.establish_connection("echo")
    message = gevent.spawn(bot.recv)
    bot.send_message_string("hello")
    assert message.get().text == "hello"
    assert bot.rest.post_data("post", {})
print("done")
""",
    ),
    "pusher": (
        "pusher_server",
        """
with sync.Pusher(**OPTIONS) as pusher:
    channels = [gevent.spawn(pusher.subscribe, f"channel-{number}") for number in range(5)]
    gevent.joinall(channels, raise_error=True)
    events = channels[0].value.events()
    waiting = gevent.spawn(list, events)
    gevent.spawn(channels[0].value.unsubscribe)
    assert waiting.get() == []
print("done")
""",
    ),
    "meteor": (
        "app",
        """
with sync.DDPClient(URL) as client:
    client.subscribe("all")
    players = client.collection("players")
    changes = players.find({"name": "Eve"}).observe()
    change = gevent.spawn(next, changes)
    players.update("a", {"$set": {"name": "Eve"}}).completed()
    assert change.get().id == "a"
    assert len(players) == 2
print("done")
""",
    ),
    "reachability": (
        "server",
        """
reachability = librealtime.Reachability("manual")
change = gevent.spawn(next, iter(reachability))
gevent.spawn(reachability.set_online, False)
assert change.get() is False
print("done")
""",
    ),
    "an end with an open connection": (
        "server",
        """
ws = sync.connect(URL + "/echo", on_message=print)
ws.send_nowait("hello")
print("done")
""",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_greenlets_run_while_a_call_waits(request, script, environment, name):
    # gevent's own warnings do not matter here.
    del environment["PYTHONDEVMODE"]
    server, program = PROGRAMS[name]
    found, given = request.getfixturevalue(server), {}
    if server == "pusher_server":
        given = {"key": found.key, **options(found)}
    url = getattr(found, "url", "")
    result = script(PATCH + IMPORT + program, url, json.dumps(given))
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_a_program_that_patches_after_the_import(server, script, environment):
    del environment["PYTHONDEVMODE"]
    program = "import librealtime.sync\n" + PATCH + IMPORT + PROGRAMS["connection"][1]
    result = script(program, server.url, "{}")
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_gevent_without_patched_threads_changes_nothing(server, script, environment):
    del environment["PYTHONDEVMODE"]
    patch = "from gevent import monkey\nmonkey.patch_socket()\n"
    program = """
from librealtime._core.waiting import is_patched
assert not is_patched()
with sync.connect(URL + "/echo") as ws:
    ws.send("hello")
    print(ws.recv())
"""
    result = script(patch + IMPORT + program, server.url, "{}")
    assert (result.returncode, result.stdout) == (0, "hello\n"), result.stderr
