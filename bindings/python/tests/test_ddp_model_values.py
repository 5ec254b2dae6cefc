"""Values of models, and what models must agree on."""

# The annotations of models are evaluated, also by Python 3.9.
# ruff: noqa: RUF009, UP007, UP045

from __future__ import annotations

import enum
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Literal, NewType, Optional, Union

import pytest
from meteor_models import Player, box, oid

import librealtime
from librealtime import ejson
from librealtime.ddp_models import (
    DDPModelError,
    Reference,
    random_id,
    random_object_id,
    reference,
    stored,
    to_many,
    to_one,
)

# Values.


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    x: float
    name: str = stored("label", default="here")
    inside: Optional[Place] = None


Shoe = NewType("Shoe", int)


@dataclass
class Thing:
    a: Any = None
    b: bool = False
    bytes_: bytes = b""
    color: Color = Color.RED
    dec: Optional[Decimal] = None
    either: Union[int, str, None] = None
    lines: list[str] = field(default_factory=list)
    map: dict[str, list[int]] = field(default_factory=dict)
    mode: Literal["fast", 1] = "fast"
    pair: tuple[int, str] = (0, "")
    place: Optional[Place] = None
    places: tuple[Place, ...] = ()
    shoe: Shoe = Shoe(40)
    some: Sequence[float] = field(default_factory=list)
    when: Optional[datetime] = None
    where: Optional[ejson.ObjectID] = None
    link: Optional[dict[str, Reference[Player]]] = None
    computed: int = field(default=7, init=False)
    id: Optional[str] = None


NOW = datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=timezone.utc)

LOOP: list[Any] = []
LOOP.append(LOOP)

THING = Thing(
    a={"free": [1, None]},
    b=True,
    bytes_=b"\x01",
    color=Color.BLUE,
    dec=Decimal("1.50"),
    either="or",
    lines=["x"],
    map={"k": [1]},
    mode=1,
    pair=(1, "y"),
    place=Place(1.5, "there", Place(2.0)),
    places=(Place(0.5),),
    shoe=Shoe(41),
    some=[1.0, 2.5],
    when=NOW,
    where=oid("a"),
    link={"p": Reference("gauss")},
    id="t",
)


def test_values_of_all_kinds():
    with box() as there:
        models = there.client.models(Thing)
        models.save(THING)
        assert there.document("things", "t") == {
            "a": {"free": [1, None]},
            "b": True,
            "bytes_": b"\x01",
            "color": "blue",
            "dec": Decimal("1.50"),
            "either": "or",
            "lines": ["x"],
            "map": {"k": [1]},
            "mode": 1,
            "pair": [1, "y"],
            "place": {"x": 1.5, "label": "there", "inside": {"x": 2, "label": "here"}},
            "places": [{"x": 0.5, "label": "here"}],
            "shoe": 41,
            "some": [1, 2.5],
            "when": NOW,
            "where": oid("a"),
            "link": {"p": "gauss"},
        }
        assert models.get(Thing, "t") == THING
        new = Thing()
        models.save(new)
        assert len(new.id) == 17 and models.get(Thing, new.id) == new
        assert there.document("things", new.id).keys() == {
            "b",
            "bytes_",
            "color",
            "lines",
            "map",
            "mode",
            "pair",
            "places",
            "shoe",
            "some",
        }


MISFITS = [
    ("b", 1, "b: an int is not a bool"),
    ("shoe", True, "shoe: a bool is not an int"),
    ("shoe", 1.5, "shoe: a float is not an int"),
    ("color", "green", "color: 'green' is not a Color"),
    ("mode", True, "mode: True is none of 'fast', 1"),
    ("either", [1], "either: a list is not an int"),
    ("lines", ["a", 5], "lines.1: an int is not a str"),
    ("lines", "a", "lines: a str is not a list"),
    ("map", {"k": [None]}, "map.k.0: null is not an int"),
    ("pair", [1], "pair: it has 1 elements, and not 2"),
    ("place", {"x": 1, "inside": {}}, "place.inside.x: it is missing, and has no default"),
    ("places", [{"x": "1"}], r"places.0.x: a str is not an int or float"),
    ("when", 5, "when: an int is not a datetime"),
    ("link", {"p": 5}, "link.p: an int is not an id"),
]


