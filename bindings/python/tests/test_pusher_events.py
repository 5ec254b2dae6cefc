"""Events as objects, and the tables of their handlers; without a connection."""

from __future__ import annotations

import weakref

import pytest

from librealtime import PusherEvent
from librealtime._pusher.bindings import Bindable, Bindings
from librealtime._pusher.streams import Backlog


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        ('{"price":"7.10"}', {"price": "7.10"}),
        ("[1,2]", [1, 2]),
        ("12", 12),
        ('"hi"', "hi"),
        ("null", None),
        ("hello", "hello"),
        ("", ""),
        ("NaN", "NaN"),
        ("[" * 100_000, "[" * 100_000),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551617", 2**64 + 1),
        (None, None),
    ],
)
def test_data_is_parsed(raw, data):
    """A text that is not JSON stays as it is."""
    event = PusherEvent("price", "orders", raw)
    assert event.raw == raw and event.data == data
    assert event.data is event.data


def test_properties_of_the_message():
    message = b'{"event":"price","data":"{}","tags":["a"],"user_id":"u-3"}'
    event = PusherEvent("price", None, "{}", "u-3", message)
    assert event.property("tags") == ["a"] and event.property("none") is None
    assert PusherEvent("price").property("tags") is None


def test_events_compare_by_their_fields():
    event = PusherEvent("price", "orders", "1")
    assert event == PusherEvent("price", "orders", "1") and len({event, event}) == 1
    assert event != PusherEvent("price", "orders", "2") and event != "price"
    assert repr(event) == "PusherEvent(event='price', channel='orders', raw='1')"


class Source(Bindable):
    def __init__(self):
        self.changes = 0
        self._bindings = Bindings(weakref.ref(self))

    def _handlers_changed(self):
        self.changes += 1

    def found(self, event):
        bindings = self._bindings.named.get(event, self._bindings.others)
        return [binding.handler for binding in bindings if binding.is_bound]


def test_handlers_in_the_order_of_binding():
    source = Source()
    first, second, third = (lambda event: event for _ in range(3))
    assert source.bind("a", first) is first
    assert source.bind(second) is second
    assert source.bind("a")(third) is third
    assert source.bind(None, first) is first
    assert source.found("a") == [first, second, third, first]
    assert source.found("b") == [second, first]
    source.unbind("a", third)
    assert source.found("a") == [first, second, first]
    source.unbind(first)
    assert source.found("a") == source.found("b") == [second]
    source.unbind()
    assert source.found("a") == []
    assert source.changes == 7
    source.unbind("a")
    assert source.changes == 7


def test_all_handlers_of_a_name():
    source = Source()
    for event in ("a", "a", "b", None):
        source.bind(event, print)
    source.unbind_all("a")
    assert source.found("a") == [print] and source.found("b") == [print, print]
    source.unbind_all()
    assert source.found("a") == source.found("b") == []


def test_methods_are_unbound_by_equality():
    source = Source()
    source.bind("a", source.found)
    source.unbind("a", source.found)
    assert source.found("a") == []


def test_a_backlog_is_limited():
    """By the number of events, and by their size."""
    backlog = Backlog()
    for number in range(150):
        backlog.put(PusherEvent("n", "orders", str(number)))
    assert [event.data for event in backlog.events] == list(range(50, 150))
    large = PusherEvent("n", "orders", "x" * 600_000)
    backlog.put(large)
    backlog.put(large)
    assert list(backlog.events) == [large]
    backlog.put(PusherEvent("n", "orders", "x" * 2**20))
    assert not backlog.events


@pytest.mark.parametrize("arguments", [(1, print), ("a", 1), (b"a", print), ("a\0", print)])
def test_invalid_bindings(arguments):
    with pytest.raises((TypeError, ValueError)):
        Source().bind(*arguments)
