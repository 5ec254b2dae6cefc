"""Texts of a server arrive whole, with the NULs in them."""

from __future__ import annotations

import json

import meteor
import pushers
import pytest

from librealtime import DDPError, PusherWatchlistEvent

WHOLE = "a\0b"


@pytest.mark.parametrize("face", pushers.FACES)
def test_of_a_pusher_server(run, pusher_server, face):
    server, errors, states = pusher_server, pushers.Heard(), pushers.Heard()

    async def main():
        async with pushers.opened(face, server, on_error=errors, on_state=states):
            data = {"code": 4301, "message": WHOLE, "channel": WHOLE}
            await server.actions.send(json.dumps({"event": "pusher:error", "data": data}))
            error = await errors.next()
            assert str(error).startswith(WHOLE) and error.channel == WHOLE
            await server.actions.close(code=4100, reason=WHOLE)
            while (change := await states.next()).close_code != 4100:
                pass
            assert change.close_reason == WHOLE

    run(main())


@pytest.mark.parametrize("face", pushers.FACES)
def test_of_a_pusher_servers_users(run, pusher_server, face):
    server, heard, asked = pusher_server, pushers.Heard(), pushers.Heard()

    def authorize(authorization):
        asked(authorization.socket_id)
        return {"auth": "x"}

    async def main():
        await server.actions.user(user_id="u-1", watchlist=[WHOLE, "bo"])
        async with pushers.opened(face, server, on_watchlist=heard) as pusher:
            await pushers.do(pusher.sign_in)
            assert await heard.next() == PusherWatchlistEvent("offline", (WHOLE, "bo"))
        await server.actions.settings(socket_id=WHOLE)
        async with pushers.opened(face, server, authorizer=authorize) as pusher:
            assert pusher.socket_id == WHOLE
            await pushers.do(pusher.subscribe, "private-a", wait=False)
            assert await asked.next() == WHOLE

    run(main())


@pytest.mark.parametrize("face", pushers.FACES)
def test_of_a_push_service(run, pusher_server, face):
    server, heard = pusher_server, pushers.Heard()

    async def main():
        await server.actions.push(body=json.dumps({"id": WHOLE}))
        pusher = face(server.key, push_url=server.http + "/push", on_push=heard)
        await pushers.do(pusher.push.register, b"\x01")
        assert (await heard.next()).names == (WHOLE,)
        pusher.close()

    run(main())


@pytest.mark.parametrize("face", meteor.FACES)
def test_of_a_meteor_server(run, app, face):
    changes, refusals = meteor.Heard(), meteor.Heard()

    async def main():
        error = {"error": WHOLE, "reason": WHOLE, "details": WHOLE}
        app.control.method("fail", [{"op": "throw", "error": error}])
        app.control.method("enter", [{"op": "return", "value": {"id": WHOLE, "token": "t"}}])
        async with meteor.opened(face, app, on_change=changes, on_refused=refusals) as client:
            with pytest.raises(DDPError) as failed:
                await meteor.do(client.call, "fail")
            assert (failed.value.code, failed.value.reason) == (WHOLE, WHOLE)
            assert failed.value.details == WHOLE
            added = {"msg": "added", "collection": WHOLE, "id": WHOLE, "fields": {}}
            app.control.send(json.dumps(added))
            change = await changes.next()
            assert (change.collection, change.id) == (WHOLE, WHOLE)
            refused = {"msg": "error", "reason": WHOLE, "offendingMessage": {"msg": WHOLE}}
            app.control.send(json.dumps(refused))
            reason, offending = await refusals.next()
            assert reason == WHOLE and json.loads(offending) == {"msg": WHOLE}
            await meteor.do(client.log_in_by, "enter")
            assert client.user_id == WHOLE

    run(main())
