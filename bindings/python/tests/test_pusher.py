"""Pusher connections: connecting, states, events, handlers; asyncio and blocking."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest
from pushers import FACES, TLS, Heard, PusherServer, do, opened, options

import librealtime
from librealtime import PusherEvent, StreamEnded, sync

pytestmark = pytest.mark.parametrize("face", FACES)


def test_the_first_event(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            assert pusher.state == "connected" and "." in pusher.socket_id
            assert pusher.opened.remote_address == f"{server.host}:{server.port}"
            assert "connected, 0 channels" in repr(pusher)
            channel = await do(pusher.subscribe, "orders")
            assert channel.is_subscribed and channel.state == "subscribed"
            assert (channel.name, channel.kind) == ("orders", "public")
            assert pusher.channel("orders") is channel and pusher.channels == [channel]
            assert await do(pusher.subscribe, "orders") is channel
            channel.bind("price", heard)
            await server.actions.publish("orders", "price", {"euro": 7})
            event = await heard.next()
            assert event == PusherEvent("price", "orders", '{"euro":7}')
            assert event.data == {"euro": 7} and event.property("channel") == "orders"
        assert pusher.state == "disconnected" and pusher.socket_id is None
        assert channel.state == "unsubscribed" and not channel.is_subscribed

    run(main())
    [subscribe] = server.control.log(what="in", event="pusher:subscribe")
    assert subscribe["channel"] == "orders"
    assert server.control.log(what="in", kind="close")[0]["code"] == 1000


def test_the_url(run, pusher_server, face):
    async def main():
        pusher = face("a/b", host="::1", port=8, path="ws/", use_tls=False)
        assert pusher.url.startswith("ws://[::1]:8/ws/app/a%2Fb?client=")
        pusher.close()
        pusher = face("k", cluster="eu")
        assert re.match(r"wss://ws-eu\.pusher\.com(:443)?/app/k\?client=", pusher.url)
        pusher.close()

    run(main())


def test_handlers_of_connection_and_channel(run, pusher_server, face):
    """The connection's are called first, each in the order of binding."""
    server, heard, done = pusher_server, [], Heard()

    async def main():
        async with opened(face, server) as pusher:
            one = await do(pusher.subscribe, "one")
            two = await do(pusher.subscribe, "two")
            one.bind("a", lambda event: heard.append("channel a"))
            one.bind(lambda event: heard.append("channel all"))
            pusher.bind("a", lambda event: heard.append("all a"))

            @pusher.bind
            def everything(event):
                heard.append(event.channel)

            two.bind("end", done)
            await server.actions.publish("one", "a")
            await server.actions.publish("one", "b")
            await server.actions.publish("two", "a")
            await server.actions.publish("two", "end")
            await done.next()

    run(main())
    first = ["all a", "one", "channel a", "channel all"]
    assert heard == [*first, "one", "channel all", "all a", "two", "two"]


def test_binding_inside_a_handler(run, pusher_server, face):
    """A handler bound during an event waits for the next; an unbound one is not called any more."""
    server, heard, done = pusher_server, [], Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")

            def first(event):
                heard.append("first")
                channel.unbind("a", first)
                channel.unbind("a", second)
                channel.bind("a", third)

            def second(event):
                heard.append("second")

            def third(event):
                heard.append("third")
                done(event)

            channel.bind("a", first)
            channel.bind("a", second)
            await server.actions.publish("orders", "a")
            await server.actions.publish("orders", "a")
            await done.next()

    run(main())
    assert heard == ["first", "third"]


def test_unsubscribing(run, pusher_server, face):
    """Removes the handlers; a new subscription has a new object."""
    server, heard, done = pusher_server, Heard(), Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            channel.bind(heard)
            channel.unsubscribe()
            channel.unsubscribe()
            pusher.unsubscribe("none")
            assert channel.state == "unsubscribed" and pusher.channels == []
            for call in (lambda: channel.bind(heard), lambda: channel.trigger("client-a")):
                with pytest.raises(StreamEnded, match="channel orders is unsubscribed"):
                    call()
            again = await do(pusher.subscribe, "orders")
            assert again is not channel
            again.bind("a", done)
            await server.actions.publish("orders", "a")
            await done.next()
            pusher.unsubscribe_all()
            assert pusher.channels == []
            await server.actions.wait(count=2, what="in", event="pusher:unsubscribe")

    run(main())
    assert heard.rest() == []


