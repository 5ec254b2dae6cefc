"""Interests in push notifications, against a service that records its requests."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import queue
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pushers import FACES, Heard, do

import librealtime
from librealtime import PusherPushResult, PushError

pytestmark = pytest.mark.parametrize("face", FACES)


@contextlib.contextmanager
def service(refuses=(), answers=None):
    """Yields the URL of a service, and its requests: method, path, body.

    :param refuses: paths that it answers with 400.
    :param answers: set when it may answer.
    """
    requests = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            size = int(self.headers.get("Content-Length", 0))
            requests.put((self.command, self.path, json.loads(self.rfile.read(size))))
            if answers is not None:
                answers.wait(30)
            body = b"no" if self.path in refuses else b'{"id":"client 1"}'
            self.send_response(400 if self.path in refuses else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_interests(run, face):
    """Without a connection. Calls before the registration wait for it."""
    heard = Heard()

    async def main(url):
        pusher = face("key", push_url=url, on_push=heard)
        push = pusher.push
        await do(push.subscribe, "first", wait=False)
        await do(push.register, b"\x01\xab")
        await do(push.unsubscribe, "a b")
        await do(push.set_subscriptions, ["x", "y"])
        results = [await heard.next() for _ in range(4)]
        pusher.close()
        assert results == [
            PusherPushResult("register", ("client 1",), None, 0, ""),
            PusherPushResult("subscribe", ("first",), None, 0, ""),
            PusherPushResult("unsubscribe", ("a b",), None, 0, ""),
            PusherPushResult("set_subscriptions", ("x", "y"), None, 0, ""),
        ]

    with service() as (url, requests):
        run(main(url))
        found = [requests.get(timeout=30) for _ in range(4)]
    key = {"app_key": "key"}
    assert found == [
        ("POST", "/api/clients", {**key, "platform_type": "apns", "token": "01ab"}),
        ("POST", "/api/clients/client%201/interests/first", key),
        ("DELETE", "/api/clients/client%201/interests/a%20b", key),
        ("PUT", "/api/clients/client%201/interests/", {**key, "interests": ["x", "y"]}),
    ]


def test_names_of_interests(run, face):
    """Lines are separated by LF only."""
    heard = Heard()

    async def main(url):
        pusher = face("key", push_url=url, on_push=heard)
        await do(pusher.push.register, b"\x01")
        await do(pusher.push.subscribe, "a\u2028b")
        await do(pusher.push.set_subscriptions, ["c\rd", "e"])
        await do(pusher.push.set_subscriptions, [])
        assert [one.names for one in heard.rest()] == [
            ("client 1",),
            ("a\u2028b",),
            ("c\rd", "e"),
            (),
        ]
        pusher.close()

    with service() as (url, _):
        run(main(url))


def test_waiting_for_results(run, face):
    """In the order of the calls, also of equal ones."""

    async def main(url):
        pusher = face("key", push_url=url)
        push = pusher.push
        with pytest.raises(librealtime.InvalidState, match="not registered"):
            await do(push.subscribe, "a")
        await do(push.subscribe, "a", wait=False)
        works = [do(push.register, b"\x01"), do(push.register, b"\x02")]
        await asyncio.gather(*works)
        works = [do(push.subscribe, name) for name in ("a", "b", "a", "a")]
        await asyncio.gather(*works, do(push.set_subscriptions, ["a"]))
        assert push._calls == []
        pusher.close()

    with service() as (url, requests):
        run(main(url))
        assert requests.qsize() >= 7


def test_too_many_calls(run, face):
    """The call that fails is the last one."""

    async def main(url):
        pusher = face("key", push_url=url)
        push = pusher.push
        for _ in range(1000):
            calling = push.subscribe("a", wait=False)
            if calling is not None:
                await calling
        registering = asyncio.ensure_future(do(push.register, b"\x01"))
        await asyncio.to_thread(requests.get, timeout=30)
        with pytest.raises(PushError, match="1000 calls") as raised:
            await do(push.subscribe, "a")
        assert raised.value.name == "RT_ERROR_QUEUE_FULL" and len(push._calls) == 1001
        answers.set()
        await registering
        pusher.close()

    answers = threading.Event()
    with service(answers=answers) as (url, requests):
        run(main(url))


def test_a_refused_registration(run, face):
    heard = Heard()

    async def main(url):
        pusher = face("key", push_url=url, on_push=heard)
        await do(pusher.push.subscribe, "a", wait=False)
        with pytest.raises(PushError) as raised:
            await do(pusher.push.register, b"\x01", "gcm")
        result = await heard.next()
        assert result.error is raised.value
        assert (raised.value.http_status, raised.value.body) == (400, "no")
        assert (result.call, result.names) == ("register", ())
        assert (result.http_status, result.body) == (400, "no")
        assert isinstance(result.error, librealtime.RealtimeError)
        pusher.close()

    with service(refuses=["/api/clients"]) as (url, _):
        run(main(url))


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("register", ["text"]),
        ("register", [b""]),
        ("subscribe", [""]),
        ("set_subscriptions", ["ab"]),
        ("set_subscriptions", [["a\nb"]]),
    ],
)
def test_invalid_calls(run, face, call, arguments):
    async def main():
        pusher = face("key")
        with pytest.raises((TypeError, ValueError)):
            await do(getattr(pusher.push, call), *arguments)
        pusher.close()

    run(main())


def test_after_the_end(run, face):
    async def main():
        pusher = face("key")
        push = pusher.push
        pusher.close()
        with pytest.raises(librealtime.StreamEnded):
            await do(push.subscribe, "a")
        gone = weakref.ref(pusher)
        del pusher
        # The thread of the call before keeps it for a moment, with the exception's traceback.
        while gone() is not None:
            gc.collect()
            await asyncio.sleep(0.001)
        with pytest.raises(librealtime.InvalidState, match="is gone"):
            await do(push.subscribe, "a")

    run(main())
