"""Bad input from the caller: raises an exception of the right family, with the status and a message
that names the culprit, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import pickle
import uuid

import pytest

import librealtime
from librealtime import ConnectFailed, Deflate, InvalidArgument, InvalidURI, sync
from librealtime._core.naming import kind_of

URLS = [
    ("", "RT_ERROR_INVALID_URL"),
    ("nonsense", "RT_ERROR_INVALID_URL"),
    ("ws://", "RT_ERROR_INVALID_URL"),
    ("ws://host:port/", "RT_ERROR_INVALID_URL"),
    ("ws://host:65536/", "RT_ERROR_INVALID_URL"),
    ("ws://a b/", "RT_ERROR_INVALID_URL"),
    ("ws://host/\r\nX: y", "RT_ERROR_INVALID_URL"),
    ("ws://host/\0", "RT_ERROR_INVALID_URL"),
    ("ws://host/#fragment", "RT_ERROR_INVALID_URL"),
    ("ws://host/\ud800", "RT_ERROR_INVALID_UTF8"),
    ("http://host/", "RT_ERROR_UNSUPPORTED_SCHEME"),
    ("file:///etc/passwd", "RT_ERROR_UNSUPPORTED_SCHEME"),
]
OPTIONS = [
    ({"subprotocols": ["two words"]}, "RT_ERROR_INVALID_SUBPROTOCOL", "two words"),
    ({"subprotocols": [""]}, "RT_ERROR_INVALID_SUBPROTOCOL", "subprotocol"),
    ({"subprotocols": ["a\r\nb"]}, "RT_ERROR_INVALID_SUBPROTOCOL", "subprotocol"),
    ({"subprotocols": ["a\0"]}, "RT_ERROR_INVALID_SUBPROTOCOL", "NUL"),
    ({"subprotocols": ["chat", "chat"]}, "RT_ERROR_INVALID_SUBPROTOCOL", "chat"),
    ({"additional_headers": {"A": "x\r\nB: y"}}, "RT_ERROR_INVALID_HEADER", '"A"'),
    ({"additional_headers": {"A": "x\ny"}}, "RT_ERROR_INVALID_HEADER", '"A"'),
    ({"additional_headers": {"A": "x\0"}}, "RT_ERROR_INVALID_HEADER", "NUL"),
    ({"additional_headers": {"A\0": "x"}}, "RT_ERROR_INVALID_HEADER", "NUL"),
    ({"additional_headers": {"A B": "x"}}, "RT_ERROR_INVALID_HEADER", "A B"),
    ({"additional_headers": {"": "x"}}, "RT_ERROR_INVALID_HEADER", "header"),
    ({"additional_headers": {"Sec-WebSocket-Key": "x"}}, "RT_ERROR_INVALID_HEADER", "Key"),
    ({"additional_headers": {"A": "\udc80"}}, "RT_ERROR_INVALID_UTF8", "surrogate"),
    ({"ca_file": ""}, "RT_ERROR_INVALID_ARGUMENT", "ca_file"),
    ({"ca_file": "a\0b"}, "RT_ERROR_INVALID_ARGUMENT", "ca_file"),
    ({"open_timeout": 0}, "RT_ERROR_INVALID_ARGUMENT", "open_timeout"),
    ({"open_timeout": -1}, "RT_ERROR_INVALID_ARGUMENT", "open_timeout"),
    ({"close_timeout": float("nan")}, "RT_ERROR_INVALID_ARGUMENT", "close_timeout"),
    ({"ping_interval": float("inf")}, "RT_ERROR_INVALID_ARGUMENT", "ping_interval"),
    ({"ping_timeout": 1e300}, "RT_ERROR_INVALID_ARGUMENT", "up to a hundred years"),
    ({"max_size": 0}, "RT_ERROR_INVALID_ARGUMENT", "max_size"),
    ({"max_size": 2**64}, "RT_ERROR_INVALID_ARGUMENT", "max_size"),
    ({"max_header_size": 10}, "RT_ERROR_INVALID_ARGUMENT", "max_header_size"),
    ({"max_frame_size": -1}, "RT_ERROR_INVALID_ARGUMENT", "max_frame_size"),
    ({"max_queue": 0}, "RT_ERROR_INVALID_ARGUMENT", "max_queue"),
    ({"max_queue_bytes": -5}, "RT_ERROR_INVALID_ARGUMENT", "max_queue_bytes"),
    ({"write_limit": -1}, "RT_ERROR_INVALID_ARGUMENT", "write_limit"),
    ({"compression": "zip"}, "RT_ERROR_INVALID_ARGUMENT", "zip"),
    ({"compression": Deflate(level=10)}, "RT_ERROR_INVALID_ARGUMENT", "level"),
    ({"compression": Deflate(min_size=-1)}, "RT_ERROR_INVALID_ARGUMENT", "min_size"),
    ({"compression": Deflate(max_inflate_ratio=0)}, "RT_ERROR_INVALID_ARGUMENT", "ratio"),
    ({"compression": Deflate(client_max_window_bits=8)}, "RT_ERROR_INVALID_ARGUMENT", "client"),
    ({"compression": Deflate(server_max_window_bits=16)}, "RT_ERROR_INVALID_ARGUMENT", "server"),
]
WRONG_TYPES = [
    {"cookies": "name=value"},
    {"subprotocols": "chat"},
    {"subprotocols": [b"chat"]},
    {"additional_headers": {"A": b"x"}},
    {"additional_headers": {"A": 1}},
    {"open_timeout": "3"},
    {"ping_interval": True},
    {"max_size": 1.5},
    {"write_limit": "1"},
    {"max_queue": "1"},
]
CLOSES = [
    (999, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1004, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1005, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1006, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1015, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (2999, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (5000, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (-1, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1000 + 2**16, "", "RT_ERROR_INVALID_CLOSE_CODE"),
    (1000, "x" * 124, "RT_ERROR_CLOSE_REASON_TOO_LONG"),
    (1000, "é" * 62, "RT_ERROR_CLOSE_REASON_TOO_LONG"),
    (1000, "\udc00", "RT_ERROR_INVALID_UTF8"),
    (1000, "a\0b", "RT_ERROR_INVALID_ARGUMENT"),
    (0, "no code", "RT_ERROR_INVALID_ARGUMENT"),
]


async def connect(url, **options):
    async with librealtime.connect(url, **options):
        pass


@pytest.mark.parametrize(("url", "name"), URLS, ids=repr)
def test_urls(run, url, name):
    family = InvalidArgument if name == "RT_ERROR_INVALID_UTF8" else InvalidURI
    with pytest.raises(family) as raised:
        run(connect(url))
    assert raised.value.name == name
    assert isinstance(raised.value, ValueError)
    assert raised.value.message
    with pytest.raises(family) as raised:
        librealtime.sync.connect(url)
    assert raised.value.name == name


@pytest.mark.parametrize(("options", "name", "culprit"), OPTIONS, ids=repr)
def test_options(run, server, options, name, culprit):
    with pytest.raises(InvalidArgument) as raised:
        run(connect(server.url + "/echo", **options))
    assert raised.value.name == name
    assert culprit in str(raised.value)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(InvalidArgument) as raised:
        librealtime.sync.connect(server.url + "/echo", **options)
    assert raised.value.name == name


@pytest.mark.parametrize("options", WRONG_TYPES, ids=repr)
def test_options_of_the_wrong_type(run, server, options):
    with pytest.raises(TypeError):
        run(connect(server.url + "/echo", **options))


@pytest.mark.parametrize(("code", "reason", "name"), CLOSES, ids=repr)
def test_closing_with_invalid_codes_and_reasons(run, server, code, reason, name):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            with pytest.raises(InvalidArgument) as raised:
                await ws.close(code, reason)
            assert raised.value.name == name
            await ws.send("still open")
            assert await ws.recv() == "still open"

    run(main())


def test_closing_with_the_wrong_types(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for code, reason in (("1000", ""), (1000.5, ""), (1000, b"bye"), (None, "")):
                with pytest.raises(TypeError):
                    await ws.close(code, reason)

    run(main())


def test_text_that_cannot_be_encoded_as_utf8(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for text in ("\ud800", "before \udfff after", "\ud83d \ude00"):
                with pytest.raises(InvalidArgument, match="lone surrogate at index") as raised:
                    await ws.send(text)
                assert raised.value.name == "RT_ERROR_INVALID_UTF8"
            await ws.send("🙂")
            assert await ws.recv() == "🙂"

    run(main())


def test_two_receivers_at_once(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            first = asyncio.ensure_future(ws.recv())
            await asyncio.sleep(0)
            with pytest.raises(librealtime.ConcurrencyError, match="another task is receiving"):
                await ws.recv()
            await ws.send("for the first")
            assert await first == "for the first"

    run(main())


def test_receiving_where_messages_go_to_a_callback(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo", on_message=print) as ws:
            with pytest.raises(librealtime.InvalidState, match="passes its messages to on_message"):
                await ws.recv()

    run(main())


def test_errors_can_be_pickled(run):
    with pytest.raises(InvalidURI) as raised:
        run(connect("nonsense"))
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is InvalidURI
    assert (copy.status, copy.name, str(copy)) == (
        raised.value.status,
        raised.value.name,
        str(raised.value),
    )
    closed = librealtime.ConnectionClosedError(-14, "it was closed", 3000, "why")
    copy = pickle.loads(pickle.dumps(closed))
    assert (copy.code, copy.reason, copy.name) == (3000, "why", "RT_ERROR_CLOSED")


@pytest.mark.parametrize(
    ("option", "culprit"),
    [
        ({"auth": "user:password"}, r"auth is a str; \(user, password\) is expected"),
        ({"auth": ("user",)}, r"auth is a tuple; \(user, password\) is expected"),
        ({"auth": ("user", None)}, "the password of auth is None; a str is expected"),
        ({"bearer_token": b"token"}, "bearer_token is a bytes; a str is expected"),
        ({"bearer_token": ("user", "password")}, "bearer_token is a tuple; a str is expected"),
        ({"cookies": "a=b"}, "cookies is a str; a mapping is expected"),
        ({"headers": "A: b"}, "headers is a str, not a mapping or"),
        ({"headers": ["ab"]}, "headers is a list, not a mapping or"),
        ({"headers": 5}, "headers is an int, not a mapping or"),
    ],
    ids=str,
)
def test_headers_and_credentials_are_checked_everywhere(option, culprit):
    """A word is not a user with a password, and two letters are not a header."""
    url = "http://127.0.0.1:1/"
    with pytest.raises(TypeError, match=culprit):
        sync.RESTClient(url, **option)
    with sync.RESTClient(url) as client, pytest.raises(TypeError, match=culprit):
        client.get("x", **option)
    for_websockets = {{"headers": "additional_headers"}.get(k, k): v for k, v in option.items()}
    with pytest.raises(TypeError, match=culprit):
        sync.connect("ws://127.0.0.1:1/", **for_websockets)
    if "cookies" not in option:
        for kind in (sync.EventSource, sync.LongPoll):
            with pytest.raises(TypeError, match=culprit):
                kind(url, **option)


def test_kinds_of_values_have_their_article():
    class UserID(str):
        pass

    values = (None, 1, "a", [], uuid.UUID(int=0), UserID(), asyncio.Event(), b"")
    kinds = ["None", "an int", "a str", "a list", "a UUID", "a UserID", "an Event", "a bytes"]
    assert [kind_of(value) for value in values] == kinds


def test_handlers_are_functions():
    url = "http://127.0.0.1:1/"
    for kind in (sync.EventSource, sync.LongPoll, sync.Spreadbot):
        with pytest.raises(TypeError, match="on_message is a str; a function is expected"):
            kind(url, on_message="print")
    with pytest.raises(TypeError, match="on_message is a str; a function is expected"):
        sync.connect("ws://127.0.0.1:1/", on_message="print")
    with (
        sync.EventSource(url) as source,
        pytest.raises(TypeError, match="a listener is None; a function is expected"),
    ):
        source.add_event_listener("tick", None)


def test_exceptions_of_requests_are_pickled_completely():
    with sync.RESTClient("http://127.0.0.1:1/") as client, pytest.raises(ConnectFailed) as caught:
        client.get("x", attempts=1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.response is caught.value.response is None
    assert (type(copy), str(copy)) == (ConnectFailed, str(caught.value))
