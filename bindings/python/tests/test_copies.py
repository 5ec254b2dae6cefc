"""How many copies of a message are in memory."""

from __future__ import annotations

import ctypes
import gc
import sys
import tracemalloc
import weakref

import pytest

import librealtime
from librealtime import sync
from librealtime._core import abi
from librealtime._core.memory import LARGE, text_at
from librealtime._websocket.batch import decode

TEXT, BINARY = abi.rt_message_kind.TEXT, abi.rt_message_kind.BINARY
LONG = "é" * LARGE + "🙂"


@pytest.mark.parametrize(
    "messages",
    [["a"], [LONG], [b"x" * LARGE], ["", "b", "ü"], ["a", LONG], [LONG, b"\xff", ""],
     [b"", b"y" * LARGE], [b"1", "2"]],
    ids=str,
)  # fmt: skip
def test_messages_of_any_size_together(messages):
    rows, data = [], b""
    for message in messages:
        own = message.encode() if isinstance(message, str) else message
        kind = TEXT if isinstance(message, str) else BINARY
        rows.append(abi.rt_message(len(data), len(own), kind, 0))
        data += own
    base = ctypes.create_string_buffer(data, len(data) + 1)
    table = (abi.rt_message * len(rows))(*rows)
    pointer = ctypes.cast(table, ctypes.POINTER(abi.rt_message))
    lengths = [row.length for row in rows]
    assert decode(ctypes.addressof(base), pointer, len(rows)) == (messages, lengths)


def test_a_large_text_is_decoded_where_it_is():
    data = b"a" * (8 << 20)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer := bytearray(data)))
    tracemalloc.start()
    try:
        text = text_at(address, len(data))
        assert tracemalloc.get_traced_memory()[1] < 1.5 * len(data)
    finally:
        tracemalloc.stop()
    assert text == buffer.decode()
    buffer[-1] = 0xFF
    with pytest.raises(UnicodeDecodeError):
        text_at(address, len(data))


def test_iterating_keeps_no_yielded_message(run, server, events):
    """Messages that the program drops are freed before the next one arrives."""

    def references(thing: object) -> int:
        return sys.getrefcount(thing)

    mine = bytes(bytearray(1000))
    alone = references(mine)

    async def main() -> None:
        async with librealtime.connect(server.url + "/blocks?to=3&size=1000") as ws:
            async for message in ws:
                assert references(message) == alone
        async with librealtime.EventSource(events.url + "/three") as source:
            async for event in source:
                assert references(event) == alone
                break

    run(main())
    with sync.connect(server.url + "/blocks?to=3&size=1000") as ws:
        for message in ws:
            assert references(message) == alone
    with sync.EventSource(events.url + "/three") as source:
        for event in source:
            assert references(event) == alone
            break


def test_an_answer_that_is_forgotten_is_freed_at_once(run, events):
    async def body():
        yield b"a"

    async def main() -> None:
        async with librealtime.RESTClient(events.url) as client:
            for options in ({}, {"content": b"a"}, {"content": body()}):
                response = await client.post("/page", **options)
                forgotten.append(weakref.ref(response))
            async with client.stream("GET", "/page") as response:
                await response.aread()
                forgotten.append(weakref.ref(response))
            del response
            left.extend(reference() for reference in forgotten)

    forgotten: list[weakref.ref[object]] = []
    left: list[object] = []
    gc.disable()
    try:
        run(main())
        with sync.RESTClient(events.url) as client:
            reference = weakref.ref(client.get("/page"))
            assert reference() is None
    finally:
        gc.enable()
    assert left == [None] * 4
