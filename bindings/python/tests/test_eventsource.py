"""Event sources, with asyncio and blocking, against aiohttp."""

from __future__ import annotations

import asyncio
import base64
import pickle
import sys
import zlib
from pathlib import Path

import pytest
from wire import read

import librealtime
from librealtime import EventSource, ReadyState, ServerSentEvent, sync

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from patience import patiently

SOON = {"reconnection_time": 0.01, "min_reconnection_time": 0.01}


def test_events_are_iterated_over_reconnections(run, events):
    async def main():
        taken = []
        async with EventSource(events.url + "/count", **SOON) as source:
            assert source.ready_state is ReadyState.CONNECTING
            async for event in source:
                taken.append(event)
                if len(taken) == 7:
                    break
            assert source.last_event_id
            assert source.origin == events.url
            assert source.url == events.url + "/count"
            assert source.reconnection_time == 0.01
        assert source.ready_state is ReadyState.CLOSED
        assert [event.id for event in taken] == list("1234567")
        assert [event.event for event in taken[:3]] == ["odd", "message", "odd"]
        assert taken[6].data == "number 7"
        assert all(event.had_id for event in taken)
        assert [event async for event in source] == []
        # The values at the end are kept.
        assert source.origin == events.url
        assert source.last_event_id

    run(main())


def test_blocking_iteration(events):
    taken = []
    with sync.EventSource(events.url + "/count", **SOON) as source:
        for event in source:
            taken.append(event.id)
            if len(taken) == 7:
                break
    assert taken == list("1234567")
    assert list(source) == []
    with pytest.raises(librealtime.StreamEnded):
        source.recv()


def test_an_event_has_what_httpx_sse_has(run, events):
    async def main():
        async with EventSource(events.url + "/held", min_reconnection_time=0.02) as source:
            event = await source.recv()
        assert (event.event, event.data, event.id, event.retry) == ("message", '{"a": 1}', "a", 20)
        assert event.json() == {"a": 1}
        assert event == ServerSentEvent("message", '{"a": 1}', "a", 20)
        assert source.reconnection_time == 0.02

    run(main())


def test_a_reconnection_time_is_reported_each_time(events):
    with sync.EventSource(events.url + "/retries", reconnection_time=0.02) as source:
        assert [source.recv().retry for _ in range(3)] == [20, None, 20]


def test_without_reconnect_iteration_ends_with_the_stream(run, events):
    async def main():
        errors = []
        url = events.url + "/count"
        async with EventSource(url, reconnect=False, on_error=errors.append) as source:
            assert [event.id async for event in source] == ["1", "2", "3"]
            assert source.ready_state is ReadyState.CLOSED
            with pytest.raises(librealtime.StreamEnded):
                await source.recv()
            await source.wait_closed()
        assert len(errors) == 1 and errors[0].fatal
        assert isinstance(errors[0].error, librealtime.StreamEnded)

    run(main())
    with sync.EventSource(events.url + "/count", reconnect=False) as source:
        assert [event.id for event in source] == ["1", "2", "3"]
        source.wait_closed(1)


@pytest.mark.parametrize(
    ("path", "kind", "status", "name"),
    [
        ("/guarded", librealtime.StreamRefused, 401, "RT_ERROR_HTTP_STATUS"),
        ("/page", librealtime.StreamRefused, 200, "RT_ERROR_CONTENT_TYPE"),
    ],
)
def test_fatal_errors_are_raised(run, events, path, kind, status, name):
    async def main():
        async with EventSource(events.url + path) as source:
            for _ in range(2):
                with pytest.raises(kind) as caught:
                    async for _event in source:
                        raise AssertionError
            assert (caught.value.http_status, caught.value.name) == (status, name)
            with pytest.raises(kind):
                await source.wait_closed()
            with pytest.raises(kind):
                source.restart()
            copy = pickle.loads(pickle.dumps(caught.value))
            assert (copy.http_status, copy.name) == (status, name)

    run(main())
    with sync.EventSource(events.url + path) as source, pytest.raises(kind):
        source.recv(60)
    with sync.EventSource(events.url + path) as source, pytest.raises(kind):
        source.wait_closed(60)


