"""Trust, proxies and addresses, as options of a Network and as shortcuts of connect."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import ipaddress
import os
import pickle
import socket
import ssl
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from servers import WebSocketServer, raw_server, read_exactly, read_head, relay

import librealtime
from librealtime import (
    ConnectFailed,
    HTTPStatusError,
    InvalidProxy,
    Network,
    ProtocolError,
    ProxyError,
)
from librealtime.sync import EventSource, LongPoll, RESTClient, Spreadbot, connect

REFUSAL = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"


def echoes(url, **options):
    with connect(url, **options) as ws:
        ws.send("hello")
        return ws.recv() == "hello"


def connect_proxy(seen):
    """A proxy for one CONNECT request, which it stores in `seen`."""

    def serve_one(connection):
        head = read_head(connection)
        seen.append(head)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        relay(connection, int(head.split()[1].rpartition(b":")[2]))

    return serve_one


def socks5_proxy(seen):
    """A SOCKS5 proxy (RFC 1928) that requires user and password (RFC 1929)."""

    def serve_one(connection):
        _, methods = read_exactly(connection, 2)
        assert 2 in read_exactly(connection, methods)
        connection.sendall(b"\x05\x02")
        _, length = read_exactly(connection, 2)
        user = read_exactly(connection, length)
        password = read_exactly(connection, read_exactly(connection, 1)[0])
        connection.sendall(b"\x01\x00")
        kind = read_exactly(connection, 4)[3]
        size = read_exactly(connection, 1)[0] if kind == 3 else 4
        host = read_exactly(connection, size)
        port = int.from_bytes(read_exactly(connection, 2), "big")
        seen.append((user, password, host.decode() if kind == 3 else ipaddress.ip_address(host)))
        connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
        relay(connection, port)

    return serve_one


def at(url, scheme):
    return f"{scheme}://{urlsplit(url).netloc}"


def test_proxies(server):
    seen = []
    with raw_server(connect_proxy(seen)) as url:
        assert echoes(server.url + "/echo", proxy=f"http://me:secret@{urlsplit(url).netloc}")
    assert seen[0].startswith(b"CONNECT 127.0.0.1:%d " % server.port)
    assert base64.b64encode(b"me:secret") in seen[0]
    with raw_server(socks5_proxy(seen)) as url:
        proxy = f"socks5h://u:p@{urlsplit(url).netloc}"
        assert echoes(f"ws://name.invalid:{server.port}/echo", network=Network(proxy=proxy))
    assert seen[1] == (b"u", b"p", "name.invalid")


def test_proxies_of_the_environment(server, monkeypatch):
    seen = []
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with raw_server(connect_proxy(seen)) as url:
        monkeypatch.setenv("http_proxy", at(url, "http"))
        assert echoes(server.url + "/echo")
        assert len(seen) == 1
        # The proxy has stopped by now.
        assert echoes(server.url + "/echo", proxy=None)
        assert echoes(server.url + "/echo", network=Network(no_proxy=["127.0.0.1"]))
    with pytest.raises(librealtime.ConnectFailed):
        echoes(server.url + "/echo")


def test_international_names_without_a_proxy(server, monkeypatch):
    resolve = {("zürich.invalid", server.port): "127.0.0.1"}
    url = f"ws://zürich.invalid:{server.port}/echo"
    dead = "http://127.0.0.1:1"
    assert echoes(url, network=Network(proxy=dead, no_proxy=["ZÜRICH.invalid"], resolve=resolve))
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", dead)
    with pytest.raises(ProxyError):
        connect(url, network=Network(resolve=resolve))
    monkeypatch.setenv("no_proxy", f"other.invalid,zürich.invalid:{server.port}")
    assert echoes(url, network=Network(resolve=resolve))


def test_a_proxy_that_refuses():
    with raw_server(lambda connection: (read_head(connection), connection.sendall(REFUSAL))) as url:
        with pytest.raises(ProxyError, match="403") as raised:
            connect("ws://127.0.0.1:9/", proxy=at(url, "http"))
        assert isinstance(raised.value, ConnectionError)
        assert raised.value.http_status == 403


def refuses(connection):
    read_head(connection)
    connection.sendall(REFUSAL)


def test_a_request_tells_by_which_status_a_proxy_refused():
    with (
        raw_server(refuses) as url,
        RESTClient("https://127.0.0.1:9/", proxy=at(url, "http"), attempts=1) as client,
        pytest.raises(ProxyError, match="answered 403 to CONNECT") as raised,
    ):
        client.get("/")
    assert raised.value.http_status == 403
    assert raised.value.response is None
    assert pickle.loads(pickle.dumps(raised.value)).http_status == 403
    with (
        RESTClient("https://127.0.0.1:9/", proxy="http://127.0.0.1:1", attempts=1) as client,
        pytest.raises(ProxyError) as raised,
    ):
        client.get("/")
    assert raised.value.http_status is None


def test_sources_and_spreadbot_tell_by_which_status_a_proxy_refused():
    for kind in (EventSource, LongPoll, Spreadbot):
        told = []
        with (
            raw_server(refuses) as url,
            contextlib.closing(kind("https://127.0.0.1:9", proxy=at(url, "http"))) as source,
        ):
            source.on_error = told.append
            if kind is Spreadbot:
                source.establish_connection("", wait=False)
            while not told:
                with contextlib.suppress(TimeoutError):
                    source.recv(timeout=0.1)
        error = told[0].error
        assert isinstance(error, ProxyError)
        assert error.http_status == 403


def test_a_proxy_that_wants_credentials_is_named():
    """The error names the proxy, not the server."""

    def asks(connection):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

    with raw_server(asks) as url, RESTClient(proxy=at(url, "http")) as client:
        response = client.get("https://127.0.0.1:9/")
        named = f" by the proxy {urlsplit(url).netloc}$"
        with pytest.raises(HTTPStatusError, match=named):
            response.raise_for_status()


def test_a_dead_proxy_is_named(server):
    """No proxy listens there: the error must blame neither the server nor its name."""
    for scheme in ("http", "socks5h"):
        proxy = f"{scheme}://me:secret@127.0.0.1:1"
        with pytest.raises(ProxyError, match=r"through the proxy 127\.0\.0\.1:1: ") as raised:
            connect(server.url, proxy=proxy)
        assert "secret" not in str(raised.value)
        text = r"name\.invalid:80 through the proxy 127\.0\.0\.1:1: "
        with (
            RESTClient("http://name.invalid/", proxy=proxy, attempts=1) as client,
            pytest.raises(ProxyError, match=text),
        ):
            client.get("/")


def test_a_dead_proxy_of_the_environment_is_named(server, monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "127.0.0.1:1")
    with pytest.raises(ProxyError, match=r"through the proxy 127\.0\.0\.1:1: "):
        connect(server.url)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/99,127.0.0.0/8")
    assert echoes(server.url + "/echo")


@pytest.mark.parametrize(
    "proxy",
    ["", "nonsense", "ftp://host", "http://a b", "http://h\0", "http://h:0", "http://h/path"],
)
def test_invalid_proxies(server, proxy):
    with pytest.raises((InvalidProxy, librealtime.InvalidArgument)):
        connect(server.url, proxy=proxy)


def test_addresses(server, tmp_path):
    port = server.port
    resolve = {("name.invalid", port): "127.0.0.1"}
    assert echoes(f"ws://name.invalid:{port}/echo", network=Network(resolve=resolve))
    # An international name, in any form.
    for name in ("zürich.invalid", "ZÜRICH.invalid", "xn--zrich-kva.invalid"):
        network = Network(resolve={(name, port): "127.0.0.1"})
        assert echoes(f"ws://zürich.invalid:{port}/echo", network=network)
    with pytest.raises(ConnectFailed):
        connect(server.url, network=Network(ip_version=6), open_timeout=5)
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.close()
    network = Network(unix_socket=path)
    with pytest.raises(ConnectFailed, match=f"host:80 by the socket {path}: "):
        connect("ws://host/", network=network)
    with (
        RESTClient("http://host/", network=network, attempts=1) as client,
        pytest.raises(ConnectFailed, match=f"host:80 by the socket {path}: "),
    ):
        client.get("/")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"SSH-2.0-x\r\n\r\n", "HTTP/0.9"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "chunk"),
    ],
)
def test_an_answer_that_is_not_http_is_reported(answer, text):
    def serve_one(connection):
        read_head(connection)
        connection.sendall(answer)

    with raw_server(serve_one) as url, RESTClient(at(url, "http"), attempts=1) as client:
        with pytest.raises(ProtocolError, match=text) as raised:
            client.get("/")
        assert not isinstance(raised.value, ConnectFailed)
        assert raised.value.name == "RT_ERROR_PROTOCOL"
        assert f"the response from {urlsplit(url).netloc} is not valid HTTP: " in str(raised.value)


def test_a_unix_socket(run, tmp_path):
    from websockets.asyncio.server import unix_serve

    async def echo(ws):
        assert ws.request.headers["Host"] == "example.org"
        async for message in ws:
            await ws.send(message)

    async def main():
        path = tmp_path / "socket"
        async with unix_serve(echo, str(path)):
            network = Network(unix_socket=path)
            async with librealtime.connect("ws://example.org/", network=network) as ws:
                await ws.send("through the file")
                assert await ws.recv() == "through the file"

    run(main())


@pytest.fixture
def pin(authority, tmp_path):
    """A TLS server and the pin of its key."""
    leaf = authority.issue_cert("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    with WebSocketServer(context) as server:
        yield server, "sha256//" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def test_pinned_keys(pin, ca_file):
    server, good = pin
    wrong = "sha256//" + base64.b64encode(bytes(32)).decode()
    url = server.url + "/echo"
    assert echoes(url, network=Network(ca_file=ca_file, pinned_public_keys=[wrong, good]))
    with pytest.raises(ConnectFailed) as raised:
        connect(url, network=Network(ca_file=ca_file, pinned_public_keys=[wrong]))
    assert raised.value.name == "RT_ERROR_TLS"


def test_trust(tls_server, wrong_host_server, ca_file):
    url = tls_server.url + "/echo"
    assert echoes(url, network=Network(ca_file=ca_file, min_tls_version="1.3"))
    assert echoes(url, network=Network(proxy=None), ca_file=ca_file)
    with pytest.raises(ConnectFailed):
        connect(url, network=Network())
    with pytest.raises(ConnectFailed):
        connect(wrong_host_server.url + "/echo", ca_file=ca_file)
    careless = Network(insecure_skip_verification=True)
    assert echoes(wrong_host_server.url + "/echo", network=careless)


def test_the_oldest_tls(authority, ca_file):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with WebSocketServer(context) as server:
        assert echoes(server.url + "/echo", ca_file=ca_file)
        with pytest.raises(ConnectFailed):
            connect(server.url, network=Network(ca_file=ca_file, min_tls_version="1.3"))


def test_a_client_certificate(authority, ca_file, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("me@example.org")
    whole, chain, key = (tmp_path / name for name in ("whole.pem", "chain.pem", "key.pem"))
    mine.private_key_and_cert_chain_pem.write_to_path(str(whole))
    mine.private_key_pem.write_to_path(str(key))
    for pem in mine.cert_chain_pems:
        pem.write_to_path(str(chain), append=True)
    with WebSocketServer(context) as server:
        url = server.url + "/echo"
        assert echoes(url, network=Network(ca_file=ca_file, client_certificate=whole))
        both = Network(ca_file=ca_file, client_certificate=chain, client_key=key)
        assert echoes(url, network=both)
        with pytest.raises(librealtime.RealtimeError):
            echoes(url, ca_file=ca_file)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"min_tls_version": "1.1"}, "min_tls_version"),
        ({"ip_version": 5}, "ip_version"),
        ({"ip_version": True}, "ip_version"),
        ({"no_proxy": ["a", "10.0.0.0/99"]}, "10.0.0.0/99"),
        ({"pinned_public_keys": ["sha1//x"]}, "pin"),
        ({"unix_socket": "x" * 200}, "107"),
        ({"resolve": {("h", 0): "127.0.0.1"}}, "port"),
        ({"resolve": {("h", 1): "name"}}, "address"),
        ({"tcp_keep_alive": -0.5}, "tcp_keep_alive"),
        ({"receive_buffer": 0}, "receive_buffer"),
        ({"ca_path": ""}, "ca_path is empty"),
        ({"client_key": "x"}, "client_certificate"),
        ({"client_certificate": "a\0b"}, "client_certificate"),
    ],
    ids=repr,
)
def test_networks_that_cannot_be(server, options, culprit):
    with pytest.raises(librealtime.InvalidArgument, match=culprit):
        connect(server.url + "/echo", network=Network(**options))


def probe_times(port):
    """Seconds until the first probe and between probes, for this process's sockets to a port."""
    for name in os.listdir("/proc/self/fd"):
        # Descriptors that are not sockets are refused.
        with contextlib.suppress(OSError):
            end = socket.socket(fileno=int(name))
            try:
                if end.getpeername()[1:2] == (port,):
                    yield [
                        end.getsockopt(socket.IPPROTO_TCP, option)
                        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)
                    ]
            finally:
                end.detach()


def test_the_kernel_probes_as_often_as_is_said(server):
    with connect(server.url + "/echo", network=Network(tcp_keep_alive=7.9)):
        assert list(probe_times(urlsplit(server.url).port)) == [[7, 7]]


def test_networks_of_the_wrong_type(server):
    for options in (
        {"pinned_public_keys": "sha256//x"},
        {"no_proxy": "a,b"},
        {"proxy": 3},
        {"resolve": [("h", 1, "192.0.2.1")]},
    ):
        with pytest.raises(TypeError):
            connect(server.url, network=Network(**options))
    with pytest.raises(TypeError, match="a Network is expected"):
        connect(server.url, network="eth0")


def test_secrets_are_not_shown():
    network = Network(proxy="http://me:secret@host", client_key_password="secret")
    assert "secret" not in repr(network)