def test_headers_of_the_handshake(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server, headers={"X-A": "b"}, path="/ws"):
            pass

    run(main())
    [entry] = pusher_server.control.log(what="open")
    assert entry["headers"]["X-A"] == "b" and entry["path"].startswith("/ws/app/")


@pytest.mark.parametrize(
    "option, value, sent",
    [("auth", ("ada", "secret"), "Basic YWRhOnNlY3JldA=="), ("bearer_token", "t", "Bearer t")],
)
def test_credentials_of_the_handshake(run, pusher_server, face, option, value, sent):
    async def main():
        async with opened(face, pusher_server, **{option: value}):
            pass

    run(main())
    [entry] = pusher_server.control.log(what="open")
    assert entry["headers"]["Authorization"] == sent


# The server's loop ends before its TLS transports have closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_tls(run, tmp_path, face):
    """Of the connection, and of the server that authorizes."""
    tls = TLS(tmp_path, "localhost")

    async def main(server):
        more = {"host": "localhost", "use_tls": True}
        auth = {"auth_endpoint": f"https://localhost:{server.port}/pusher/auth"}
        async with opened(face, server, ca_file=tls.ca_file, **more, **auth) as pusher:
            await do(pusher.subscribe, "private-orders")

    with PusherServer(tls) as server:
        run(main(server))


def test_states(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server, on_state=heard) as pusher:
            channel = await do(pusher.subscribe, "orders")
            assert [(await heard.next()).new for _ in range(2)] == ["connecting", "connected"]
            first = pusher.socket_id
            await server.actions.close(code=4200, reason="please")
            change = await heard.next()
            assert (change.old, change.new) == ("connected", "reconnecting")
            assert (change.close_code, change.close_reason) == (4200, "please")
            assert [(await heard.next()).new for _ in range(2)] == ["connecting", "connected"]
            await server.actions.wait(count=2, what="in", event="pusher:subscribe")
            await do(channel.subscribed)
            assert pusher.socket_id != first
        assert [change.new for change in heard.rest()] == ["disconnecting", "disconnected"]

    run(main())


def test_a_fatal_close(run, pusher_server, face):
    async def main():
        pusher = face("wrong", **options(pusher_server))
        with pytest.raises(librealtime.ConnectionClosedError) as raised:
            await do(pusher.connect)
        assert raised.value.code == 4001 and pusher.state == "disconnected"
        for call in (pusher.connect, pusher.wait_closed):
            with pytest.raises(librealtime.ConnectionClosedError):
                await do(call)
        with pytest.raises(librealtime.ConnectionClosedError):
            await do(pusher.subscribe, "orders")
        pusher.close()

    run(main())


def test_disconnecting_and_connecting_again(run, pusher_server, face):
    """Channels and handlers are kept."""
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")
            channel.bind("a", heard)
            await do(pusher.disconnect)
            await do(pusher.disconnect)
            assert pusher.state == "disconnected" and channel.state == "idle"
            with pytest.raises(StreamEnded, match="disconnected"):
                await do(pusher.subscribe, "other")
            await do(pusher.connect)
            await do(channel.subscribed)
            await server.actions.publish("orders", "a")
            assert (await heard.next()).event == "a"

    run(main())


def test_connecting_while_disconnecting(run, pusher_server, face):
    """By a handler; ``disconnect`` does not wait for the end of the new connection."""
    server, again = pusher_server, []

    async def main():
        async with opened(face, server) as pusher:

            def connect(change):
                if change.new == "disconnecting":
                    again.append(change)
                    calling = pusher.connect(wait=False)
                    if calling is not None:  # a coroutine, which does not wait
                        with pytest.raises(StopIteration):
                            calling.send(None)

            pusher.on_state = connect
            await do(pusher.disconnect)
            pusher.on_state = None
            await do(pusher.connect)
            assert pusher.state == "connected" and len(again) == 1

    run(main())


def test_connecting_and_disconnecting_at_once(run, pusher_server, face):
    """In several threads or tasks: each call returns."""

    async def connecting(pusher):
        for _ in range(30):
            with contextlib.suppress(StreamEnded):
                await do(pusher.connect)

    async def disconnecting(pusher):
        for _ in range(30):
            await do(pusher.disconnect)

    async def main():
        async with opened(face, pusher_server) as pusher:
            works = [connecting(pusher), connecting(pusher)]
            await asyncio.gather(*works, disconnecting(pusher), disconnecting(pusher))

    run(main())


