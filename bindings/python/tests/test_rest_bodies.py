"""Bodies from files: never more bytes than were asked for."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import librealtime
from librealtime._rest_call import Source

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "Tests" / "Support"))

from rest_server import RESTServer


@pytest.fixture
def rest_server() -> Iterator[RESTServer]:
    with RESTServer() as running:
        yield running


class Generous(io.BytesIO):
    """Gives all it has, whatever is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read()


def text_file(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")


@pytest.mark.parametrize(
    "content", [text_file("é" * 50_000), Generous(b"x" * 100_000), [b"y" * 100_000]], ids=type
)
def test_no_more_than_there_is_room_for(content: Any) -> None:
    """C gives a buffer; a text file's characters are not its bytes."""
    source = Source(content)
    pieces = list(iter(lambda: source.more(16384), b""))
    assert max(map(len, pieces)) == 16384
    assert sum(map(len, pieces)) == 100_000


def test_a_text_file(run: Any, rest_server: RESTServer) -> None:
    async def main() -> None:
        async with librealtime.RESTClient(rest_server.url, base_delay=0) as client:
            response = await client.put("/flaky/a/1", content=text_file("é" * 200_000))
            assert response.attempts == 2
        for request in rest_server.seen:
            assert request.body.decode() == "é" * 200_000

    run(main())
