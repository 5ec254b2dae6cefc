"""Drives Tests/Support/sse-contract-service as a contract-test harness does, case by case."""

import contextlib
import http.client
import http.server
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from contract_cases import TABLES, Case, event
from harness import PATIENCE_S, ROOT, Build, Failed, expect
from patience import patiently
from streams import Exchange, StreamServer

SERVICE = ROOT / "Tests" / "Support" / "sse-contract-service"
CAPABILITIES = {
    *("bom", "comments", "headers", "last-event-id", "post", "read-timeout", "report", "restart"),
    "server-directed-shutdown-request",
}
BODY = '{"hello": "world"}'
JSON = "application/json; charset=utf-8"

Message = dict[str, Any]


class CallbackServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Does nothing: a service that ends resets its connections."""


class Callbacks:
    """Receives the service's reports, and sorts them by number."""

    def __init__(self) -> None:
        self._queues: dict[str, queue.Queue[tuple[int, Message]]] = {}
        callbacks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, name, number = self.path.split("/")
                callbacks._queues[name].put((int(number), body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = CallbackServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def endpoint(self, name: str) -> tuple[str, queue.Queue[tuple[int, Message]]]:
        self._queues[name] = queue.Queue()
        return f"http://127.0.0.1:{self.server.server_port}/{name}", self._queues[name]


class Client:
    """An event source in the service, and its reports."""

    def __init__(self, runner: "Runner", url: str, parameters: Message) -> None:
        self._runner = runner
        callback_url, self._messages = runner.callbacks.endpoint(f"stream{runner.next_number()}")
        asked = {"streamUrl": url, "callbackUrl": callback_url, "tag": "ours", **parameters}
        status, location = runner.ask("POST", "/", asked)
        expect(200 <= status < 300 and bool(location), f"{status} {location}")
        self._location = location
        self._count = 0

    def close(self) -> None:
        status, _ = self._runner.ask("DELETE", self._location)
        expect(status in (200, 204), f"closing: {status}")

    def message(self) -> Message:
        try:
            number, message = self._messages.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed("nothing was reported") from None
        self._count += 1
        expect(number == self._count, f"report {number} instead of {self._count}")
        return message

    def tells(self, *expected: Message) -> None:
        for wanted in expected:
            told = self.message()
            expect(told == wanted, f"expected {str(wanted)[:300]}, received {str(told)[:300]}")

    def error(self) -> str:
        told = self.message()
        expect(told["kind"] == "error" and told["error"] != "", f"{told}")
        return str(told["error"])

    def command(self, **command: Any) -> None:
        status, _ = self._runner.ask("POST", self._location, command)
        expect(200 <= status < 300, f"{command}: {status}")


class Runner:
    """The service, started by the first test that needs it."""

    def __init__(self, build: Build) -> None:
        self._library = build.library / "librealtime.so"
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self._number = 0
        self.callbacks = Callbacks()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def _start(self) -> None:
        if self._process is not None:
            return
        self._process = process = subprocess.Popen(
            [sys.executable, str(SERVICE), "0"],
            env={**os.environ, "LIBREALTIME_PATH": str(self._library)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        expect(line.startswith("listening"), f"the service does not start: {line!r}")
        self._port = int(line.rsplit(":", 1)[1])

    def close(self) -> None:
        self._stop()
        self.callbacks.close()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def wait(self) -> int:
        """Waits for the service to end; the next test starts another."""
        process = self._process
        assert process is not None
        code = process.wait(PATIENCE_S)
        self._stop()
        return code

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """The status and Location of the service's response, or its body if it has no Location."""
        self._start()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, None if body is None else encoded, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, answer.headers.get("Location") or text

    @contextlib.contextmanager
    def client(self, url: str, **parameters: Any) -> Iterator[Client]:
        with contextlib.closing(Client(self, url, parameters)) as client:
            yield client

    @contextlib.contextmanager
    def connected(self, **parameters: Any) -> Iterator[tuple["Streams", "Stream", Client]]:
        """A server, the first stream from it, and the client that reads it."""
        with Streams() as streams, self.client(streams.url, **parameters) as client:
            yield streams, streams.next(), client


class Stream:
    """A stream that a test writes to."""

    def __init__(self, exchange: Exchange) -> None:
        self.request = exchange
        self.is_over = threading.Event()

    def send(self, *chunks: bytes) -> None:
        for chunk in chunks:
            self.request.chunk(chunk)

    def end(self) -> None:
        """Breaks the connection inside the stream."""
        self.is_over.set()


class Streams:
    """A server that passes its streams to the test, one after the other."""

    def __init__(self) -> None:
        self._streams: queue.Queue[Stream] = queue.Queue()
        self._given: list[Stream] = []
        self._server = StreamServer(self._serve)

    @property
    def url(self) -> str:
        return self._server.url("/stream")

    def __enter__(self) -> "Streams":
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        for stream in [*self._given, *self._streams.queue]:
            stream.end()
        self._server.__exit__(*error)

    def _serve(self, exchange: Exchange) -> None:
        exchange.begin("Transfer-Encoding: chunked")
        stream = Stream(exchange)
        self._streams.put(stream)
        stream.is_over.wait(PATIENCE_S)

    def next(self) -> Stream:
        try:
            stream = self._streams.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed("nobody connects") from None
        self._given.append(stream)
        return stream


@pytest.fixture(scope="module")
def runner(build: Build) -> Iterator[Runner]:
    with contextlib.closing(Runner(build)) as running:
        yield running


@pytest.mark.parametrize(
    "one",
    [pytest.param(one, id=f"{group}: {one.name}") for group in TABLES for one in TABLES[group]],
)
def test_parses(runner: Runner, one: Case) -> None:
    with runner.connected() as (_, stream, client):
        stream.send(*one.chunks)
        client.tells(*one.told)


# HTTP


def test_defaults(runner: Runner) -> None:
    with runner.connected() as (_, stream, _client):
        request = stream.request
        expect(request.method == "GET", request.method)
        expect(request.headers["accept"] == "text/event-stream", f"{request.headers}")
        expect(request.headers["cache-control"] == "no-cache", f"{request.headers}")
        expect("last-event-id" not in request.headers, f"{request.headers}")


def test_stops(runner: Runner) -> None:
    """After 204 no other request comes, even without a delay."""
    with StreamServer(lambda exchange: exchange.answer("204 No Content")) as server:
        with runner.client(server.url(), initialDelayMs=0) as client:
            client.error()
            server.request()
            try:
                server.requests.get(timeout=1)
            except queue.Empty:
                return
            raise Failed("it reconnected")


@pytest.mark.parametrize("status", (301, 307))
def test_follows(runner: Runner, status: int) -> None:
    with Streams() as streams:
        location = f"Location: {streams.url}"
        with StreamServer(lambda e: e.answer(f"{status} Go", location)) as server:
            with runner.client(server.url()) as client:
                streams.next().send(b"data: hello\n\n")
                client.tells(event("hello"))


@pytest.mark.parametrize("location", (None, ""))
@pytest.mark.parametrize("status", (301, 307))
def test_bad_location(runner: Runner, status: int, location: str | None) -> None:
    fields = [] if location is None else [f"Location: {location}"]
    with StreamServer(lambda e: e.answer(f"{status} Go", *fields)) as server:
        with runner.client(server.url()) as client:
            client.error()


def test_custom_headers(runner: Runner) -> None:
    headers = {"header-name-1": "value-1", "header-name-2": "value-2"}
    with runner.connected(headers=headers) as (_, stream, _client):
        for name, value in headers.items():
            expect(stream.request.headers.get(name) == value, f"{stream.request.headers}")


@pytest.mark.parametrize("method", ("POST", "REPORT"))
def test_request_with_body(runner: Runner, method: str) -> None:
    options = {"method": method, "body": BODY, "headers": {"content-type": JSON}}
    with runner.connected(**options) as (_, stream, _client):
        request = stream.request
        expect((request.method, request.body.decode()) == (method, BODY), f"{request.body!r}")
        expect(request.headers["content-type"] == JSON, f"{request.headers}")


def test_initial_id(runner: Runner) -> None:
    with runner.connected(lastEventId="abc") as (_, stream, _client):
        expect(stream.request.headers.get("last-event-id") == "abc", f"{stream.request.headers}")


# Reconnection


def test_restarts(runner: Runner) -> None:
    with runner.connected(initialDelayMs=0) as (streams, stream, client):
        stream.send(b"data: Hello\n\n")
        client.tells(event("Hello"))
        client.command(command="restart")
        streams.next().send(b"data: Thanks\n\n")
        client.tells(event("Thanks"))


def sent_id(runner: Runner, *events: tuple[bytes, Message]) -> str | None:
    """The id that the request after a stream with these events sends."""
    with runner.connected(initialDelayMs=0) as (streams, stream, client):
        expect("last-event-id" not in stream.request.headers, f"{stream.request.headers}")
        for chunk, told in events:
            stream.send(chunk)
            client.tells(told)
        stream.end()
        return streams.next().request.headers.get("last-event-id")


HELLO = (b"id: abc\ndata: Hello\n\n", event("Hello", id="abc"))


def test_sends_id(runner: Runner) -> None:
    expect(sent_id(runner, HELLO) == "abc", "not sent")


def test_keeps_older_id(runner: Runner) -> None:
    sent = sent_id(runner, HELLO, (b"data: World\n\n", event("World", id="abc")))
    expect(sent == "abc", f"{sent!r}")


def test_emptied_id(runner: Runner) -> None:
    sent = sent_id(runner, HELLO, (b"id: \ndata: World\n\n", event("World")))
    expect(sent is None, f"{sent!r} was sent")


def test_sends_body_again(runner: Runner) -> None:
    options = {"method": "POST", "body": BODY, "headers": {"content-type": JSON}}
    with runner.connected(initialDelayMs=0, **options) as (streams, first, _):
        first.end()
        for stream in (first, streams.next()):
            request = stream.request
            expect((request.method, request.body.decode()) == ("POST", BODY), f"{request.body!r}")


def test_read_timeout(runner: Runner) -> None:
    for attempt in patiently(0.5):
        with attempt as limit:
            read_timeout(runner, limit)


def read_timeout(runner: Runner, limit: float) -> None:
    options = {"initialDelayMs": 0, "readTimeoutMs": round(1000 * limit)}
    with runner.connected(**options) as (streams, stream, client):
        stream.send(b"data: Hello\n\n")
        client.tells(event("Hello"))
        began = time.monotonic()
        client.error()
        expect(time.monotonic() - began > 0.8 * limit, "too early")
        streams.next()


def test_discards_unfinished(runner: Runner) -> None:
    with runner.connected(initialDelayMs=0) as (streams, stream, client):
        stream.send(b"id: abc\ndata: Hello\n\nid: def\ndata: Goodbye")
        client.tells(event("Hello", id="abc"))
        stream.end()
        client.error()
        streams.next().send(b"data: We meet again\n\n")
        client.tells(event("We meet again", id="abc"))


def test_works_again(runner: Runner) -> None:
    with runner.connected(initialDelayMs=0) as (streams, stream, client):
        stream.send(HELLO[0])
        client.tells(HELLO[1])
        stream.end()
        client.error()
        streams.next().send(b"id: def\ndata: World\n\n")
        client.tells(event("World", id="def"))


# The service itself


def test_claims(runner: Runner) -> None:
    status, text = runner.ask("GET", "/")
    said = json.loads(text)
    expect((status, said["name"]) == (200, "librealtime"), f"{status} {text}")
    expect(set(said["capabilities"]) == CAPABILITIES, text)


def test_bad_requests(runner: Runner) -> None:
    for body in (b"no JSON", [], {}, {"streamUrl": "ws://x", "callbackUrl": "http://x"}):
        status, _ = runner.ask("POST", "/", body)
        expect(status == 400, f"{body}: {status}")
    expect(runner.ask("DELETE", "/streams/999999")[0] == 404, "a stream that is not there")
    with runner.connected() as (_, stream, client):
        client.command(command="listen", listen={"type": "hello"})
        status, _ = runner.ask("POST", client._location, {"command": "dance"})
        expect(status == 400, f"{status}")
        stream.send(b"event: hello\ndata: x\n\n")
        client.tells(event("x", "hello"))


def test_quits(runner: Runner) -> None:
    runner.ask("GET", "/")
    expect(runner.ask("DELETE", "/")[0] in (200, 204), "no")
    expect(runner.wait() == 0, "it failed")