def test_before_connecting(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        pusher = face(server.key, **options(server))
        with pytest.raises(librealtime.InvalidState, match="connect was not called"):
            await do(pusher.subscribe, "orders")
        channel = await do(pusher.subscribe, "orders", wait=False)
        channel.bind("pusher:subscription_succeeded", heard)
        assert channel.state == "idle"
        await do(pusher.connect, wait=False)
        assert (await heard.next()).channel == "orders"
        await do(channel.subscribed)
        await do(pusher.disconnect)
        pusher.close()
        pusher.close()

    run(main())


def test_errors_of_the_server(run, pusher_server, face):
    heard = Heard()

    async def main():
        async with opened(face, pusher_server, on_error=heard) as pusher:
            await pusher_server.actions.send(
                '{"event":"pusher:error","data":{"code":4301,"message":"too fast"}}'
            )
            error = await heard.next()
            assert isinstance(error, librealtime.PusherError)
            assert (error.code, error.message, error.channel) == (4301, "too fast", None)
            await pusher_server.actions.send(
                '{"event":"pusher:error","data":{"code":null,"message":"x"},"channel":"c"}'
            )
            error = await heard.next()
            assert (error.code, error.channel, pusher.state) == (None, "c", "connected")

    run(main())


def test_failing_handlers(run, pusher_server, face):
    """Other handlers and events are not affected."""
    server, heard, told = pusher_server, Heard(), []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")

            def fails(event):
                raise ValueError("no")

            channel.bind("a", fails)
            channel.bind("a", heard)
            await server.actions.publish("orders", "a")
            await heard.next()
            if face is sync.Pusher:
                with pytest.raises(ValueError, match="no"):
                    await do(pusher.subscribe, "other")
            else:
                assert [str(error) for error in told] == ["no"]

    run(main())


def test_the_debug_log(run, pusher_server, face):
    """It can be switched on later, and has no secrets."""
    server, heard = pusher_server, Heard()

    async def main():
        options = {"auth_endpoint": None, "secret": server.secret}
        async with opened(face, server, **options) as pusher:
            pusher.on_debug = heard
            await do(pusher.subscribe, "private-orders")
            assert server.secret not in repr(pusher)

    run(main())
    lines = heard.rest()
    assert lines and all(line.startswith("[PUSHER DEBUG]") for line in lines)
    auth = server.control.log(what="in", event="pusher:subscribe")[0]["data"]["auth"]
    assert not any(server.secret in line or auth in line for line in lines)


def test_closing_inside_a_handler(run, pusher_server, face):
    server, heard = pusher_server, Heard()

    async def main():
        async with opened(face, server) as pusher:
            channel = await do(pusher.subscribe, "orders")

            def closes(event):
                pusher.close()
                heard(event)

            channel.bind(closes)
            channel.bind(heard)
            await server.actions.publish("orders", "a")
            await heard.next()
            with pytest.raises(StreamEnded):
                await do(pusher.subscribe, "other")
        assert heard.rest() == []

    run(main())


def test_the_network_and_limits(run, pusher_server, face):
    async def main():
        async with opened(face, pusher_server) as pusher:
            pusher.network_changed(True)
            await pusher_server.actions.wait(what="in", event="pusher:ping")
            pusher.set_reconnect_limits(0, None)
            # They are set on the loop, before this.
            await do(pusher.subscribe, "orders")
            await pusher_server.actions.end("reset")
            with pytest.raises(librealtime.RealtimeError):
                await do(pusher.wait_closed)

    run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "ws://127.0.0.1"},
        {"host": "a", "cluster": "b"},
        {"host": ""},
        {"cluster": ""},
        {"auth_endpoint": ""},
        {"user_auth_endpoint": ""},
        {"push_url": ""},
        {"auth_params": {"": "a"}},
        {"encryption_master_key": b""},
        {"max_reconnects": -1},
        {"encryption_master_key": b"short"},
        {"auth_endpoint": "nothing"},
        {"port": 70_000},
    ],
)
def test_invalid_options(run, face, wrong):
    async def main():
        with pytest.raises(librealtime.InvalidArgument):
            face("key", **wrong)

    run(main())


def test_unknown_options(run, face):
    async def main():
        with pytest.raises(TypeError, match="unexpected keyword argument 'clster'; did you mean"):
            face("key", clster="eu")

    run(main())


@pytest.mark.parametrize("name", ["", "a b", "#server-to-user-1", "a" * 165, "a\0"])
def test_invalid_names_of_channels(run, pusher_server, face, name):
    async def main():
        async with opened(face, pusher_server) as pusher:
            with pytest.raises(librealtime.InvalidArgument):
                await do(pusher.subscribe, name)
            assert pusher.channels == []

    run(main())
