"""The README and the documentation match the code."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path

import pytest

import librealtime
from librealtime._core.abi import rt_status
from librealtime._core.errors import OPTION_NAMES, from_status

README = (Path(__file__).parents[1] / "README.md").read_text()


def rows(first, last):
    """Names in the first column of the tables between two lines, with the second column."""
    part = README[README.index(first) : README.index(last)]
    found = {}
    for line in part.splitlines():
        if line.startswith("| `"):
            names, default = line.split("|")[1:3]
            found.update((name, default.strip()) for name in re.findall(r"`(\w+)`", names))
    return found


def parameters(function):
    named = inspect.signature(function).parameters.values()
    return [one.name for one in named if one.name not in ("self", "url", "key")]


def test_errors_name_limits_as_in_python():
    """Users of Python do not know the names of the C interface."""
    faces = (librealtime.connect, librealtime.EventSource, librealtime.LongPoll)
    faces += (librealtime.RESTClient, librealtime.EventStreamParser, librealtime.Spreadbot)
    faces += (librealtime.Pusher, librealtime.DDPClient, librealtime.Network)
    known = {name for face in faces for name in parameters(face)}
    for group in (librealtime.Backoff, librealtime.Deflate):
        names = [field.name for field in dataclasses.fields(group)]
        known.update(names, (f"{group.__name__}.{name}" for name in names))
    assert len(OPTION_NAMES) > 100
    for setter in OPTION_NAMES:
        error = from_status(rt_status.ERROR_TOO_LARGE, f"too large ({setter})")
        assert re.findall(r"\(([\w.]+)\)", str(error))[0] in known, setter


def test_every_option_is_in_the_readme():
    documented = rows("## Options of connect", "`Network`, a frozen")
    assert sorted(documented) == sorted(parameters(librealtime.connect))
    network = rows("`Network`, a frozen", "Iterating over a `Backoff`")
    fields = [field.name for field in dataclasses.fields(librealtime.Network)]
    assert sorted(network) == sorted(fields)
    for kind in (librealtime.Backoff, librealtime.Deflate):
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in README


def test_every_option_of_event_sources_is_in_the_readme():
    documented = rows("## Event streams\n", "## Long polls")
    assert sorted(documented) == sorted(parameters(librealtime.EventSource))


@pytest.mark.parametrize(
    ("documented", "function"),
    [
        (rows("## Options of connect", "`Network`, a frozen"), librealtime.connect),
        (rows("## Event streams\n", "## Long polls"), librealtime.EventSource),
    ],
    ids=["connect", "EventSource"],
)
def test_numbers_of_the_readme(documented, function):
    units = {"s": 1, "KiB": 2**10, "MiB": 2**20, "messages": 1, "events": 1, "": 1}
    for name, default in inspect.signature(function).parameters.items():
        match = re.fullmatch(r"(\d+) ?(\w*)", documented.get(name, ""))
        if match:
            assert default.default == int(match[1]) * units[match[2]], name
        elif documented.get(name) in ("None", "False"):
            assert str(default.default) == documented[name], name


@pytest.mark.parametrize(
    "documented",
    [
        librealtime.connect,
        librealtime.sync.connect,
        librealtime.sync.reconnect,
        librealtime.EventSource,
        librealtime.sync.EventSource,
        librealtime.LongPoll,
        librealtime.sync.LongPoll,
        librealtime.Pusher,
        librealtime.sync.Pusher,
    ],
    ids=[
        *("connect", "sync.connect", "sync.reconnect", "EventSource", "sync.EventSource"),
        *("LongPoll", "sync.LongPoll", "Pusher", "sync.Pusher"),
    ],
)
def test_help_lists_every_option(documented):
    text = inspect.getdoc(documented)
    for name in parameters(documented):
        assert f":param {name}:" in text


@pytest.mark.parametrize("kind", [librealtime.RESTClient, librealtime.sync.RESTClient])
def test_help_lists_every_option_of_requests(kind):
    text = inspect.getdoc(kind)
    for name in parameters(librealtime.RESTClient):
        assert f":param {name}:" in text


@pytest.mark.parametrize("kind", ["Network", "Backoff", "Deflate"])
def test_help_lists_every_field(kind):
    kind = getattr(librealtime, kind)
    for field in dataclasses.fields(kind):
        assert f":param {field.name}:" in kind.__doc__


def test_every_name_is_there_and_documented():
    for name in librealtime.__all__:
        assert inspect.getdoc(getattr(librealtime, name))


def documentation(function):
    model = json.loads((Path(__file__).parents[3] / "include/realtime.abi.json").read_text())
    (found,) = (one for one in model["functions"] if one["name"] == function)
    return " ".join(found["documentation"]["paragraphs"])


@pytest.mark.parametrize(
    ("field", "setter"),
    [
        ("level", "compression_level"),
        ("memory_level", "compression_memory_level"),
        ("min_size", "compression_min_bytes"),
        ("max_inflate_ratio", "max_inflate_ratio"),
        ("client_max_window_bits", "client_max_window_bits"),
        ("server_max_window_bits", "server_max_window_bits"),
        ("client_no_context_takeover", "client_no_context_takeover"),
        ("server_no_context_takeover", "server_no_context_takeover"),
    ],
)
def test_defaults_of_deflate_are_those_of_c(field, setter):
    """``compression="deflate"`` leaves these settings to C."""
    found = re.search(r"Default: (\w+)", documentation(f"rt_websocket_set_{setter}"))[1]
    assert int(getattr(librealtime.Deflate(), field) or 0) == int(found.replace("false", "0"))


@pytest.mark.parametrize(
    ("parameter", "setter", "part"),
    [
        ("write_limit", "rt_websocket_set_send_high_water_bytes", 1),
        # A Python program holds several copies of a message.
        ("max_size", "rt_websocket_set_max_message_bytes", 4),
        ("max_header_size", "rt_websocket_set_max_header_bytes", 1),
    ],
)
def test_defaults_are_those_of_c(parameter, setter, part):
    """The defaults that Python always sets; the others are left to C."""
    number, unit = re.search(r"Default: (\d+) (KiB|MiB)", documentation(setter)).groups()
    default = inspect.signature(librealtime.connect).parameters[parameter].default
    assert default == int(number) * {"KiB": 2**10, "MiB": 2**20}[unit] // part
