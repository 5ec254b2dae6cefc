"""Long polls, with asyncio and blocking, against a server controlled by each test."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.server
import threading
import weakref

import pytest

import librealtime
from librealtime import LongPoll, PollMessage, sync


class Server:
    """Answers each GET with status, headers and body from a function of the request."""

    def __init__(self, answer):
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one segment.
            wbufsize = -1

            def do_GET(self):
                outer.requests.append(self.headers)
                status, headers, body = answer(self)
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status not in (204, 304):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/poll"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:

        def start(answer):
            server = Server(answer)
            stack.callback(server.close)
            return server

        yield start


def numbered(count):
    """The message after the one in Last-Event-ID, up to `count`; then nothing."""

    def answer(request):
        number = int(request.headers.get("Last-Event-ID", "0")) + 1
        if number > count:
            return 204, {}, b""
        headers = {"Last-Event-ID": str(number), "Content-Type": "text/plain"}
        return 200, headers, f"message {number}".encode()

    return answer


QUICKLY = {"cursor": "header_id", "interval": 0.01}


def test_messages_come_in_order(run, serve):
    server = serve(numbered(5))

    async def main():
        async with LongPoll(server.url, last_event_id="1", **QUICKLY) as poll:
            assert poll.ready_state is librealtime.ReadyState.CONNECTING
            got = [await poll.recv() for _ in range(4)]
            assert poll.ready_state is librealtime.ReadyState.OPEN
            assert poll.last_event_id == "5"
        assert got[0] == PollMessage(b"message 2", "text/plain", "2", True)
        assert [message.id for message in got] == ["2", "3", "4", "5"]
        assert poll.last_event_id == "5"
        assert poll.ready_state is librealtime.ReadyState.CLOSED
        with pytest.raises(librealtime.StreamEnded):
            await poll.recv()
        return [message async for message in poll]

    assert run(main()) == []


def test_messages_come_in_order_blocking(serve):
    server = serve(numbered(3))
    with sync.LongPoll(server.url, **QUICKLY) as poll:
        texts = []
        for message in poll:
            texts.append(message.text)
            if len(texts) == 3:
                break
        with pytest.raises(TimeoutError):
            poll.recv(timeout=0.05)
    assert texts == ["message 1", "message 2", "message 3"]
    with pytest.raises(librealtime.StreamEnded):
        poll.recv()


def test_validators_go_back(serve):
    def answer(request):
        if request.headers.get("If-None-Match") == "0,[1]":
            assert request.headers["If-Modified-Since"] == "Sun, 06 Nov 1994 08:49:37 GMT"
            return 304, {}, b""
        headers = {"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "ETag": "0,[1]"}
        return 200, headers, b'{"a": 1}'

    server = serve(answer)
    with sync.LongPoll(server.url, interval=0.01) as poll:
        message = poll.recv()
        assert (message.id, message.json()) == ("784111777:0,[1]", {"a": 1})
        with pytest.raises(TimeoutError):
            poll.recv(timeout=0.05)
        assert poll.last_event_id == message.id
    assert server.requests[0]["Accept"] == "*/*"
    assert server.requests[0]["Cache-Control"] == "no-cache"


def test_a_batch_is_its_parts(run, serve):
    batch = (
        b"--a/b.c\r\nContent-Type: text/plain\r\n\r\none\r\n--a/b.c\r\n\r\n\xff\0\r\n--a/b.c--\r\n"
    )

    def answer(request):
        if "since=7" in request.path:
            return 204, {}, b""
        headers = {"Content-Type": "multipart/mixed; boundary=a/b.c", "Last-Event-ID": "7"}
        return 200, headers, batch

    server = serve(answer)

    async def main():
        options = {"cursor": "query_id", "id_query_param": "since", "interval": 0.01}
        async with LongPoll(server.url, **options) as poll:
            return await poll.recv(), await poll.recv(), poll.last_event_id

    first, second, last = run(main())
    assert first == PollMessage(b"one", "text/plain", "", False)
    assert second == PollMessage(b"\xff\0", "", "7", True)
    assert second.text == "\ufffd\0"
    assert last == "7"


def test_a_full_queue_stops_the_polls(serve):
    server = serve(numbered(100))
    with sync.LongPoll(server.url, max_queue=2, **QUICKLY) as poll:
        for number in range(1, 101):
            assert poll.recv().id == str(number)
            assert len(server.requests) <= number + 4


def test_functions_are_called(run, serve):
    server = serve(numbered(2))

    async def main():
        calls = []
        done = asyncio.Event()

        def came(message):
            calls.append(message.text)
            if len(calls) == 3:
                done.set()

        poll = LongPoll(
            server.url, on_open=lambda: calls.append("open"), on_message=came, **QUICKLY
        )
        await done.wait()
        poll.restart()
        poll.close()
        await poll.wait_closed()
        return calls

    assert run(main()) == ["open", "message 1", "message 2"]


def test_failures_are_reported_and_retried(serve):
    answers = [(503, {"Retry-After": "0"}, b""), (410, {}, b""), (200, {}, b"back")]
    server = serve(lambda request: answers.pop(0) if answers else (204, {}, b""))
    errors = []
    options = {"on_error": errors.append, "max_delay": 0.01, "interval": 0.01}
    with sync.LongPoll(server.url, **options) as poll:
        assert poll.recv().text == "back"
    assert [(error.http_status, error.fatal) for error in errors] == [(503, False), (410, False)]
    assert [error.error.name for error in errors] == ["RT_ERROR_HTTP_STATUS", "RT_ERROR_GONE"]
    assert errors[0].attempt == 2 and errors[0].retry_in <= 0.01


def test_fatal_errors_are_raised(run, serve):
    server = serve(lambda request: (404, {}, b""))

    async def main():
        async with LongPoll(server.url) as poll:
            with pytest.raises(librealtime.StreamRefused) as caught:
                await poll.recv()
            with pytest.raises(librealtime.StreamRefused):
                await poll.wait_closed()
            told = []
            poll.on_error = told.append
        return caught.value.http_status, told[0].fatal

    assert run(main()) == (404, True)
    gone = serve(lambda request: (410, {}, b""))
    with sync.LongPoll(gone.url, fail_when_gone=True) as poll:
        with pytest.raises(librealtime.StreamRefused):
            poll.recv()
        with pytest.raises(librealtime.StreamRefused):
            poll.wait_closed()
    large = serve(lambda request: (200, {}, b"x" * 11))
    with (
        sync.LongPoll(large.url, max_size=10) as poll,
        pytest.raises(librealtime.RealtimeError) as caught,
    ):
        poll.recv()
    assert caught.value.name == "RT_ERROR_TOO_LARGE"
    assert "(max_size)" in str(caught.value)


def needs_token(request):
    if request.headers.get("Authorization") != "Bearer good":
        return 401, {}, b""
    return numbered(1)(request)


def test_credentials_are_requested(run, serve):
    server = serve(needs_token)

    async def fetch(status):
        await asyncio.sleep(0)
        return {"Authorization": "Bearer good"} if status == 401 else None

    async def main():
        async with LongPoll(server.url, credentials=fetch, **QUICKLY) as poll:
            return (await poll.recv()).text

    assert run(main()) == "message 1"
    token = [("Authorization", "Bearer good")]
    with sync.LongPoll(server.url, credentials=lambda status: token, **QUICKLY) as poll:
        assert poll.recv().text == "message 1"
    with sync.LongPoll(server.url, bearer_token="good", **QUICKLY) as poll:
        assert poll.recv().text == "message 1"
    unfit = sync.LongPoll(server.url, credentials=fetch, **QUICKLY)
    with unfit, pytest.raises(librealtime.RealtimeError):
        unfit.recv()


@pytest.mark.parametrize("answer", [None, {"Authorization": "Bearer bad"}])
def test_without_good_credentials_the_refusal_is_reported(run, serve, answer):
    """None ends it, like the server's refusal; credentials are requested once a poll."""
    server = serve(needs_token)
    asked, errors = [], []

    def give(status):
        asked.append(status)
        return answer

    async def fetch(status):
        await asyncio.sleep(0)
        return give(status)

    async def main():
        options = {"credentials": fetch, "on_error": errors.append}
        async with LongPoll(server.url, **options, **QUICKLY) as poll:
            with pytest.raises(librealtime.StreamRefused):
                await poll.recv()

    run(main())
    options = {"credentials": give, "on_error": errors.append}
    poll = sync.LongPoll(server.url, **options, **QUICKLY)
    with poll, pytest.raises(librealtime.StreamRefused):
        poll.recv(60)
    assert asked == [401, 401]
    assert len(server.requests) == (2 if answer is None else 4)
    assert [(error.fatal, error.http_status) for error in errors] == [(True, 401)] * 2
    first, second = (error.error for error in errors)
    assert first.name == "RT_ERROR_HTTP_STATUS"
    assert first.message == second.message


