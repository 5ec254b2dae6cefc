"""EJSON in Python, against the recorded behaviour of a Meteor server."""

import datetime
import decimal
import importlib
import json
import math
import pathlib
import pickle
import re
from dataclasses import dataclass
from typing import Any

import pytest

from librealtime import InvalidArgument, ejson

# The recorded cases are beside the project; elsewhere their tests are skipped.
FILE = pathlib.Path(__file__).parents[4] / "shared/conformance/ejson/cases.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"] if FILE.exists() else []
NOW = datetime.datetime(2026, 11, 24, 12, 0, 0, 5000, tzinfo=datetime.timezone.utc)


def kind(name: str) -> list[Any]:
    return [case for case in CASES if case["kind"] == name]


@pytest.mark.parametrize("case", kind("roundtrip") + kind("clone"))
def test_recorded_texts_come_back(case: dict[str, Any]) -> None:
    text = ejson.dumps(ejson.loads(case["text"]), sort_keys=True)
    if case.get("numbers"):
        assert json.loads(text) == json.loads(case["canonical"])
    else:
        assert text == case["canonical"]


@pytest.mark.parametrize("case", kind("invalid"))
def test_what_is_not_ejson_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        ejson.loads(case["text"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NOW, '{"$date":1795521600005}'),
        (b"\x00\xff", '{"$binary":"AP8="}'),
        (ejson.ObjectID("0123456789abcdef01234567"), None),
        (decimal.Decimal("1.50"), '{"$type":"Decimal","$value":"1.50"}'),
        (math.inf, '{"$InfNaN":1}'),
        (ejson.Regexp("^a", "i"), '{"$regexp":"^a","$flags":"i"}'),
        (ejson.FarDate(8_640_000_000_000_000), '{"$date":8640000000000000}'),
        (ejson.CustomValue("place", {"x": 1}), '{"$type":"place","$value":{"x":1}}'),
        ({"$date": 1}, '{"$escape":{"$date":1}}'),
        ({"a": [1, 2.5, None, True, "é"]}, '{"a":[1,2.5,null,true,"é"]}'),
        ([1e21, 1e-7, 0.00001, 100.0], "[1e+21,1e-7,0.00001,100]"),
    ],
)
def test_values(value: Any, text: str | None) -> None:
    written = ejson.dumps(value)
    assert text is None or written == text
    assert ejson.loads(written) == value


def test_types_of_the_application() -> None:
    @dataclass
    class Place:
        x: int

    ejson.add_type("test-place", Place, encode=lambda p: p.x, decode=Place)
    assert ejson.dumps([Place(3)]) == '[{"$type":"test-place","$value":3}]'
    assert ejson.loads('[{"$type":"test-place","$value":3}]') == [Place(3)]
    with pytest.raises(InvalidArgument, match="built in"):
        ejson.add_type("oid", Place, encode=str, decode=Place)

    class Pair(tuple[int, int]):
        pass

    class Special(Pair):
        pass

    ejson.add_type("test-pair", Pair, encode=list, decode=Pair)
    assert ejson.dumps(Pair((1, 2))) == '{"$type":"test-pair","$value":[1,2]}'
    assert ejson.dumps(Special((1, 2))) == '{"$type":"test-pair","$value":[1,2]}'
    assert type(ejson.loads('{"$type":"test-pair","$value":[1,2]}')) is Pair


def test_a_type_that_cannot_be_decoded(caplog: pytest.LogCaptureFixture) -> None:
    class Picky:
        pass

    def decode(value: Any) -> Picky:
        raise ValueError("it is picky")

    text = '[{"$type":"test-picky","$value":1}]'
    ejson.add_type("test-picky", Picky, encode=lambda _: 1, decode=decode)
    assert ejson.loads(text) == [ejson.CustomValue("test-picky", 1)]
    assert "it is picky" in caplog.text
    assert ejson.dumps(ejson.loads(text)) == text


def test_it_is_a_module_of_its_own() -> None:
    assert importlib.import_module("librealtime.ejson") is ejson
    from librealtime.ejson import ObjectID

    made = ObjectID("0123456789abcdef01234567")
    assert pickle.loads(pickle.dumps(made)) == made
    assert (ObjectID.__module__, ejson.__all__.count("ObjectID")) == ("librealtime.ejson", 1)


def test_what_cannot_be_written() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidArgument, match="contains itself"):
        ejson.dumps(endless)
    with pytest.raises(InvalidArgument, match="time zone"):
        ejson.dumps(datetime.datetime(2026, 1, 1))
    with pytest.raises(TypeError, match="a set"):
        ejson.dumps({1})
    for default in (None, str):
        with pytest.raises(TypeError, match=r"Pattern of Python; use ejson\.Regexp"):
            ejson.dumps([re.compile("a")], default=default)
    with pytest.raises(TypeError, match="a key is an int; a str is expected"):
        ejson.dumps({1: 2})
    with pytest.raises(InvalidArgument, match="24 hexadecimal"):
        ejson.ObjectID("12")
    with pytest.raises(InvalidArgument):
        ejson.loads("[" * 100_000)


def test_a_decimal_that_is_not_a_number_is_kept() -> None:
    text = '{"$type":"Decimal","$value":"zz"}'
    value = ejson.loads(text)
    assert value == ejson.CustomValue("Decimal", "zz")
    assert ejson.dumps(value) == text
