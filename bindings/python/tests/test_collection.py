"""Objects that are collected without being closed: alone, in cycles, in callbacks, at exit."""

from __future__ import annotations

import pytest

# Defines `new`, which creates one of each kind, and `freed`, which records each freed handle.
PRELUDE = """
import asyncio, faulthandler, functools, gc, random, sys, threading, warnings
faulthandler.enable()
import librealtime
from librealtime import sync
from librealtime._core import handle as _handle
from librealtime._websocket.asyncio_connection import Connection
from librealtime._websocket.connection_base import BaseConnection
from librealtime._rest.client_base import BaseRESTClient
from librealtime._pusher.pusher_base import BasePusher
from librealtime._sources.source_base import BaseSource

ws_url, sse_url, bot_url, seed = sys.argv[1:]
draw = random.Random(int(seed))
librealtime._core.reactor.LINGER_S = 0

def tuned(pusher):
    '''Subscribes to a channel; channel and iteration refer to the connection.'''
    pusher.channel_of_mine = pusher._register("orders", None, None, False)
    pusher.bind("a", print)
    pusher.events_of_mine = pusher.channel_of_mine.events()
    return pusher

BLOCKING = [
    lambda: sync.connect(ws_url + "/silent"),
    lambda: sync.connect(ws_url + "/echo", max_queue=1),
    lambda: sync.EventSource(sse_url + "/held"),
    lambda: sync.LongPoll(sse_url + "/poll"),
    lambda: sync.RESTClient(sse_url),
    lambda: sync.Spreadbot(bot_url),
    lambda: sync.SpreadbotREST(bot_url),
    lambda: tuned(sync.Pusher("key")),
]
NEITHER = [
    librealtime.EventStreamParser,
    librealtime.Reachability,
    lambda: iter(librealtime.Reachability("manual")),
    lambda: iter(librealtime.Backoff()),
]

# Handles that an owner still needs: those whose finalizer has not run.
needed, early, freed = {}, [], []
real_end = _handle._Ownership.end

def end(ownership):
    if ownership._unfreed:
        freed.append(id(ownership))
        early.extend(owner for owner, own in needed.items() if ownership in own)
    real_end(ownership)

_handle._Ownership.end = end

def watch(kind):
    def handles(self):
        # The loop of another is the reactor's, not its own.
        yield self.__dict__.get("_handle")
        if hasattr(self, "_prepare_driving"):
            yield self.__dict__.get("_loop_handle")
    real = getattr(kind, "__del__", None)
    def finalize(self):
        # From now on it releases them itself.
        needed.pop(id(self), None)
        if real is not None:
            real(self)
    kind.__del__ = finalize
    def note(self):
        needed[id(self)] = [handle._ownership for handle in handles(self) if handle is not None]
    return note

KINDS = (BaseConnection, BaseSource, BasePusher, BaseRESTClient, librealtime.RESTClient)
noters = [(kind, watch(kind)) for kind in KINDS]

def note(thing):
    for kind, noter in noters:
        if isinstance(thing, kind):
            noter(thing)
    return thing

class Knot:
    '''Has its own finalizer, which uses the objects it refers to.'''
    def __init__(self, *things):
        self.things = things
        self.me = self
    def __del__(self):
        for thing in self.things:
            repr(thing)

def entangle(things):
    '''Makes cycles through all of them, some with each other.'''
    things = list(things)
    draw.shuffle(things)
    for thing in things:
        if hasattr(thing, "__dict__"):
            thing.friend = draw.choice(things)
            thing.knot = Knot(thing, *draw.sample(things, 2))
            if draw.random() < 0.5:
                thing.me = thing
    while things:
        count = draw.randint(1, 4)
        Knot(*things[:count])
        del things[:count]
"""

BLOCKING = (
    PRELUDE
    + """
gc.disable()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    wanted = 0
    for _ in range(12):
        makers = [draw.choice(BLOCKING) for _ in range(6)] + [draw.choice(NEITHER)]
        wanted += sum(BLOCKING.index(maker) in (0, 1, 2, 3, 5, 7) for maker in makers[:6])
        things = [note(maker()) for maker in makers]
        entangle(things)
        del things
        gc.collect()
    told = [str(warning.message) for warning in told]
assert all(text.startswith("unclosed") for text in told), told
# Recording them has kept the owners.
gc.collect()
assert len(told) == wanted, (wanted, told)
assert not any("NULL" in text or "INVALID" in text for text in told), told
assert not needed, needed
assert not early, len(early)
assert not [w for w in _handle._watches if w.ownership._unfreed], "handles are left"
print("freed", len(freed) > 12)
"""
)