def test_handlers_and_listeners_are_called_in_order(run, events):
    async def main():
        calls = []
        done = asyncio.Event()

        def note(name):
            def called(event):
                calls.append(f"{name} {event.id}")

            return called

        def stop(event):
            calls.append(f"any {event.id}")
            if event.id == "3":
                done.set()

        source = EventSource(events.url + "/count", on_open=lambda: calls.append("open"))
        source.on_message = note("message")
        first = note("first")
        listener = source.add_event_listener("odd", first)
        source.add_event_listener("odd", note("second"))
        source.add_event_listener("é", first)
        source.add_event_listener("e\u0301", first)
        source.on_any = stop
        assert source.event_names() == ["e\u0301", "odd", "é"]
        await done.wait()
        source.remove_event_listener(listener)
        source.remove_event_listener(listener)
        assert source.event_names() == ["e\u0301", "odd", "é"]
        source.remove_event_listener("odd")
        source.remove_event_listener("nobody listens to this")
        assert source.event_names() == ["e\u0301", "é"]
        source.close()
        assert calls == [
            *("open", "first 1", "second 1", "any 1", "message 2", "any 2"),
            *("first 3", "second 3", "any 3"),
        ]

    run(main())


def test_a_listener_may_remove_itself_and_others(run, events):
    async def main():
        calls = []
        async with EventSource(events.url + "/three") as source:

            def once(event):
                calls.append(f"once {event.data}")
                for listener in listeners:
                    source.remove_event_listener(listener)

            def other(event):
                calls.append(f"other {event.data}")

            # Adding the same function twice makes two listeners.
            listeners = [source.add_event_listener("message", each) for each in (once, other)]
            kept = source.add_event_listener("message", other)
            source.remove_event_listener(kept)
            source.add_event_listener("message", lambda event: calls.append(event.data))
            while (await source.recv()).data != "3":
                pass
        assert calls == ["once 1", "1", "2", "3"]

    run(main())


def test_close_in_a_handler_is_the_last_word(run, events):
    async def main():
        calls = []
        source = EventSource(events.url + "/three", on_any=lambda event: calls.append("any"))

        def close(event):
            calls.append(event.data)
            source.close()
            source.close()

        source.on_message = close
        await source.wait_closed()
        assert calls == ["1"]

    run(main())

    calls = []

    def close_blocking(event):
        calls.append(event.data)
        blocking.close()

    blocking = sync.EventSource(events.url + "/three", on_message=close_blocking)
    blocking.wait_closed(60)
    assert calls == ["1"]


def test_a_failing_handler_does_not_keep_events_from_others(run, events):
    async def main():
        failures = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

        def fail(event):
            raise LookupError(event.data)

        async with EventSource(events.url + "/three", on_message=fail) as source:
            assert [(await source.recv()).data for _ in range(3)] == ["1", "2", "3"]
        assert [str(failure) for failure in failures] == ["1", "2", "3"]

    run(main())

    def fail(event):
        raise LookupError(event.data)

    source = sync.EventSource(events.url + "/three", on_message=fail)
    with source, pytest.raises(LookupError):
        source.wait_closed(60)


def test_comments_are_delivered_to_a_handler(run, events):
    async def main():
        comments = asyncio.Queue()
        async with EventSource(events.url + "/held", on_comment=comments.put_nowait):
            assert await comments.get() == " hello \ufffd"
        later = asyncio.Queue()
        async with EventSource(events.url + "/held") as source:
            assert source.on_comment is None
            source.on_comment = later.put_nowait
            assert await later.get() == " hello \ufffd"
            source.on_comment = None

    run(main())


def test_an_error_is_kept_for_its_handler(run, events):
    async def main():
        source = EventSource(events.url + "/guarded")
        with pytest.raises(librealtime.StreamRefused):
            await source.wait_closed()
        errors = []
        source.on_error = errors.append
        source.on_error = errors.append
        assert [error.http_status for error in errors] == [401]
        source.close()

    run(main())


def test_events_wait_for_somebody_to_take_them(run, events):
    async def main():
        opened = asyncio.Event()
        async with EventSource(events.url + "/three", on_open=opened.set) as source:
            await opened.wait()
            assert source.ready_state is ReadyState.OPEN
            assert [(await source.recv()).data for _ in range(3)] == ["1", "2", "3"]

    run(main())


@pytest.mark.parametrize("limits", [{"max_queue": 10}, {"max_queue_bytes": 100_000}])
def test_a_full_inbox_slows_the_server_down(run, events, limits):
    async def main():
        async with EventSource(events.url + "/flood", **limits) as source:
            assert (await source.recv()).data.startswith("0 ")
            # If all events had been received, the server would have sent all by now.
            assert not await asyncio.to_thread(events.is_done.wait, 1)
            assert len(source._inbox.messages) < 20
            for number in range(1, 6000):
                event = await source.recv()
                assert event.data.startswith(f"{number} ")
            assert await asyncio.to_thread(events.is_done.wait, 60)

    run(main())


