"""Tests the library, through Python, against other projects' servers and proxies.

Tests/Interop/install downloads them; missing ones are skipped. Takes half a minute.
"""

import os
import pathlib

import peers
import pytest

# Python loads the library when the package is imported, so only the tests import it.
os.environ.setdefault("LIBREALTIME_PATH", str(peers.ROOT / "build" / "librealtime.so"))

PATIENCE_S = 30
SIZES = (0, 1, 125, 126, 65_535, 65_536, 1_000_000)


def websocket(url: str, proxy: str | None) -> None:
    """Sends text and bytes of all frame lengths and a ping, and closes."""
    from librealtime import sync

    with sync.connect(url, proxy=proxy, max_size=None) as ws:
        for size in SIZES:
            for message in ("é" * (size // 2) + "x" * (size % 2), os.urandom(size)):
                ws.send(message)
                assert ws.recv(PATIENCE_S) == message, f"another message of {size}"
        for number in range(100):
            ws.send_nowait(str(number))
        got = [ws.recv(PATIENCE_S) for _ in range(100)]
        assert got == [str(number) for number in range(100)], "not in order"
        assert ws.ping().wait(PATIENCE_S), "no pong"
        ws.close(1000, "done")
        assert ws.close_code == 1000, f"closed with {ws.close_code}"


def events(url: str, proxy: str | None) -> None:
    """A stream, then another one from its last id."""
    from librealtime import sync

    for first in (1, 4):
        with sync.EventSource(url, proxy=proxy, last_event_id=str(first - 1)) as source:
            for number in range(first, first + 3):
                event = source.recv(PATIENCE_S)
                assert (event.id, event.data) == (str(number), f"event {number}"), f"{event}"


def requests(url: str, proxy: str | None) -> None:
    """Several requests on one connection: with a query, with bodies, and to an unknown path."""
    from librealtime import sync

    with sync.RESTClient(url, proxy=proxy) as rest:
        for name in ("ü", "a b"):
            answer = rest.get("rest", params={"name": name}).raise_for_status()
            assert answer.json() == {"path": "/rest", "name": name}, answer.text
        for size in SIZES:
            body = os.urandom(size)
            answer = rest.post("rest", content=body).raise_for_status()
            assert answer.content == body, f"another body of {size}"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    # If started by root, squid runs as another user.
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    return tmp_path


def needs(kind: type[peers.Peer]) -> None:
    if not kind.is_there():
        pytest.skip("Tests/Interop/install could not get it")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (peers.NodeWS, ["websocket"]),
        (peers.Tornado, ["websocket", "events", "requests"]),
        (peers.Hypercorn, ["websocket", "events", "requests"]),
    ],
)
def test_server(folder: pathlib.Path, kind: type[peers.Peer], what: list[str]) -> None:
    needs(kind)
    with kind(folder) as peer:
        check(f"127.0.0.1:{peer.port}", None, *what)


@pytest.mark.parametrize(
    ("kind", "is_forward"), [(peers.Haproxy, False), (peers.Caddy, False), (peers.Squid, True)]
)
def test_proxy(folder: pathlib.Path, kind: type[peers.Peer], is_forward: bool) -> None:
    """Through a reverse proxy or a forward proxy."""
    needs(kind)
    with peers.Origin(folder) as origin, kind(folder, origin.port) as proxy:
        place = f"127.0.0.1:{origin.port if is_forward else proxy.port}"
        url = proxy.url() if is_forward else None
        check(place, url, "websocket", "events", "requests")


def check(place: str, proxy: str | None, *what: str) -> None:
    if "websocket" in what:
        websocket(f"ws://{place}/ws", proxy)
    if "events" in what:
        events(f"http://{place}/events", proxy)
    if "requests" in what:
        requests(f"http://{place}/", proxy)


def test_mosquitto(folder: pathlib.Path) -> None:
    """MQTT 3.1.1 by hand: CONNECT and CONNACK, and a message to itself."""
    from librealtime import sync

    needs(peers.Mosquitto)
    with peers.Mosquitto(folder) as broker, sync.connect(
        f"ws://127.0.0.1:{broker.port}/mqtt", subprotocols=["mqtt"], proxy=None
    ) as ws:  # fmt: skip
        assert ws.subprotocol == "mqtt", f"it speaks {ws.subprotocol}"
        ws.send(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test")
        assert ws.recv(PATIENCE_S) == b"\x20\x02\x00\x00", "no CONNACK that accepts"
        ws.send(b"\x82\x06\x00\x01\x00\x01t\x00")
        assert ws.recv(PATIENCE_S) == b"\x90\x03\x00\x01\x00", "no SUBACK"
        ws.send(b"\x30\x08\x00\x01thello")
        assert ws.recv(PATIENCE_S) == b"\x30\x08\x00\x01thello", "not what was published"
        ws.send(b"\xe0\x00")
