"""Event sources that are misused, waited for, closed, dropped and forked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import queue
import threading
import weakref

import pytest

import librealtime
from librealtime import EventSource, sync

SOON = {"reconnection_time": 0.01, "min_reconnection_time": 0.01}


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"method": "G T"}, librealtime.InvalidArgument),
        ({"method": "HEAD"}, librealtime.InvalidArgument),
        ({"content": 5}, TypeError),
        ({"content": [65]}, TypeError),
        ({"headers": {"Expect": "100-continue"}}, librealtime.InvalidArgument),
        ({"headers": {"a b": "c"}}, librealtime.InvalidArgument),
        ({"headers": {"a": "b\nc"}}, librealtime.InvalidArgument),
        ({"auth": ("a:b", "c")}, librealtime.InvalidArgument),
        ({"auth": ("a", "b"), "bearer_token": "c"}, librealtime.InvalidArgument),
        ({"bearer_token": ""}, librealtime.InvalidArgument),
        ({"max_redirects": 21}, librealtime.InvalidArgument),
        ({"safe_headers": ["a:b"]}, librealtime.InvalidArgument),
        ({"safe_headers": "abc"}, TypeError),
        ({"last_event_id": "a\nb"}, librealtime.InvalidArgument),
        ({"store_key": "k"}, librealtime.InvalidArgument),
        ({"id_file": ""}, librealtime.InvalidArgument),
        ({"reconnection_time": -1}, librealtime.InvalidArgument),
        ({"min_reconnection_time": -1}, librealtime.InvalidArgument),
        ({"reconnection_time": None}, TypeError),
        ({"connect_timeout": 0}, librealtime.InvalidArgument),
        ({"retry_statuses": [200]}, librealtime.InvalidArgument),
        ({"retry_statuses": [401]}, librealtime.InvalidArgument),
        ({"max_reconnects": 0}, librealtime.InvalidArgument),
        ({"max_line_size": 0}, librealtime.InvalidArgument),
        ({"max_name_size": 0}, librealtime.InvalidArgument),
        ({"max_queue": -1}, librealtime.InvalidArgument),
        ({"network": "none"}, TypeError),
        ({"reachability": True}, TypeError),
    ],
)
def test_invalid_options_are_reported_at_once(run, no_linger, options, kind):
    async def main():
        with pytest.raises(kind):
            EventSource("http://127.0.0.1:1/", **options)

    run(main())
    with pytest.raises(kind):
        sync.EventSource("http://127.0.0.1:1/", **options)


@pytest.mark.parametrize("url", ["", "x", "ws://a/", "http://", "http://a\0b/", "http://[::1/"])
def test_bad_urls(run, url):
    async def main():
        with pytest.raises(librealtime.InvalidURI):
            EventSource(url)

    run(main())


def test_listeners_need_a_type(events):
    with sync.EventSource(events.url + "/held") as source:
        with pytest.raises(librealtime.InvalidArgument):
            source.add_event_listener("", print)
        with pytest.raises(TypeError):
            source.add_event_listener(None, print)
        with pytest.raises(TypeError, match="a listener is a builtin_function"):
            source.remove_event_listener(print)


def test_it_needs_a_running_loop():
    with pytest.raises(RuntimeError):
        EventSource("http://127.0.0.1:1/")


def test_cancelling_a_wait_loses_nothing(run, events):
    async def main():
        async with EventSource(events.url + "/count", reconnection_time=1000) as source:
            for number in "123":
                assert (await source.recv()).id == number
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(source.recv(), 0.01)
            source.restart()
            assert (await source.recv()).id == "4"

    run(main())


def test_close_ends_waiting_calls(run, events):
    async def main():
        source = EventSource(events.url + "/held")
        assert (await source.recv()).id == "a"
        waits = asyncio.ensure_future(source.recv())
        iterates = asyncio.ensure_future(anext_of(source))
        await asyncio.sleep(0)
        source.close()
        with pytest.raises(librealtime.StreamEnded):
            await waits
        assert await iterates is None

    async def anext_of(source):
        async for event in source:
            return event
        return None

    run(main())


@pytest.mark.parametrize("how", ["finally", "with", "recv", "break"])
@pytest.mark.parametrize("face", ["asyncio", "blocking"])
def test_an_event_whose_processing_failed_is_repeated(run, events, tmp_path, how, face):
    """Its id is stored by the next request or a normal end of `with`, but not by `close`."""
    ids, url = tmp_path / "ids", events.url + "/count"

    async def iterate(source):
        async for event in source:
            if event.id == "3":
                return

    async def main():
        source = EventSource(url, id_file=ids)
        try:
            if how == "finally":
                await iterate(source)
            elif how == "recv":
                while (await source.recv()).id != "3":
                    pass
            else:
                with contextlib.suppress(ZeroDivisionError):
                    async with source:
                        await iterate(source)
                        if how == "with":
                            raise ZeroDivisionError
        finally:
            source.close()

    def block():
        source = sync.EventSource(url, id_file=ids)
        try:
            if how in ("finally", "recv"):
                while source.recv().id != "3":
                    pass
            else:
                with contextlib.suppress(ZeroDivisionError), source:
                    for event in source:
                        if event.id == "3":
                            break
                    if how == "with":
                        raise ZeroDivisionError
        finally:
            source.close()

    if face == "asyncio":
        run(main())
    else:
        block()
    with sync.EventSource(url, id_file=ids) as source:
        assert source.recv().id == ("4" if how == "break" else "3")


def test_use_on_another_asyncio_loop_raises(run, events):
    """Nothing would arrive there."""
    kept = []

    async def first():
        kept.append(EventSource(events.url + "/three"))
        assert (await kept[0].recv()).data == "1"

    async def second():
        source = kept.pop()
        for use in (source.recv(), source.__aiter__().__anext__(), source.wait_closed()):
            with pytest.raises(librealtime.InvalidState, match="asyncio"):
                await use
        source.close()

    run(first())
    run(second())


def test_queries_are_not_in_repr_and_warnings(run, events):
    async def main():
        async with EventSource(events.url + "/held?token=secret") as source:
            assert "secret" not in repr(source) and "/held?" in repr(source)
            assert source.url.endswith("?token=secret")

    run(main())
    source = sync.LongPoll(events.url + "/poll?token=secret")
    with pytest.warns(ResourceWarning) as caught:
        del source
        gc.collect()
    assert "secret" not in str(caught[0].message)


def test_blocking_wait_has_a_limit(events):
    with sync.EventSource(events.url + "/held") as source:
        assert source.recv(60).id == "a"
        with pytest.raises(TimeoutError):
            source.recv(0.01)
        with pytest.raises(TimeoutError):
            source.wait_closed(0.01)


def test_several_threads_take_events_and_one_closes(events):
    taken = queue.Queue()

    def take():
        for event in source:
            taken.put(int(event.id))

    source = sync.EventSource(events.url + "/count", **SOON)
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    seen = sorted(taken.get(timeout=60) for _ in range(30))
    source.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(set(seen)) == 30


def test_with_only_handlers_it_stays_alive(run, events):
    """Only the loop refers to it."""

    async def main():
        told = asyncio.Queue()
        reference = weakref.ref(
            EventSource(events.url + "/count", on_message=told.put_nowait, **SOON)
        )
        gc.collect()
        event = [await told.get() for _ in range(3)][-1]
        assert event.id == "6"
        source = reference()
        assert source is not None
        source.close()

    run(main())


def test_an_unused_one_is_collected(run, no_linger, events):
    async def main():
        source = EventSource(events.url + "/held")
        await source.recv()
        with pytest.warns(ResourceWarning, match="unclosed event source"):
            del source
            gc.collect()

    run(main())
    source = sync.EventSource(events.url + "/held")
    source.recv(60)
    with pytest.warns(ResourceWarning, match="unclosed event source"):
        del source
        gc.collect()


def test_the_end_of_the_loop_ends_it(events):
    """What is left when asyncio.run returns is collected with its loop."""
    left = []

    async def main():
        source = EventSource(events.url + "/held", on_message=left.append)
        await source.recv()
        left.append(weakref.ref(source))

    with pytest.warns(ResourceWarning):
        asyncio.run(main())
        gc.collect()
    assert left[-1]() is None


def test_a_forked_process_leaves_it_alone(run, events):
    async def main():
        async with EventSource(events.url + "/three") as source:
            assert (await source.recv()).data == "1"
            child = os.fork()
            if child == 0:
                try:
                    source.restart()
                except librealtime.InvalidState:
                    os._exit(0)
                os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            assert (await source.recv()).data == "2"

    run(main())


def test_reachability_holds_attempts_back(run, events):
    async def main():
        network = librealtime.Reachability("manual")
        network.set_online(False)
        async with EventSource(events.url + "/held", reachability=network) as source:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(source.recv(), 0.2)
            assert events.requests.empty()
            network.set_online(True)
            assert (await source.recv()).id == "a"

    run(main())


def test_repr_hides_the_password(run, events):
    async def main():
        url = events.url.replace("//", "//me:secret@") + "/held"
        async with EventSource(url) as source:
            assert "secret" not in repr(source)
            assert "CONNECTING" in repr(source)
            assert source.url == events.url + "/held"
        assert "CLOSED" in repr(source)

    run(main())
