"""Kinds of channels: private, presence, encrypted, cache; client events and counts."""

from __future__ import annotations

import json

import pytest
from pushers import FACES, Heard, do, opened

import librealtime
from librealtime import PusherMember, SubscriptionError

pytestmark = pytest.mark.parametrize("face", FACES)


def test_presence(run, pusher_server, face):
    server, heard, on_channel = pusher_server, Heard(), Heard()

    async def main():
        names = ("on_member_added", "on_member_removed")
        told = {name: lambda *call, name=name: heard(name, *call) for name in names}
        await server.actions.user(user_id="u-1", user_info={"name": "Ann"})
        async with opened(face, server, **told) as pusher:
            channel = await do(pusher.subscribe, "presence-lobby")
            assert channel.kind == "presence"
            assert channel.members == [PusherMember("u-1", {"name": "Ann"})]
            assert channel.my_id == "u-1" and channel.me == channel.members[0]
            channel.on_member_added = on_channel
            await server.actions.user(user_id="Zoë")
            async with opened(face, server) as other:
                theirs = await do(other.subscribe, "presence-lobby")
                assert await heard.next() == ("on_member_added", channel, PusherMember("Zoë"))
                assert await on_channel.next() == PusherMember("Zoë")
                assert [member.id for member in channel.members] == ["u-1", "Zoë"]
                assert {member.id for member in theirs.members} == {"u-1", "Zoë"}
                assert theirs.my_id == "Zoë"
                assert channel.find_member("Zoë") == PusherMember("Zoë")
                assert channel.find_member("nobody") is None
            assert await heard.next() == ("on_member_removed", channel, PusherMember("Zoë"))
            assert len(channel.members) == 1
            channel.unsubscribe()
            assert channel.members == [] and channel.my_id is None and channel.me is None
            assert channel.find_member("u-1") is None

    run(main())


def test_other_channels_have_no_members(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server) as pusher:
            channel = await do(pusher.subscribe, "private-orders")
            assert channel.kind == "private" and channel.members == []
            assert channel.my_id is None and channel.me is None
            assert channel.subscription_count is None

    run(main())


def test_events_of_members(run, pusher_server, face):
    """The library's own events, beside the callbacks."""
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-1")
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "presence-lobby", wait=False)
            for event in ("subscription_succeeded", "member_added", "member_removed"):
                channel.bind(f"pusher:{event}", heard)
            assert list((await heard.next()).data["presence"]["hash"]) == ["u-1"]
            await server.actions.user(user_id="u-2")
            async with opened(face, server) as other:
                await do(other.subscribe, "presence-lobby")
            for event in ("member_added", "member_removed"):
                told = await heard.next()
                assert told.event == f"pusher:{event}" and told.data["user_id"] == "u-2"

    run(main())


def test_client_events(run, pusher_server, face):
    """They are queued until the channel is subscribed, and do not come back."""
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-2")
        async with opened(face, server) as receiver, opened(face, server) as sender:
            channel = await do(receiver.subscribe, "presence-lobby")
            channel.bind(heard)
            await server.actions.user(user_id="u-1")
            own = await do(sender.subscribe, "presence-lobby", wait=False)
            own.bind("client-typing", heard)
            own.trigger("client-typing", {"on": True, "text": "Zoë"})
            own.trigger("client-typing")
            assert (await heard.next()).event == "pusher:member_added"
            event = await heard.next()
            assert event.data == {"on": True, "text": "Zoë"} and event.user_id == "u-1"
            assert (await heard.next()).data is None

    run(main())
    sent = server.control.log(what="in", event="client-typing")
    assert [json.loads(entry["text"])["data"] for entry in sent] == [
        {"on": True, "text": "Zoë"},
        None,
    ]


def test_client_events_that_are_refused(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server) as pusher:
            private = await do(pusher.subscribe, "private-orders", wait=False)
            for event, data in [("typing", 1), ("client-a\0", 1), ("client-a", {1j})]:
                with pytest.raises((ValueError, TypeError)):
                    private.trigger(event, data)
            with pytest.raises(librealtime.InvalidArgument):
                private.trigger("client-a", float("nan"))
            for name in ("orders", "private-encrypted-orders"):
                channel = await do(pusher.subscribe, name)
                with pytest.raises(librealtime.InvalidArgument):
                    channel.trigger("client-a", 1)

    run(main())