def test_each_poll_may_have_its_own_headers(serve):
    server = serve(numbered(3))
    counts = iter(range(100))
    changed = []

    def provide(attempt):
        assert attempt == 1
        return {"X-Count": str(next(counts)), "x-fixed": "new"}

    def change(attempt):
        attempt.set_header("X-More", "yes")
        changed.append(attempt.number)
        return True

    options = {"headers": {"X-Fixed": "old"}, "header_provider": provide, "on_request": change}
    with sync.LongPoll(server.url, **options, **QUICKLY) as poll:
        assert [poll.recv().id for _ in range(3)] == ["1", "2", "3"]
    found = server.requests[:3]
    assert [headers["X-Count"] for headers in found] == ["0", "1", "2"]
    assert all(headers.get_all("X-Fixed") == ["new"] for headers in found)
    assert all(headers["X-More"] == "yes" for headers in found)


def test_a_function_may_end_it(serve):
    server = serve(numbered(3))
    options = {"on_request": lambda attempt: len(server.requests) < 2}
    with sync.LongPoll(server.url, **options, **QUICKLY) as poll:
        poll.on_message = lambda message: None
        poll.wait_closed(timeout=60)
    assert len(server.requests) == 2


def test_bad_options_are_refused():
    for bad in (
        {"cursor": "other"},
        {"interval": -1},
        {"poll_timeout": 0},
        {"max_size": 0},
        {"last_event_id": "any"},
        {"headers": {"Accept": "text/event-stream"}},
        {"auth": ("a:b", "c")},
        {"bearer_token": ""},
        {"auth": ("a", "b"), "bearer_token": "c"},
        {"max_redirects": 21},
    ):
        with pytest.raises(librealtime.InvalidArgument):
            sync.LongPoll("http://127.0.0.1:1/", **bad)
    for bad in ({"interval": None}, {"last_event_id": None}, {"reachability": 1}):
        with pytest.raises(TypeError):
            sync.LongPoll("http://127.0.0.1:1/", **bad)
    with pytest.raises(librealtime.InvalidURI):
        sync.LongPoll("ws://127.0.0.1:1/")


def test_one_that_is_forgotten_is_closed(run, serve, no_linger):
    server = serve(numbered(0))

    async def main():
        poll = LongPoll(server.url, **QUICKLY)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(poll.recv(), 0.05)
        gone = weakref.ref(poll)
        with pytest.warns(ResourceWarning, match="unclosed long poll"):
            del poll
            gc.collect()
        await asyncio.sleep(0)
        return gone() is None

    assert run(main())


def test_close_ends_threads_that_wait(serve):
    server = serve(numbered(0))
    for _ in range(20):
        poll = sync.LongPoll(server.url, **QUICKLY)
        ended = []

        def wait(poll=poll, ended=ended):
            with pytest.raises(librealtime.StreamEnded):
                poll.recv()
            ended.append(True)

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        poll.close()
        for thread in threads:
            thread.join(60)
        assert len(ended) == 4
