"""A client sends a large message over a slow link: its pings wait for longer than their answers may
take, and the connection is kept as long as bytes of the message arrive."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ddp_server import DDPServer
from harness import PATIENCE_S, Probe, expect
from librealtime import ConnectionTimeout, sync
from servers import Peer, Servers, frame

#: How much of what the client sends passes in a second, and the time for each byte that it receives
#: one by one.
BYTES_PER_S = 120_000
BYTE_S = 0.1
#: The silence before a ping, and the time for its answer.
SILENCE_S = 0.3
ANSWER_S = 1.5
#: Takes several times as long as an answer may take.
MESSAGE_BYTES = 700_000


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].strip("/"))


class SlowLink:
    """Carries connections to a server: what the client sends slowly, what it receives at once. Its
    own buffer is small, so that the client's kernel knows what has passed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        #: How many connections it has carried.
        self.count = 0
        self._is_over = threading.Event()
        #: If set, the client receives one byte at a time.
        self.drips = threading.Event()

    def __enter__(self) -> "SlowLink":
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _start(self, run: object, *arguments: object) -> None:
        threading.Thread(target=run, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.count += 1
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += [client, server]
                self._start(self._carry, client, server, True)
                self._start(self._carry, server, client, False)

    def _carry(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                drips = self.drips.is_set() and not is_up
                size = 1 if drips else len(data)
                for start in range(0, len(data), size):
                    target.sendall(data[start : start + size])
                    pause_s = BYTE_S if drips else len(data) / BYTES_PER_S if is_up else 0
                    if pause_s and self._is_over.wait(pause_s):
                        return
            target.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("websocket", [True, False], ids=["websocket", "sockjs"])
def test_a_large_call(ddp_server: DDPServer, websocket: bool) -> None:
    ddp_server.control.settings(websocket=websocket)
    ddp_server.control.method("take", [{"op": "return", "value": "taken"}])
    options = {"heartbeat_interval": SILENCE_S, "heartbeat_timeout": ANSWER_S}
    with (
        SlowLink(ddp_server.port) as link,
        sync.DDPClient(
            f"ws://127.0.0.1:{link.port}/websocket", compression=False, **options
        ) as client,
    ):
        client.connect(timeout=PATIENCE_S)
        result = client.call("take", "x" * MESSAGE_BYTES, timeout=PATIENCE_S)
        expect(result == "taken", f"{result}")
        greetings = ddp_server.control.log(what="in", msg="connect")
        expect(len(greetings) == 1, f"it has connected again: {greetings}")


ESTABLISHED = (
    b'{"event":"pusher:connection_established",'
    b'"data":"{\\"socket_id\\":\\"1.1\\",\\"activity_timeout\\":120}"}'
)


def pusher_script(received: threading.Event) -> Callable[[Peer], object]:
    """A Pusher server that notes that the last event has arrived."""

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer() + frame(1, ESTABLISHED))
        while True:
            opcode, payload = await peer.read_frame()
            if opcode == 8:
                return await peer.send(frame(8, payload))
            if opcode == 9:
                await peer.send(frame(10, payload))
            elif b"pusher:ping" in payload:
                await peer.send(frame(1, b'{"event":"pusher:pong","data":"{}"}'))
            elif b"pusher:subscribe" in payload:
                said = b'{"event":"pusher_internal:subscription_succeeded","channel":"private-a"}'
                await peer.send(frame(1, said))
            elif b"client-last" in payload:
                received.set()

    return script


@contextlib.contextmanager
def events_sent(link: SlowLink, size: int, **options: Any) -> Iterator[sync.Pusher]:
    """A client that has just sent so many bytes of events."""
    client = sync.Pusher(
        "key",
        host="127.0.0.1",
        port=link.port,
        use_tls=False,
        compression=None,
        authorizer=lambda _: {"auth": "key:signature"},
        client_event_rate=None,
        **options,
    )
    with client:
        client.connect(timeout=PATIENCE_S)
        channel = client.subscribe("private-a", timeout=PATIENCE_S)
        for _ in range(size // 9000):
            channel.trigger("client-large", "x" * 9000)
        channel.trigger("client-last")
        yield client


@pytest.mark.parametrize("frame_pings", [False, True])
def test_large_client_events(servers: Servers, frame_pings: bool) -> None:
    received = threading.Event()
    options = {"activity_timeout": SILENCE_S, "pong_timeout": ANSWER_S, "frame_pings": frame_pings}
    with (
        SlowLink(port_of(servers.script(pusher_script(received)))) as link,
        events_sent(link, MESSAGE_BYTES, **options) as client,
    ):
        expect(received.wait(PATIENCE_S), "the last event did not arrive")
        expect(client.state == "connected" and link.count == 1, f"{link.count} connections")


def test_closing_behind_large_client_events(servers: Servers) -> None:
    """The events take longer than the 5 s for the server's close frame."""
    received = threading.Event()
    with (
        SlowLink(port_of(servers.script(pusher_script(received)))) as link,
        events_sent(link, 8 * BYTES_PER_S) as client,
    ):
        client.disconnect(timeout=PATIENCE_S)
        expect(received.is_set(), "the last event did not arrive")


def test_closing_behind_a_large_message(servers: Servers) -> None:
    """It takes longer than the time limit for the peer's close frame."""
    received: queue.Queue[int] = queue.Queue()

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        while True:
            opcode, payload = await peer.read_frame()
            received.put(len(payload))
            if opcode == 8:
                return await peer.send(frame(8, payload))

    with SlowLink(port_of(servers.script(script))) as link:
        options: dict[str, Any] = {"compression": None, "ping_interval": None}
        ws = sync.connect(f"ws://127.0.0.1:{link.port}/", close_timeout=ANSWER_S, **options)
        ws.send("x" * MESSAGE_BYTES)
        ws.close()
        expect(ws.close_code == 1000, f"closed with {ws.close_code}")
    expect(received.get(timeout=PATIENCE_S) == MESSAGE_BYTES, "the message did not arrive")


def test_a_part_of_a_record_is_not_idle(make: Callable[..., Probe], servers: Servers) -> None:
    """Its content cannot be read before all of it is there, which takes three times as long as the
    server may be idle."""
    tls = servers.tls()

    async def script(peer: Peer) -> None:
        await peer.send(peer.answer())
        await peer.read_frame()
        link.drips.set()
        await peer.send(frame(2, bytes(10)))
        # Nothing follows until the client finds that the server is idle.
        await peer.read_until_close()

    with SlowLink(port_of(servers.script(script, tls))) as link:
        url = f"wss://127.0.0.1:{link.port}/"
        options = {"ping_interval_ms": 300, "idle_timeout_ms": 1000}
        with make(url, network_ca_file=tls.ca_file, **options) as probe:
            probe.expect("open .*")
            probe.expect("binary 10 .*")
            probe.expect("error RT_ERROR_TIMEOUT .*")
            probe.expect("close 1001 unclean.*")
            probe.end()


async def takes_a_body(peer: Peer, head: str, answer: bytes) -> None:
    """Answers once the whole body has arrived."""
    await peer.reader.readexactly(int(peer.header("Content-Length")))
    length = f"Content-Length: {len(answer)}"
    await peer.send(f"HTTP/1.1 200 OK\r\n{head}{length}\r\n\r\n".encode() + answer)
    await peer.read_to_end()


def test_the_body_of_a_request(servers: Servers) -> None:
    """The kernel takes it at once, long before it has arrived."""

    async def script(peer: Peer) -> None:
        await takes_a_body(peer, "", b"taken")

    with (
        SlowLink(port_of(servers.script(script))) as link,
        sync.RESTClient(f"http://127.0.0.1:{link.port}", attempts=1, timeout=ANSWER_S) as client,
    ):
        expect(client.put("/", content=b"x" * MESSAGE_BYTES).text == "taken", "another answer")


def test_a_request_that_is_not_answered(servers: Servers) -> None:
    """All of it has arrived: the time is over, as always."""

    async def script(peer: Peer) -> None:
        await peer.read_to_end()

    url = servers.script(script).replace("ws", "http", 1)
    client = sync.RESTClient(url, attempts=1, timeout=ANSWER_S)
    with client, pytest.raises(ConnectionTimeout):
        client.put("/", content=b"x" * MESSAGE_BYTES)


def test_the_body_of_an_event_source(servers: Servers) -> None:
    async def script(peer: Peer) -> None:
        await takes_a_body(peer, "Content-Type: text/event-stream\r\n", b"data: taken\n\n")

    with (
        SlowLink(port_of(servers.script(script))) as link,
        sync.EventSource(
            f"http://127.0.0.1:{link.port}",
            method="POST",
            content=b"x" * MESSAGE_BYTES,
            response_timeout=ANSWER_S,
        ) as source,
    ):
        expect(source.recv(timeout=PATIENCE_S).data == "taken", "another event")
