"""The event stream parser on its own."""

from __future__ import annotations

import gc
import weakref

import pytest

import librealtime
from librealtime import EventStreamParser, ServerSentEvent


def test_events_come_from_pieces():
    parser = EventStreamParser(last_event_id="7")
    stream = "\ufeffretry: 250\r\ndata: é\n\nid: 1\revent: tick\rdata: {}\rdata\r\r".encode()
    pieces = [bytes([byte]) for byte in stream]
    expected = [
        ServerSentEvent("message", "é", "7", 250),
        ServerSentEvent("tick", "{}\n", "1"),
    ]
    assert [sse for piece in pieces for sse in parser.feed(piece)] == expected
    assert parser.last_event_id == "1"
    assert parser.reconnection_time == 250
    parser.finish()
    assert parser.feed(bytearray(b"data: a\n\n")) == [ServerSentEvent(data="a", id="1")]
    parser.reset()
    assert parser.feed(memoryview(stream)) == expected


def test_incomplete_events_are_discarded():
    parser = EventStreamParser()
    assert parser.feed(b"id: 1\n\nid: 2\ndata: a\n") == []
    parser.finish()
    assert parser.last_event_id == "1"
    assert parser.feed(b"\ndata: b\n\n")[0].data == "b"


def test_an_event_is_what_httpx_sse_has():
    sse = EventStreamParser().feed(b'event: a\ndata: {"b": [1, "\xff"]}\nid: c\nretry: 5\n\n')[0]
    assert (sse.event, sse.id, sse.retry) == ("a", "c", 5)
    assert sse.json() == {"b": [1, "\ufffd"]}
    assert repr(ServerSentEvent(data="x")) == "ServerSentEvent(event='message', data='x')"
    assert repr(sse).endswith(", id='c', retry=5)")
    assert ServerSentEvent() != ServerSentEvent(retry=0) and ServerSentEvent() != ""
    assert len({ServerSentEvent(), ServerSentEvent(data="")}) == 1


def test_nul_bytes_are_data():
    assert EventStreamParser().feed(b"data: \0a\n\n")[0].data == "\0a"


def test_comments():
    comments: list[str] = []
    parser = EventStreamParser(on_comment=comments.append, max_line_size=None)
    assert parser.feed(b": hi\n:\n:" + b"x" * 100_000 + b"\n") == []
    assert comments == [" hi", "", "x" * 100_000]


def test_an_exception_of_a_comments_function_is_raised():
    parser = EventStreamParser(on_comment=lambda text: {}[text])
    with pytest.raises(KeyError, match="hi"):
        parser.feed(b": hi\n: you\n")
    assert parser.feed(b"data: a\n\n")[0].data == "a"


def test_limits():
    parser = EventStreamParser(max_line_size=8, max_event_size=3, max_name_size=2)
    for stream in (b"data: abcd", b"data:ab\ndata:c\n", b"id:123\n", b"event:abc\n"):
        with pytest.raises(librealtime.RealtimeError) as caught:
            parser.feed(stream)
        assert caught.value.name == "RT_ERROR_TOO_LARGE"
        parser.finish()
    for bad in ({"max_line_size": 0}, {"max_event_size": -1}, {"last_event_id": "a\n"}):
        with pytest.raises(librealtime.InvalidArgument):
            EventStreamParser(**bad)
    with pytest.raises(TypeError):
        EventStreamParser(last_event_id=b"7")


def test_it_is_not_fed_in_its_own_callback():
    parser = EventStreamParser(on_comment=lambda text: parser.finish())
    with pytest.raises(librealtime.InvalidState):
        parser.feed(b": a\n")


def test_a_call_refused_in_its_own_callback_changes_nothing():
    """The events of the running feed are returned, and later feeds continue."""
    refused = []

    def comment(text):
        for call in (lambda: parser.feed(b"data: inner\n\n"), parser.finish, parser.reset):
            with pytest.raises(librealtime.InvalidState) as caught:
                call()
            refused.append(caught.value.name)

    parser = EventStreamParser(on_comment=comment)
    first = parser.feed(b"data: 1\n\nretry: 5\n: c\ndata: 2\n\ndata: 3\n\n")
    assert first == [
        ServerSentEvent(data="1"),
        ServerSentEvent(data="2", retry=5),
        ServerSentEvent(data="3"),
    ]
    assert refused == ["RT_ERROR_REENTRANT"] * 3
    assert parser.feed(b"data: 4\n\n") == [ServerSentEvent(data="4")]


def test_another_is_fed_in_a_callback():
    inner = EventStreamParser()
    got = []
    outer = EventStreamParser(on_comment=lambda text: got.extend(inner.feed(b"data: a\n\n")))
    assert outer.feed(b": c\ndata: b\n\n") == [ServerSentEvent(data="b")]
    assert got == [ServerSentEvent(data="a")]


def test_a_parser_is_collected():
    parser = EventStreamParser()
    gone = weakref.ref(parser)
    parser.feed(b"data: a\n")
    del parser
    gc.collect()
    assert gone() is None
