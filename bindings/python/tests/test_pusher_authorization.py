"""Authorization of channels by an endpoint, by a function, or with a value at hand."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import urllib.parse

import pytest
from pusher_server.signatures import channel_auth
from pushers import FACES, Heard, do, opened, options
from wire import read

import librealtime
from librealtime import Pusher, SubscriptionError, sync

pytestmark = pytest.mark.parametrize("face", FACES)


def signed(server, request, name, data=None):
    """What an authorization server answers."""
    auth = channel_auth(server.key, server.secret, request.socket_id, name, data)
    return {"auth": auth, "channel_data": data, "shared_secret": None}


def test_a_refusal(run, pusher_server, face):
    server = pusher_server

    async def main():
        await server.actions.auth(mode="deny", body="not you", times=2)
        async with opened(face, server) as pusher:
            with pytest.raises(SubscriptionError) as raised:
                await do(pusher.subscribe, "private-orders")
            error = raised.value
            assert (error.http_status, error.body) == (403, "not you")
            assert error.response.status_code == 403 and error.response.body == b"not you"
            assert error.response.headers["Content-Type"].startswith("application/json")
            channel = pusher.channel("private-orders")
            assert channel.state == "failed" and pusher.state == "connected"
            with pytest.raises(SubscriptionError):
                await do(pusher.subscribe, "private-orders")
            assert await do(pusher.subscribe, "private-orders") is channel

    run(main())


def test_a_preparation_that_hangs(run, pusher_server, face):
    """``auth_timeout`` ends it, with asyncio; the next attempt is a new one."""
    if face is sync.Pusher:
        pytest.skip("nothing can interrupt a plain function")
    cancelled, hangs = Heard(), [True]

    async def prepare(request):
        if hangs.pop():
            try:
                await asyncio.Event().wait()
            finally:
                cancelled(request.channel or "the user")

    async def main():
        async with opened(
            face, pusher_server, prepare_authorization=prepare, auth_timeout=0.05
        ) as pusher:
            said = r"prepare_authorization failed: it has not returned within 0\.05 s"
            with pytest.raises(SubscriptionError, match=said) as raised:
                await pusher.subscribe("private-orders")
            assert isinstance(raised.value.__cause__, librealtime.ConnectionTimeout)
            hangs.append(False)
            assert (await pusher.subscribe("private-orders")).is_subscribed
            hangs.append(True)
            with pytest.raises(librealtime.SignInError, match=said):
                await pusher.sign_in()
        assert cancelled.rest() == ["private-orders", "the user"]

    run(main())


def test_an_answer_that_never_comes(run, pusher_server, face):
    """``auth_timeout`` ends the wait for an authorizer, too, with asyncio."""
    if face is sync.Pusher:
        pytest.skip("nothing can interrupt a plain function")

    async def hang(*_):
        await asyncio.Event().wait()

    async def main():
        async with opened(face, pusher_server, authorizer=hang, auth_timeout=0.05) as pusher:
            with pytest.raises(SubscriptionError, match=r"within 0\.05 s \(auth_timeout\)"):
                await pusher.subscribe("presence-lobby")

    run(main())


def test_what_a_preparation_raises_late(run, pusher_server, face):
    """Its own TimeoutError does not mean that the library has ended it."""
    if face is sync.Pusher:
        pytest.skip("a coroutine function")

    async def prepare(request):
        await asyncio.sleep(0)
        raise asyncio.TimeoutError("the vault is slow")

    async def main():
        async with opened(face, pusher_server, prepare_authorization=prepare) as pusher:
            with pytest.raises(SubscriptionError, match="failed: the vault is slow") as raised:
                await pusher.subscribe("private-orders")
            assert not isinstance(raised.value.__cause__, librealtime.RealtimeError)

    run(main())


def test_no_authorization(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server, auth_endpoint=None) as pusher:
            with pytest.raises(SubscriptionError) as raised:
                await do(pusher.subscribe, "private-orders")
            assert raised.value.http_status == 0 and raised.value.response is None

    run(main())


def test_an_endpoint_that_ends_a_kept_connection(run, pusher_server, face, serve):
    """The request is sent again: it only signs a text (R6)."""
    server, asked = pusher_server, []

    def answer(connection, number):
        while request := read(connection):
            form = dict(urllib.parse.parse_qsl(request.partition(b"\r\n\r\n")[2].decode()))
            asked.append(form["channel_name"])
            if len(asked) == 2:
                return
            auth = channel_auth(server.key, server.secret, form["socket_id"], asked[-1], None)
            body = json.dumps({"auth": auth}).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async def main():
        async with opened(face, server, auth_endpoint=serve(answer).url) as pusher:
            for name in ("private-one", "private-two"):
                await do(pusher.subscribe, name)

    run(main())
    assert asked == ["private-one", "private-two", "private-two"]


def test_headers_and_parameters(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        def prepare(preparation):
            heard(preparation)
            preparation.set_header("X-Token", f"for {preparation.channel}")
            preparation.add_query("a", "b c")
            return preparation.channel != "private-no"

        more = {"auth_headers": {"X-A": "b"}, "auth_params": {"lang": "fr"}}
        async with opened(face, server, prepare_authorization=prepare, **more) as pusher:
            await do(pusher.subscribe, "private-orders")
            with pytest.raises(SubscriptionError):
                await do(pusher.subscribe, "private-no")
            preparation = await heard.next()
            assert preparation.channels == ("private-orders",) and not preparation.is_user
            assert preparation.socket_id == pusher.socket_id
            with pytest.raises(librealtime.InvalidState):
                preparation.set_header("X-Late", "x")

    run(main())
    [entry] = server.control.log(what="auth")
    assert entry["headers"]["X-A"] == "b" and entry["form"]["lang"] == "fr"
    assert entry["headers"]["X-Token"] == "for private-orders"


def test_parameters_that_change(run, pusher_server, face):
    """For a channel and for the user; not to a body that is not a form."""
    server, heard = pusher_server, Heard()

    async def main():
        def prepare(preparation):
            name = "user" if preparation.is_user else preparation.channel
            if name == "private-json":
                preparation.set_body("{}", "application/json")
                with pytest.raises(librealtime.InvalidState):
                    preparation.add_form_parameter("a", "b")
                heard(True)
                return False
            preparation.add_form_parameter("user_id", f"{name} é&")
            return True

        async with opened(face, server, prepare_authorization=prepare) as pusher:
            channel = await do(pusher.subscribe, "presence-a")
            assert channel.my_id == "presence-a é&"
            assert (await do(pusher.sign_in)).id == "user é&"
            with pytest.raises(SubscriptionError):
                await do(pusher.subscribe, "private-json")
            assert await heard.next()

    run(main())


def test_a_body_of_its_own(run, pusher_server, face):
    async def main():
        def prepare(preparation):
            preparation.set_target("POST", pusher_server.http + "/apps/1/pusher/auth")
            form = f"socket_id={preparation.socket_id}&channel_name={preparation.channel}&x=y"
            preparation.set_body(form, "application/x-www-form-urlencoded")

        more = {"auth_endpoint": "http://127.0.0.1:1", "prepare_authorization": prepare}
        async with opened(face, pusher_server, **more) as pusher:
            await do(pusher.subscribe, "private-orders")

    run(main())
    [entry] = pusher_server.control.log(what="auth")
    assert entry["form"]["x"] == "y" and entry["path"] == "/apps/1/pusher/auth"


@pytest.mark.parametrize("form", ["mapping", "text", "bytes"])
def test_an_authorizer(run, pusher_server, face, form):
    server, heard = pusher_server, Heard()

    def authorize(request):
        heard(request.channels, request.is_user, request.socket_id)
        data = '{"user_id":"u-9"}' if request.channel.startswith("presence") else None
        answer = signed(server, request, request.channel, data)
        if form == "mapping":
            return answer
        text = json.dumps({name: value for name, value in answer.items() if value})
        return text if form == "text" else text.encode()

    async def main():
        async with opened(face, server, auth_endpoint=None, authorizer=authorize) as pusher:
            await do(pusher.subscribe, "private-orders")
            assert await heard.next() == (("private-orders",), False, pusher.socket_id)
            assert (await do(pusher.subscribe, "presence-lobby")).my_id == "u-9"

    run(main())


def test_an_answer_from_another_thread(run, pusher_server, face):
    server, asked = pusher_server, Heard()

    async def main():
        async with opened(face, server, auth_endpoint=None, authorizer=asked) as pusher:
            channel = await do(pusher.subscribe, "private-orders", wait=False)
            request = await asked.next()
            assert channel.state == "authorizing"
            answer = signed(server, request, request.channel)
            thread = threading.Thread(target=request.answer, args=(answer,))
            thread.start()
            await do(channel.subscribed)
            thread.join()
            for call in (lambda: request.answer(answer), request.fail):
                with pytest.raises(librealtime.InvalidState, match="already answered"):
                    call()

    run(main())


def test_no_answer(run, pusher_server, face):
    """An authorization that nobody refers to fails; so does one that is refused."""
    asked = Heard()

    async def main():
        async with opened(face, pusher_server, auth_endpoint=None, authorizer=asked) as pusher:
            one = await do(pusher.subscribe, "private-one", wait=False)
            (await asked.next()).fail("not today")
            with pytest.raises(SubscriptionError, match="not today"):
                await do(one.subscribed)
            pusher.unsubscribe("private-one")
            two = await do(pusher.subscribe, "private-two", wait=False)
            await asked.next()
            gc.collect()
            with pytest.raises(SubscriptionError):
                await do(two.subscribed)

    run(main())


def test_an_answer_that_is_too_late(run, pusher_server, face):
    """It is ignored, as the new connection has asked again."""
    server, asked = pusher_server, Heard()

    async def main():
        async with opened(face, server, auth_endpoint=None, authorizer=asked) as pusher:
            channel = await do(pusher.subscribe, "private-orders", wait=False)
            late = await asked.next()
            await server.actions.close(code=4200)
            fresh = await asked.next()
            assert fresh.socket_id != late.socket_id
            late.answer(signed(server, late, late.channel))
            fresh.answer(signed(server, fresh, fresh.channel))
            await do(channel.subscribed)
        last = await server.actions.log(what="in", event="pusher:subscribe")
        assert len(last) == 1

    run(main())


@pytest.mark.parametrize("wrong", [1, {"no": "auth"}, "not JSON", {"auth": None}])
def test_wrong_answers(run, pusher_server, face, wrong):
    async def main():
        more = {"auth_endpoint": None, "authorizer": lambda request: wrong}
        async with opened(face, pusher_server, **more) as pusher:
            with pytest.raises(SubscriptionError):
                await do(pusher.subscribe, "private-orders")

    run(main())


def test_an_authorizer_that_fails(run, pusher_server, face):
    cause = ValueError("no database")

    def fails(request):
        raise cause

    async def main():
        async with opened(face, pusher_server, auth_endpoint=None, authorizer=fails) as pusher:
            with pytest.raises(SubscriptionError, match="no database") as raised:
                await do(pusher.subscribe, "private-orders")
            assert raised.value.__cause__ is cause

    run(main())


def test_a_coroutine(run, pusher_server, face):
    """Only in asyncio. It does not wait for other handlers."""
    server = pusher_server

    async def authorize(request):
        await asyncio.sleep(0)
        if request.channel == "private-no":
            raise KeyError("nobody")
        return signed(server, request, request.channel)

    async def main():
        async with opened(face, server, auth_endpoint=None, authorizer=authorize) as pusher:
            if face is sync.Pusher:
                with pytest.raises(SubscriptionError, match="use a plain function"):
                    await do(pusher.subscribe, "private-orders")
                return
            await do(pusher.subscribe, "private-orders")
            with pytest.raises(SubscriptionError, match="nobody") as raised:
                await do(pusher.subscribe, "private-no")
            assert isinstance(raised.value.__cause__, KeyError)

    run(main())


def test_a_coroutine_is_cancelled_with_the_connection(run, pusher_server, face):
    began, ended = Heard(), Heard()

    async def authorize(request):
        began(request)
        try:
            await asyncio.Event().wait()
        finally:
            ended("end")

    async def main():
        if face is Pusher:
            more = {"auth_endpoint": None, "authorizer": authorize}
            async with opened(face, pusher_server, **more) as pusher:
                await pusher.subscribe("private-orders", wait=False)
                await began.next()
            assert await ended.next() == "end"

    run(main())


@pytest.mark.parametrize("mode", ["deny", "bad_json"])
def test_several_channels_in_one_request(run, pusher_server, face, mode):
    server, names = pusher_server, [f"private-{number}" for number in range(5)]

    async def main():
        more = {"auth_batch_size": 100}
        await server.actions.auth(mode=mode, channel="private-3")
        pusher = face(server.key, **options(server, **more))
        channels = [await do(pusher.subscribe, name, wait=False) for name in names]
        await do(pusher.connect)
        for channel in channels:
            if channel.name == "private-3":
                with pytest.raises(SubscriptionError) as raised:
                    await do(channel.subscribed)
                status, body = (403, "denied") if mode == "deny" else (0, "")
                assert (raised.value.http_status, raised.value.body) == (status, body)
            else:
                await do(channel.subscribed)
        pusher.close()

    run(main())
    assert [entry["channels"] for entry in server.control.log(what="auth")] == [names]


def test_an_authorizer_of_several_channels(run, pusher_server, face):
    server, names = pusher_server, [f"private-{number}" for number in range(3)]

    def authorize(request):
        assert request.channels == tuple(names)
        return {name: signed(server, request, name) for name in names[:2]}

    async def main():
        more = {"auth_endpoint": None, "authorizer": authorize, "auth_batch_size": 10}
        pusher = face(server.key, **options(server, **more))
        channels = [await do(pusher.subscribe, name, wait=False) for name in names]
        await do(pusher.connect)
        for channel in channels[:2]:
            await do(channel.subscribed)
        with pytest.raises(SubscriptionError):
            await do(channels[2].subscribed)
        pusher.close()

    run(main())


def test_an_authorization_at_hand(run, pusher_server, face):
    server = pusher_server

    async def main():
        async with opened(face, server, auth_endpoint=None) as pusher:
            data = '{"user_id":"u-5"}'
            auth = channel_auth(server.key, server.secret, pusher.socket_id, "presence-x", data)
            given = {"auth": auth, "channel_data": data}
            channel = await do(pusher.subscribe, "presence-x", **given)
            assert channel.my_id == "u-5"

    run(main())


def test_secrets_are_not_shown(run, pusher_server, face):
    """In no repr and no error."""
    server = pusher_server

    async def main():
        await server.actions.settings(dialect="soketi")
        more = {"auth_endpoint": None, "secret": "wrong-secret", "auth_headers": {"X": "token"}}
        async with opened(face, server, **more) as pusher:
            with pytest.raises(SubscriptionError) as raised:
                await do(pusher.subscribe, "private-orders")
            shown = [repr(pusher), repr(raised.value), str(raised.value), raised.value.body]
            shown.append(repr(pusher.channel("private-orders")))
            auth = server.control.log(what="in", event="pusher:subscribe")[0]["data"]["auth"]
            assert not any("wrong-secret" in text or auth in text for text in shown)

    run(main())
