"""Collections whose documents are events, as Rocket.Chat's servers send them."""

from __future__ import annotations

import asyncio
import json

import pytest
from meteor import FACES, Heard, do, offline, opened

import librealtime
from librealtime import DDPError


def message(kind, **more):
    return json.dumps({"msg": kind, "collection": "stream-room", "id": "id", **more})


@pytest.mark.parametrize("face", FACES)
def test_each_message_is_delivered(run, app, face):
    async def main():
        events, changes = Heard(), Heard()
        async with opened(face, app, on_change=changes) as client:
            client.set_stream("stream-room", events)
            await do(client.subscribe, "all")
            same = {"eventName": "GENERAL", "args": [{"_id": "m"}, True]}
            for _ in range(3):
                app.control.send(message("changed", fields=same))
            app.control.send(message("added", fields={"n": {"$date": 0}}))
            app.control.send(message("changed", cleared=["n"]))
            app.control.send(message("removed"))
            app.control.insert("players", {"_id": "c", "name": "Cleo"})
            for _ in range(3):
                event = await events.next()
                assert (event.kind, event.collection, event.id) == ("changed", "stream-room", "id")
                assert (event.fields, event.cleared, event.is_last) == (same, [], True)
            added, cleared, removed = [await events.next() for _ in range(3)]
            assert added.kind == "added" and added.fields["n"].year == 1970
            assert cleared.cleared == ["n"] and removed.kind == "removed"
            while (await changes.next()).id != "c":
                pass
            assert client.collection("stream-room").find() == []
            # And then it is one like the others.
            client.set_stream("stream-room", None)
            app.control.send(message("changed", fields=same))
            assert (await changes.next()).fields == same
            assert events.rest() == [] and len(client.collection("stream-room")) == 1

    run(main())


def test_functions_may_be_coroutines(run, app):
    async def main():
        seen, done = [], asyncio.Event()
        async with opened(librealtime.DDPClient, app) as client:

            @client.stream("stream-room")
            async def take(event):
                await asyncio.sleep(0)
                seen.append(event.fields["n"])
                if len(seen) == 3:
                    done.set()

            for n in range(3):
                app.control.send(message("changed", fields={"n": n}))
            await done.wait()
        assert seen == [0, 1, 2]

    run(main())


@pytest.mark.parametrize("face", FACES)
def test_what_cannot_be_a_stream(run, face):
    async def main():
        async with offline(face) as client:
            with pytest.raises(TypeError, match="a function is expected"):
                client.set_stream("c", 5)
            with pytest.raises(TypeError, match="a function is expected"):
                client.stream("c")(None)
            with pytest.raises(TypeError, match="collection is"):
                client.set_stream(5, print)
            client.set_stream("c", None)
        with pytest.raises(DDPError, match="the client is closed"):
            client.set_stream("c", print)

    run(main())
