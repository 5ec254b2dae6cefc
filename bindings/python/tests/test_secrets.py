"""What representations and errors show of objects that hold secrets: not these."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

import librealtime
from librealtime import sync

URL = "http://user:S3cret@127.0.0.1:1"
HEADERS = {"Authorization": "Bearer S3cret", "X-Token": "S3cret"}


def network() -> librealtime.Network:
    return librealtime.Network(
        proxy="http://user:S3cret@127.0.0.1:1",
        client_certificate="client.pem",
        client_key_password="S3cret",
    )


def objects(face: Any) -> list[Any]:
    """One of each kind that needs no server, with all its secrets."""
    tokens = {"access_token": "S3cret", "refresh_token": "S3cret"}
    more = {"base64_credentials": "S3cret", "auth_url": URL + "/auth"}
    return [
        face.EventSource(URL + "/?token=S3cret", headers=HEADERS, content="S3cret"),
        face.LongPoll(URL + "/?token=S3cret", headers=HEADERS),
        face.RESTClient(URL, headers=HEADERS),
        face.RESTClient(URL, bearer_token="S3cret"),
        face.RESTClient(URL, auth=("user", "S3cret"), cookies={"a": "S3cret"}),
        face.Spreadbot(URL, **tokens, **more),
        face.Pusher("key", secret="S3cret", headers=HEADERS, auth_headers=HEADERS),
        face.DDPClient("ws://user:S3cret@127.0.0.1:1", headers=HEADERS),
    ]


@pytest.mark.parametrize("face", [librealtime, sync])
def test_representations(run: Any, face: Any) -> None:
    async def main() -> None:
        for one in objects(face):
            shown = [repr(one), str(one), f"{one}"]
            if hasattr(one, "close"):
                one.close()
            else:
                await one.aclose()
            shown.append(repr(one))
            assert not any("S3cret" in text for text in shown), type(one)
        assert "S3cret" not in repr(network()) and "client.pem" in repr(network())

    run(main())


def request() -> None:
    with sync.RESTClient(URL, attempts=1) as client:
        client.get("/a?token=S3cret")


def texts(error: BaseException) -> list[str]:
    return [
        str(error),
        repr(error),
        repr(vars(error)),
        *traceback.format_exception_only(type(error), error),
    ]


def test_errors() -> None:
    """Also those about the arguments."""
    calls = [
        lambda: sync.connect("ws://user:S3cret@127.0.0.1:1/?token=S3cret"),
        lambda: sync.connect("ws://127.0.0.1:1/", additional_headers={"A": "S3cret\n"}),
        lambda: sync.connect("ws://user:S3cret@127.0.0.1:port/"),
        lambda: sync.connect("ws://127.0.0.1:1/", proxy="http://user:S3cret@127.0.0.1:port"),
        lambda: sync.connect("ws://127.0.0.1:1/", proxy="http://user:S3cret@127.0.0.1:1"),
        lambda: sync.RESTClient(URL, bearer_token="S3cret\n"),
        request,
        lambda: sync.RESTClient("http://user:S3cret@127.0.0.1:port"),
        lambda: sync.Spreadbot(URL, access_token="S3cret\n"),
        lambda: sync.DDPClient("ws://user:S3cret@127.0.0.1:port"),
        lambda: sync.EventSource(URL, headers={"A": "S3cret\n"}),
        lambda: sync.Pusher("key", auth_endpoint="http://user:S3cret@127.0.0.1:port"),
    ]
    for call in calls:
        with pytest.raises(librealtime.RealtimeError) as raised:
            call()
        assert not any("S3cret" in text for text in texts(raised.value)), raised.value
