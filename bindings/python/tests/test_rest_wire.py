"""What a server receives from requests, byte by byte and connection by connection."""

from __future__ import annotations

import asyncio
import ctypes
import gzip
import io
import queue
import re
import socket
import threading
from typing import Any

import pytest
from wire import OK, head_lines, read

import librealtime
from librealtime import sync
from librealtime._core import abi
from librealtime._core.handle import new_loop
from librealtime._core.loader import lib
from librealtime._rest import callbacks as c


def test_one_read_may_decode_to_any_size(serve: Any) -> None:
    size = 80 << 20
    packed = gzip.compress(bytes(size))

    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}"
            connection.sendall(head.encode() + b"\r\n\r\n" + packed)

    server = serve(answer)
    with sync.RESTClient(server.url, max_body_size=None, timeout=60) as client:
        assert len(client.get("/").content) == size
        with client.stream("GET", "/") as response:
            assert sum(map(len, response.iter_bytes())) == size
    client = sync.RESTClient(server.url, max_body_size=1000)
    with client, pytest.raises(librealtime.RealtimeError) as raised:
        client.get("/")
    assert raised.value.name == "RT_ERROR_TOO_LARGE"


def test_headers_are_compared_by_bytes(serve: Any) -> None:
    """Equal characters may have different bytes (G1)."""
    seen: list[bytes] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            seen.extend(line for line in request.split(b"\r\n") if line.startswith(b"X-Name"))
            connection.sendall(OK)

    with sync.RESTClient(serve(answer).url) as client:
        for value in ("\u00e9", "e\u0301"):
            client.get("/", headers={"X-Name": value})
    assert seen == [b"X-Name: \xc3\xa9", b"X-Name: e\xcc\x81"]


def test_a_streamed_head_tells_attempts_and_retry_after(serve: Any) -> None:
    count = 0

    def answer(connection: socket.socket, number: int) -> None:
        nonlocal count
        while read(connection):
            count += 1
            status = b"503 Busy" if count < 3 else b"501 No\r\nRetry-After: 7"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    client = sync.RESTClient(serve(answer).url, base_delay=0.001)
    with client, client.stream("GET", "/") as response:
        assert (response.status_code, response.attempts) == (501, 3)
        assert response.retry_after == 7


def test_a_head_request_has_no_body(serve: Any) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            connection.sendall(OK)

    client = sync.RESTClient(serve(answer).url)
    with client, pytest.raises(librealtime.InvalidArgument, match="HEAD"):
        client.request("HEAD", "/", content=b"x")


def test_a_proxys_password_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an unencoded one from the environment (G11)."""
    monkeypatch.setenv("http_proxy", "http://me:s3c#ret@127.0.0.1:3128")
    client = sync.RESTClient(attempts=1)
    with client, pytest.raises(librealtime.RealtimeError) as raised:
        client.get("http://example.invalid/")
    assert "ret@" not in str(raised.value) and "s3c" not in str(raised.value)


def test_a_token_is_for_the_base_alone(serve: Any) -> None:
    """A path from elsewhere may name another host."""
    seen: list[bool] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            seen.append(b"Bearer secret" in request)
            connection.sendall(OK)

    base, other = serve(answer), serve(answer)
    with sync.SpreadbotREST(base.url, access_token="secret") as rest:
        for where in ("a", base.url + "/b", other.url + "/c"):
            rest.get_data(where)
    assert seen == [True, True, False]


def field(request: bytes, name: bytes) -> bytes | None:
    found = re.search(rb"(?i)\n" + name + rb": *([^\r]*)", request)
    return found[1] if found else None


def test_the_same_client_may_fetch_its_credentials(run: Any, serve: Any) -> None:
    """While it does so, a redirect waits for them."""
    seen: list[tuple[bytes, bytes | None]] = []
    asked = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            path, shown = request.split()[1], field(request, b"Authorization")
            seen.append((path, shown))
            if path == b"/slow":
                asked.wait(60)
                connection.sendall(
                    b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
                )
            elif path == b"/token" or shown == b"Bearer ok":
                connection.sendall(OK)
            else:
                connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    server = serve(answer)

    async def main() -> None:
        async def fetch() -> str:
            asked.set()
            await asyncio.sleep(0.2)
            return (await client.get("/token")).text

        async with librealtime.RESTClient(
            server.url, bearer_token="old", credentials=fetch
        ) as client:
            all_ = await asyncio.gather(client.get("/slow"), client.get("/x"))
            assert [response.text for response in all_] == ["ok", "ok"]

    run(main())
    assert sorted(seen[:2]) == [(b"/slow", b"Bearer old"), (b"/x", b"Bearer old")]
    assert seen[2] == (b"/token", b"Bearer old")
    assert sorted(seen[3:]) == [(b"/there", b"Bearer ok"), (b"/x", b"Bearer ok")]


def test_a_waiting_body_is_not_asked_because_of_the_answer(serve: Any) -> None:
    """Holding back and resuming a response must not ask the request's body for data."""
    size = 16 << 20

    def answer(connection: socket.socket, number: int) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        connection.sendall(bytes(size))
        connection.recv(65536)

    asked: list[bool] = []
    come = 0

    def source(buffer: int, capacity: int, user: int) -> int:
        asked.append(True)
        return -1 if come < size else 0

    def took(data: int, count: int, user: int) -> None:
        nonlocal come
        come += count

    def check(status: int) -> None:
        assert status == 0, lib.rt_last_error()

    ended: list[bool] = []
    on_source = abi.rt_rest_source_fn(source)
    on_body = abi.rt_rest_body_fn(took)
    on_done = abi.rt_rest_done_fn(lambda response, user: ended.append(True))
    loop, client, request = new_loop(), ctypes.c_void_p(), ctypes.c_void_p()
    number = ctypes.c_uint64()
    check(lib.rt_rest_new(loop, serve(answer).url.encode(), ctypes.byref(client)))
    check(lib.rt_rest_request_new(client, b"POST", b"/", ctypes.byref(request)))
    none = c.NO_DESTROY
    check(lib.rt_rest_request_set_body_source(request, -1, on_source, c.NO_REWIND, None, none))
    check(lib.rt_rest_request_on_body(request, on_body, None, none))
    check(lib.rt_rest_request_send(request, on_done, None, none, ctypes.byref(number), None))
    while come < size and not ended:
        check(lib.rt_loop_dispatch(loop, 1000))
    assert (come, len(asked)) == (size, 1)
    check(lib.rt_rest_cancel(client, number))
    while not ended:
        check(lib.rt_loop_dispatch(loop, 1000))
    lib.rt_rest_request_free(request)
    lib.rt_rest_free(client)


