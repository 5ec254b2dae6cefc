"""Headers have no encoding: bytes that are not UTF-8 reach the caller as ISO-8859-1, and are sent
back to the server unchanged."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from wire import read

import librealtime
from librealtime import sync

REDIRECTS = [
    (b"/new/caf\xe9", b"/new/caf%E9"),
    (b"/a b?c d#e f", b"/a%20b?c%20d"),
    (b"/caf\xc3\xa9", b"/caf%C3%A9"),
    (b"/%E9/\xff|<>", b"/%E9/%FF%7C%3C%3E"),
]


def request(url: str) -> None:
    with sync.RESTClient(url) as client:
        assert client.get("/old").status_code == 404


def events(url: str) -> None:
    with sync.EventSource(url + "/old") as source, pytest.raises(librealtime.StreamRefused):
        source.recv()


def poll(url: str) -> None:
    with sync.LongPoll(url + "/old") as source, pytest.raises(librealtime.StreamRefused):
        source.recv()


def websocket(url: str) -> None:
    with pytest.raises(librealtime.InvalidStatus):
        sync.connect(url.replace("http", "ws") + "/old", compression=None)


@pytest.mark.parametrize(("location", "target"), REDIRECTS)
@pytest.mark.parametrize("ask", [request, events, poll, websocket])
def test_a_location_is_followed_by_its_bytes(
    serve: Any, ask: Callable[[str], None], location: bytes, target: bytes
) -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket, number: int) -> None:
        while data := read(connection):
            asked.append(data.split(b" ")[1])
            status = b"302 Go\r\nLocation: " + location if len(asked) == 1 else b"404 None"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    ask(serve(answer).url)
    assert asked == [b"/old", target]


LATIN1 = (
    b"HTTP/1.1 403 Acc\xe8s refus\xe9\r\nX-Name: caf\xe9 \xa4\r\nX-Other: caf\xc3\xa9\r\n"
    b"Content-Length: 0\r\n\r\n"
)


def test_values_and_reasons_are_latin_1(serve: Any) -> None:
    def answer(connection: socket.socket, number: int) -> None:
        while read(connection):
            connection.sendall(LATIN1)

    server = serve(answer)
    with sync.RESTClient(server.url) as client:
        response = client.get("/")
    with pytest.raises(librealtime.InvalidStatus) as refused:
        sync.connect(server.url.replace("http", "ws"))
    for headers in (response.headers, refused.value.response.headers):
        assert headers["x-name"] == "caf\xe9 \xa4"
        assert headers["x-other"] == "caf\xe9"
    assert response.reason_phrase == "Acc\xe8s refus\xe9"
    assert refused.value.response.reason_phrase == "Acc\xe8s refus\xe9"
