"""Calls that wait inside finalizers: in garbage cycles, at interpreter exit, in generators.

The collector clears the weak references to the objects of a cycle before it runs the finalizers, so
C's callbacks do not find their object any more. Each program runs by itself: one that hangs is
ended, and fails.
"""

from __future__ import annotations

import pytest
from pushers import options

#: For each object: which server, how it is opened, and what its finalizer does.
USES = {
    "connection, close": ("server", "sync.connect(URL + '/echo')", "x.close()"),
    "connection, ping": ("server", "sync.connect(URL + '/echo')", "print(x.ping().wait())"),
    "connection, send and recv": (
        "server", "sync.connect(URL + '/echo')", "x.send('late'); print(x.recv()); x.close()"
    ),
    "connection, closed by the server": (
        "server", "sync.connect(URL + '/echo')", "x.send_nowait('a'); x.recv(); x.wait_closed(0)"
    ),
    "event source": ("events", "sync.EventSource(URL + '/three')", "print(x.recv()); x.close()"),
    "long poll": ("events", "sync.LongPoll(URL + '/poll')", "print(x.recv()); x.close()"),
    "requests": ("events", "sync.RESTClient(URL)", "print(x.get('page').text); x.close()"),
    "spreadbot, close": ("bots", "bot()", "x.close()"),
    "spreadbot, send": ("bots", "bot()", "x.send_message_string('a'); x.close_connection()"),
    "spreadbot, request": ("bots", "bot()", "x.rest.post_data('post', {}); x.close()"),
    "pusher, disconnect": ("pusher_server", "pusher()", "x.disconnect(); x.close()"),
    "pusher, subscribe": ("pusher_server", "pusher()", "x.subscribe('late'); x.disconnect()"),
    "meteor, call": ("app", "meteor()", "print(x.subscribe('all').is_ready); x.close()"),
    "meteor, earlier call": ("app", "meteor()", "print(x.early.completed()); x.close()"),
    "meteor, earlier subscription": ("app", "meteor()", "x.early_use.ready(); x.close()"),
    "meteor, changes": ("app", "meteor()", "print(next(x.changes)); x.close()"),
}  # fmt: skip

PROGRAM = """
import atexit, gc, json, sys, threading, time, urllib.request, warnings
import librealtime
from librealtime import sync

warnings.simplefilter("ignore")
URL, OPTIONS = sys.argv[1], json.loads(sys.argv[2])

def bot():
    x = sync.Spreadbot(URL)
    x.establish_connection("echo")
    return x

def pusher():
    x = sync.Pusher(**OPTIONS)
    x.connect()
    x.subscribe("early").events()
    return x

def meteor():
    x = sync.DDPClient(URL)
    x.connect()
    x.early = x.collection("players").update("a", {{"$set": {{"name": "Eve"}}}})
    x.early_use = x.subscribe("all", wait=False)
    x.changes = x.collection("players").find().observe()
    return x

def use(x):
    try:
        {use}
    except (TimeoutError, StopIteration):
        pass
    except librealtime.DDPError as error:
        # The outcome of the earlier call came while nobody could hear of it.
        assert error.code == "lost", error
    print("done", flush=True)

class Owner:
    def __init__(self):
        self.x = {make}
    def __del__(self):
        use(self.x)

def generate():
    with {make} as x:
        try:
            yield x
        finally:
            use(x)

def is_driven(x):
    # Whether its thread is inside the library.
    while x._keeper is not None and x._keeper._dispatched is None:
        time.sleep(0.001)
"""

