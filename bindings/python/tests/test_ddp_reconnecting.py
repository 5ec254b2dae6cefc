"""What clients of Meteor servers keep while they connect again, and when they do."""

from __future__ import annotations

import asyncio
import json

import pytest
from meteor import FACES, Heard, do, ended, opened

import librealtime
from librealtime import Backoff, DDPError, sync

pytestmark = pytest.mark.parametrize("face", FACES)


def last_entry(app):
    return max(one["number"] for one in app.control.log())


def name_of(face):
    return "ann" if face is sync.DDPClient else "bob"


@pytest.mark.parametrize("resumes", [False, True])
def test_the_users_own_document_stays(run, app, face, resumes):
    async def main():
        # As Meteor 3 does, and a session that 3.5 has kept first removes it.
        app.control.settings(late_user_document=True, resumes=resumes, logins=0)
        changes = Heard()
        async with opened(face, app) as client:
            assert client.user is None
            name = name_of(face) + str(resumes)
            made = await do(client.create_user, "secret", name=name)
            users = client.collection("users")
            while client.user is None:
                await asyncio.sleep(0)
            assert client.user == users.get(made["id"]) == {"_id": made["id"], "username": name}
            client.on_change = changes
            for _ in range(3):
                after = last_entry(app)
                app.control.end("reset")
                # Sent after the document, which follows the login's result.
                fields = {"what": "out", "msg": "added", "id": made["id"], "after": after}
                await do(lambda fields=fields: app.control.wait(**fields))
                await do(client.connect)
                await do(client.subscribe, "all", after)
                assert client.user["username"] == name
            assert [one for one in changes.rest() if one.collection == "users"] == []
            await do(client.log_out)
            assert client.user is None
        assert client.user is None

    try:
        run(main())
    finally:
        app.control.settings(late_user_document=False, resumes=False, logins=5)


def test_an_attempt_that_waits_is_made_when_the_program_reports_a_network(run, app, face):
    async def main():
        status = Heard()
        patient = Backoff(initial_delay=3600, max_delay=3600)
        async with opened(face, app, on_status=status, backoff=patient) as client:
            app.control.end("reset")
            while (await status.next()).status != "waiting":
                pass
            # Nothing has changed for the client, but the program knows better.
            client.network_changed(True)
            assert [(await status.next()).status for _ in range(2)] == ["connecting", "connected"]

    run(main())


def test_connecting_waits_while_there_is_no_network(run, app, face):
    async def main():
        status = Heard()
        patient = Backoff(initial_delay=3600, max_delay=3600)
        async with opened(face, app, on_status=status, backoff=patient) as client:
            app.control.fault(point="handshake", do="reset", times=None)
            app.control.end("reset")
            while (await status.next()).status != "waiting":
                pass
            client.network_changed(False)
            while (await status.next()).status != "offline":
                pass
            app.control.clear()
            connecting = asyncio.ensure_future(do(client.connect))
            # The server would accept an attempt: another client connects meanwhile.
            async with opened(face, app):
                pass
            assert not connecting.done() and client.status == "offline"
            client.network_changed(True)
            await connecting
            assert client.status == "connected"

    run(main())


def test_the_response_that_opened_the_connection(run, app, face):
    async def main():
        client = face(app.url)
        assert client.opened is None
        client.close()
        async with opened(face, app) as client:
            seen = client.opened
            assert isinstance(seen, librealtime.Opened)
            assert seen.response.status_code == 101
            assert seen.response.headers["Upgrade"].lower() == "websocket"
            assert seen.remote_address in app.url
        assert client.opened == seen
        app.control.settings(websocket=False)
        async with opened(face, app) as client:
            assert client.opened.response.status_code == 200

    try:
        run(main())
    finally:
        app.control.settings(websocket=True)


def test_how_often_calls_are_repeated(run, app, face):
    async def main():
        control = app.control
        control.method("slow", [{"op": "hold"}])
        after = last_entry(app)
        options = {"max_call_repeats": 1, "no_retry_methods": ["pay"]}
        async with opened(face, app, **options) as client:
            slow, pay = client.send("slow"), client.send("pay")
            for number in (1, 2):
                fields = {"what": "in", "msg": "method", "id": "1", "after": after}
                await do(lambda number=number, fields=fields: control.wait(number, **fields))
                control.end("reset")
                await do(client.connect)
            for call in (pay, slow):
                with pytest.raises(DDPError) as raised:
                    await ended(call)
                assert raised.value.code == "invocation-failed"
            assert "2 times (max_call_repeats)" in str(raised.value)
        assert len(control.log(after, what="in", msg="method", id="2")) == 1
        control.release()

    run(main())


def test_writes_by_the_async_methods(run, app, face):
    async def main():
        app.control.collection("players", insert=True, update=True, remove=True)
        async with opened(face, app, async_methods=True) as client:
            players = client.collection("players")
            await do(client.subscribe, "all")
            made = players.insert({"name": "Cleo"})
            await ended(made)
            await ended(players.update(made.stub_value, {"$set": {"name": "Cid"}}))
            assert players.get(made.stub_value)["name"] == "Cid"
            await ended(players.remove(made.stub_value))
        log = app.control.log(what="in", msg="method")
        called = [json.loads(one["text"])["method"] for one in log]
        assert called[-3:] == [f"/players/{name}Async" for name in ("insert", "update", "remove")]

    run(main())


@pytest.mark.parametrize("reports", [False, True])
def test_own_stops_are_reported_if_wanted(run, app, face, reports):
    async def main():
        stops = Heard()
        async with opened(face, app, report_own_stops=reports) as client:
            first = await do(client.subscribe, "all", on_stopped=stops)
            second = await do(client.subscribe, "all", on_stopped=stops)
            first.release()
            second.stop()
            if reports:
                assert [await stops.next(), await stops.next()] == [None, None]
            # The server's answer comes later.
            await do(client.subscribe, "all", 1)
            assert stops.rest() == [] and len(client._pending) == 1

    run(main())
