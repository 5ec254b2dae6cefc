"""A Host that the program sets arrives once, from every object that opens connections, in HTTP/1.1
and HTTP/2 (RFC 9112 §3.2, RFC 9113 §8.3.1)."""

import contextlib
import queue
from collections.abc import Callable, Iterator

import pytest
from command_line import http
from harness import PATIENCE_S, expect
from librealtime import RealtimeError, sync
from nchan import Nchan
from servers import Peer, Servers

HOST = "name.example:81"
HEADERS = {"hOST": HOST}

#: Uses an object with these headers; ends when the body of its `with` does.
Use = Callable[[str, dict[str, str]], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def websocket(url: str, headers: dict[str, str]) -> Iterator[None]:
    with contextlib.suppress(RealtimeError):
        sync.connect(url, additional_headers=headers)
    yield


@contextlib.contextmanager
def eventsource(url: str, headers: dict[str, str]) -> Iterator[None]:
    with sync.EventSource(http(url), headers=headers) as source:
        with contextlib.suppress(RealtimeError):
            source.recv()
        yield


@contextlib.contextmanager
def longpoll(url: str, headers: dict[str, str]) -> Iterator[None]:
    with sync.LongPoll(http(url), headers=headers) as poll:
        with contextlib.suppress(RealtimeError):
            poll.recv()
        yield


@contextlib.contextmanager
def rest(url: str, headers: dict[str, str]) -> Iterator[None]:
    with sync.RESTClient(http(url), headers=headers) as client:
        client.get("/")
        yield


@contextlib.contextmanager
def spreadbot(url: str, headers: dict[str, str]) -> Iterator[None]:
    """Tries a WebSocket, an event stream and a poll, and makes a request."""
    with sync.Spreadbot(http(url), headers=headers) as bot:
        bot.establish_connection("path", wait=False)
        bot.rest.get("/")
        yield


@contextlib.contextmanager
def pusher(url: str, headers: dict[str, str]) -> Iterator[None]:
    host, _, port = url.removeprefix("ws://").strip("/").partition(":")
    client = sync.Pusher("key", host=host, port=int(port), use_tls=False, headers=headers)
    # Its `with` would wait until it is connected.
    with contextlib.closing(client):
        client.connect(wait=False)
        yield


@contextlib.contextmanager
def ddp(url: str, headers: dict[str, str]) -> Iterator[None]:
    """Tries a WebSocket, then SockJS."""
    client = sync.DDPClient(http(url), headers=headers)
    with contextlib.closing(client):
        client.connect(wait=False)
        yield


#: How many requests show all transports of an object.
USES: list[tuple[Use, int]] = [
    (websocket, 1),
    (eventsource, 1),
    (longpoll, 1),
    (rest, 1),
    (spreadbot, 4),
    (pusher, 1),
    (ddp, 2),
]


@pytest.mark.parametrize(("use", "count"), USES, ids=[use.__name__ for use, _ in USES])
def test_it_arrives_once(servers: Servers, use: Use, count: int) -> None:
    requests: queue.Queue[bytes] = queue.Queue()

    async def script(peer: Peer) -> None:
        requests.put(peer.request)
        await peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with use(servers.script(script), HEADERS):
        for _ in range(count):
            lines = requests.get(timeout=PATIENCE_S).split(b"\r\n")
            hosts = [line for line in lines if line.lower().startswith(b"host:")]
            expect(len(hosts) == 1, f"{lines}")
            expect(hosts[0].partition(b":")[2].strip().decode() == HOST, f"{lines}")


@pytest.mark.parametrize("http2", [True, False])
def test_a_requests_own_replaces_the_clients(nchan: Nchan, http2: bool) -> None:
    """nginx answers a second Host, or one beside another :authority, with 400."""
    version = "HTTP/2.0" if http2 else "HTTP/1.1"
    url = nchan.url("/rest/host", "https")
    options = {"ca_file": nchan.ca_file, "http2": http2}
    with sync.RESTClient(url, headers=HEADERS, **options) as client:
        for headers, host in (
            ({}, HOST),
            ({"Host": "other.example"}, "other.example"),
            ({"host": "[::1]:8080"}, "[::1]:8080"),
            ({}, HOST),
        ):
            response = client.get("", headers=headers)
            expect(response.text == f"{version} {host}", f"{headers}: {response.text}")
    with sync.RESTClient(url, **options) as client:
        own = url.split("/")[2]
        for headers, host in (({}, own), (HEADERS, HOST), ({}, own)):
            response = client.get("", headers=headers)
            expect(response.text == f"{version} {host}", f"{headers}: {response.text}")


@pytest.mark.parametrize("http2", [True, False])
def test_sources_over_tls(nchan: Nchan, http2: bool) -> None:
    said = f"{'HTTP/2.0' if http2 else 'HTTP/1.1'} {HOST}"
    options = {"headers": HEADERS, "ca_file": nchan.ca_file, "http2": http2}
    with sync.EventSource(nchan.url("/host", "https"), **options) as source:
        event = source.recv(timeout=PATIENCE_S)
        expect(event.data == said, event.data)
    with sync.LongPoll(nchan.url("/rest/host", "https"), **options) as poll:
        message = poll.recv(timeout=PATIENCE_S)
        expect(message.text == said, f"{message}")