#: Where the finalizer runs.
SITES = {
    "cycle": """
owner = Owner()
owner.me = owner
is_driven(owner.x)
del owner
gc.collect()
""",
    "global": """
owner = Owner()
is_driven(owner.x)
""",
    "global in a cycle": """
owner = Owner()
owner.me = owner
is_driven(owner.x)
""",
    "generator": """
class Holder:
    pass
holder = Holder()
holder.me = holder
holder.values = generate()
is_driven(next(holder.values))
del holder
gc.collect()
""",
    "global generator": """
values = generate()
is_driven(next(values))
""",
    "another thread": """
def work():
    owner = Owner()
    owner.me = owner
    is_driven(owner.x)
    del owner
    gc.collect()
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
}


def arguments(request, server):
    found = request.getfixturevalue(server)
    if server != "pusher_server":
        return found.url, "{}"
    import json

    return "", json.dumps({"key": found.key, **options(found)})


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("use", USES)
def test_a_call_in_a_finalizer_ends(request, script, use, site):
    server, make, call = USES[use]
    program = PROGRAM.format(make=make, use=call) + SITES[site]
    result = script(program, *arguments(request, server))
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("done\n"), result.stdout + result.stderr
    assert "Traceback" not in result.stderr


MISSED = """
class Late:
    # Its finalizer runs before that of the other objects: what C reports meanwhile reaches nobody.
    def __init__(self):
        self.x = {make}
        x = self.x
        {before}
        self.me = self
    def __del__(self):
        from librealtime._core.loader import lib
        x = self.x
        loop = x._loop_handle
        end = time.monotonic() + 30
        x._end_keeper()
        with x._wheel.last:
            pass
        {trigger}
        while not ({has_come}) and time.monotonic() < end:
            lib.rt_loop_dispatch(loop, 100)
        print("has come" if {has_come} else "has not come", flush=True)
        try:
            {use}
        except (librealtime.RealtimeError, StopIteration) as error:
            print(type(error).__name__, flush=True)
        print("done", flush=True)
Late()
gc.collect()
"""

#: What ends while nobody hears of it; then the call that waits for it.
ENDS = {
    "connection": (
        "server", "sync.connect(URL + '/one')", "", "x.send_nowait('end')",
        "lib.rt_websocket_get_state(x._handle) == 5", "x.recv()",
    ),
    "connection, close": (
        "server", "sync.connect(URL + '/one')", "", "x.send_nowait('end')",
        "lib.rt_websocket_get_state(x._handle) == 5", "x.close()",
    ),
    "event source": (
        "events", "sync.EventSource(URL + '/page')", "", "",
        "lib.rt_eventsource_get_state(x._handle) == 5", "x.recv()",
    ),
    "spreadbot": (
        "bots", "bot()", "", "lib.rt_spreadbot_close(x._handle)",
        "lib.rt_spreadbot_get_state(x._handle) == 5", "x.close_connection()",
    ),
    "pusher": (
        "pusher_server", "pusher()", "", "lib.rt_pusher_close(x._handle)",
        "lib.rt_pusher_get_state(x._handle) == 5", "x.disconnect()",
    ),
    "meteor call": (
        "app", "meteor()", "x.late = x.send('nothing')", "",
        "x.late._registration._key in __import__('librealtime')._core.registry._missed",
        "x.late.result()",
    ),
    "request": (
        "events", "sync.RESTClient(URL)",
        "x.all = x.stream('GET', 'later'); x.answer = x.all.__enter__()",
        "urllib.request.urlopen(URL + '/release').read()",
        "x.answer._call.key in __import__('librealtime')._rest.callbacks._ended",
        "x.answer.read()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_nobody_heard_of(request, script, end):
    server, make, before, trigger, has_come, use = ENDS[end]
    parts = {"before": before or "pass", "trigger": trigger or "pass", "has_come": has_come}
    program = PROGRAM.format(make=make, use=use) + MISSED.format(make=make, use=use, **parts)
    result = script(program, *arguments(request, server))
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("has come\n"), result.stdout + result.stderr
    assert result.stdout.endswith("done\n"), result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_a_thread_that_does_not_run_any_more(server, script):
    """At interpreter exit a daemon thread never leaves the call in which it waits."""
    result = script(
        """
import sys, threading, time
from librealtime import sync

class Owner:
    def __init__(self):
        self.x = sync.connect(sys.argv[1] + "/silent")
    def __del__(self):
        try:
            self.x.close()
        except RuntimeError as error:
            print(type(error).__name__, error, flush=True)

owner = Owner()
thread = threading.Thread(target=owner.x.recv, daemon=True)
thread.start()
wheel = owner.x._wheel
while owner.x._keeper.turn is wheel.last or wheel.last.acquire(blocking=False):
    time.sleep(0.001)
""",
        server.url,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("InvalidState the interpreter exits"), result.stderr


STREAMS = {
    "connection": "librealtime.connect(URL + '/count?to=100')",
    "event source": "librealtime.EventSource(URL + '/three')",
}


@pytest.mark.parametrize("name", ["connection", "event source"])
def test_an_asynchronous_generator_that_is_collected(request, script, name):
    make = STREAMS[name]
    server = {"connection": "server", "event source": "events"}[name]
    result = script(
        f"""
import asyncio, gc, sys, warnings
import librealtime
warnings.simplefilter("ignore")
URL = sys.argv[1]

async def generate(ended):
    try:
        async with {make} as x:
            async for message in x:
                yield message
    finally:
        ended.set()

class Holder:
    pass

async def main():
    ended = asyncio.Event()
    holder = Holder()
    holder.me = holder
    holder.values = generate(ended)
    await holder.values.__anext__()
    del holder
    gc.collect()
    await ended.wait()
    print("done")

asyncio.run(main())
""",
        request.getfixturevalue(server).url,
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_handlers_can_be_unbound_by_the_collector(pusher_server):
    """An iteration that is collected during a change of the bindings is unbound by it."""
    from librealtime._pusher.bindings import Binding, Bindings

    bindings = Bindings(lambda: None)
    first = bindings.add(None, print)

    class Meant:
        def __call__(self, one: Binding) -> bool:
            # As a finalizer would, while the lock is held.
            bindings.remove(lambda other: other is first)
            return one is not first

    bindings.add("a", print)
    bindings.remove(Meant())
    assert not bindings
    assert bindings.others == ()
