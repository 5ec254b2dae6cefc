"""Iterating over events: queues, their limits, their ends."""

from __future__ import annotations

import asyncio
import gc

import pytest
from pushers import FACES, Heard, do, opened

import librealtime
from librealtime import StreamEnded, sync

pytestmark = pytest.mark.parametrize("face", FACES)


async def collected(iterable, count):
    """The first items of an iteration."""
    found = []
    if hasattr(iterable, "__aiter__"):
        async for item in iterable:
            found.append(item)
            if len(found) == count:
                break
        return found

    def iterate():
        for item in iterable:
            found.append(item)
            if len(found) == count:
                break

    await asyncio.to_thread(iterate)
    return found


def test_a_channel(run, pusher_server, face):
    """Without the library's own events; the first iteration has the earlier ones, too."""
    server = pusher_server

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            for number in range(3):
                await server.actions.publish("orders", "n", number)
            mark = await do(pusher.subscribe, "mark", wait=False)
            await do(mark.subscribed)
            events = await collected(channel, 3)
            assert [event.data for event in events] == [0, 1, 2]
            # A second one has those that come from now on.
            stream = channel.events()
            await server.actions.publish("orders", "n", 3)
            assert (await do(stream.recv)).data == 3

    run(main())


def test_events_of_a_name(run, pusher_server, face):
    server = pusher_server

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders", wait=False)
            ready = channel.events("pusher:subscription_succeeded")
            named, both, everywhere = channel.events("b"), channel.events(), pusher.events("b")
            assert (await do(ready.recv)).channel == "orders"
            for event in ("a", "b"):
                await server.actions.publish("orders", event)
            assert (await do(named.recv)).event == "b"
            assert [event.event for event in await collected(both, 2)] == ["a", "b"]
            assert (await do(everywhere.recv)).channel == "orders"
            assert "'b' of <librealtime" in repr(named)

    run(main())


def test_handlers_and_iterations_have_the_same_events(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            channel.bind("a", heard)
            stream = channel.events()
            await server.actions.publish("orders", "a")
            assert await do(stream.recv) is await heard.next()

    run(main())


def test_a_full_queue_slows_the_server_down(run, pusher_server, face):
    """None is lost."""
    server = pusher_server

    async def main():
        async with opened(face, server, max_queue=10) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream = channel.events()
            for number in range(100):
                await server.actions.publish("orders", "n", number)
            events = await collected(stream, 100)
            assert [event.data for event in events] == list(range(100))

    run(main())


def test_an_iteration_that_nobody_uses(run, pusher_server, face):
    """When it is dropped or closed, it does not hold the connection up any more."""
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server, max_queue=2) as pusher:
            channel = await do(pusher.subscribe, "orders")
            for end in ("close", "drop"):
                stream = channel.events("n")
                for number in range(50):
                    await server.actions.publish("orders", "n", number)
                assert (await do(stream.recv)).data == 0
                channel.bind("end", heard)
                await server.actions.publish("orders", "end", end)
                if end == "close":
                    stream.close()
                    with pytest.raises(StreamEnded):
                        await do(stream.recv)
                else:
                    del stream
                    gc.collect()
                assert (await heard.next()).data == end
                channel.unbind("end", heard)

    run(main())


def test_the_end_by_unsubscribing(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream = channel.events()
            waiting = asyncio.ensure_future(do(stream.recv))
            await asyncio.sleep(0)
            channel.unsubscribe()
            with pytest.raises(StreamEnded):
                await waiting
            assert await collected(stream, 1) == []
            with pytest.raises(StreamEnded):
                channel.events()

    run(main())


@pytest.mark.parametrize("how", ["disconnect", "close"])
def test_the_end_of_the_connection(run, pusher_server, face, how):
    async def main():
        async with opened(face, pusher_server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream, everything = channel.events(), pusher.events()
            waiting = [asyncio.ensure_future(collected(one, 1)) for one in (stream, everything)]
            await asyncio.sleep(0)
            await do(getattr(pusher, how)) if how == "disconnect" else pusher.close()
            assert await asyncio.gather(*waiting) == [[], []]

    run(main())


def test_a_fatal_end(run, pusher_server, face):
    """The error is raised after the events that were received before it."""
    server = pusher_server

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream = channel.events()
            await server.actions.publish("orders", "a")
            await server.actions.close(code=4009, reason="out")
            assert (await do(stream.recv)).event == "a"
            for take in (stream.recv, collected):
                with pytest.raises(librealtime.ConnectionClosedError) as raised:
                    await do(take, *((stream, 1) if take is collected else ()))
                assert raised.value.code == 4009

    run(main())


def test_a_reconnect_does_not_end_it(run, pusher_server, face):
    server = pusher_server

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream = channel.events()
            await server.actions.end("reset")
            await server.actions.wait(
                count=2, what="out", event="pusher_internal:subscription_succeeded"
            )
            await server.actions.publish("orders", "a")
            assert (await do(stream.recv)).event == "a"

    run(main())


def test_time_limits(run, pusher_server, face):
    async def main():
        if face is sync.Pusher:
            async with opened(face, pusher_server) as pusher:
                channel = await do(pusher.subscribe, "orders")
                stream = channel.events()
                with pytest.raises(TimeoutError, match="no event within"):
                    await do(stream.recv, timeout=0.01)
                with pytest.raises(TimeoutError):
                    await do(pusher.wait_closed, timeout=0.01)
                await pusher_server.actions.auth(mode="hang")
                with pytest.raises(TimeoutError, match="not subscribed within"):
                    await do(pusher.subscribe, "private-a", timeout=0.01)
                await pusher_server.actions.auth(mode="hang")
                with pytest.raises(TimeoutError, match="not signed in within"):
                    await do(pusher.sign_in, timeout=0.01)
                await pusher_server.actions.wait_held(2)
                await pusher_server.actions.release()

    run(main())


def test_waiting_for_the_server_while_a_queue_is_full(run, pusher_server, face):
    """The answer comes after the events, so they are received, up to a limit."""
    server = pusher_server

    async def main():
        async with opened(face, server, max_queue=4) as pusher:
            channel = await do(pusher.subscribe, "orders")
            stream = channel.events()
            for number in range(50):
                await server.actions.publish("orders", "n", number)
            await do(pusher.subscribe, "other")
            assert [event.data for event in await collected(stream, 50)] == list(range(50))
            await server.actions.auth(mode="hang")
            waiting = asyncio.ensure_future(do(pusher.subscribe, "private-other"))
            await server.actions.wait_held()
            for number in range(100):
                await server.actions.publish("orders", "n", number)
            with pytest.raises(librealtime.BufferFull):
                await waiting
            await server.actions.release()
            assert [event.data for event in await collected(stream, 100)] == list(range(100))
            await do(pusher.channel("private-other").subscribed)

    run(main())
