"""Messages in pieces, compression of single messages, and statistics."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from servers import raw_server, read_exactly, upgrade

import librealtime
from librealtime import ConnectionClosedError
from librealtime.sync import connect


async def asynchronously(pieces):
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["a", "", "é", "🙂" * 1000], "aé" + "🙂" * 1000),
        ([b"a", bytearray(b"b"), memoryview(b"c")], b"abc"),
        (["alone"], "alone"),
        ([""], ""),
        ([b""], b""),
        ([b"x" * 100_000] * 20, b"x" * 2_000_000),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_sending_in_pieces(run, server, pieces, whole):
    async def main():
        async with librealtime.connect(server.url + "/echo", write_limit=1000) as ws:
            for message in (pieces, iter(pieces), asynchronously(pieces)):
                await ws.send(message)
                assert await ws.recv() == whole
            await ws.send([])
            await ws.send("behind")
            assert await ws.recv() == "behind"

    run(main())
    with connect(server.url + "/echo", write_limit=1000) as ws:
        ws.send(pieces)
        ws.send([])
        ws.send("behind")
        assert [ws.recv(), ws.recv()] == [whole, "behind"]


def test_bytes_as_text_and_text_as_bytes(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            await ws.send(b"caf\xc3\xa9", text=True)
            await ws.send("café", text=False)
            # Split inside a character.
            await ws.send([b"caf\xc3", b"\xa9"], text=True)
            await ws.send(["ca", "fé"], text=False)
            got = [await ws.recv() for _ in range(4)]
            assert got == ["café", "café".encode()] * 2
            with pytest.raises(librealtime.InvalidArgument):
                await ws.send(b"\xff", text=True)
            ws.send_nowait(b"now", text=True)
            assert await ws.recv() == "now"

    run(main())


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        (["a", b"b"], TypeError),
        (["a", 1], TypeError),
        (["a", "\ud800"], librealtime.InvalidArgument),
        (("abc"[: 1 // number] for number in (1, 0)), ZeroDivisionError),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_pieces_that_fail(run, pieces, error):
    """A message that cannot be completed closes the connection with 1011, inside the message."""
    frames = []

    def serve_one(connection):
        upgrade(connection)
        while not frames or frames[-1][0] & 0x0F != 8:
            head = read_exactly(connection, 2)
            mask = read_exactly(connection, 4)
            data = read_exactly(connection, head[1] & 0x7F)
            frames.append((head[0], bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))))
        connection.sendall(b"\x88\x02" + frames[-1][1][:2])

    async def main(url):
        ws = await librealtime.connect(url, compression=None)
        with pytest.raises(error):
            await ws.send(pieces)
        await ws.wait_closed()
        assert ws.close_code == 1011

    with raw_server(serve_one) as url:
        run(main(url))
    assert frames[0] == (0x01, b"a")
    assert frames[1][0] == 0x88
    assert frames[1][1][:2] == (1011).to_bytes(2, "big")


def test_a_first_piece_that_fails(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            for pieces in ([1], ["\ud800"], (1 // 0 for _ in "x")):
                with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
                    await ws.send(pieces)
            await ws.send("nothing was sent")
            assert await ws.recv() == "nothing was sent"

    run(main())


def test_other_messages_wait_for_the_end(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo") as ws:
            go = asyncio.Event()

            async def slowly():
                yield "one, "
                await go.wait()
                yield "two"

            first = asyncio.ensure_future(ws.send(slowly()))
            second = asyncio.ensure_future(ws.send("three"))
            third = asyncio.ensure_future(ws.send(["fo", "ur"]))
            await (await ws.ping())
            with pytest.raises(librealtime.InvalidState):
                ws.send_nowait("now")
            assert not second.done()
            assert not third.done()
            go.set()
            await asyncio.gather(first, second, third)
            got = [await ws.recv() for _ in range(3)]
            assert got == ["one, two", "three", "four"]

    run(main())


def test_threads_take_turns(server):
    with connect(server.url + "/echo") as ws:
        began, go = threading.Event(), threading.Event()

        def slowly():
            yield "one, "
            began.set()
            go.wait(30)
            yield "two"

        def after():
            began.wait(30)
            go.set()
            ws.send("three")

        threads = [
            threading.Thread(target=ws.send, args=(slowly(),)),
            threading.Thread(target=after),
        ]
        for thread in threads:
            thread.start()
        got = [ws.recv(timeout=30), ws.recv(timeout=30)]
        for thread in threads:
            thread.join(30)
        assert got == ["one, two", "three"]


def test_receiving_in_pieces(run, server):
    big = os.urandom(300_000)

    async def main():
        async with librealtime.connect(
            server.url + "/fragments", streaming=True, max_size=10, max_queue=2
        ) as ws:
            await ws.send("né")
            assert [piece async for piece in ws.recv_streaming()] == ["n", "é"]
            await ws.send(big)
            pieces = [piece async for piece in ws.recv_streaming()]
            assert b"".join(pieces) == big
            assert len(pieces) > 1
            await ws.send("whole")
            assert await ws.recv() == "whole"
            await ws.send("longer than ten")
            with pytest.raises(librealtime.RealtimeError, match="max_size"):
                await ws.recv()
            await ws.wait_closed()

    run(main())
    with connect(server.url + "/fragments", streaming=True, max_queue=2) as ws:
        ws.send(big)
        assert b"".join(ws.recv_streaming(timeout=30)) == big
        ws.send("whole")
        assert ws.recv() == "whole"


@pytest.mark.parametrize("message", ["", b"", "x", b"x"])
def test_small_messages_are_one_piece(run, server, message):
    async def main():
        async with librealtime.connect(server.url + "/echo", streaming=True) as ws:
            for _ in range(2):
                await ws.send(message)
                assert [piece async for piece in ws.recv_streaming()] == [message]
            await ws.send(message)
            assert await ws.recv() == message

    run(main())


def test_a_message_left_early_is_passed_over(run, server):
    async def main():
        async with librealtime.connect(server.url + "/fragments", streaming=True) as ws:
            await ws.send("left early")
            await ws.send("next")
            first = ws.recv_streaming()
            assert await first.__anext__() == "l"
            assert await ws.recv() == "next"
            with pytest.raises(librealtime.ConcurrencyError):
                await ws.send("more")
                await first.__anext__()
            await first.aclose()

    run(main())
    with connect(server.url + "/fragments", streaming=True) as ws:
        ws.send("left early")
        ws.send("next")
        for piece in ws.recv_streaming():
            assert piece == "l"
            break
        assert ws.recv() == "next"


def test_streaming_of_whole_messages(run, server):
    async def main():
        async with librealtime.connect(server.url + "/fragments") as ws:
            await ws.send("abc")
            assert [piece async for piece in ws.recv_streaming()] == ["abc"]
            async with librealtime.connect(server.url + "/count?to=3", streaming=True) as other:
                assert [message async for message in other] == ["0", "1", "2"]

    run(main())


def cut_off(connection):
    """Opens, begins a message and disconnects."""
    upgrade(connection)
    connection.sendall(b"\x01\x05begin")


def test_a_message_that_is_cut_off(run):
    at_once = librealtime.Backoff(initial_delay=0)

    async def main(url, **options):
        async with librealtime.connect(url, streaming=True, **options) as ws:
            for _ in range(2 if options else 1):
                pieces = ws.recv_streaming()
                assert await pieces.__anext__() == "begin"
                with pytest.raises(ConnectionClosedError) as raised:
                    await pieces.__anext__()
                assert raised.value.name == "RT_ERROR_CONNECTION_LOST"

    with raw_server(cut_off) as url:
        run(main(url))
    with raw_server(cut_off, cut_off) as url:
        run(main(url, reconnect=at_once))


def test_compression_is_chosen_for_a_message(run, server):
    text = "many times the same " * 50

    async def sent(ws, **options):
        before = ws.statistics.wire_bytes_sent
        await ws.send(text, **options)
        assert await ws.recv() == text
        await (await ws.ping())
        return ws.statistics.wire_bytes_sent - before

    async def main():
        async with librealtime.connect(
            server.url + "/echo", compression=librealtime.Deflate(min_size=10**6, memory_level=5)
        ) as ws:
            assert await sent(ws) > len(text)
            assert await sent(ws, compress=False) > len(text)
            assert await sent(ws, compress=True) < len(text) / 4
            before = ws.statistics.wire_bytes_sent
            await ws.send([text, text], compress=True)
            await (await ws.ping())
            assert await ws.recv() == text * 2
            assert ws.statistics.wire_bytes_sent - before < len(text) / 4
            ws.send_nowait("tiny", compress=False)
            assert await ws.recv() == "tiny"

    run(main())


def test_statistics(run, server):
    async def main():
        async with librealtime.connect(server.url + "/echo", compression=None) as ws:
            assert ws.statistics.round_trip is None
            for message in ("é", b"12345"):
                await ws.send(message)
                await ws.recv()
            await (await ws.ping())
            await asyncio.sleep(0)
            now, loop = ws.statistics, ws.loop_statistics
        assert (now.messages_sent, now.messages_received) == (2, 2)
        assert (now.payload_bytes_sent, now.payload_bytes_received) == (7, 7)
        assert now.wire_bytes_sent >= 7 + 2 * 6
        assert now.wire_bytes_received > 7 + 2 * 2
        assert (now.pings_sent, now.connections) == (1, 1)
        assert loop.turns > 0
        assert loop.connections == 1
        assert loop.messages_sent == 2
        # The last values are kept.
        assert ws.statistics.messages_received == 2
        with pytest.raises(librealtime.ConnectionClosed):
            print(ws.loop_statistics)

    run(main())
    with connect(server.url + "/echo") as ws:
        ws.send("x")
        ws.recv()
        assert ws.ping().wait()
        assert ws.statistics.messages_received == 1
        assert ws.loop_statistics.messages_received == 1


def test_messages_of_one_read_together(run, server):
    batches = []

    async def main():
        done = asyncio.Event()

        def on_messages(messages):
            batches.append(messages)
            if "99" in messages:
                done.set()

        async with librealtime.connect(server.url + "/count?to=100", on_messages=on_messages) as ws:
            await done.wait()
            with pytest.raises(librealtime.InvalidState):
                await ws.recv()

    run(main())
    assert [message for batch in batches for message in batch] == [str(i) for i in range(100)]
    for options in (
        {"on_message": print, "on_messages": print},
        {"on_message": print, "streaming": True},
    ):
        with pytest.raises(librealtime.InvalidArgument, match="exclude each other"):
            connect(server.url, **options)