@pytest.mark.parametrize(("name", "value", "text"), MISFITS)
def test_values_that_do_not_fit(name, value, text):
    """What reading refuses is refused when it is saved, too."""
    with box(things=[{"_id": "t", name: value}]) as there:
        models = there.client.models(Thing)
        with pytest.raises(DDPModelError) as raised:
            models.get(Thing, "t")
        assert str(raised.value) == f"things.t.{text}"
        with pytest.raises(DDPModelError) as raised:
            models.save(Thing(id="fine"), Thing(**{name: value}, id="new"))
        annotation = Thing.__dataclass_fields__[name].type
        declared = f"{name} is declared as {annotation}, and its value is {reprlib.repr(value)}"
        assert str(raised.value) == f"Thing.{text}; {declared}"
        assert raised.value.name == "RT_ERROR_INVALID_ARGUMENT"
        # All are checked before anything is written.
        assert models.count(Thing) == 1 and there.document("things", "t") == {name: value}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("a", {1}, "a: EJSON has no form for a set"),
        ("a", [2**53 + 1], "a: the number is beyond 2**53, and would lose digits"),
        ("a", {"b": 10**400}, "a: the number is beyond 2**53, and would lose digits"),
        ("a", LOOP, "a: it contains itself, or is too deep"),
        ("a", [{"b": {"c.d": 1}}], "a: the key 'c.d' begins with $, or contains . or NUL"),
        ("map", {"$a": []}, "map: the key '$a' begins with $, or contains . or NUL"),
        ("a", {"\0": 1}, "a: the key '\\x00' begins with $, or contains . or NUL"),
        ("when", datetime(2024, 5, 6), "when: a datetime has no time zone"),
        ("map", {5: []}, "map: a key is an int; a str is expected"),
        ("b", None, "b: null is not a bool"),
        ("place", Place("1"), "place.x: a str is not an int or float"),
        ("place", Place(None), "place.x: it is missing, and has no default"),
        ("id", 5, "id: an int is not a str"),
        ("id", "", "id: it is empty"),
    ],
)
def test_what_only_objects_can_contain(name, value, text):
    with box() as there:
        models = there.client.models(Thing)
        with pytest.raises(DDPModelError) as raised:
            models.save(Thing(**{name: value}))
        assert str(raised.value).startswith(f"Thing.{text}")
        assert f"; {name} is declared as " in str(raised.value) and len(str(raised.value)) < 250
        assert models.count(Thing) == 0


def test_annotations_that_are_not_strings():
    """An error names the types without their modules."""
    cls = make_dataclass(
        "Made",
        [
            ("when", Optional[datetime], None),
            ("link", Optional[Reference["Made"]], None),  # noqa: F821
            ("many", list[str], field(default_factory=list)),
            ("n", int, 0),
            ("id", str, ""),
        ],
    )
    with box() as there:
        models = there.client.models(cls)
        for name, declared in (
            ("when", r"Optional\[datetime\]|datetime \| None"),
            ("link", r"Optional\[Reference\[Made\]\]|Reference\[Made\] \| None"),
            ("many", r"list\[str\]"),
            ("n", "int"),
        ):
            with pytest.raises(DDPModelError, match=f"{name} is declared as ({declared}), and"):
                models.save(cls(id="a", **{name: "x"}))


def test_values_that_are_read_as_others():
    """They are saved, as they fit when they are read."""
    with box() as there:
        models = there.client.models(Thing)
        given = {"bytes_": bytearray(b"x"), "color": "blue", "lines": ("a",), "place": {"x": 1}}
        models.save(Thing(**given, shoe=41.0, a=[2**53, -(2**60), 1152921504606847000], id="t"))
        read = models.get(Thing, "t")
        assert (read.bytes_, read.color, read.lines) == (b"x", Color.BLUE, ["a"])
        assert read.place == Place(1.0) and type(read.shoe) is int
        assert read.a == [2**53, -1152921504606847000, 1152921504606847000]
        models.save(read)


@dataclass
class Age:
    years: int = 0

    def __post_init__(self):
        if self.years < 0:
            raise ValueError("too young")


def test_classes_that_check_their_values():
    @dataclass
    class Person:
        age: Age = field(default_factory=Age)
        name: str = "?"
        id: str = field(default_factory=random_id)

        def __post_init__(self):
            self.name = self.name[0].upper() + self.name[1:]

    documents = [{"_id": "a", "age": {"years": -1}}, {"_id": "b", "name": ""}, {"_id": "c"}]
    with box(people=documents) as there:
        models = there.client.models(Person)
        assert [one.id for one in models.all(Person)] == ["c"]
        with pytest.raises(DDPModelError) as raised:
            models.get(Person, "a")
        assert str(raised.value) == "people.a.age: Age refuses it: ValueError('too young')"
        with pytest.raises(DDPModelError, match=r"^people\.b: Person refuses it: IndexError"):
            models.get(Person, "b")
        person = models.get(Person, "c")
        person.name = ""
        with pytest.raises(DDPModelError, match=r"^Person c: Person refuses it: IndexError"):
            models.save(person)
        person.name, person.age.years = "d", -5
        with pytest.raises(DDPModelError, match=r"^Person\.age: Age refuses it: ValueError"):
            models.save(person)
        assert there.document("people", "c") == {}


