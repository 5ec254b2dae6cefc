"""Details of an open connection, and of a response that refuses one."""

import contextlib
import errno
import pickle
import socket
import threading

import pytest
from conftest import server_context
from servers import answers, raw_server

import librealtime
from librealtime import Network, Response, sync

BODY = b'{"error": "no seat is free"}'
REFUSAL = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nX-Why: full\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Node: 7\r\n\r\ndata: 1\n\n"


@pytest.fixture
def raw():
    with contextlib.ExitStack() as servers:
        yield lambda *serve: servers.enter_context(raw_server(*serve))


@pytest.fixture
def secure(authority, raw):
    """Answers each request over TLS; yields an https URL."""

    def serving(answer):
        context = server_context(authority, "localhost")

        def serve_one(connection: socket.socket) -> None:
            with context.wrap_socket(connection, server_side=True) as secured:
                answers(answer)(secured)

        return raw(serve_one).replace("ws://127.0.0.1", "https://localhost")

    return serving


def check_refusal(error):
    assert error.response.status_code == 403
    assert error.response.reason_phrase == "Forbidden"
    assert error.response.headers["x-why"] == "full"
    assert error.response.body == BODY
    assert error.system_error == 0


@pytest.mark.parametrize("make", [sync.EventSource, sync.LongPoll])
def test_a_refusal_has_the_servers_explanation(make, raw):
    url = raw(answers(REFUSAL)).replace("ws:", "http:")
    with make(url) as source, pytest.raises(librealtime.StreamRefused) as caught:
        source.recv(timeout=10)
    assert caught.value.http_status == 403
    check_refusal(caught.value)
    check_refusal(pickle.loads(pickle.dumps(caught.value)))


def test_an_error_event_has_it_too(run, raw):
    url = raw(answers(REFUSAL)).replace("ws:", "http:")
    events = []

    async def main():
        async with librealtime.EventSource(url, on_error=events.append) as source:
            with pytest.raises(librealtime.StreamRefused):
                await source.recv()

    run(main())
    assert len(events) == 1
    assert events[0].http_status == 403
    check_refusal(events[0].error)


def test_opened_tells_of_the_connection(secure, ca_file):
    url = secure(STREAM)
    with sync.EventSource(url, network=Network(ca_file=ca_file)) as source:
        assert source.opened is None
        assert source.recv(timeout=10).data == "1"
        opened = source.opened
    assert isinstance(opened.response, Response)
    assert (opened.response.status_code, opened.response.headers["X-Node"]) == (200, "7")
    assert opened.http_version == "HTTP/1.1"
    assert f"https://{opened.remote_address}/" == url.replace("localhost", "127.0.0.1")
    assert opened.local_address.startswith("127.0.0.1:")
    assert opened.tls_version == "TLSv1.3"
    assert opened.tls_cipher.startswith("TLS_")


def test_a_websocket_tells_of_its_connection(tls_server, ca_file):
    with sync.connect(tls_server.url + "/echo", network=Network(ca_file=ca_file)) as ws:
        opened = ws.opened
        assert opened.response.status_code == 101
        assert opened.response.headers["Upgrade"] == "websocket"
        assert opened.remote_address == f"127.0.0.1:{tls_server.port}"
        assert opened.local_address.startswith("127.0.0.1:")
        assert (opened.tls_version, opened.http_version) == ("TLSv1.3", "HTTP/1.1")
        assert opened.tls_cipher.startswith("TLS_")


def test_each_answer_describes_its_own_connection(raw):
    """A single handle of libcurl serves them all."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: %s\r\n\r\n"
    seen = []

    def serve_one(connection: socket.socket) -> None:
        host, port = connection.getpeername()
        seen.append(f"{host}:{port}")
        answers(answer % b"keep-alive")(connection)
        answers(answer % b"close")(connection)

    urls = [raw(serve_one, serve_one).replace("ws:", "http:") for _ in range(2)]
    with sync.RESTClient() as client:
        for url in [*urls, *urls]:
            first, second = client.get(url).opened, client.get(url).opened
            assert f"http://{first.remote_address}/" == url
            assert first.local_address == second.local_address == seen[-1]
    assert len(set(seen)) == 4


def test_an_answer_by_a_unix_socket_tells_its_path(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                answers(b"HTTP/1.1 204 No Content\r\n\r\n")(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        with sync.RESTClient(network=Network(unix_socket=path)) as client:
            assert client.get("http://host/").opened.remote_address == str(path)
        thread.join()


def test_the_systems_error_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    source = sync.EventSource(f"http://127.0.0.1:{port}/", reconnect=False)
    with source, pytest.raises(librealtime.ConnectFailed) as caught:
        source.recv(timeout=10)
    assert caught.value.system_error == caught.value.errno == errno.ECONNREFUSED
    assert caught.value.response is None