def test_the_target_is_sent_unchanged(serve: Any) -> None:
    """Over reused connections and handles, to one server and to another."""
    requests: list[list[str]] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            requests.append(head_lines(request))
            connection.sendall(OK)

    first, second = serve(answer), serve(answer)
    targets = ["/", "/a//b/?", "/a;b=1/%2e%2E/c?x=%20&y=//&z", "/?", "/" + "x" * 5000]
    with sync.RESTClient(first.url) as client:
        for target in targets:
            for server in (first, second, first):
                assert client.get(server.url + target).text == "ok"
    assert len(requests) == 15
    for index, lines in enumerate(requests):
        server = second if index % 3 == 1 else first
        assert lines[0] == f"GET {targets[index // 3]} HTTP/1.1"
        assert lines[1] == f"Host: {server.url.removeprefix('http://')}"


def test_a_proxy_receives_the_whole_url(serve: Any) -> None:
    """A request without TLS is sent to the proxy itself (RFC 9112 §3.2.2)."""
    requests: list[list[str]] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            requests.append(head_lines(request))
            connection.sendall(OK)

    proxy = serve(answer)
    with sync.RESTClient("http://one.invalid:81/v1", proxy=proxy.url) as client:
        assert client.get("/a?b=c").url == "http://one.invalid:81/v1/a?b=c"
        assert client.get("http://user:secret@two.invalid/#part").text == "ok"
        assert client.get("http://[::1]:8080/x").text == "ok"
        assert client.get("http://three.invalid/").text == "ok"
    assert [lines[0] for lines in requests] == [
        "GET http://one.invalid:81/v1/a?b=c HTTP/1.1",
        "GET http://two.invalid/ HTTP/1.1",
        "GET http://[::1]:8080/x HTTP/1.1",
        "GET http://three.invalid/ HTTP/1.1",
    ]
    assert [lines[1] for lines in requests] == [
        "Host: one.invalid:81",
        "Host: two.invalid",
        "Host: [::1]:8080",
        "Host: three.invalid",
    ]
    # On the connection that was made for the first request.
    assert len(proxy._connections) == 1


def test_codings_are_offered_once(serve: Any) -> None:
    """The ones the library decodes, or the caller's own, or none."""
    requests: list[list[str]] = []

    def answer(connection: socket.socket, number: int) -> None:
        while request := read(connection):
            requests.append(head_lines(request))
            if any(line.startswith("Accept-Encoding: deflate, gzip") for line in requests[-1]):
                body = gzip.compress(b"small")
                head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
                connection.sendall(head % len(body) + body)
            else:
                connection.sendall(OK)

    server = serve(answer)
    with sync.RESTClient(server.url) as client:
        assert client.get("/").text == "small"
        assert client.get("/", headers={"accept-encoding": "identity"}).text == "ok"
        assert client.get("/").text == "small"
    with sync.RESTClient(server.url, compression=False) as client:
        assert client.get("/").text == "ok"
    offers = [
        [line for line in lines if line.lower().startswith("accept-encoding")] for lines in requests
    ]
    assert [len(found) for found in offers] == [1, 1, 1, 0]
    assert offers[1] == ["accept-encoding: identity"]


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_body_waits_for_the_servers_word(serve: Any, method: str, streamed: bool) -> None:
    """Expect: 100-continue (RFC 9110 §10.1.1)."""
    seen: queue.Queue[bytes] = queue.Queue()

    def answer(connection: socket.socket, number: int) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (more := connection.recv(1)):
                return
            head += more
        seen.put(head)
        path = head.split()[1]
        if path == b"/yes":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif path != b"/silent":
            status = path[1:] + b" No\r\nContent-Length: 4\r\n\r\n"
            connection.sendall(b"HTTP/1.1 " + status + b"nope")
            # Kept open; the body is no longer sent.
            seen.put(connection.recv(10))
            return
        body = b""
        while len(body) < 5000:
            body += connection.recv(65536)
        # Otherwise the next request could be sent before the end of this connection is noticed.
        connection.sendall(OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))

    server = serve(answer)
    with sync.RESTClient(server.url) as client:

        def ask(path: str) -> tuple[int, bytes, int]:
            body = io.BytesIO(bytes(5000)) if streamed else bytes(5000)
            headers = {"Expect": "100-continue"}
            response = client.request(method, path, content=body, headers=headers)
            return response.status_code, response.content, response.attempts

        for status in (417, 401):
            assert ask(f"/{status}") == (status, b"nope", 1)
            assert seen.get(timeout=30).lower().count(b"\r\nexpect: 100-continue\r\n") == 1
            assert seen.get(timeout=30) == b""
        assert ask("/yes") == (200, b"ok", 1)
        # After a second it is sent without the server's consent.
        assert ask("/silent") == (200, b"ok", 1)
    assert seen.qsize() == 2
