"""Whether there is a network: as set by the caller, and connections that wait for it.

Tests/Integration tests the kernel's view, in network namespaces.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

import librealtime
from librealtime import Backoff, InvalidArgument, Reachability, State
from librealtime.sync import connect

AT_ONCE = Backoff(initial_delay=0, max_attempts=1)


def test_the_caller_says_so():
    reachability = Reachability("manual")
    assert reachability.is_online
    reachability.set_online(False)
    assert not reachability.is_online
    reachability.mode = "always"
    assert reachability.mode == "always"
    assert reachability.is_online
    reachability.mode = "manual"
    assert not reachability.is_online
    assert repr(reachability) == "Reachability('manual')"


def test_the_state_set_by_hand_is_shown():
    reachability = Reachability("manual")
    reachability.set_online(False)
    assert not reachability.is_online


def test_auto_uses_the_kernels_state():
    assert isinstance(Reachability().is_online, bool)


def test_bad_values(server):
    with pytest.raises(InvalidArgument, match="mode is 'some'"):
        Reachability("some")
    with pytest.raises(InvalidArgument, match="mode is None"):
        Reachability().mode = None
    with pytest.raises(InvalidArgument, match="need reconnect"):
        connect(server.url, reachability=Reachability())
    with pytest.raises(TypeError, match="a Reachability is expected"):
        connect(server.url, reconnect=AT_ONCE, reachability="auto")


def test_changes_are_awaited(run):
    reachability = Reachability("manual")

    async def main():
        changes = reachability.__aiter__()
        for expected in (False, True, False):
            change = asyncio.ensure_future(changes.__anext__())
            reachability.set_online(expected)
            assert await change is expected
        await changes.aclose()

    run(main())


def test_changes_are_waited_for():
    """A change made in another thread ends the wait of this one."""
    reachability = Reachability("manual")
    changes = iter(reachability)
    for expected in (False, True, False):
        timer = threading.Timer(0.01, reachability.set_online, [expected])
        timer.start()
        assert next(changes) is expected
        timer.join()


def test_a_connection_waits_for_the_network(run, own_server):
    """Lost without a network, it counts no attempts, and reconnects once there is one."""
    own_server.fates.extend(["drop"])
    reachability = Reachability("manual")
    lost, attempts = [], []

    async def main():
        waits = asyncio.Event()

        def on_lost(how):
            lost.append(how)
            waits.set()

        reachability.set_online(False)
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            reachability=reachability,
            on_lost=on_lost,
            on_reconnect=lambda attempt: attempts.append(attempt.number),
        ) as ws:
            assert await ws.recv() == "0 left"
            await waits.wait()
            assert ws.state is State.WAITING
            assert not attempts
            reachability.set_online(True)
            assert await ws.recv() == "0 left"
            assert attempts == [0]
        assert [(how.delay, how.attempt) for how in lost] == [(None, 0)]

    run(main())


@pytest.mark.parametrize("kind", ["EventSource", "LongPoll", "Spreadbot"])
def test_the_wait_for_a_network_is_reported(run, kind):
    """Once for each wait, without a time, and not as the end."""
    reachability = Reachability("manual")
    reachability.set_online(False)
    told = asyncio.Queue()
    place = "127.0.0.1:1"

    async def wait_reported():
        """Waits for the report that follows those of attempts that were under way."""
        while "there is no network" not in str((event := await told.get()).error):
            assert place in str(event.error)
        assert str(event.error).startswith(f"{place}: there is no network; ")
        assert event.error.name == "RT_ERROR_CONNECT"
        assert event.retry_in is None and not event.fatal and event.http_status == 0

    async def main():
        options = {"reachability": reachability, "on_error": told.put_nowait}
        async with getattr(librealtime, kind)(f"http://{place}/", **options) as one:
            if kind == "Spreadbot":
                await one.establish_connection("news", wait=False)
            else:
                taking = asyncio.ensure_future(one.__aiter__().__anext__())
            await wait_reported()
            for _ in range(2):
                reachability.set_online(True)
                event = await told.get()
                # Nothing else was reported meanwhile.
                assert "refused" in str(event.error)
                reachability.set_online(False)
                await wait_reported()
            assert told.empty()
            if kind != "Spreadbot":
                taking.cancel()

    run(main())


def test_one_serves_several_loops(own_server):
    """Each blocking connection has its own loop."""
    own_server.fates.extend(["drop", "drop"])
    reachability = Reachability("manual")
    reachability.set_online(False)
    lost = []
    options = {"reconnect": AT_ONCE, "reachability": reachability, "on_lost": lost.append}
    with connect(own_server.url + "/flaky", **options) as one:
        assert one.recv() == "1 left"
        with connect(own_server.url + "/flaky", **options) as other:
            assert other.recv() == "0 left"
            for count, ws in enumerate((one, other), 1):
                while len(lost) < count:
                    with pytest.raises(TimeoutError):
                        ws.recv(0.01)
            reachability.set_online(True)
            assert one.recv() == "0 left"
            assert other.recv() == "0 left"
