"""Pusher connections that nobody closes, that are dropped, and that outlive their users."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from pushers import Heard, opened, options

import librealtime
from librealtime import Pusher, sync


def test_dropping_an_asyncio_connection(run, pusher_server, no_linger):
    """Without handlers it is dropped with a warning."""
    server = pusher_server

    async def main():
        pusher = Pusher(server.key, **options(server))
        await pusher.connect()
        channel = await pusher.subscribe("orders")
        gone = weakref.ref(pusher)
        with pytest.warns(ResourceWarning, match="unclosed Pusher connection"):
            del pusher
            gc.collect()
        assert gone() is None
        with pytest.raises(librealtime.InvalidState, match="is gone"):
            await channel.subscribed()
        await server.actions.wait_connections(0)

    run(main())


def test_handlers_keep_an_asyncio_connection(run, pusher_server):
    server, heard = pusher_server, Heard()

    async def main():
        async def begin():
            pusher = Pusher(server.key, **options(server))
            await pusher.connect()
            (await pusher.subscribe("orders")).bind("a", heard)
            return weakref.ref(pusher)

        pusher = await begin()
        gc.collect()
        await server.actions.publish("orders", "a")
        await heard.next()
        pusher().close()
        gc.collect()
        assert pusher() is None

    run(main())


def test_a_channel_without_handlers_keeps_nothing(run, pusher_server):
    """Once it is unsubscribed, or has lost its last handler."""
    server = pusher_server

    async def main():
        async def begin():
            pusher = Pusher(server.key, **options(server))
            await pusher.connect()
            one = await pusher.subscribe("one")
            one.on_member_added = one.on_subscription_count = Heard()
            two = await pusher.subscribe("two")
            two.bind("a", Heard())
            return weakref.ref(pusher)

        pusher = await begin()
        gc.collect()
        pusher().unsubscribe("one")
        gc.collect()
        assert pusher() is not None
        with pytest.warns(ResourceWarning, match="unclosed Pusher connection"):
            pusher().channel("two").unbind_all()
            gc.collect()
        assert pusher() is None

    run(main())


def test_a_waiting_task_keeps_an_asyncio_connection(run, pusher_server):
    server = pusher_server

    async def main():
        async def wait():
            pusher = Pusher(server.key, **options(server))
            await pusher.connect()
            channel = await pusher.subscribe("orders")
            event = await channel.events().recv()
            pusher.close()
            return event

        task = asyncio.ensure_future(wait())
        await server.actions.wait(what="out", event="pusher_internal:subscription_succeeded")
        gc.collect()
        await server.actions.publish("orders", "a")
        assert (await task).event == "a"

    run(main())


def test_dropping_a_blocking_connection(pusher_server):
    server = pusher_server
    pusher = sync.Pusher(server.key, **options(server))
    pusher.connect()
    pusher.subscribe("orders")
    with pytest.warns(ResourceWarning, match="unclosed Pusher connection"):
        del pusher
        gc.collect()
    server.control.wait_connections(0)


def test_a_program_that_computes(run, pusher_server):
    """Events of a blocking connection are received while no call waits."""
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(sync.Pusher, server) as pusher:
            channel = await asyncio.to_thread(pusher.subscribe, "orders")
            channel.bind("a", heard)
            await server.actions.publish("orders", "a")
            await heard.next()

    run(main())


@pytest.mark.parametrize("max_queue", [1024, 2])
def test_coroutines_as_handlers(run, pusher_server, max_queue):
    """They are awaited one after the other, and may wait for the connection itself, even if so many
    wait that it stops receiving."""
    server, order = pusher_server, []

    async def main():
        async with opened(Pusher, server, max_queue=max_queue) as pusher:
            channel = await pusher.subscribe("orders")
            done = asyncio.Event()

            async def handler(event):
                order.append(("begin", event.data))
                await pusher.subscribe(f"other-{event.data}")
                order.append(("end", event.data))
                if event.data == 9:
                    done.set()

            channel.bind("n", handler)
            for number in range(10):
                await server.actions.publish("orders", "n", number)
            await done.wait()

    run(main())
    assert order == [(what, number) for number in range(10) for what in ("begin", "end")]


def test_a_blocking_connection_refuses_coroutines(run, pusher_server):
    server = pusher_server

    async def main():
        async with opened(sync.Pusher, server) as pusher:
            channel = await asyncio.to_thread(pusher.subscribe, "orders", wait=False)

            async def handler(event):
                raise AssertionError

            channel.bind("pusher:subscription_succeeded", handler)
            with warnings.catch_warnings(), pytest.raises(TypeError, match="use a plain function"):
                await asyncio.to_thread(lambda: [pusher.subscribe(f"c-{n}") for n in range(2)])

    run(main())


def test_waiting_inside_a_handler_of_a_blocking_connection(run, pusher_server):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(sync.Pusher, server) as pusher:
            channel = await asyncio.to_thread(pusher.subscribe, "orders")

            def handler(event):
                with pytest.raises(librealtime.InvalidState):
                    pusher.subscribe("other")
                pusher.subscribe("third", wait=False)
                pusher.disconnect()
                heard(event)

            channel.bind("a", handler)
            await server.actions.publish("orders", "a")
            await heard.next()

    run(main())


def test_on_another_loop(run, pusher_server):
    kept = []

    async def first():
        pusher = Pusher(pusher_server.key, **options(pusher_server))
        kept.append(pusher)
        await pusher.connect()

    async def second():
        with pytest.raises(librealtime.InvalidState, match="another asyncio loop"):
            await kept[0].subscribe("orders")

    run(first())
    run(second())
    kept[0].close()


def test_many_channels_at_once(run, pusher_server):
    server = pusher_server

    async def main():
        async with opened(Pusher, server, max_channel_name_length=200) as pusher:
            names = [f"orders-{number}" for number in range(300)]
            await asyncio.gather(*(pusher.subscribe(name) for name in names))
            assert [channel.name for channel in pusher.channels] == names

    run(main())


def test_cancelling_a_wait(run, pusher_server):
    """Ends neither the subscription nor the iteration."""
    server = pusher_server

    async def main():
        await server.actions.auth(mode="hang")
        async with opened(Pusher, server) as pusher:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(pusher.subscribe("private-a"), 0.01)
            await server.actions.wait_held()
            await server.actions.release()
            channel = await pusher.subscribe("private-a")
            stream = channel.events()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(stream.recv(), 0.01)
            await server.actions.publish("private-a", "x")
            assert (await stream.recv()).event == "x"

    run(main())


def test_several_threads(run, pusher_server):
    """Each uses channels of its own, and all of them one."""
    server, heard = pusher_server, Heard()

    def work(pusher, number):
        for turn in range(10):
            name = f"own-{number}"
            channel = pusher.subscribe(name)
            stream = channel.events()
            for event in range(3):
                server.control.publish(name, f"turn {turn}", event)
            found = [stream.recv(timeout=30) for _ in range(3)]
            assert [one.data for one in found] == [0, 1, 2]
            assert {one.event for one in found} == {f"turn {turn}"}
            shared = pusher.subscribe("shared")
            handler = shared.bind("a", lambda event: None)
            shared.unbind("a", handler)
            channel.unsubscribe()

    async def main():
        async with opened(sync.Pusher, server) as pusher:
            pusher.bind(heard)
            threads = [asyncio.to_thread(work, pusher, number) for number in range(6)]
            await asyncio.gather(*threads)
            assert [channel.name for channel in pusher.channels] == ["shared"]

    run(main())
    own = [event for event in heard.rest() if event.event.startswith("turn")]
    assert len(own) == 6 * 10 * 3


def test_connections_in_several_threads_at_once(pusher_server):
    """A thread that waits for its own answer dispatches for the others, too."""
    pusher = sync.Pusher(pusher_server.key, **options(pusher_server))
    with pusher:
        names = [f"orders-{number}" for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(pusher.subscribe, names))
        assert [channel.name for channel in found] == names
        assert all(channel.is_subscribed for channel in found)


def test_an_interrupt(pusher_server):
    """Ends the call that waits, not the subscription."""
    control = pusher_server.control
    control.auth(mode="hang")

    def interrupts():
        control.wait_held()
        os.kill(os.getpid(), signal.SIGINT)

    with sync.Pusher(pusher_server.key, **options(pusher_server)) as pusher:
        thread = threading.Thread(target=interrupts)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            pusher.subscribe("private-orders")
        thread.join()
        control.release()
        channel = pusher.subscribe("private-orders")
        assert pusher.channels == [channel]
        heard = channel.events()
        control.publish("private-orders", "a", 1)
        assert heard.recv(timeout=30).data == 1


def test_a_forked_process(pusher_server):
    """Gets errors, and leaves the connection of its parent alone."""
    server = pusher_server
    with sync.Pusher(server.key, **options(server)) as pusher:
        channel = pusher.subscribe("orders")
        stream = channel.events()
        calls = (
            lambda: pusher.subscribe("other"),
            lambda: stream.recv(timeout=1),
            lambda: pusher.state,
            lambda: channel.state,
            pusher.sign_out,
        )
        child = os.fork()
        if child == 0:
            is_refused = 0
            for call in calls:
                try:
                    call()
                except librealtime.InvalidState as error:
                    is_refused += error.name == "RT_ERROR_FORKED"
            is_refused += "FORKED" in repr(pusher) and "FORKED" in repr(channel)
            pusher.close()
            os._exit(0 if is_refused == len(calls) + 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        server.control.publish("orders", "a")
        assert stream.recv(timeout=30).event == "a"