ASYNCIO = (
    PRELUDE
    + """
async def connect(url, **options):
    return await librealtime.connect(url, **options)

async def client():
    made = librealtime.RESTClient(sse_url)
    made.set_bearer_token("x")
    return made

async def parted(maker):
    return maker()

MAKERS = [
    lambda: connect(ws_url + "/silent"),
    lambda: connect(ws_url + "/echo", on_messages=None, max_queue=1),
    lambda: parted(lambda: librealtime.EventSource(sse_url + "/held")),
    lambda: parted(lambda: librealtime.LongPoll(sse_url + "/poll")),
    client,
    lambda: parted(lambda: librealtime.Spreadbot(bot_url)),
    lambda: parted(lambda: librealtime.SpreadbotREST(bot_url)),
    lambda: parted(lambda: tuned(librealtime.Pusher("key"))),
]

async def main():
    wanted = 0
    for _ in range(12):
        makers = [draw.choice(MAKERS) for _ in range(6)]
        wanted += sum(MAKERS.index(maker) in (0, 1, 2, 3, 5, 7) for maker in makers)
        things = [note(await maker()) for maker in makers]
        entangle(things)
        del things
        gc.collect()
        await asyncio.sleep(0)
    return wanted

gc.disable()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    wanted = asyncio.run(main())
    gc.collect()
    told = [str(warning.message) for warning in told if "unclosed event loop" not in str(warning)]
gc.collect()
assert len(told) == wanted, (wanted, told)
assert not any("NULL" in text or "INVALID" in text for text in told), told
assert not needed, needed
assert not early, len(early)
assert not [w for w in _handle._watches if w.ownership._unfreed], "handles are left"
print("freed", len(freed) > 12)
"""
)

# Each callback and each log line collects what was dropped before.
INSIDE = (
    PRELUDE
    + """
warnings.simplefilter("ignore")
gc.disable()
count = 0

def collect(*_):
    global count
    count += 1
    Knot(*[draw.choice(BLOCKING[2:])() for _ in range(2)], librealtime.Reachability("manual"))
    gc.collect()

class Handler(__import__("logging").Handler):
    inside = False
    def emit(self, record):
        if not self.inside:
            self.inside = True
            gc.collect()
            self.inside = False

import logging
logging.getLogger("librealtime").addHandler(Handler())
logging.getLogger("librealtime").setLevel("DEBUG")
logging.getLogger("librealtime").propagate = False
librealtime.set_log_level("DEBUG")
for _ in range(5):
    ws = sync.connect(ws_url + "/count?to=5", on_message=collect)
    Knot(ws)
    ws.wait_closed()
    del ws
    with sync.EventSource(sse_url + "/count?to=3", on_message=collect) as source:
        with source.__class__(sse_url + "/held"):
            for _ in range(3):
                source._until(lambda: count % 3 == 0, 0.05)
    with sync.RESTClient(sse_url) as client:
        client.get("/page", on_progress=collect)
        with client.stream("GET", "/page") as answer:
            collect()
            answer.read()
    gc.collect()
print("freed", count > 20)
"""
)

# The objects left at exit are in cycles and refer to each other.
EXIT = (
    PRELUDE
    + """
warnings.simplefilter("ignore")
keep = [note(maker()) for maker in BLOCKING + NEITHER]
knot = Knot(*keep)
knot.all = keep
keep.append(knot)
entangle(keep)
print("freed", not freed)
"""
)

PROGRAMS = {"blocking": BLOCKING, "asyncio": ASYNCIO, "in callbacks": INSIDE, "at exit": EXIT}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROGRAMS)
def test_handles_are_freed_after_their_owners(script, server, events, bots, name, seed):
    program = PROGRAMS[name]
    result = script(program, server.url, events.url, bots.url, str(seed))
    assert (result.returncode, result.stdout) == (0, "freed True\n"), result.stderr[-4000:]
    assert "Exception ignored" not in result.stderr, result.stderr[-4000:]


def test_a_handle_that_outlives_its_owner_works_and_is_freed_once(script, server, events, bots):
    """A finalizer resurrects the whole cycle after ours has run."""
    program = (
        PRELUDE
        + """
warnings.simplefilter("ignore")
back = []

class Returning:
    def __del__(self):
        back.append(self)

thing = Returning()
thing.ws = note(sync.connect(ws_url + "/silent"))
thing.handle, thing.ws.thing = thing.ws._handle, thing
del thing
gc.collect()
handle = back[0].handle
assert handle.value, "freed though it came back"
assert librealtime._core.loader.lib.rt_websocket_get_state(handle) >= 0
assert len(freed) == 1, freed  # the loop
ownership = handle._ownership
del handle
back.clear()
gc.collect()
assert not ownership._unfreed and ownership.address.value is None
print("freed", len(freed) == len(set(freed)) == 2)
"""
    )
    result = script(program, server.url, events.url, bots.url, "0")
    assert (result.returncode, result.stdout) == (0, "freed True\n"), result.stderr[-4000:]


COUNTS = """
import sys

# A version of Python may count fewer references, as 3.14 does, or more.
real = sys.getrefcount
sys.getrefcount = lambda thing: real(thing) + int(sys.argv[1])

from librealtime._core import handle as _handle

frees = []

class Unfreed(_handle._Ownership):
    def end(self):
        frees.append(self)

def missed():
    handle = _handle.Handle()
    watch = _handle._Watch(handle, _handle._gone.append)
    watch.ownership = Unfreed(None, None)
    _handle._watches.add(watch)
    return watch

owner = missed().ownership
_handle._free_missed()
assert not frees, "freed, though its owner may still use it"
del owner
_handle._free_missed()
assert len(frees) == 1, "not freed"
"""


@pytest.mark.parametrize("offset", [-2, -1, 0, 1])
def test_missed_handles_are_found_by_reference_counts(script, offset):
    result = script(COUNTS, str(offset))
    assert result.returncode == 0, result.stderr
