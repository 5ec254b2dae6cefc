"""The handshake's request, the server's refusals, and redirects."""

from __future__ import annotations

import base64
import pickle

import pytest
from servers import answers, raw_server

import librealtime
from librealtime import Headers, InvalidStatus, Network, SecurityError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def requested(run, server, **options):
    """The request that the server receives."""

    async def main():
        async with librealtime.connect(server.url + "/record", **options):
            pass

    run(main())
    return server.requests.get(timeout=30)[0].headers


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def redirect(location, status=302):
    line = b"" if location is None else f"Location: {location}\r\n".encode()
    return answers(b"HTTP/1.1 %d Moved\r\n%sContent-Length: 0\r\n\r\n" % (status, line))


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"origin": "https://example.org"}, "Origin", "https://example.org"),
        ({"user_agent_header": "probe/1"}, "User-Agent", "probe/1"),
        ({}, "User-Agent", "librealtime/" + librealtime.__version__),
        ({"additional_headers": {"User-Agent": "mine"}}, "User-Agent", "mine"),
        ({"cookies": {"a": "1", "b": "x=y"}}, "Cookie", "a=1; b=x=y"),
        ({"auth": ("me", "p:w")}, "Authorization", basic("me", "p:w")),
        ({"bearer_token": "abc.def"}, "Authorization", "Bearer abc.def"),
        ({}, "Authorization", None),
        ({}, "Origin", None),
        ({}, "Cookie", None),
    ],
    ids=repr,
)
def test_headers_with_an_option_of_their_own(run, own_server, options, name, value):
    assert requested(run, own_server, **options).get(name) == value


def test_details_of_a_refusal(run):
    answer = (
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nSet-Cookie: a=1\r\n"
        b"set-cookie: b=\xe9\r\nX-Empty:\r\nContent-Length: 5\r\n\r\nlater"
    )
    with raw_server(answers(answer)) as url, pytest.raises(InvalidStatus, match="429") as raised:
        run(librealtime.connect(url)._connect())
    response = raised.value.response
    assert (response.status_code, response.reason_phrase) == (429, "Too Many Requests")
    assert response.body == b"later"
    assert response.headers["retry-after"] == "7"
    assert response.headers.get_all("SET-COOKIE")[0] == "a=1"
    assert len(response.headers.get_all("Set-Cookie")) == 2
    assert response.headers["X-Empty"] == ""
    assert "Location" not in response.headers
    with raw_server(answers(answer)) as url, pytest.raises(InvalidStatus) as again:
        librealtime.sync.connect(url)
    assert again.value.response == response
    copy = pickle.loads(pickle.dumps(again.value))
    assert copy.response == response
    assert str(copy) == str(again.value)


def test_a_body_of_unknown_length_and_a_large_one(run):
    for head, body, expected in (
        (b"", b"until the end", b"until the end"),
        (b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"Content-Length: 100000\r\n", b"x" * 100_000, b"x" * 65536),
    ):
        answer = b"HTTP/1.1 500 Oops\r\n" + head + b"\r\n" + body
        with raw_server(answers(answer)) as url, pytest.raises(InvalidStatus) as raised:
            run(librealtime.connect(url)._connect())
        assert raised.value.response.body == expected


def test_headers_are_a_mapping():
    headers = Headers([("Via", "a"), ("via", "b"), ("Age", "3")])
    assert dict(headers) == {"via": "a, b", "age": "3"}
    assert len(headers) == 2
    assert list(headers.raw_items()) == [("Via", "a"), ("via", "b"), ("Age", "3")]
    assert headers == Headers(headers.raw_items())
    assert "AGE" in headers
    with pytest.raises(KeyError):
        headers["Date"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(run, server, status):
    async def main(url):
        async with librealtime.connect(url, redirect_origins=[server.url]) as ws:
            await ws.send("there")
            assert await ws.recv() == "there"

    with raw_server(redirect(server.url + "/echo", status)) as url:
        run(main(url))


def test_an_allowed_origin_receives_credentials(run, own_server):
    async def main(url):
        options = {"auth": ("me", "secret"), "cookies": {"a": "b"}, "user_agent_header": "x"}
        options["redirect_origins"] = [own_server.url]
        async with librealtime.connect(url, origin="https://o", **options):
            pass

    with raw_server(redirect(own_server.url + "/record")) as url:
        run(main(url))
    headers = own_server.requests.get(timeout=30)[0].headers
    assert headers["User-Agent"] == "x"
    assert all(name in headers for name in ("Authorization", "Cookie", "Origin"))


def test_redirects_that_are_not_followed(run, server, tls_server, ca_file):
    hops = [redirect("/again")] * 3
    with raw_server(*hops) as url, pytest.raises(SecurityError, match="max_redirects") as raised:
        run(librealtime.connect(url, max_redirects=2)._connect())
    assert raised.value.name == "RT_ERROR_REDIRECT"
    assert isinstance(raised.value, librealtime.InvalidHandshake)
    with raw_server(redirect(None)) as url, pytest.raises(SecurityError, match="Location"):
        librealtime.sync.connect(url)
    with raw_server(redirect("/x")) as url, pytest.raises(InvalidStatus) as refused:
        librealtime.sync.connect(url, max_redirects=0)
    assert refused.value.response.headers["Location"] == "/x"


def test_a_redirect_away_from_tls(run, server, secure_redirect, ca_file):
    target = server.url + "/echo"
    with secure_redirect(target) as url, pytest.raises(SecurityError, match="without TLS"):
        librealtime.sync.connect(url, ca_file=ca_file)
    with (
        secure_redirect(target) as url,
        librealtime.sync.connect(
            url, ca_file=ca_file, allow_insecure_redirects=True, redirect_origins=["*"]
        ) as ws,
    ):
        ws.send("plain")
        assert ws.recv() == "plain"


def test_idle_timeout(run, server):
    async def main():
        async with librealtime.connect(server.url + "/silent", idle_timeout=0.05) as ws:
            with pytest.raises(librealtime.ConnectionClosedError, match="idle_timeout") as raised:
                await ws.recv()
            assert raised.value.name == "RT_ERROR_TIMEOUT"
            assert raised.value.code == 1001

    run(main())


def test_a_network_serves_many(run, server):
    network = Network(ip_version=4, tcp_keep_alive=30, receive_buffer=2**18, tcp_no_delay=False)

    async def main():
        for _ in range(2):
            async with librealtime.connect(server.url + "/echo", network=network) as ws:
                await ws.send("x")
                assert await ws.recv() == "x"

    run(main())
