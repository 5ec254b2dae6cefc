"""What an object would send is not sent to another origin that a server redirects to."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pushers import Heard, do, opened

import librealtime
from librealtime import SecurityError, sync


class Elsewhere:
    """A server that redirects each request to another origin, which must not be visited."""

    def __init__(self, status: int) -> None:
        self.witness = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self.witness.getsockname()[1]}"
        origin = self.origin

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Location", origin + self.path)
                self.send_header("Content-Length", "0")
                self.send_header("Connection", "close")
                self.end_headers()

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        with self.witness:
            self.witness.setblocking(False)
            with pytest.raises(BlockingIOError):
                self.witness.accept()


@pytest.fixture(params=[302, 307, 308])
def elsewhere(request):
    with Elsewhere(request.param) as running:
        yield running


@pytest.fixture(params=[307, 308])
def with_body(request):
    with Elsewhere(request.param) as running:
        yield running


def refused(elsewhere):
    words = f"another origin, \\S+127.0.0.1:{elsewhere.witness.getsockname()[1]}, which may not"
    return pytest.raises(SecurityError, match=words + r".*\(redirect_origins\)")


def test_websocket(elsewhere):
    with refused(elsewhere) as raised:
        sync.connect(elsewhere.url.replace("http", "ws"))
    assert raised.value.name == "RT_ERROR_REDIRECT"


def test_meteor(elsewhere):
    """The client would log in there, subscribe and call methods."""
    options = {"auto_reconnect": False, "sockjs_fallback": False}
    with refused(elsewhere), sync.DDPClient(elsewhere.url, **options):
        pass


def test_pusher(elsewhere):
    heard = Heard()
    options = {"host": "127.0.0.1", "port": elsewhere.port, "use_tls": False}
    pusher = sync.Pusher("key", on_state=heard, **options)
    pusher.connect(wait=False)
    while (change := heard.wait()).error is None:
        pass
    pusher.close()
    with refused(elsewhere):
        raise change.error


def test_spreadbot_websocket(elsewhere):
    with (
        pytest.raises(librealtime.ReconnectsExhausted, match="another origin"),
        sync.Spreadbot(elsewhere.url, transports=["websocket"]) as bot,
    ):
        bot.establish_connection("path", timeout=30)


def test_posts(with_body):
    with sync.RESTClient() as client, refused(with_body):
        client.post(with_body.url, content="secret")


@pytest.mark.parametrize("kind", ["private-a", "presence-a"])
def test_channels_are_not_authorized_elsewhere(run, pusher_server, with_body, kind):
    async def main():
        more = {"auth_endpoint": with_body.url, "auth_params": {"token": "secret"}}
        async with opened(librealtime.Pusher, pusher_server, **more) as pusher:
            with pytest.raises(librealtime.SubscriptionError, match="another origin"):
                await pusher.subscribe(kind)

    run(main())


def test_push_tokens_stay(run, with_body):
    async def main():
        pusher = librealtime.Pusher("key", push_url=with_body.url + "api")
        with pytest.raises(librealtime.PushError, match="another origin"):
            await do(pusher.push.register, b"\x01\xab")
        pusher.close()

    run(main())


def test_origins_are_checked():
    for wrong in (["http://a.test/path"], ["a.test"]):
        with pytest.raises(librealtime.InvalidArgument):
            sync.connect("ws://127.0.0.1:1/", redirect_origins=wrong)
    with pytest.raises(TypeError):
        sync.connect("ws://127.0.0.1:1/", redirect_origins="http://a.test")
