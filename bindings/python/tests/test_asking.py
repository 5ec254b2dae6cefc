"""What objects ask their program between attempts: credentials, and whether to try again."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from servers import answers, raw_server, upgrade
from wire import head_lines, read

import librealtime
from librealtime import Backoff, EventSource, InvalidStatus, LongPoll, connect, sync

AT_ONCE = Backoff(initial_delay=0, jitter="none", max_attempts=20)
NORMAL_CLOSE = b"\x88\x02\x03\xe8"


def refusing(status):
    return answers(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)


def guarded(token, *, lasts=False):
    """Accepts a handshake with this token, then closes normally, or drops the connection."""

    def serve_one(connection):
        heads = []

        class Recorder:
            def recv(self, count):
                heads.append(connection.recv(count))
                return heads[-1]

            sendall = staticmethod(connection.sendall)

        upgrade(Recorder())
        assert f"Authorization: Bearer {token}".encode() in b"".join(heads)
        if not lasts:
            connection.sendall(NORMAL_CLOSE)
            while connection.recv(4096):
                pass

    return serve_one


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("is_coroutine", [False, True])
def test_a_refused_handshake_is_repeated(run, status, is_coroutine):
    asked = []

    def give(refused):
        asked.append(refused)
        return {"Authorization": "Bearer good"}

    async def fetch(refused):
        await asyncio.sleep(0)
        return give(refused)

    async def main(url):
        options = {"credentials": fetch if is_coroutine else give, "bearer_token": "old"}
        async with connect(url, **options) as ws:
            assert [message async for message in ws] == []

    with raw_server(refusing(status), guarded("good")) as url:
        run(main(url))
    assert asked == [status]
    with (
        raw_server(refusing(status), guarded("good")) as url,
        sync.connect(url, credentials=give) as ws,
    ):
        assert list(ws) == []


@pytest.mark.parametrize("answer", [None, {"Authorization": "Bearer bad"}])
def test_credentials_are_asked_for_once(run, answer):
    async def fetch(status):
        return answer

    async def main(url):
        with pytest.raises(InvalidStatus) as raised:
            await connect(url, credentials=fetch, reconnect=AT_ONCE)
        assert raised.value.response.status_code == 401

    refusals = [refusing(401)] * (1 if answer is None else 2)
    with raw_server(*refusals) as url:
        run(main(url))


def test_an_exception_of_credentials_is_the_cause(run):
    class NoToken(Exception):
        pass

    def fail(status):
        raise NoToken("the token server is down")

    async def fail_later(status):
        fail(status)

    async def main(url, credentials):
        with pytest.raises(librealtime.RealtimeError, match="token server is down") as raised:
            await connect(url, credentials=credentials, reconnect=AT_ONCE)
        assert isinstance(raised.value.__cause__, NoToken)

    for credentials in (fail, fail_later):
        with raw_server(refusing(401)) as url:
            run(main(url, credentials))
    with (
        raw_server(refusing(401)) as url,
        pytest.raises(librealtime.RealtimeError, match="token server is down") as raised,
    ):
        sync.connect(url, credentials=fail)
    assert isinstance(raised.value.__cause__, NoToken)


def test_an_expired_token_is_renewed_after_a_loss(run):
    """The connection reconnects with the new token, and its callers do not notice."""

    async def fetch(status):
        return {"Authorization": "Bearer second"}

    async def main(url):
        options = {"credentials": fetch, "bearer_token": "first", "reconnect": AT_ONCE}
        async with connect(url, **options) as ws:
            assert [message async for message in ws] == []

    with raw_server(guarded("first", lasts=True), refusing(401), guarded("second")) as url:
        run(main(url))


def test_closing_ends_the_wait_for_credentials(run):
    async def main(url):
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def fetch(status):
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        opening = asyncio.ensure_future(connect(url, credentials=fetch)._connect())
        await asked.wait()
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
        await cancelled.wait()

    with raw_server(refusing(401)) as url:
        run(main(url))


def test_more_statuses_are_retried(run):
    async def main(url):
        async with connect(url, reconnect=AT_ONCE, retry_statuses=(404, 521)) as ws:
            assert [message async for message in ws] == []

    plain = [refusing(404), refusing(521), refusing(530)]

    def accept(connection):
        upgrade(connection)
        connection.sendall(NORMAL_CLOSE)
        while connection.recv(4096):
            pass

    with raw_server(*plain, accept) as url:
        run(main(url))
    with pytest.raises(librealtime.InvalidArgument, match="retry_statuses"):
        sync.connect("ws://127.0.0.1:1/", reconnect=AT_ONCE, retry_statuses=(300,))
    with pytest.raises(librealtime.InvalidArgument, match="need reconnect"):
        sync.connect("ws://127.0.0.1:1/", retry_statuses=(404,))


def test_on_reconnect_may_be_a_coroutine_function(run):
    async def main(url):
        attempts = []

        async def renew(attempt):
            await asyncio.sleep(0)
            attempt.set_bearer_token("second")
            attempts.append(attempt.number)

        options = {"on_reconnect": renew, "bearer_token": "first", "reconnect": AT_ONCE}
        async with connect(url, **options) as ws:
            assert [message async for message in ws] == []
        assert attempts == [1]

    with raw_server(guarded("first", lasts=True), guarded("second")) as url:
        run(main(url))


@pytest.mark.parametrize("way", ["declines", "raises"])
def test_on_reconnect_may_end_it_later(run, way):
    async def main(url):
        reported = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )

        async def decide(attempt):
            await asyncio.sleep(0)
            if way == "raises":
                raise ValueError("no more")
            return False

        options = {"on_reconnect": decide, "bearer_token": "first", "reconnect": AT_ONCE}
        async with connect(url, **options) as ws:
            await ws.wait_closed()
        assert [str(error) for error in reported] == (["no more"] if way == "raises" else [])

    with raw_server(guarded("first", lasts=True)) as url:
        run(main(url))


@pytest.mark.parametrize("kind", [EventSource, LongPoll])
def test_requests_wait_for_coroutines(run, serve, kind):
    heads = []

    def reply(connection, number):
        while request := read(connection):
            heads.append(head_lines(request))
            stream = b"Content-Type: text/event-stream\r\n" if kind is EventSource else b""
            body = b"data: ok\n\n" if kind is EventSource else b"ok"
            length = b"Content-Length: %d\r\n\r\n" % len(body)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + stream + length + body)

    async def main():
        async def provide(attempt):
            await asyncio.sleep(0)
            return {"X-Token": f"{len(heads)}"}

        async def request(attempt):
            await asyncio.sleep(0)
            attempt.set_header("X-Attempt", str(attempt.number))
            return len(heads) < 1

        url = serve(reply).url
        async with kind(url, header_provider=provide, on_request=request) as source:
            items = [item async for item in source]
        assert len(items) == 1
        assert {"X-Token: 0", "X-Attempt: 1"} <= set(heads[0])
        assert len(heads) == 1

    run(main())


@pytest.mark.parametrize("name", ["on_request", "header_provider"])
def test_exceptions_of_coroutines_end_a_source(run, events, name):
    async def fail(attempt):
        raise ValueError("no token")

    async def main():
        source = EventSource(events.url + "/count", **{name: fail})
        with pytest.raises(librealtime.RealtimeError, match="no token") as raised:
            await source.wait_closed()
        assert isinstance(raised.value.__cause__, ValueError)

    run(main())


def test_closing_a_source_whose_request_waits(run, events):
    async def main():
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def wait(attempt):
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async with EventSource(events.url + "/count", on_request=wait):
            await asked.wait()
        await cancelled.wait()

    run(main())
    assert events.requests.empty()


# A request that must not be repeated.


def streaming(bodies, seen):
    """Answers each request with the next of these event streams, and ends it in order."""

    def reply(connection, number):
        seen.append(read(connection))
        body = bodies[len(seen) - 1]
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body)

    return reply


POST = {"method": "POST", "content": "{}"}


def test_a_post_ends_with_its_stream(run, serve):
    seen, errors = [], []

    async def main(url):
        async with EventSource(url, on_error=errors.append, **POST) as source:
            assert [event.data async for event in source] == ["a", "b"]
            await source.wait_closed()

    url = serve(streaming([b"data: a\n\ndata: b\n\n"], seen)).url
    run(main(url))
    assert len(seen) == 1
    assert [(event.error.name, event.fatal) for event in errors] == [("RT_ERROR_CLOSED", True)]
    url = serve(streaming([b"data: a\n\n"], seen := [])).url
    with sync.EventSource(url, **POST) as source:
        assert [event.data for event in source] == ["a"]


def test_a_post_is_repeated_if_that_is_asked_for(run, serve):
    async def main(url, **options):
        async with EventSource(url, reconnection_time=0.001, **POST, **options) as source:
            return [(await source.recv()).data, (await source.recv()).data]

    for options in ({"retry_unsafe": True}, {"headers": {"Idempotency-Key": "1"}}):
        seen = []
        url = serve(streaming([b"data: a\n\n", b"data: b\n\n" * 2], seen)).url
        assert run(main(url, **options)) == ["a", "b"]
        assert len(seen) == 2


def test_a_head_that_comes_with_the_first_event(run, serve):
    """Longer than the limit for connecting, which has no part in it."""
    go = threading.Event()

    def reply(connection, number):
        read(connection)
        assert go.wait(30)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n"
        )

    async def main():
        async with EventSource(serve(reply).url, connect_timeout=0.2, **POST) as source:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(source.recv(), 0.5)
            go.set()
            assert (await source.recv()).data == "first"

    run(main())


# The end.


@pytest.mark.parametrize("frame", [NORMAL_CLOSE, b"\x83\x00"], ids=["close", "violation"])
def test_the_end_does_not_wait_for_tcp(run, frame):
    """A server that keeps the connection open after its close frame, or a violation."""
    ended = threading.Event()

    def keep_open(connection):
        upgrade(connection)
        connection.sendall(frame)
        assert ended.wait(30)

    async def main(url):
        async with connect(url, close_timeout=None) as ws:
            with contextlib.suppress(librealtime.ConnectionClosedError):
                assert [message async for message in ws] == []
            assert ws.close_code == (1000 if frame == NORMAL_CLOSE else 1002)
        ended.set()

    with raw_server(keep_open) as url:
        run(main(url))
    ended.clear()
    with raw_server(keep_open) as url:
        ws = sync.connect(url, close_timeout=None)
        with contextlib.suppress(librealtime.ConnectionClosedError):
            assert list(ws) == []
        ws.close()
        ended.set()


def test_our_close_does_not_wait_for_tcp(run):
    ended, frames = threading.Event(), []

    def keep_open(connection):
        upgrade(connection)
        frames.append(connection.recv(4096)[0])
        connection.sendall(NORMAL_CLOSE)
        assert ended.wait(30)

    async def main(url):
        ws = await connect(url, close_timeout=None)
        await ws.close()
        assert ws.close_code == 1000
        ended.set()

    with raw_server(keep_open) as url:
        run(main(url))
    assert frames == [0x88]


# Files.

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEsecret\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "name", ["ca_file", "ca_path", "client_certificate", "client_key", "unix_socket"]
)
@pytest.mark.parametrize("text", [PEM, PEM.encode()], ids=["str", "bytes"])
def test_pem_text_is_not_a_file_name(name, text):
    with pytest.raises(librealtime.InvalidArgument, match=f"{name} is PEM text") as raised:
        librealtime.Network(**{name: text})
    assert "MII" not in str(raised.value)
    if name == "ca_file":
        with pytest.raises(librealtime.InvalidArgument, match="ca_file is PEM text"):
            sync.connect("wss://127.0.0.1:1/", ca_file=text)


def test_pem_text_as_the_interface_is_not_shown():
    network = librealtime.Network(interface=PEM)
    with pytest.raises(librealtime.ConnectFailed, match="the interface that is PEM text") as raised:
        sync.connect("ws://127.0.0.1:1/", network=network)
    assert "MII" not in str(raised.value)


def test_pem_text_in_the_environment_is_not_shown(monkeypatch):
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", PEM)
    with (
        raw_server(lambda connection: connection.recv(1)) as url,
        pytest.raises(librealtime.ConnectFailed, match="SSL_CERT_FILE") as raised,
    ):
        sync.connect(url.replace("ws:", "wss:"))
    assert "MII" not in str(raised.value)