def test_numbers_that_fit():
    with box(things=[{"_id": "t", "shoe": 42.0, "some": [1], "either": 5}]) as there:
        thing = there.client.models(Thing).get(Thing, "t")
        assert (thing.shoe, thing.some, thing.either) == (42, [1.0], 5)
        assert type(thing.shoe) is int and type(thing.some[0]) is float and thing.computed == 7


# What models must agree on.


@dataclass
class Plain:
    id: str = field(default_factory=random_id)


@dataclass
class Same:
    __collection__ = "plains"
    id: str = field(default_factory=random_id)


@dataclass
class Lonely:
    plain: Optional[Reference[Plain]] = to_one(storage=False)
    id: str = ""


@dataclass
class Wrong:
    plain: Optional[Reference[Plain]] = to_one(inverse="nothing")
    id: str = ""


@dataclass
class Left:
    right: Optional[Reference[Right]] = to_one(inverse="left")
    second: Optional[Reference[Right]] = to_one(inverse="left")
    id: str = ""


@dataclass
class Right:
    left: Optional[Reference[Left]] = to_one(inverse="right")
    id: str = ""


@dataclass
class Up:
    down: list[Reference[Down]] = to_many(inverse="up", storage=False)
    id: str = ""


@dataclass
class Down:
    up: list[Reference[Up]] = to_many(inverse="down", storage=False)
    id: str = ""


@dataclass
class Twice:
    plainId: str = ""  # noqa: N815
    plain: Optional[Reference[Plain]] = None
    id: str = ""


@dataclass
class Nameless:
    name: str = ""


@dataclass
class Odd:
    tags: set[str] = field(default_factory=set)
    id: str = ""


@dataclass
class Dotted:
    size: int = stored("box.size", default=0)
    id: str = ""


@dataclass
class Keys:
    map: dict[int, str] = field(default_factory=dict)
    id: str = ""


@dataclass
class Loose:
    plain: Optional[Plain] = to_one()
    id: str = ""


@dataclass
class Unknown:
    other: Optional[Reference[Missing]] = None  # noqa: F821
    id: str = ""


@pytest.mark.parametrize(
    ("models", "text"),
    [
        ((Plain, Same), "Plain and Same have the same collection, plains"),
        ((Lonely,), "the relationship Lonely.plain has neither storage nor an inverse"),
        (
            (Wrong,),
            "the relationship Wrong.plain has the inverse nothing, which Plain does not have",
        ),
        (
            (Left,),
            "the relationship Left.second has the inverse Right.left, whose inverse is lefts.right",
        ),
        ((Up,), "the relationship Up.down has storage at neither end"),
        ((Twice,), "Twice.plainId and Twice.plain have the same field, plainId"),
        ((Nameless,), "Nameless has no field id"),
        ((Odd,), "Odd.tags: EJSON has no form for set[str]"),
        ((Dotted,), "Dotted.size: the name 'box.size' begins with $, or contains . or NUL"),
        ((Keys,), "Keys.map: the keys of EJSON objects are str"),
        ((Loose,), "Loose.plain is declared as a relationship; its type must be"),
        ((Unknown,), "the annotations of Unknown cannot be resolved: name 'Missing'"),
    ],
)
def test_models_that_contradict_each_other(models, text):
    with box() as there, pytest.raises(librealtime.InvalidArgument) as raised:
        there.client.models(*models)
    assert str(raised.value).startswith(text) or text in str(raised.value)


def test_what_is_not_a_model():
    with box() as there:
        for wrong in (str, 5, Plain()):
            with pytest.raises(TypeError, match="is not a dataclass"):
                there.client.models(wrong)
        for use in (
            lambda: there.models.all(Plain),
            lambda: there.models.get(Plain, "a"),
            lambda: there.models.save(Plain()),
            lambda: there.models.save(removed=[Plain()]),
            lambda: there.models.observe(Plain),
        ):
            with pytest.raises(librealtime.InvalidArgument, match="is not one of the models"):
                use()


def test_classes_of_a_function():
    """Annotations name what the module does not have."""

    @dataclass
    class Leaf:
        stem: Optional[Reference[Stem]] = to_one(inverse="leaves")
        list: int = 0
        id: str = field(default_factory=random_id)

    @dataclass
    class Stem:
        leaves: list[Reference[Leaf]] = to_many(inverse="stem", storage=False)
        list: int = 0
        id: str = field(default_factory=random_id)

    with box() as there:
        models = there.client.models(Leaf, Stem)
        stem = Stem()
        models.save(stem, Leaf(stem=reference(stem), id="l"))
        assert models.get(Stem, stem.id).leaves == [Reference("l")]


def test_ids_are_drawn():
    assert len(random_id()) == 17 and random_id() != random_id()
    assert random_object_id() != random_object_id()
