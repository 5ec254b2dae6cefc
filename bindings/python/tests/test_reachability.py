"""Whether there is a network: as set by the caller, and connections that wait for it.

Tests/Integration tests the kernel's view, in network namespaces.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import librealtime
from librealtime import Backoff, InvalidArgument, Reachability, State, sync
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
        waits, received = asyncio.Event(), asyncio.Queue()

        def on_lost(how):
            lost.append(how)
            waits.set()

        def on_message(text):
            # The server drops the connection after the first one.
            reachability.set_online(bool(lost))
            received.put_nowait(text)

        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=AT_ONCE,
            reachability=reachability,
            on_message=on_message,
            on_lost=on_lost,
            on_reconnect=lambda attempt: attempts.append(attempt.number),
        ) as ws:
            assert await received.get() == "0 left"
            await waits.wait()
            assert ws.state is State.WAITING
            assert not attempts
            reachability.set_online(True)
            assert await received.get() == "0 left"
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
        while "no network reaches it" not in str((event := await told.get()).error):
            assert place in str(event.error)
        assert str(event.error) == f"{place}: no network reaches it"
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


@pytest.mark.parametrize("kind", ["EventSource", "LongPoll", "Spreadbot"])
def test_an_attempt_is_made_at_once(run, kind):
    """Although the monitor finds no network. If it fails, the object waits again."""
    reachability, told = offline(), asyncio.Queue()

    async def main():
        options = {"reachability": reachability, "on_error": told.put_nowait}
        async with getattr(librealtime, kind)("http://127.0.0.1:1/", **options) as one:
            if kind == "Spreadbot":
                await one.establish_connection("news", wait=False)
            else:
                taking = asyncio.ensure_future(one.__aiter__().__anext__())
            assert "no network reaches it" in str((await told.get()).error)
            for _ in range(2):
                one.retry_now()
                event = await told.get()
                assert "refused" in str(event.error)
                assert event.retry_in is None and not event.fatal
            assert told.empty()
            if kind != "Spreadbot":
                taking.cancel()
        with pytest.raises(librealtime.RealtimeError):
            one.retry_now()

    run(main())


def test_a_connection_is_made_again_at_once(run, own_server):
    """The next attempt would follow in an hour, or never without a network."""
    patient = Backoff(initial_delay=3600, max_delay=3600, jitter="none")
    reachability = Reachability("manual")
    own_server.fates.extend(["drop", "drop"])

    async def main():
        lost = asyncio.Queue()
        async with librealtime.connect(
            own_server.url + "/flaky",
            reconnect=patient,
            reachability=reachability,
            on_lost=lost.put_nowait,
        ) as ws:
            assert await ws.recv() == "1 left"
            assert (await lost.get()).delay == 3600
            reachability.set_online(False)
            assert (await lost.get()).delay is None
            ws.retry_now()
            assert await ws.recv() == "0 left"
            assert (await lost.get()).delay is None
            ws.retry_now()
            assert await ws.recv() == "0 left"
        with pytest.raises(librealtime.ConnectionClosed):
            ws.retry_now()

    run(main())


def offline():
    reachability = Reachability("manual")
    reachability.set_online(False)
    return reachability


def pusher(module, told, **options):
    return module.Pusher("key", host="127.0.0.1", port=1, use_tls=False, on_state=told, **options)


def ddp(module, told, **options):
    return module.DDPClient(
        "ws://127.0.0.1:1/websocket", on_status=told, sockjs_fallback=False, **options
    )


#: The objects that connect by a call, and their state during a wait.
CONNECTED = {pusher: "reconnecting", ddp: "offline"}


def state_of(client):
    return client.state if hasattr(client, "state") else client.status


def is_wait(change):
    return str(change.error) == "127.0.0.1:1: no network reaches it"


@pytest.mark.parametrize("make", CONNECTED)
def test_connect_waits_for_a_network(run, make):
    """It is reported once, and the time limit of the call counts."""
    reachability, told = offline(), asyncio.Queue()

    async def main():
        async def failure():
            while (change := await told.get()).error is None:
                pass
            return change

        client = make(librealtime, told.put_nowait, reachability=reachability)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await client.connect(timeout=0.05)
        change = await failure()
        assert is_wait(change)
        assert change.retry_in is None
        assert state_of(client) == CONNECTED[make]
        assert told.empty()
        reachability.set_online(True)
        # Nothing else was reported meanwhile.
        assert "refused" in str((await failure()).error)
        client.close()

    run(main())


@pytest.mark.parametrize("make", CONNECTED)
def test_a_blocking_connect_waits_for_a_network(make):
    reachability, told = offline(), queue.Queue()
    client = make(sync, told.put, reachability=reachability)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            client.connect(timeout=0.05)
    change = told.get()
    assert is_wait(change)
    assert change.retry_in is None
    assert state_of(client) == CONNECTED[make]
    assert told.empty()
    reachability.set_online(True)
    while "refused" not in str((change := told.get()).error):
        assert not is_wait(change), change
    client.close()


@pytest.mark.parametrize("make", CONNECTED)
def test_an_attempt_of_a_client_is_made_at_once(run, make):
    """Although the monitor finds no network."""
    told = asyncio.Queue()

    async def main():
        client = make(librealtime, told.put_nowait, reachability=offline())
        await client.connect(wait=False)
        assert is_wait(await told.get())
        client.retry_now()
        while (change := await told.get()).error is None:
            pass
        assert "refused" in str(change.error)
        assert change.retry_in is None
        client.close()
        with pytest.raises(librealtime.RealtimeError):
            client.retry_now()

    run(main())


@pytest.mark.parametrize("make", CONNECTED)
def test_the_program_reports_the_network(run, make):
    """Whatever the kernel says: here it knows that the address is reachable."""
    told = asyncio.Queue()

    async def main():
        client = make(librealtime, told.put_nowait)
        client.network_changed(False)
        await client.connect(wait=False)
        assert is_wait(await told.get())
        assert told.empty()
        client.network_changed(True)
        while (change := await told.get()).error is None:
            pass
        assert "refused" in str(change.error)
        client.close()

    run(main())


@pytest.mark.parametrize("make", CONNECTED)
def test_an_attempt_that_is_not_repeated_needs_no_network(run, make):
    async def main():
        client = make(librealtime, lambda _: None, reachability=offline(), auto_reconnect=False)
        with pytest.raises(librealtime.RealtimeError, match="refused"):
            await client.connect()
        client.close()

    run(main())


def test_an_event_source_without_reconnecting_needs_no_network(run):
    async def main():
        source = librealtime.EventSource(
            "http://127.0.0.1:1/", reconnect=False, reachability=offline()
        )
        with pytest.raises(librealtime.RealtimeError, match="refused"):
            await source.recv()

    run(main())


@pytest.mark.parametrize("kind", ["EventSource", "LongPoll"])
def test_the_limit_of_recv_counts_without_a_network(kind):
    source = getattr(sync, kind)("http://127.0.0.1:1/", reachability=offline())
    with source, pytest.raises(TimeoutError):
        source.recv(0.05)


def test_the_first_attempt_waits_for_the_network(run, server):
    """The task that connects may be cancelled meanwhile."""
    reachability, told, url = offline(), asyncio.Queue(), server.url + "/echo"
    options = {"reconnect": AT_ONCE, "reachability": reachability, "on_lost": told.put_nowait}

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(librealtime.connect(url, **options)._connect(), 0.05)
        connecting = asyncio.ensure_future(librealtime.connect(url, **options)._connect())
        for _ in range(2):
            how = await told.get()
            assert "no network reaches it" in str(how.error)
            assert how.delay is None
            assert how.attempt == 0
        reachability.set_online(True)
        async with await connecting as ws:
            await ws.send("here")
            assert await ws.recv() == "here"
        assert told.empty()

    run(main())


def test_one_serves_several_loops(server):
    """Each blocking connection has its own loop."""
    reachability, told = offline(), queue.Queue()
    options = {"reconnect": AT_ONCE, "reachability": reachability, "on_lost": told.put}
    with ThreadPoolExecutor(2) as pool:
        connecting = [pool.submit(connect, server.url + "/echo", **options) for _ in range(2)]
        for _ in connecting:
            assert told.get().delay is None
        reachability.set_online(True)
        for one in connecting:
            with one.result() as ws:
                ws.send("here")
                assert ws.recv() == "here"
    assert told.empty()
