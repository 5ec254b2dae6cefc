"""Sign-in, the user's own events, the watchlist, and push interests."""

from __future__ import annotations

import asyncio
import json

import pytest
from pushers import FACES, Heard, do, opened, options

import librealtime
from librealtime import (
    PusherEvent,
    PusherMember,
    PusherWatchlistEvent,
    SignInError,
    SubscriptionError,
)

pytestmark = pytest.mark.parametrize("face", FACES)


def test_signing_in(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-1", user_info={"name": "Zoë"})
        async with opened(face, server, on_signed_in=heard) as pusher:
            assert pusher.user.id is None and "not signed in" in repr(pusher.user)
            user = await do(pusher.sign_in)
            assert user is pusher.user and user.is_signed_in and user.id == "u-1"
            assert user.data["user_info"] == {"name": "Zoë"} and "u-1" in repr(user)
            assert await heard.next() is user
            user.bind("news", heard)
            stream = user.events()
            name = "#server-to-user-u-1"
            await server.actions.wait(what="in", event="pusher:subscribe", channel=name)
            # The server has processed it when it answers the next message.
            await do(pusher.subscribe, "mark")
            await server.actions.publish(name, "news", {"a": 1})
            event = await heard.next()
            assert event == PusherEvent("news", None, '{"a":1}') and event.data == {"a": 1}
            assert await do(stream.recv) == event
            # It signs in again after a reconnect.
            await server.actions.close(code=4200)
            assert await heard.next() is user
        assert user.id is None

    run(main())


def test_signing_in_before_connecting(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-1")
        pusher = face(server.key, **options(server, on_signed_in=heard))
        with pytest.raises(librealtime.InvalidState, match="connect was not called"):
            await do(pusher.sign_in)
        await do(pusher.sign_in, wait=False)
        await do(pusher.connect)
        assert (await heard.next()).id == "u-1"
        pusher.close()

    run(main())


def test_a_refused_sign_in(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.auth(mode="deny", body="not you")
        async with opened(face, server, on_sign_in_failed=heard) as pusher:
            with pytest.raises(SignInError) as raised:
                await do(pusher.sign_in)
            error = raised.value
            assert (error.http_status, error.body) == (403, "not you")
            assert error.response.status_code == 403
            assert await heard.next() is error and pusher.state == "connected"
            assert (await do(pusher.sign_in)).is_signed_in

    run(main())


def test_signing_out(run, pusher_server, face):
    server, heard = pusher_server, Heard()
    user_channel = "#server-to-user-u-1"

    async def main():
        await server.actions.user(user_id="u-1")
        async with opened(face, server, on_signed_in=heard) as pusher:
            pusher.sign_out()
            user = await do(pusher.sign_in)
            assert await heard.next() is user
            user.bind("news", heard)
            # The server has subscribed the user's channel when it answers the next message.
            await do(pusher.subscribe, "first")
            pusher.sign_out()
            assert (user.id, user.data, user.is_signed_in) == (None, None, False)
            mark = await do(pusher.subscribe, "second")
            gone = await server.actions.log(event="pusher:unsubscribe", channel=user_channel)
            assert len(gone) == 1
            # A reconnect does not sign in.
            mark.bind("news", heard)
            subscribed = {"event": "pusher:subscribe", "channel": "second"}
            await server.actions.close(code=4200)
            await server.actions.wait(what="in", count=2, **subscribed)
            await server.actions.publish(user_channel, "news", 1)
            await server.actions.publish("second", "news", 2)
            assert (await heard.next()).data == 2 and user.id is None
            assert (await do(pusher.sign_in)).id == "u-1"

    run(main())


def test_signing_out_ends_the_wait(run, pusher_server, face):
    server = pusher_server

    async def main():
        await server.actions.auth(mode="hang")
        async with opened(face, server) as pusher:
            waiting = asyncio.ensure_future(do(pusher.sign_in))
            await server.actions.wait_held()
            pusher.sign_out()
            with pytest.raises(SignInError, match="signed out") as raised:
                await waiting
            assert raised.value.name == "RT_ERROR_CANCELLED"
            assert pusher.state == "connected"

    run(main())


@pytest.mark.parametrize("end", ["disconnect", "close"])
def test_the_end_of_the_connection_ends_the_wait(run, pusher_server, face, end):
    server = pusher_server

    async def main():
        await server.actions.auth(mode="hang")
        async with opened(face, server) as pusher:
            waiting = asyncio.ensure_future(do(pusher.sign_in))
            await server.actions.wait_held()
            if end == "close":
                pusher.close()
            else:
                await do(pusher.disconnect)
            with pytest.raises(librealtime.StreamEnded):
                await waiting

    run(main())


def test_every_call_gets_the_result(run, pusher_server, face):
    """One that gave up is left out."""
    server = pusher_server

    async def main():
        await server.actions.user(user_id="u-1")
        await server.actions.auth(mode="hang")
        async with opened(face, server) as pusher:
            with pytest.raises(TimeoutError, match="not signed in within"):
                await do(pusher.sign_in, timeout=0.01)
            waiting = [asyncio.ensure_future(do(pusher.sign_in)) for _ in range(3)]
            await server.actions.wait_held()
            await server.actions.release()
            assert [(await one).id for one in waiting] == ["u-1"] * 3

    run(main())


def test_signing_in_directly_after_signing_out(run, pusher_server, face):
    """The report of the sign-out does not end the wait of the new sign-in."""
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-1")
        await server.actions.auth(mode="hang")
        async with opened(face, server, on_sign_in_failed=heard) as pusher:
            first = asyncio.ensure_future(do(pusher.sign_in))
            await server.actions.wait_held()
            pusher.sign_out()
            assert (await do(pusher.sign_in)).id == "u-1"
            with pytest.raises(SignInError, match="signed out") as raised:
                await first
            assert raised.value.name == "RT_ERROR_CANCELLED"
            assert (await heard.next()).name == "RT_ERROR_CANCELLED"
            # A sign-in that the server has confirmed is not awaited again.
            pusher.sign_out()
            assert (await do(pusher.sign_in)).is_signed_in and heard.rest() == []

    run(main())


def test_signing_in_with_the_secret(run, pusher_server, face):
    more = {"auth_endpoint": None, "user_auth_endpoint": None, "secret": pusher_server.secret}

    async def main():
        me = PusherMember("u-6", {"name": "Zoë"})
        async with opened(face, pusher_server, user_data=lambda: me, **more) as pusher:
            user = await do(pusher.sign_in)
            assert user.id == "u-6" and user.data["user_info"] == {"name": "Zoë"}

    run(main())


@pytest.mark.parametrize("what", ["sign_in", "subscribe"])
def test_a_user_that_cannot_be_named(run, pusher_server, face, what):
    """What ``user_data`` raises fails the sign-in, or the subscription of a presence channel."""
    more = {"auth_endpoint": None, "user_auth_endpoint": None, "secret": pusher_server.secret}
    cause = LookupError("nobody")
    errors = [cause]

    def names():
        if errors:
            raise errors.pop()
        return "u-6"

    async def main():
        async with opened(face, pusher_server, user_data=names, **more) as pusher:
            arguments = ["presence-lobby"] if what == "subscribe" else []
            wanted = "user_data failed: nobody"
            with pytest.raises((SignInError, SubscriptionError), match=wanted) as raised:
                await do(getattr(pusher, what), *arguments)
            assert raised.value.__cause__ is cause and raised.value.name == "RT_ERROR_AUTH"
            # The next attempt asks again.
            await do(getattr(pusher, what), *arguments)
            errors.append(TypeError())
            pusher.sign_out()
            with pytest.raises(SignInError, match=r"user_data failed: TypeError\(\)"):
                await do(pusher.sign_in)

    run(main())


def test_a_user_of_the_wrong_type(run, pusher_server, face):
    more = {"auth_endpoint": None, "user_auth_endpoint": None, "secret": pusher_server.secret}

    async def main():
        async with opened(face, pusher_server, user_data=lambda: 6, **more) as pusher:
            with pytest.raises(SignInError, match="user_data returned an int") as raised:
                await do(pusher.sign_in)
            assert isinstance(raised.value.__cause__, TypeError)

    run(main())


def test_an_authorizer_of_users(run, pusher_server, face):
    from pusher_server.signatures import user_auth

    server = pusher_server

    def authorize(request):
        assert request.is_user and request.channels == () and request.channel == ""
        data = json.dumps({"id": "u-4"})
        return {
            "auth": user_auth(server.key, server.secret, request.socket_id, data),
            "user_data": data,
        }

    async def main():
        more = {"auth_endpoint": None, "user_auth_endpoint": None, "authorizer": authorize}
        async with opened(face, server, **more) as pusher:
            assert (await do(pusher.sign_in)).id == "u-4"

    run(main())


def test_an_authorizer_of_users_that_fails(run, pusher_server, face):
    cause = LookupError("nobody")

    def fails(request):
        raise cause

    async def main():
        async with opened(face, pusher_server, authorizer=fails) as pusher:
            with pytest.raises(SignInError, match="nobody") as raised:
                await do(pusher.sign_in)
            assert raised.value.__cause__ is cause

    run(main())


def test_the_watchlist(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.user(user_id="u-1", watchlist=["u-2", "u-3"])
        async with opened(face, server, on_watchlist=heard) as pusher:
            await do(pusher.sign_in)
            assert (await heard.next()).name == "offline"
            await server.actions.user(user_id="u-2")
            async with opened(face, server) as other:
                await do(other.sign_in)
                assert await heard.next() == PusherWatchlistEvent("online", ("u-2",))
            assert await heard.next() == PusherWatchlistEvent("offline", ("u-2",))

    run(main())
