"""What is refused names the parameter that has it: each parameter of each object, with values of
wrong types and with texts that no option can be."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re

import pytest
from optioned import NOWHERE, OBJECTS, VALUE_CLASSES

import librealtime
from librealtime import InvalidArgument, sync
from librealtime._core.option_kinds import Flag
from librealtime._rest.options import RequestKeywords

#: No option can be that, but those that are true or false.
THING = object()

VALUES = {
    "object": THING,
    "5": 5,
    "-1": -1,
    "nan": math.nan,
    "-0.5": -0.5,
    "10^400": 10**400,
    "True": True,
    "empty": "",
    "line feed": "x\n",
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "text": "ä b",
    "long": "x" * 70_000,
    "bytes": b"\xff",
    "list": [],
    "list of a number": [5],
    "list of a text": ["a b"],
    "list of nothing": [""],
    "list of a surrogate": ["\ud800"],
    "tuple": (1, 2),
    "mapping": {1: 2},
    "mapping of a number": {"a": 5},
    "mapping of a text": {"a": "\ud800"},
    "function": lambda: 1,
}

#: The options that are switched on and off, besides the plain ones.
SWITCHES = {"log", "streaming"}

#: How else a message may name a parameter: by what it sets.
SETS = {
    "auth": "Authorization",
    "bearer_token": "Authorization",
    "cookies": "Cookie",
    "idempotency_key": "Idempotency-Key",
    "params": "URL",
    "last_event_id": "the id",
    "subprotocols": "subprotocol",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Some options name files, which are made here."""
    monkeypatch.chdir(tmp_path)


def is_named(message, name):
    """Whether a message names this parameter, as one word or as words, or by what it sets."""
    known = (name, name.replace("_", " "), SETS.get(name, name))
    return any(re.search(rf"\b{one}\b", message) for one in known)


def faults(make, name, value, must_refuse):
    """What is wrong with how a parameter is refused; nothing if all is well."""
    try:
        make(**{name: value})
    except (InvalidArgument, TypeError) as error:
        if not is_named(str(error), name):
            yield f"{name}={value!r:.40}: does not name it: {error!s:.200}"
    except librealtime.StoreError as error:  # the name of a file, where no file can be
        if os.path.basename(str(value))[:9] not in str(error):
            yield f"{name}={value!r:.40}: {error!r:.200}"
    except Exception as error:
        yield f"{name}={value!r:.40}: {error!r:.200}"
    else:
        if must_refuse:
            yield f"{name}={value!r:.40} is accepted"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("kind", OBJECTS)
def test_options(kind, value):
    options, make = OBJECTS[kind]
    switches = {option.name for option in options._plain if isinstance(option, Flag)} | SWITCHES
    found = [
        fault
        for parameter in options.parameters
        for fault in faults(
            make, parameter.name, value, value is THING and parameter.name not in switches
        )
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_options_of_values(value):
    found = []
    for cls, make in VALUE_CLASSES:
        for field in dataclasses.fields(cls):
            is_switch = isinstance(field.default, bool) and field.name != "proxy"
            # A key or its password needs a certificate, which is checked first.
            more = {"client_certificate": "a"} if field.name.startswith("client_key") else {}
            found += faults(
                lambda cls=cls, make=make, more=more, **given: make(cls(**more, **given)),
                field.name,
                value,
                value is THING and not is_switch,
            )
    assert not found, "\n".join(found)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_options_of_requests(value):
    """A request with what is accepted fails, as nobody listens there."""
    with sync.RESTClient(NOWHERE, attempts=1) as client:

        def get(**given):
            with contextlib.suppress(librealtime.ConnectFailed, librealtime.ConnectionTimeout):
                client.get("x", **given)

        # Of these three any value may be a body.
        names = RequestKeywords.__annotations__.keys() - {"json", "data", "content"}
        switches = {"allow_insecure_redirects", "idempotency_key", "ordered", "retry_unsafe"}
        found = [
            fault
            for name in sorted(names)
            for fault in faults(get, name, value, value is THING and name not in switches)
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_options_of_a_parser(value):
    found = []
    for name in ("last_event_id", "on_comment", "max_event_size", "max_line_size", "max_name_size"):
        found += faults(librealtime.EventStreamParser, name, value, value is THING)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sync.Pusher("k", auth_headers=5), "auth_headers is an int, not a mapping or"),
        (
            lambda: sync.Pusher("k", auth_params={"a": 5}),
            "the value of parameter a in auth_params is an int; a str is expected",
        ),
        (
            lambda: sync.EventSource(NOWHERE, retry_statuses=5),
            "retry_statuses is an int; a list of whole numbers is expected",
        ),
        (
            lambda: sync.RESTClient(NOWHERE, ca_file="/tmp/\ud800"),
            "ca_file is not a file name: lone surrogate at index 5",
        ),
        (
            lambda: librealtime.Network(no_proxy=[5]),
            "an entry of no_proxy is an int; a str is expected",
        ),
        (
            lambda: sync.Spreadbot(NOWHERE, auth_url="nowhere"),
            'auth_url: The URL "nowhere" does not begin with http:// or https://',
        ),
        (
            lambda: sync.Spreadbot(NOWHERE, auth_url=NOWHERE, base64_credentials="a\nb"),
            'base64_credentials: The value of the header "Authorization" has',
        ),
        (
            lambda: sync.LongPoll(NOWHERE, id_query_param="", cursor="query_id"),
            "id_query_param: the name of the id's parameter is empty",
        ),
    ],
)
def test_messages(make, said):
    with pytest.raises((InvalidArgument, TypeError), match=f"^{re.escape(said)}"):
        made = make()
        made.make()


PATHS = [
    (sync.EventSource, "id_file"),
    (sync.Spreadbot, "outbox"),
    (sync.DDPClient, "token_file"),
    (sync.DDPClient, "document_file"),
    *(
        (librealtime.Network, name)
        for name in ("ca_file", "ca_path", "client_certificate", "client_key", "unix_socket")
    ),
]


@pytest.mark.parametrize(("cls", "name"), PATHS)
def test_paths_with_a_lone_surrogate(cls, name):
    where = () if cls is librealtime.Network else (NOWHERE,)
    with pytest.raises(InvalidArgument, match=f"{name} is not a file name") as raised:
        cls(*where, **{name: "/tmp/\ud800"})
    assert raised.value.name == "RT_ERROR_INVALID_UTF8"