def test_client_events_that_are_dropped(run, pusher_server, face):
    heard = Heard()

    async def main():
        await pusher_server.actions.auth(mode="hang")
        more = {"client_event_queue": 1, "on_trigger_failed": heard}
        async with opened(face, pusher_server, **more) as pusher:
            channel = await do(pusher.subscribe, "private-orders", wait=False)
            channel.trigger("client-a")
            channel.trigger("client-b")
            error = await heard.next()
            assert isinstance(error, librealtime.TriggerError)
            assert error.event in ("client-a", "client-b") and error.channel == "private-orders"
            await pusher_server.actions.release()

    run(main())


def test_counts_of_subscribers(run, pusher_server, face):
    server, heard, on_channel = pusher_server, Heard(), Heard()

    async def main():
        await server.actions.settings(subscription_count=True)
        async with opened(face, server, on_subscription_count=heard) as pusher:
            channel = await do(pusher.subscribe, "orders", wait=False)
            channel.on_subscription_count = on_channel
            assert await heard.next() == (channel, 1)
            assert await on_channel.next() == 1 and channel.subscription_count == 1

    run(main())


def test_encrypted_channels(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "private-encrypted-ledger")
            assert channel.kind == "encrypted"
            channel.bind("a", heard)
            await server.actions.publish("private-encrypted-ledger", "a", {"amount": 12})
            assert (await heard.next()).data == {"amount": 12}

    run(main())


def test_events_that_cannot_be_decrypted(run, pusher_server, face):
    server, heard, failures = pusher_server, Heard(), Heard()

    async def main():
        async with opened(face, server, on_decryption_failed=failures) as pusher:
            channel = await do(pusher.subscribe, "private-encrypted-ledger")
            channel.bind(heard)
            name = "private-encrypted-ledger"
            await server.actions.publish(name, "a", "plain", encrypt=False)
            event = await failures.next()
            assert (event.event, event.channel, event.raw) == ("a", name, "plain")
            await server.actions.publish(name, "b", 1)
            assert (await heard.next()).event == "b"

    run(main())


def test_without_a_server_that_authorizes(run, pusher_server, face):
    """The keys and signatures come from the secret."""
    server, heard = pusher_server, Heard()

    async def main():
        own = {
            "auth_endpoint": None,
            "secret": server.secret,
            "encryption_master_key": server.master_key,
            "user_data": lambda: PusherMember("u-7", {"name": "Zoë"}),
        }
        async with opened(face, server, **own) as pusher:
            lobby = await do(pusher.subscribe, "presence-lobby")
            assert lobby.me == PusherMember("u-7", {"name": "Zoë"})
            channel = await do(pusher.subscribe, "private-encrypted-ledger")
            channel.bind(heard)
            await server.actions.publish("private-encrypted-ledger", "a", {"x": 1})
            assert (await heard.next()).data == {"x": 1}
        own["user_data"] = lambda: "u-8"
        async with opened(face, server, **own) as pusher:
            assert (await do(pusher.subscribe, "presence-lobby")).me == PusherMember("u-8")

    run(main())


def test_cache_channels(run, pusher_server, face):
    """The cached event is not missed, though it comes together with the confirmation."""
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "cache-scores", wait=False)
            channel.bind("pusher:cache_miss", heard)
            await heard.next()
            await server.actions.publish("cache-scores", "goal", 1)
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "cache-scores")
            with_cached = channel.events()
            event = await do(with_cached.recv)
            assert (event.event, event.data) == ("goal", 1)

    run(main())


def test_a_refusal_of_the_server(run, pusher_server, face):
    server, heard, failures = pusher_server, Heard(), Heard()

    async def main():
        await server.actions.settings(dialect="soketi")
        await server.actions.auth(mode="wrong_signature")
        async with opened(face, server, on_subscription_failed=failures) as pusher:
            channel = await do(pusher.subscribe, "private-orders", wait=False)
            channel.bind("pusher:subscription_error", heard)
            with pytest.raises(SubscriptionError) as raised:
                await do(channel.subscribed)
            assert raised.value.channel == "private-orders"
            assert raised.value.http_status == 401 and channel.state == "failed"
            assert await failures.next() is raised.value
            assert (await heard.next()).data["status"] == 401
            assert await do(pusher.subscribe, "private-orders") is channel

    run(main())
