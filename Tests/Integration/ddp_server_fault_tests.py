"""Faults, resumption and SockJS of the Meteor server of the tests."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from typing import Any

import pytest
import requests
from ddp_client import VERSIONS, DDPClient
from ddp_server import DDPServer
from harness import PATIENCE_S, ROOT, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

CONNECT = json.dumps({"msg": "connect", "version": "1", "support": list(VERSIONS)})


@pytest.fixture
def server(ddp_server: DDPServer) -> DDPServer:
    ddp_server.control.collection("players")
    ddp_server.control.publication("all", cursors=[{"collection": "players"}])
    ddp_server.control.method("hold", [{"op": "hold"}, {"op": "return", "value": 1}])
    return ddp_server


def insert(server: DDPServer, *ids: str) -> None:
    server.control.insert("players", *({"_id": id} for id in ids))


# Faults


def test_drops_after_a_message(server: DDPServer) -> None:
    insert(server, "a", "b", "c")
    server.control.fault(point="sent", msg="added", skip=1, do="end")
    with DDPClient(server) as client:
        client.subscribe("all")
        client.next("added", id="a")
        client.next("added", id="b")
        expect(client.end() == 1006, "a close code")


def test_drops_before_a_message(server: DDPServer) -> None:
    """And at one that comes; the client learns nothing from the server."""
    server.control.fault(point="sending", msg="ready", do="reset")
    server.control.fault(point="received", msg="method", match={"method": "hold"}, do="end")
    for act in (lambda one: one.subscribe("all"), lambda one: one.start("hold")):
        with DDPClient(server) as client:
            act(client)
            expect(client.end() == 1006, "a close code")
    expect(server.control.log(what="run", name="hold") == [], "it ran")


def test_held_and_delayed_messages(server: DDPServer) -> None:
    server.control.fault(point="sending", msg="result", match={"id": "m2"}, do="hold")
    server.control.fault(point="received", msg="method", match={"id": "m3"}, do="delay", seconds=0)
    with DDPClient(server) as client:
        client.subscribe("all")
        client.next("ready")
        late = client.start("/players/remove", "a")
        client.next("updated", methods=[late])
        client.call("/players/remove", "a")
        client.silence()
        server.control.wait_held()
        server.control.release()
        client.next("result", id=late)


def test_other_faults(server: DDPServer) -> None:
    """A message is left out or replaced, another one is added, and the server goes mute."""
    insert(server, "a", "b", "c")
    server.control.fault(point="sending", msg="added", match={"id": "a"}, do="ignore")
    server.control.fault(point="sending", msg="added", do="replace", text="junk")
    server.control.fault(point="sent", msg="added", do="send", text="{}")
    server.control.fault(point="sent", msg="ready", do="close", code=3000, reason="enough")
    with DDPClient(server) as client:
        client.subscribe("all")
        expect(client.ws.recv(timeout=PATIENCE_S) == "junk", "instead of b")
        client.next("added", id="c")
        expect(client.read() == {}, "the message more")
        client.next("ready")
        expect(client.end() == 3000, "the close code")
    server.control.fault(point="received", msg="sub", do="stall")
    with DDPClient(server) as client:
        client.subscribe("all")
        server.control.wait(what="in", msg="sub", count=2)
        client.send("ping")
        with pytest.raises(TimeoutError):
            client.ws.recv(timeout=0.1)
        server.control.end()
        expect(client.end() == 1006, "a close code")


def test_handshakes_fail(server: DDPServer) -> None:
    for fault, wanted in (
        ({"do": "status", "code": 503}, InvalidStatus),
        ({"do": "reset"}, Exception),
        ({"do": "end"}, Exception),
    ):
        server.control.fault(point="handshake", **fault)
        with pytest.raises(wanted):
            DDPClient(server).__enter__()
    server.control.settings(websocket=False)
    with pytest.raises(InvalidStatus):
        DDPClient(server).__enter__()


def test_frames_that_a_test_sends(server: DDPServer) -> None:
    with DDPClient(server) as client:
        server.control.send("[1")
        expect(client.ws.recv(timeout=PATIENCE_S) == "[1", "the text")
        server.control.send_frame("binary", "\xff")
        expect(client.ws.recv(timeout=PATIENCE_S) == b"\xff", "the bytes")
        server.control.send_frame("raw", "\x83\x00")  # an opcode that does not exist
        expect(client.end() == 1006, "a close code")


def test_messages_are_compressed_if_the_client_can(server: DDPServer) -> None:
    for on in (True, False):
        server.control.settings(compression=on)
        with DDPClient(server) as client:
            headers = client.ws.response.headers if client.ws.response else {}
            got = "permessage-deflate" in headers.get("Sec-WebSocket-Extensions", "")
            expect(got == on, f"{headers}")


# Resumption


def resume(server: DDPServer, session: str, count: int) -> DDPClient:
    return DDPClient(server, session=session, receivedCount=count)


def lose(server: DDPServer, client: DDPClient) -> None:
    server.control.end("reset")
    expect(client.end() == 1006, "a close code")
    server.control.wait_connections(0)


def test_a_session_is_resumed(server: DDPServer) -> None:
    """What was published meanwhile follows, and so do answers; the count continues."""
    server.control.settings(resumes=True)
    insert(server, "a")
    with DDPClient(server) as client:
        client.subscribe("all")
        client.next("added", id="a")
        client.next("ready")
        client.start("hold")
        server.control.wait_held()
        client.silence()
        lose(server, client)
    insert(server, "b")
    server.control.release()
    (session,) = server.control.sessions()
    expect((session["connection"], session["sent"]) == (None, 3), f"{session}")
    with resume(server, client.session, 3) as again:
        expect(again.session == client.session, "a new session")
        again.next("added", id="b")
        again.next("updated", methods=["m2"])
        again.next("result", id="m2", result=1)
        again.subscribe("all", id="s1")  # is known
        again.silence()
        lose(server, again)
    with resume(server, client.session, 7) as again:
        expect(again.session == client.session, "a new session")


@pytest.mark.parametrize("why", ["count", "unknown", "disconnect", "queue", "grace", "off"])
def test_a_session_is_not_resumed(server: DDPServer, why: str) -> None:
    limits = {"queue": {"resume_queue": 2}, "grace": {"resume_grace": 0}}
    server.control.settings(resumes=why != "off", **limits.get(why, {}))
    with DDPClient(server) as client:
        client.subscribe("all")
        client.next("ready")
        if why == "disconnect":
            client.send("disconnect")
            client.silence()
        lose(server, client)
    insert(server, "a", "b", "c")
    known = "unknown" if why == "unknown" else client.session
    count = 1 if why == "count" else 2
    with resume(server, known, count) as again:
        expect(again.session != client.session, "the same session")
        again.silence()


def test_a_restart_forgets_sessions_and_keeps_data(server: DDPServer) -> None:
    server.control.settings(resumes=True)
    insert(server, "a")
    with DDPClient(server) as client:
        server.control.restart()
        expect(client.end() == 1006, "a close code")
    with resume(server, client.session, 1) as again:
        expect(again.session != client.session, "the same session")
        again.subscribe("all")
        again.next("added", id="a")


# SockJS


class Polling:
    """A SockJS session by polling."""

    def __init__(self, server: DDPServer, name: str = "abcdefgh") -> None:
        self.url = f"{server.http}/sockjs/123/{name}"
        expect(self.poll() == "o", "the first frame")

    def poll(self) -> str:
        response = requests.post(f"{self.url}/xhr", timeout=PATIENCE_S)
        expect(response.status_code == 200, f"{response.status_code}")
        return response.text.removesuffix("\n")

    def messages(self) -> list[dict[str, Any]]:
        frame = self.poll()
        expect(frame[0] == "a", frame)
        return [json.loads(text) for text in json.loads(frame[1:])]

    def send(self, body: str, kind: str = "text/plain") -> int:
        headers = {"Content-Type": kind}
        url = f"{self.url}/xhr_send"
        return requests.post(url, data=body, headers=headers, timeout=PATIENCE_S).status_code


def test_polling(server: DDPServer) -> None:
    info = requests.get(f"{server.http}/sockjs/info", timeout=PATIENCE_S).json()
    expect(info["websocket"] is True and info["origins"] == ["*:*"], f"{info}")
    insert(server, "a")
    client = Polling(server)
    expect(client.send(json.dumps([CONNECT])) == 204, "the status")
    (connected,) = client.messages()
    expect(connected["msg"] == "connected", f"{connected}")
    sub = json.dumps({"msg": "sub", "id": "1", "name": "all"})
    expect(client.send(json.dumps([sub]), "text/plain;charset=UTF-8") == 204, "the status")
    messages: list[str] = []
    while len(messages) < 2:
        messages += [one["msg"] for one in client.messages()]
    expect(messages == ["added", "ready"], f"{messages}")
    server.control.settings(sockjs_heartbeat=0.01)
    expect(client.poll() == "h", "the heartbeat")
    server.control.close()
    server.control.settings(sockjs_heartbeat=45)
    expect(client.poll() == 'c[3000,"Go away!"]', "the end")
    server.control.settings(sockjs_timeout=0)
    client.poll()
    server.control.wait_connections(0)
    expect(client.send("[]") == 404, "the session is gone")


def test_polling_is_refused(server: DDPServer) -> None:
    client = Polling(server)
    for kind in ("application/x-www-form-urlencoded", "application/octet-stream", ""):
        expect(client.send(json.dumps([CONNECT]), kind) == 500, kind)
    for body in ("", "[", "1"):
        expect(client.send(body) == 500, body)
    for path in ("/sockjs/1/2/xhr_send", "/sockjs/1/2/nothing", "/sockjs/nothing"):
        status = requests.post(server.http + path, data="[]", timeout=PATIENCE_S).status_code
        expect(status == 404, f"{path}: {status}")
    frames: queue.Queue[str] = queue.Queue()
    threads = [threading.Thread(target=lambda: frames.put(client.poll())) for _ in range(2)]
    for thread in threads:
        thread.start()
    expect("2010" in frames.get(timeout=PATIENCE_S), "the second poll")
    server.control.send("x")
    expect(frames.get(timeout=PATIENCE_S) == 'a["x"]', "the first poll")
    for thread in threads:
        thread.join()


def test_a_lost_poll_ends_the_session(server: DDPServer) -> None:
    client = Polling(server)
    server.control.end("reset")
    expect(client.send("[]") == 404, "the session is gone")
    client = Polling(server)
    with pytest.raises(requests.exceptions.Timeout):
        requests.post(f"{client.url}/xhr", timeout=0.05)
    server.control.wait_connections(0)


@pytest.mark.parametrize("path", ["/sockjs/websocket", "/apps/1/websocket"])
def test_other_paths_of_the_websocket(server: DDPServer, path: str) -> None:
    DDPClient(server, path=path).__exit__()


def test_a_websocket_in_sockjs(server: DDPServer) -> None:
    server.control.settings(sockjs_heartbeat=0.01)
    url = f"ws://{server.host}:{server.port}/sockjs/123/abcdefgh/websocket"
    with connect(url, proxy=None) as ws:
        expect(ws.recv(timeout=PATIENCE_S) == "o", "the first frame")
        expect(ws.recv(timeout=PATIENCE_S) == "h", "the heartbeat")
        ws.send(json.dumps([CONNECT]))
        while (frame := ws.recv(timeout=PATIENCE_S)) == "h":
            pass
        (text,) = json.loads(str(frame)[1:])
        expect(json.loads(text)["msg"] == "connected", str(frame))


# As a program


def test_the_program_runs_until_its_input_ends() -> None:
    """And serves apps that are apart from each other."""
    command = [sys.executable, str(ROOT / "Tests/Support/ddp_server")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        port, _, _ = process.stdout.readline().split(maxsplit=2)
        http = f"http://127.0.0.1:{port}"

        def control(action: str, prefix: str = "", **fields: Any) -> Any:
            url = f"{http}{prefix}/control/{action}"
            return requests.post(url, json=fields, timeout=PATIENCE_S).json()

        prefix = f"/apps/{control('new_app')['id']}"
        control("insert", prefix, collection="players", many=[{"_id": "a"}])
        expect(control("find", prefix, collection="players") == [{"_id": "a"}], "the document")
        expect(control("find", collection="players") == [], "another app's document")
        with connect(f"ws://127.0.0.1:{port}{prefix}/websocket", proxy=None) as ws:
            ws.send(CONNECT)
            ws.recv(timeout=PATIENCE_S)
            expect(len(control("sessions", prefix)) == 1, "the session")
            expect(control("wait", prefix, what="out", msg="connected") != [], "the log")
        process.stdin.close()
        expect(process.wait(PATIENCE_S) == 0, "the exit status")
