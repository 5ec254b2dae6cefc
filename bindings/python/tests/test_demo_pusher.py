"""Pusher Channels in the demo server, used by independent clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pusher
import pytest
import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))
from demo_process import PATIENCE_S, DemoProcess
from pusher_client import PusherClient

ADDED, REMOVED = "pusher_internal:member_added", "pusher_internal:member_removed"
SUCCEEDED = "pusher_internal:subscription_succeeded"
LOBBY, PRIVATE = "presence-lobby", "private-orders"


class Demo(DemoProcess):
    """Has what PusherClient needs."""

    host, key, secret = "127.0.0.1", "demo", "demo-secret"

    def client(self) -> PusherClient:
        return PusherClient(self)

    def event(self, body: Any) -> requests.Response:
        return requests.post(f"{self.url}/apps/1/events", json=body, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("demo") / "output")
    yield running
    running.stop()


def test_public_channels(demo: Demo) -> None:
    """Events come from Pusher's library for servers and from curl."""
    api = pusher.Pusher("1", "demo", "demo-secret", ssl=False, host=demo.host, port=demo.port)
    with demo.client() as client, demo.client() as other:
        for one in (client, other):
            assert one.join("chat") == {}
        api.trigger("chat", "new-price", {"price": "7.10"}, other.socket_id)
        assert client.data("new-price", "chat") == {"price": "7.10"}
        demo.event({"name": "plain", "channel": "chat", "data": "text"})
        for one in (client, other):
            assert one.next("plain", "chat")["data"] == "text"
        client.send("pusher:unsubscribe", {"channel": "chat"})
        client.silence()
        demo.event({"name": "plain", "channel": "chat", "data": "text"})
        client.silence()


def test_the_endpoint_signs(demo: Demo) -> None:
    def sign(client: PusherClient, channel: str, **more: str) -> Any:
        form = {"socket_id": client.socket_id, "channel_name": channel, **more}
        answer = requests.post(f"{demo.url}/pusher/auth", form, timeout=PATIENCE_S)
        answer.raise_for_status()
        client.send("pusher:subscribe", {"channel": channel, **answer.json()})
        return client.data(SUCCEEDED, channel)

    with demo.client() as client:
        assert sign(client, PRIVATE) == {}
        table = sign(client, LOBBY, user_id="ann", user_info='{"name":"Ann"}')["presence"]
        assert table == {"count": 1, "ids": ["ann"], "hash": {"ann": {"name": "Ann"}}}
        guest = f"guest {client.socket_id}"
        assert sign(client, "presence-2")["presence"]["ids"] == [guest]
    assert requests.post(f"{demo.url}/pusher/auth", timeout=PATIENCE_S).status_code == 400


def test_members(demo: Demo) -> None:
    with demo.client() as ann:
        ann.join(LOBBY, {"user_id": "ann"})
        with demo.client() as first:
            assert first.join(LOBBY, {"user_id": "bo"})["presence"]["ids"] == ["ann", "bo"]
            assert ann.data(ADDED, LOBBY) == {"user_id": "bo"}
            with demo.client() as second:
                assert second.join(LOBBY, {"user_id": "bo"})["presence"]["count"] == 2
                second.send("pusher:unsubscribe", {"channel": LOBBY})
                second.silence()
            ann.silence()
        assert ann.data(REMOVED, LOBBY) == {"user_id": "bo"}


def test_client_events(demo: Demo) -> None:
    with demo.client() as ann, demo.client() as bo:
        ann.join(LOBBY, {"user_id": "ann"})
        bo.join(LOBBY, {"user_id": "bo"})
        bo.send("client-typing", {"on": True}, LOBBY)
        ann.next(ADDED, LOBBY)
        message = ann.next("client-typing", LOBBY)
        assert (message["data"], message["user_id"]) == ('{"on":true}', "bo")
        bo.silence()
        bo.send("client-typing", {}, "chat")
        assert "rejected" in bo.data("pusher:error")["message"]


def test_wrong_input(demo: Demo) -> None:
    with demo.client() as client:
        for channel, auth in (("a b", None), (PRIVATE, "demo:00"), (LOBBY, None)):
            client.subscribe(channel, auth=auth)
            client.next("pusher:error")
        for text in ("no JSON", "[]", '{"event":"unknown"}', '{"event":"pusher:subscribe"}'):
            client.ws.send(text)
            client.next("pusher:error")
        client.join("chat")
        client.subscribe("chat")
        assert "Existing" in client.data("pusher:error")["message"]
        client.silence()
    for body in ([], {}, {"name": "a"}, {"name": 1, "data": "", "channels": ["a"]}):
        assert demo.event(body).status_code == 400, body
    for channels in (5, "a", [5], [["a"]], {"a": 1}):
        body = {"name": "a", "data": "", "channels": channels}
        assert demo.event(body).status_code == 400, body
    with PusherClient(demo, key="another") as client:
        assert client.end()[0] == 4001


@pytest.mark.parametrize("depth", [200, 900, 5_000, 300_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")])
def test_deep_json(demo: Demo, depth: int, brackets: str) -> None:
    deep = brackets[0] * depth + "1" + brackets[1] * depth
    body = f'{{"name":"a","channel":"chat","data":{deep}}}'
    forms = {"socket_id": "1.1", "channel_name": LOBBY, "user_info": deep}
    with demo.client() as client:
        client.join("chat")
        if len(body) < 1 << 20:
            posted = requests.post(f"{demo.url}/apps/1/events", body, timeout=PATIENCE_S)
            assert posted.status_code == 400
            asked = requests.post(f"{demo.url}/pusher/auth", forms, timeout=PATIENCE_S)
            assert asked.status_code in (400, 413)
        if len(body) < 1 << 16:
            client.ws.send(f'{{"event":{deep}}}')
            client.next("pusher:error")
        client.silence()


def test_text_that_is_not_unicode(demo: Demo) -> None:
    with demo.client() as client:
        client.join("chat")
        assert demo.event({"name": "\ud800", "channel": "chat", "data": ""}).status_code == 400
        client.ws.send('{"event":"pusher:subscribe","data":{"channel":"a","auth":"\\ud800"}}')
        client.next("pusher:error")
        client.silence()


def test_a_client_that_does_not_read(demo: Demo) -> None:
    """Is disconnected before the server keeps more than a few megabytes for it."""
    body = {"name": "big", "channel": "slow", "data": "x" * (1 << 19)}
    with (
        demo.client() as ann,
        PusherClient(demo, max_queue=1, compression=None, close_timeout=0.1) as slow,
    ):
        ann.join(LOBBY, {"user_id": "ann"})
        slow.join(LOBBY, {"user_id": "slow"})
        slow.join("slow")
        ann.next(ADDED, LOBBY)
        for _ in range(40):
            demo.event(body)
        assert ann.data(REMOVED, LOBBY) == {"user_id": "slow"}


def test_the_file_alone() -> None:
    """`make serve` runs it without the package, which needs the built library."""
    file = Path(__file__).resolve().parents[1] / "src" / "librealtime" / "demo_server.py"
    command = [sys.executable, str(file), "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 0, result.stderr
