"""Subscriptions that the server refuses, some without a name, or does not answer; time limits; what
errors show."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from pushers import FACES, Heard, do, opened

import librealtime
from librealtime import Pusher, SignInError, SubscriptionError, sync

pytestmark = pytest.mark.parametrize("face", FACES)

SENT = {"what": "in", "event": "pusher:subscribe"}


def wrong(request):
    """Answers as an authorization server with another secret."""
    return {"auth": "demo:" + "0" * 64, "channel_data": '{"user_id":"u"}'}


@pytest.mark.parametrize(
    ("dialect", "code"), [("reverb", 4009), ("reverb", 4200), ("pusher", None)]
)
def test_refusals_without_a_name(run, pusher_server, face, dialect, code):
    """As many as subscriptions wait: all fail, and are sent again."""
    server, names = pusher_server, ["private-a", "presence-b", "private-c"]

    async def main():
        await server.actions.settings(dialect=dialect, bad_auth_code=code)
        more = {"auth_endpoint": None, "authorizer": wrong}
        async with opened(face, server, **more) as pusher:
            channels = [await do(pusher.subscribe, name, wait=False) for name in names]
            for channel in channels:
                with pytest.raises(SubscriptionError, match=channel.name):
                    await do(channel.subscribed)
            assert pusher.state == "connected"
            assert [channel.state for channel in channels] == ["failed"] * 3
            with pytest.raises(SubscriptionError, match="refused"):
                await do(pusher.subscribe, "private-a")
        assert len(await server.actions.log(**SENT)) == 4

    run(main())


def test_a_refusal_of_one_of_two(run, pusher_server, face):
    """When the other has succeeded, the error can only mean this one."""
    server = pusher_server

    async def main():
        await server.actions.settings(dialect="reverb")
        await server.actions.fault(
            point="sending", event="pusher_internal:subscription_succeeded", do="hold"
        )
        async with opened(face, server) as pusher:
            good = await do(pusher.subscribe, "private-good", wait=False)
            await server.actions.wait(**SENT)
            auth = "demo:" + "0" * 64
            bad = await do(pusher.subscribe, "private-bad", wait=False, auth=auth)
            await server.actions.wait(what="out", event="pusher:error")
            await server.actions.release()
            await do(good.subscribed)
            with pytest.raises(SubscriptionError):
                await do(bad.subscribed)
            assert good.is_subscribed

    run(main())


def test_unsubscribe_and_subscribe_send_again(run, pusher_server, face):
    """After an error that may mean this channel, or another one that waits."""
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.settings(dialect="reverb")
        await server.actions.fault(point="received", event="pusher:subscribe", do="ignore", times=2)
        async with opened(face, server, on_error=heard) as pusher:
            for number, name in enumerate(("private-a", "private-b"), 1):
                await do(pusher.subscribe, name, wait=False)
                await server.actions.wait(**SENT, count=number)
            error = {"event": "pusher:error", "data": '{"code":4009,"message":"no"}'}
            await server.actions.send(json.dumps(error))
            assert (await heard.next()).code == 4009
            pusher.unsubscribe("private-a")
            assert (await do(pusher.subscribe, "private-a")).is_subscribed
            assert pusher.channel("private-b").state == "sent"

    run(main())


@pytest.mark.parametrize("dialect", ["pusher", "reverb", "soketi"])
def test_subscribe_again_without_an_answer(run, pusher_server, face, dialect):
    """The server has not answered the first subscription when a ping is answered."""
    server = pusher_server

    async def main():
        await server.actions.settings(dialect=dialect)
        await server.actions.fault(point="received", event="pusher:subscribe", do="ignore")
        async with opened(face, server) as pusher:
            first = await do(pusher.subscribe, "private-a", wait=False)
            await server.actions.wait(**SENT)
            pusher.unsubscribe("private-a")
            second = await do(pusher.subscribe, "private-a")
            assert second.is_subscribed and first.state == "unsubscribed"
            log = await server.actions.log(what="in", kind="text")
            names = ["pusher:subscribe", "pusher:ping", "pusher:subscribe"]
            assert [entry["event"] for entry in log] == names
            assert len(await server.actions.log(what="auth")) == 2

    run(main())


@pytest.mark.parametrize("is_good", [True, False])
def test_subscribe_again_before_the_answer(run, pusher_server, face, is_good):
    """The answer to the first subscription does not count for the second."""
    server, succeeded, failed = pusher_server, Heard(), Heard()

    async def main():
        await server.actions.settings(dialect="soketi")
        for event in ("pusher:subscribe", "pusher:ping"):
            await server.actions.fault(point="received", event=event, do="hold")
        async with opened(face, server) as pusher:
            pusher.bind("pusher:subscription_succeeded", succeeded)
            pusher.bind("pusher:subscription_error", failed)
            auth = None if is_good else "demo:" + "0" * 64
            await do(pusher.subscribe, "private-a", wait=False, auth=auth)
            await server.actions.wait(**SENT)
            pusher.unsubscribe("private-a")
            second = await do(pusher.subscribe, "private-a", wait=False)
            await server.actions.wait(what="in", event="pusher:ping")
            assert second.state == "idle"
            await server.actions.release()
            await do(second.subscribed)
            undone = ["pusher:unsubscribe"] if is_good else []
            log = await server.actions.log(what="in", kind="text")
            names = ["pusher:subscribe", "pusher:ping", *undone, "pusher:subscribe"]
            assert [entry["event"] for entry in log] == names
            assert len(succeeded.rest()) == 1 and failed.rest() == []

    run(main())


def test_time_limits(run, pusher_server, face):
    """The subscription stays, and the connection continues to try."""
    server, ignored = pusher_server, {"point": "received", "do": "ignore"}

    async def main():
        async with opened(face, server) as pusher:
            await server.actions.fault(event="pusher:subscribe", **ignored)
            with pytest.raises(TimeoutError, match=r"orders is not subscribed within 0\.05 s"):
                await do(pusher.subscribe, "orders", timeout=0.05)
            channel = pusher.channel("orders")
            with pytest.raises(TimeoutError):
                await do(channel.subscribed, timeout=0)
            while channel.state != "sent":
                await asyncio.sleep(0.001)
            await server.actions.send(
                '{"event":"pusher_internal:subscription_succeeded","channel":"orders"}'
            )
            await do(channel.subscribed, timeout=30)
            assert await do(pusher.subscribe, "orders", timeout=0) is channel
            await server.actions.fault(event="pusher:signin", **ignored)
            with pytest.raises(TimeoutError, match="not signed in within"):
                await do(pusher.sign_in, timeout=0.05)
            await do(pusher.disconnect)
            await server.actions.fault(point="handshake", do="ignore")
            with pytest.raises(TimeoutError, match=r"not connected within 0\.05 s"):
                await do(pusher.connect, timeout=0.05)
            assert pusher.state == "connecting"
            pusher.close()

    run(main())


# What the program's functions raise


@pytest.mark.parametrize("is_user", [False, True])
def test_a_preparation_that_fails(run, pusher_server, face, is_user):
    """It fails what it is for, with its text and as its cause, and no other call."""
    server, heard, cause = pusher_server, Heard(), ValueError("no token today")

    def fails(preparation):
        assert preparation.is_user == is_user
        raise cause

    async def main():
        async with opened(face, server, prepare_authorization=fails) as pusher:
            other = await do(pusher.subscribe, "orders")
            events = other.events("price")
            kind = SignInError if is_user else SubscriptionError
            name = "signin" if is_user else "subscription"
            pusher.bind(f"pusher:{name}_error", heard)
            if is_user:
                await do(pusher.sign_in, wait=False)
            else:
                await do(pusher.subscribe, "private-a", wait=False)
            assert "no token today" in (await heard.next()).data["error"]
            # The call that waits for something else meanwhile.
            await server.actions.publish("orders", "price", 7)
            assert (await do(events.recv)).data == 7
            with pytest.raises(kind, match="prepare_authorization failed: no token") as raised:
                if is_user:
                    await do(pusher.sign_in)
                else:
                    await do(pusher.subscribe, "private-a")
            assert raised.value.__cause__ is cause

    run(main())


def test_a_preparation_that_is_a_coroutine(run, pusher_server, face):
    """Only in asyncio."""
    server = pusher_server

    async def prepare(preparation):
        await asyncio.sleep(0)
        if preparation.channel == "private-no":
            return False
        if preparation.channel == "private-error":
            raise KeyError("nobody")
        preparation.set_header("X-Token", "fresh")
        preparation.add_form_parameter("user_id", "u-3")
        return None

    async def main():
        if face is sync.Pusher:
            with pytest.raises(TypeError, match="prepare_authorization is a coroutine function"):
                face("key", prepare_authorization=prepare)
            late = {"prepare_authorization": lambda preparation: prepare(preparation)}
            async with opened(face, server, **late) as pusher:
                with pytest.raises(SubscriptionError, match="use a plain function"):
                    await do(pusher.subscribe, "private-a")
            return
        async with opened(face, server, prepare_authorization=prepare) as pusher:
            assert (await pusher.subscribe("presence-a")).my_id == "u-3"
            assert (await pusher.sign_in()).id == "u-3"
            with pytest.raises(SubscriptionError, match="returned False"):
                await pusher.subscribe("private-no")
            with pytest.raises(SubscriptionError, match="nobody") as raised:
                await pusher.subscribe("private-error")
            assert isinstance(raised.value.__cause__, KeyError)
        log = await server.actions.log(what="auth")
        assert [entry["headers"]["X-Token"] for entry in log] == ["fresh"] * 2

    run(main())


def test_a_preparation_that_is_too_late(run, pusher_server, face):
    """The connection was lost in the meantime, so the next one has asked again."""
    server, asked, go = pusher_server, Heard(), []

    async def prepare(preparation):
        asked(preparation)
        event = asyncio.Event()
        go.append(event)
        await event.wait()

    async def main():
        if face is not Pusher:
            return
        async with opened(face, server, prepare_authorization=prepare) as pusher:
            channel = await pusher.subscribe("private-a", wait=False)
            first = await asked.next()
            await server.actions.close(code=4200)
            second = await asked.next()
            assert first.socket_id != second.socket_id
            for event in go:
                event.set()
            await channel.subscribed()
        assert len(await server.actions.log(what="auth")) == 1

    run(main())


def test_a_secret_needs_no_preparation(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        more = {"secret": server.secret, "prepare_authorization": heard}
        async with opened(face, server, **more) as pusher:
            await do(pusher.subscribe, "private-a")
            assert heard.rest() == []

    run(main())


# Signatures


def quoting(server, form, name, auth):
    """An answer that quotes a signature."""
    text = f"Invalid signature: expected {auth}"
    if form == "error":
        return {"event": "pusher:error", "data": {"code": None, "message": text}}
    data = {"type": "AuthError", "error": text, "status": 401, "auth": auth}
    return {"event": "pusher:subscription_error", "channel": name, "data": data}


@pytest.mark.parametrize("form", ["error", "event"])
def test_signatures_that_the_server_quotes(run, pusher_server, face, form, caplog):
    server, heard, lines = pusher_server, Heard(), []
    caplog.set_level(logging.DEBUG, "librealtime")
    librealtime.set_log_level("DEBUG")

    async def main():
        await server.actions.fault(point="received", event="pusher:subscribe", do="ignore")
        async with opened(face, server, on_debug=lines.append) as pusher:
            pusher.bind("pusher:subscription_error", heard)
            pusher.bind("pusher:error", heard)
            channel = await do(pusher.subscribe, "private-a", wait=False)
            [entry] = await server.actions.wait(**SENT)
            auth = entry["data"]["auth"]
            await server.actions.send(json.dumps(quoting(server, form, "private-a", auth)))
            with pytest.raises(SubscriptionError) as raised:
                await do(channel.subscribed)
            error = raised.value
            events = [await heard.next() for _ in range(2 if form == "error" else 1)]
            shown = [str(error), repr(error), error.body, repr(vars(error)), *lines]
            for event in events:
                shown += [repr(event), repr(event.data), repr(event.property("data"))]
            signature = auth.partition(":")[2]
            assert len(signature) == 64 and len(caplog.messages) > 0
            assert not any(signature in text for text in (*shown, *caplog.messages))
            assert "Invalid signature: expected demo:…" in error.body

    try:
        run(main())
    finally:
        librealtime.set_log_level(None)


def test_signatures_of_a_sign_in(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        await server.actions.fault(point="received", event="pusher:signin", do="ignore")
        async with opened(face, server) as pusher:
            pusher.bind("pusher:signin_error", heard)
            await do(pusher.sign_in, wait=False)
            [entry] = await server.actions.wait(what="in", event="pusher:signin")
            auth = entry["data"]["auth"]
            await server.actions.send(json.dumps(quoting(server, "error", "", auth)))
            event = await heard.next()
            assert "Invalid signature: expected demo:…" in event.data["body"]
            assert auth.partition(":")[2] not in repr(event) + repr(event.property("data"))

    run(main())


def test_options_with_secrets(run, pusher_server, face):
    """In no representation of a connection, and no error about the options."""

    async def main():
        key = b"k" * 32
        more = {"secret": "S3cret", "encryption_master_key": key, "auth_params": {"p": "S3cret"}}
        headers = {"Authorization": "Bearer S3cret"}
        network = librealtime.Network(proxy="http://user:S3cret@proxy.test:1")
        more |= {"headers": headers, "auth_headers": headers, "network": network}
        pusher = face(pusher_server.key, **more)
        channel = await do(pusher.subscribe, "private-a", wait=False)
        shown = [repr(one) for one in (pusher, channel, pusher.user, pusher.push, network)]
        pusher.close()
        with pytest.raises(ValueError) as raised:
            face("key", headers={"A": "S3cret\n"})
        shown += [str(raised.value), repr(raised.value)]
        assert not any("S3cret" in text or "kkkk" in text for text in shown)

    run(main())
