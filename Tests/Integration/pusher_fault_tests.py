"""The Pusher server of the tests: the faults that tests order, and how they do that."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import requests
from harness import PATIENCE_S, ROOT, expect
from pusher_client import PusherClient
from pusher_server import PusherServer
from pusher_server.signatures import channel_auth
from websockets.exceptions import InvalidMessage, InvalidStatus

SUCCEEDED = "pusher_internal:subscription_succeeded"
ESTABLISHED = "pusher:connection_established"
SECRET, LEDGER = "private-orders", "private-encrypted-ledger"


@pytest.fixture
def server(pusher_server: PusherServer) -> PusherServer:
    return pusher_server


# Faults


def test_handshakes_fail(server: PusherServer) -> None:
    server.control.fault(point="handshake", do="status", code=503, text="later")
    with pytest.raises(InvalidStatus) as refused:
        PusherClient(server)
    expect(refused.value.response.status_code == 503, f"{refused.value}")
    for how in ("end", "reset"):
        server.control.fault(point="handshake", do=how)
        with pytest.raises((InvalidMessage, ConnectionError)):
            PusherClient(server)
    server.control.fault(point="handshake", do="ignore")
    with pytest.raises(TimeoutError):
        PusherClient(server, open_timeout=0.1)
    with PusherClient(server) as client:
        client.silence()


@pytest.mark.parametrize("code", [None, 1001, 4000, 4003, 4004, 4100, 4200, 4201])
def test_close_codes(server: PusherServer, code: int | None) -> None:
    """Instead of the first message, and at any time."""
    server.control.fault(point="sending", event=ESTABLISHED, do="close", code=code or 0)
    with PusherClient(server, key=server.key) as client:
        expect(client.end() == (code or 1005, ""), f"{client.ws.close_code}")
    with PusherClient(server) as client, PusherClient(server) as other:
        reason = "a reason" if code else ""
        server.control.close(code, reason, connection=client.socket_id)
        expect(client.end() == (code or 1005, reason), f"{client.ws.close_code}")
        other.silence()


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("point", ["received", "sending", "sent"])
def test_drops(server: PusherServer, how: str, point: str) -> None:
    event = "pusher:subscribe" if point == "received" else SUCCEEDED
    server.control.fault(point=point, event=event, channel="ch*", do=how)
    with PusherClient(server) as client:
        client.subscribe("chat")
        if point != "sent":
            expect(client.end()[0] == 1006, f"{client.ws.close_code}")
        elif how == "end":  # A reset may overtake the message.
            client.next(SUCCEEDED, "chat")
            expect(client.end()[0] == 1006, f"{client.ws.close_code}")
        (end,) = server.control.wait(what="end")
    sent = server.control.log(what="out", event=SUCCEEDED)
    expect(len(sent) == (point == "sent"), f"{sent}")
    expect(end["connection"] == 1, f"{end}")


def test_messages_are_changed(server: PusherServer) -> None:
    with PusherClient(server) as client:
        server.control.fault(point="sending", event=SUCCEEDED, do="ignore")
        client.subscribe("one")
        client.silence()
        server.control.fault(point="sending", event=SUCCEEDED, do="replace", text='{"event":"a"}')
        client.subscribe("two")
        client.next("a")
        server.control.fault(point="sending", event=SUCCEEDED, do="send", text='{"event":"b"}')
        client.subscribe("three")
        client.next("b")
        client.next(SUCCEEDED, "three")
        server.control.fault(point="sent", event=SUCCEEDED, do="send", text='{"event":"c"}')
        client.join("four")
        client.next("c")
        server.control.fault(point="received", event="pusher:ping", do="ignore", skip=1, times=2)
        client.silence()
        for _ in range(2):
            client.send("pusher:ping", {})
        client.silence()


def test_messages_are_held(server: PusherServer) -> None:
    with PusherClient(server) as client:
        server.control.fault(point="sending", event=SUCCEEDED, do="hold")
        client.subscribe("one")
        client.join("two")
        client.silence()
        expect(server.control.release() == 1, "one message")
        client.next(SUCCEEDED, "one")
        server.control.fault(point="received", event="pusher:subscribe", do="delay", seconds=0.01)
        client.subscribe("three")
        client.next(SUCCEEDED, "three")


def test_stalled_connections(server: PusherServer) -> None:
    with PusherClient(server, ping_interval=None, close_timeout=0.1) as client:
        server.control.end("stall")
        expect(not client.ws.ping().wait(0.2), "a pong")


def test_servers_without_pongs(server: PusherServer) -> None:
    server.control.settings(answers_pings=False)
    with PusherClient(server, ping_interval=None) as client:
        client.send("pusher:ping", {})
        pong = client.ws.ping()
        client.join("chat")
        expect(not pong.is_set(), "a pong")


def test_frames_by_hand(server: PusherServer) -> None:
    with PusherClient(server) as client:
        server.control.send("no JSON")
        expect(client.ws.recv(timeout=PATIENCE_S) == "no JSON", "text")
        server.control.send_frame("binary", "\x00\xff")
        expect(client.ws.recv(timeout=PATIENCE_S) == b"\x00\xff", "binary")
        server.control.send_frame("ping", "here")
        (pong,) = server.control.wait(what="in", kind="pong")
        expect(pong["text"] == "here", f"{pong}")
        server.control.send_frame("raw", "\x83\x00")  # The opcode 3 does not exist.
        expect(client.end()[0] == 1006 and client.ws.close_code == 1006, "end")
    (close,) = server.control.log(what="in", kind="close")
    expect(close["code"] == 1002, f"{close}")


def test_crash(server: PusherServer) -> None:
    with PusherClient(server) as one, PusherClient(server) as two:
        server.control.end("reset")
        expect([one.end()[0], two.end()[0]] == [1006, 1006], "codes")
    server.control.wait_connections(0)


# Authorization endpoints


def ask(server: PusherServer, *names: str, **more: str) -> requests.Response:
    form = {"socket_id": "1.2", **more}
    if len(names) == 1:
        form["channel_name"] = names[0]
    else:
        form |= {f"channel_name[{number}]": name for number, name in enumerate(names)}
    return requests.post(f"{server.http}/pusher/auth", form, timeout=PATIENCE_S)


def test_endpoint(server: PusherServer) -> None:
    auth = channel_auth(server.key, server.secret, "1.2", SECRET)
    expect(ask(server, SECRET).json() == {"auth": auth}, "private")
    server.control.user(user_id="u-1", user_info={"name": "Zoë"})
    answer = ask(server, "presence-lobby").json()
    data = answer["channel_data"]
    expect(json.loads(data) == {"user_id": "u-1", "user_info": {"name": "Zoë"}}, data)
    auth = channel_auth(server.key, server.secret, "1.2", "presence-lobby", data)
    expect(answer["auth"] == auth, f"{answer}")
    answer = ask(server, "presence-lobby", user_id="u-2").json()
    expect(json.loads(answer["channel_data"])["user_id"] == "u-2", f"{answer}")
    expect(sorted(ask(server, LEDGER).json()) == ["auth", "shared_secret"], "encrypted")
    user = requests.post(f"{server.http}/pusher/user-auth", {"socket_id": "1.2"}, timeout=60).json()
    expect(json.loads(user["user_data"])["id"] == "u-1", f"{user}")
    asked = [one["channels"] for one in server.control.log(what="auth")]
    lobby = ["presence-lobby"]
    expect(asked == [[SECRET], lobby, lobby, [LEDGER], []], f"{asked}")


def members(response: requests.Response) -> list[str]:
    return sorted(response.json())


@pytest.mark.parametrize(
    ("plan", "check"),
    [
        ({"mode": "deny"}, lambda one: (one.status_code, one.text) == (403, "denied")),
        ({"mode": "deny", "status": 401, "body": "no"}, lambda one: one.text == "no"),
        ({"mode": "error"}, lambda one: one.status_code == 500),
        ({"mode": "ok", "body": "[]"}, lambda one: one.text == "[]"),
        ({"mode": "bad_json"}, lambda one: one.ok and not one.text.startswith("{")),
        ({"mode": "no_auth"}, lambda one: members(one) == ["shared_secret"]),
        ({"mode": "no_shared_secret"}, lambda one: members(one) == ["auth"]),
    ],
)
def test_endpoint_fails(
    server: PusherServer, plan: dict[str, Any], check: Callable[[requests.Response], bool]
) -> None:
    server.control.auth(**plan, times=2)
    for _ in range(2):
        expect(check(ask(server, LEDGER)), f"{plan}")
    expect(members(ask(server, LEDGER)) == ["auth", "shared_secret"], "afterwards")


def test_endpoint_gives_wrong_values(server: PusherServer) -> None:
    right = ask(server, LEDGER).json()
    for mode, name in [("wrong_signature", "auth"), ("wrong_shared_secret", "shared_secret")]:
        server.control.auth(mode=mode)
        wrong = ask(server, LEDGER).json()
        differ = [key for key in right if wrong[key] != right[key]]
        expect(differ == [name], f"{mode}: {differ}")
    server.control.auth(mode="no_channel_data")
    expect(members(ask(server, "presence-lobby")) == ["auth"], "channel data")


def test_endpoint_hangs_or_drops(server: PusherServer) -> None:
    server.control.auth(mode="drop")
    with pytest.raises(requests.ConnectionError):
        ask(server, SECRET)
    server.control.auth(mode="hang")
    form = {"socket_id": "1.2", "channel_name": SECRET}
    with pytest.raises(requests.Timeout):
        requests.post(f"{server.http}/pusher/auth", form, timeout=(PATIENCE_S, 0.1))
    server.control.wait_held()
    expect(server.control.release() == 1, "one request")


def test_batches(server: PusherServer) -> None:
    """Both forms of the answer; refusals of one channel and of the whole request."""
    names = [SECRET, "presence-lobby", LEDGER]
    whole = ask(server, *names).json()
    expect(list(whole) == names, f"{whole}")
    expect(whole[SECRET] == ask(server, SECRET).json(), f"{whole[SECRET]}")
    expect("shared_secret" in whole[LEDGER], f"{whole[LEDGER]}")
    server.control.wrap_batches()
    wrapped = ask(server, *names).json()
    expect(wrapped[SECRET] == {"status": 200, "data": whole[SECRET]}, f"{wrapped[SECRET]}")
    server.control.auth(mode="deny", channel=LEDGER, body="not you")
    mixed = ask(server, *names).json()
    expect(mixed[LEDGER] == {"status": 403, "data": "not you"}, f"{mixed[LEDGER]}")
    expect(mixed[SECRET]["status"] == 200, f"{mixed[SECRET]}")
    server.control.auth(mode="deny")
    expect(ask(server, *names).status_code == 403, "the whole request")


# Push notifications


def test_interests(server: PusherServer) -> None:
    key = {"app_key": server.key}

    def call(method: str, path: str, **fields: Any) -> requests.Response:
        url = f"{server.http}/push/clients{path}"
        return requests.request(method, url, json={**key, **fields}, timeout=PATIENCE_S)

    device = {"platform_type": "apns", "token": "00ff"}
    registered = call("POST", "", **device)
    answer = registered.json()
    path = f"/{answer.pop('id')}/interests/"
    expect(registered.status_code == 201, registered.text)
    expect(answer == {"pusher_app_key": server.key, **device}, f"{answer}")
    server.control.push(status=503, body="later")
    expect(call("POST", path + "news").status_code == 503, "as planned")
    for name in ("a", "b%2Fc", "d"):
        expect(call("POST", path + name).status_code == 204, name)
    call("DELETE", path + "a")
    expect(
        list(server.control.interests().values()) == [["b/c", "d"]], f"{server.control.interests()}"
    )
    call("PUT", path, interests=["e"])
    expect(list(server.control.interests().values()) == [["e"]], "interests")
    expect(call("POST", "/nobody/interests/a").status_code == 404, "an unknown device")
    key["app_key"] = "another"
    expect(call("POST", "").status_code == 401, "an unknown app")


# Control


def test_publishing_by_control(server: PusherServer) -> None:
    with PusherClient(server) as client:
        client.join("chat")
        server.control.publish("chat", "plain", {"a": 1}, encode=False)
        expect(client.next("plain", "chat")["data"] == {"a": 1}, "an object")
        server.control.publish("chat", "many", [1], count=100)
        for _ in range(100):
            expect(client.next("many", "chat")["data"] == "[1]", "a string")


def control(server: PusherServer, action: str, **fields: Any) -> requests.Response:
    return requests.post(f"{server.http}{action}", json=fields, timeout=PATIENCE_S)


def test_control_over_http(server: PusherServer) -> None:
    settings = control(server, "/control/settings", dialect="soketi", activity_timeout=5).json()
    expect((settings["dialect"], settings["activity_timeout"]) == ("soketi", 5), f"{settings}")
    with PusherClient(server) as client:
        client.join("chat")
        control(server, "/control/publish", channel="chat", event="hello", data=[1])
        expect(client.data("hello", "chat") == [1], "data")
        (one,) = control(server, "/control/connections").json()
        expect((one["socket_id"], one["channels"]) == (client.socket_id, ["chat"]), f"{one}")
    found = control(server, "/control/wait", what="out", event="hello").json()
    expect(found[0]["channel"] == "chat", f"{found}")
    late = control(server, "/control/wait", what="out", event="other", timeout=0.01)
    expect(late.status_code == 504 and "0 of 1 entries" in late.text, late.text)
    for action, fields in [
        ("settings", {"dialect": "another"}),
        ("settings", {"speed": 1}),
        ("fault", {"point": "nowhere", "do": "end"}),
        ("fault", {"point": "sent", "do": "nothing"}),
        ("auth", {"mode": "maybe"}),
        ("auth", {"what": "maybe"}),
    ]:
        wrong = control(server, f"/control/{action}", **fields)
        expect(wrong.status_code == 400, f"{action} {fields}: {wrong.status_code}")
    for action in ("unknown", "_chosen"):
        expect(control(server, f"/control/{action}").status_code == 404, action)


def test_tls_and_subprotocol(server: PusherServer) -> None:
    assert server.tls is not None
    context = ssl.create_default_context(cafile=str(server.tls.ca_file))
    server.control.settings(tls_only=True, subprotocols=["pusher-channels-protocol-7"])
    names = ["another", "pusher-channels-protocol-7"]
    with PusherClient(server, ssl=context, subprotocols=names) as client:
        expect(client.ws.subprotocol == names[1], f"{client.ws.subprotocol}")
        server.control.end("reset")
        expect(client.end()[0] == 1006, f"{client.ws.close_code}")
    expect(server.control.log(what="open")[0]["tls"], "log")


def test_apps_are_separate(server: PusherServer) -> None:
    app = control(server, "/control/new_app").json()
    ours = f"/apps/{app['id']}"
    control(server, f"{ours}/control/settings", activity_timeout=7)
    with PusherClient(server) as one, PusherClient(server, key=app["key"]) as two:
        two.establish()
        expect(two.established["activity_timeout"] == 7, f"{two.established}")
        for client in (one, two):
            client.join("chat")
        control(server, f"{ours}/control/publish", channel="chat", event="hello")
        two.next("hello", "chat")
        one.silence()
        form = {"socket_id": two.socket_id, "channel_name": SECRET}
        url = f"{server.http}{ours}/pusher/auth"
        auth = requests.post(url, form, timeout=PATIENCE_S).json()["auth"]
        wanted = channel_auth(app["key"], app["secret"], two.socket_id, SECRET)
        expect(auth == wanted, auth)
    expect(control(server, "/apps/9/control/log").status_code == 404, "no such app")


async def test_actions_for_coroutines(server: PusherServer) -> None:
    requests.post(f"{server.http}/pusher/auth", timeout=PATIENCE_S)
    (request,) = await server.actions.wait(what="auth")
    expect(request["status"] == 400, f"{request}")


def test_program() -> None:
    """It ends with its standard input."""
    command = [sys.executable, str(ROOT / "Tests/Support/pusher_server"), "--dialect", "reverb"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port, tls_port, ca_file = process.stdout.readline().split()
        for scheme, number, verify in [("http", port, True), ("https", tls_port, ca_file)]:
            url = f"{scheme}://localhost:{number}/control/settings"
            settings = requests.post(url, timeout=PATIENCE_S, verify=verify).json()
            expect(settings["dialect"] == "reverb", f"{settings}")
        process.communicate(timeout=PATIENCE_S)
    expect(process.returncode == 0, f"{process.returncode}")