def test_a_slow_reader_keeps_its_connection(run, events):
    """It takes longer than the idle timeout; the server has sent more than fits by then."""

    async def main(limit):
        errors = []
        options = {"idle_timeout": limit, "max_queue": 10, "on_error": errors.append}
        async with EventSource(events.url + "/flood", **options) as source:
            await source.recv()
            await asyncio.sleep(3 * limit)
            for number in range(1, 500):
                assert (await source.recv()).data.startswith(f"{number} ")
        assert errors == []

    for attempt in patiently(last=20):
        with attempt as limit:
            run(main(limit))


def test_content_and_credentials(run, events):
    async def main():
        options = {"method": "POST", "content": "smörgås", "auth": ("ü", "p:w")}
        async with EventSource(events.url + "/echo", **options) as source:
            event = await source.recv()
        assert (event.event, event.data) == ("POST", "smörgås")
        _, headers = events.requests.get()
        assert headers["Authorization"] == "Basic " + base64.b64encode("ü:p:w".encode()).decode()

        async def fetch(status):
            await asyncio.sleep(0)
            return {"Authorization": "Bearer good"}

        async with EventSource(events.url + "/guarded", credentials=fetch) as source:
            assert (await source.recv()).id == "a"

    run(main())

    def give(status):
        assert status == 401
        return [("Authorization", "Bearer good")]

    with sync.EventSource(events.url + "/guarded", credentials=give) as source:
        assert source.recv(60).id == "a"

    async def late(status):
        raise AssertionError

    source = sync.EventSource(events.url + "/guarded", credentials=late)
    with source, pytest.raises(librealtime.RealtimeError, match="returned a coroutine"):
        source.recv(60)


@pytest.mark.parametrize("answer", [None, {"Authorization": "Bearer bad"}])
def test_without_good_credentials_the_refusal_is_reported(run, events, answer):
    """None ends it, like the server's refusal; credentials are requested once an attempt."""
    asked, errors = [], []

    def give(status):
        asked.append(status)
        return answer

    async def fetch(status):
        await asyncio.sleep(0)
        return give(status)

    async def main():
        options = {"credentials": fetch, "on_error": errors.append}
        async with EventSource(events.url + "/guarded", **options) as source:
            with pytest.raises(librealtime.StreamRefused):
                await source.recv()

    run(main())
    options = {"credentials": give, "on_error": errors.append}
    source = sync.EventSource(events.url + "/guarded", **options)
    with source, pytest.raises(librealtime.StreamRefused):
        source.recv(60)
    assert asked == [401, 401]
    assert events.requests.qsize() == (2 if answer is None else 4)
    assert [(error.fatal, error.http_status) for error in errors] == [(True, 401)] * 2
    first, second = (error.error for error in errors)
    assert first.name == "RT_ERROR_HTTP_STATUS"
    assert first.message == second.message


def test_exceptions_of_credentials_are_raised(run, events):
    async def fetch(status):
        raise LookupError("no vault")

    async def main():
        async with EventSource(events.url + "/guarded", credentials=fetch) as source:
            with pytest.raises(librealtime.RealtimeError, match="no vault") as caught:
                await source.recv()
            assert isinstance(caught.value.__cause__, LookupError)

    run(main())


def test_basic_auth():
    assert librealtime.basic_auth("Aladdin", "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    with pytest.raises(librealtime.InvalidArgument):
        librealtime.basic_auth("a:b", "c")


def packed_events(count, size):
    """A gzip stream that expands about 940 times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    event = b"data: " + b"x" * size + b"\n\n"
    return b"".join(packer.compress(event) for _ in range(count)) + packer.flush()


def test_a_stream_that_grows_much_is_held(run, serve):
    """Several reads, each of which decodes to more than libcurl would buffer."""
    count, size = 2600, 1 << 16
    packed = packed_events(count, size)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"

    def answer(connection, number):
        if read(connection) is not None and number == 1:
            connection.sendall(head + packed)

    server = serve(answer)

    async def main():
        taken = 0
        async with EventSource(server.url) as source:
            async for event in source:
                assert len(event.data) == size
                taken += 1
                if taken == count:
                    return

    run(main())
