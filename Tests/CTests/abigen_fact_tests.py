"""The model has the facts that bindings are printed from; abigen refuses what lacks them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from abigen_callback_tests import SUPPORT
from abigen_option_tests import REGION, annotated
from abigen_tests import HANDLE, STRUCTS, command, compiled, function, package
from suite import expect, model, run

#: These tests share one build.
pytestmark = pytest.mark.xdist_group("abigen")

#: The functions begin in line 22.
BASE = HANDLE + SUPPORT
USER = "_ user: UnsafeMutableRawPointer?"
TEXT = "UnsafePointer<CChar>?"
SIZE = "UnsafeMutablePointer<Int>?"


def fallible(returns: str, name: str = "rt_do", parameters: str = "") -> str:
    """A function with these statuses."""
    doc = f"/// Does. Since 0.1.\n/// - Returns: {returns}"
    return function(parameters, " -> rt_status", doc, name)


def creator(name: str) -> str:
    return function("_ out: UnsafeMutablePointer<rt_thing?>?", name=name)


#: Name, source after `BASE`, part of the error.
REFUSED = [
    (
        "not_freed",
        creator("rt_make"),
        "General.swift:23: error: 'out' receives an 'rt_thing', which nothing frees",
    ),
    (
        "bytes",
        function("_ data: UnsafePointer<UInt8>?, _ user_size: Int"),
        ":23: error: 'data' has no length beside it",
    ),
    ("no_user", function("_ fn: rt_got_fn?"), "'fn' must be followed by 'user'"),
    (
        "user_before",
        function(f"{USER}, _ fn: rt_got_fn?"),
        "'fn' must be followed by 'user'",
    ),
    ("no_callback", function(USER), "'user' belongs to no callback"),
    (
        "destroy",
        function(f"_ fn: rt_got_fn?, _ destroy: rt_destroy_fn?, {USER}"),
        "'destroy' must follow 'user'",
    ),
    (
        "no_statuses",
        function("", " -> rt_status"),
        ":23: error: '- Returns:' of 'rt_do' must list its statuses",
    ),
    (
        "unknown_status",
        fallible("RT_OK; RT_ERROR_UNHEARD_OF."),
        "names 'RT_ERROR_UNHEARD_OF', which does not exist",
    ),
    (
        "unknown_function",
        fallible("as `rt_undone`."),
        "'- Returns:' names 'rt_undone', which does not exist",
    ),
    (
        "text_without_length",
        "/// Receives. Since 0.1.\npublic typealias rt_said_fn = @convention(c)"
        f" (_ reason: UnsafePointer<CChar>?, {USER}) -> Void\n",
        "General.swift:23: error: 'reason' may contain a NUL: write its length beside it",
    ),
    (
        "result_without_length",
        function("_ thing: rt_thing?", " -> UnsafePointer<CChar>"),
        ":23: error: the result may contain a NUL",
    ),
    (
        "result_without_lifetime",
        function("", " -> UnsafePointer<Int32>"),
        ":23: error: the comment of 'rt_do' must say how long its result is valid: 'Static;'",
    ),
    (
        "output_without_lifetime",
        function(f"_ out_text: UnsafeMutablePointer<{TEXT}>?, _ out_length: {SIZE}"),
        "the comment of 'out_text' must say that it is 'valid as long as' what",
    ),
    (
        "direction",
        function("_ number: UnsafeMutablePointer<Int32>?"),
        "'number' is neither constant nor called 'out': it is read or written",
    ),
]


@pytest.mark.parametrize(("name", "source", "says"), REFUSED, ids=[one[0] for one in REFUSED])
def test_abigen_refuses_what_lacks_a_fact(name: str, source: str, says: str) -> None:
    root = package(f"fact_{name}", BASE + source)
    output = run(command(root), status=1)
    expect(says in output, f"expected '{says}', found:\n{output}")
    expect(not (root / "include").exists(), "something was written")


def test_abigen_refuses_constants_without_their_type() -> None:
    pair = function("_ pair: UnsafePointer<rt_pair>?")
    root = package("fact_constants", BASE + pair)
    header = root / "Sources/CShims/include/rt_types.h"
    header.write_text(header.read_text().replace("/// The first.", "/// RT_OK, or not."))
    output = run(command(root), status=1)
    says = "rt_types.h:4: error: 'first' has constants: its comment must name their type"
    expect(says in output, output)
    expect("/// The first." in STRUCTS, "nothing was replaced")


def test_abigen_refuses_a_text_of_a_view_without_its_length() -> None:
    root = package("fact_view", BASE + function("_ pair: UnsafePointer<rt_pair>?"))
    header = root / "Sources/CShims/include/rt_types.h"
    header.write_text(header.read_text().replace("text_length", "width"))
    output = run(command(root), status=1)
    expect("rt_types.h:4: error: 'text' may contain a NUL" in output, output)


def named(interface: dict[str, Any], group: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in interface[group]}


def test_the_model_has_the_facts() -> None:
    parameters = (
        "_ thing: rt_thing?, _ text: UnsafePointer<CChar>?, _ data: UnsafePointer<UInt8>?,"
        f" _ length: Int, _ fn: rt_got_fn?, {USER}, _ destroy: rt_destroy_fn?,"
        " _ out_id: UnsafeMutablePointer<UInt64>?"
    )
    source = (
        BASE
        + creator("rt_make")
        + function(
            "_ thing: rt_thing?", doc="/// Frees. Any thread. Since 0.1.", name="rt_thing_free"
        )
        + fallible("RT_OK; as `rt_thing_other`.", "rt_thing_do", parameters)
        + fallible("RT_ERROR_INVALID_ARGUMENT; as in `rt_thing_do`.", "rt_thing_other")
        + fallible("RT_OK.", "rt_thing_receive", "_ thing: rt_thing?, _ timeout_ms: Int64")
        + function("_ pair: UnsafePointer<rt_pair>?")
    )
    root = package("facts", source.replace("A thing.", "A thing, for one thread at a time."))
    header = root / "Sources/CShims/include/rt_types.h"
    header.write_text(header.read_text().replace("The first.", "An `rt_status`: RT_OK."))
    compiled(root)
    run(command(root))
    found = json.loads((root / "include/realtime.abi.json").read_text())
    handle = named(found, "handles")["rt_thing"]
    expect(handle["creators"] == ["rt_make"], str(handle))
    expect(handle["destructor"] == "rt_thing_free", str(handle))
    functions = named(found, "functions")
    expect(functions["rt_thing_free"]["frees"] == "rt_thing", str(functions["rt_thing_free"]))
    # Any thread, but one at a time.
    expect(functions["rt_thing_free"]["thread"] == "one", str(functions["rt_thing_free"]))
    do = functions["rt_thing_do"]
    expect(do["statuses"] == ["RT_OK", "RT_ERROR_INVALID_ARGUMENT"], str(do["statuses"]))
    expect((do["thread"], do["blocks"]) == ("one", False), str(do))
    expect(functions["rt_make"]["thread"] == "any", str(functions["rt_make"]))
    expect(functions["rt_thing_receive"]["blocks"], str(functions["rt_thing_receive"]))
    roles = [parameter["role"] for parameter in do["parameters"]]
    words = "handle input input input callback user destroy output"
    expect(roles == words.split(), str(roles))
    buffers = [parameter.get("buffer") for parameter in do["parameters"]]
    expect(
        buffers == [None, {"isTerminated": True}, {"length": "length"}] + [None] * 5, str(buffers)
    )
    fields = {field["name"]: field for field in named(found, "structs")["rt_pair"]["fields"]}
    expect(fields["first"]["enumeration"] == "rt_status", str(fields["first"]))
    expect(fields["text"]["buffer"] == {"length": "text_length"}, str(fields["text"]))


#: Parameters after the handle, with what the model says of the first one: whether NULL is allowed,
#: how long it is valid, and what frees it.
POINTERS = [
    (f"_ text: {TEXT}", "/// Does.", (False, "call", None)),
    (f"_ text: {TEXT}", "/// Does. NULL removes it.", (True, "call", None)),
    (f"_ text: {TEXT}, _ length: Int", "/// Does.", (True, "call", None)),
    (f"_ text: {TEXT}, _ more: {TEXT}", "/// Does. NULL removes it.", (False, "call", None)),
    (f"_ text: {TEXT}, _ more: {TEXT}", "/// Does. NULL as `text` ends it.", (True, "call", None)),
    (f"_ a: rt_thing?, _ text: {TEXT}", "/// Does. NULL as `text` ends.", (False, "call", None)),
    (f"_ fn: rt_got_fn?, {USER}", "/// Does.", (False, "call", None)),
    (
        f"_ fn: rt_got_fn?, {USER}, _ destroy: rt_destroy_fn?",
        "/// Does.\n/// - Parameter fn: NULL for nobody.",
        (True, "destroy", None),
    ),
    ("_ out: UnsafeMutablePointer<Int32>?", "/// Does.", (False, "call", None)),
    (
        "_ out: UnsafeMutablePointer<Int32>?",
        "/// Does.\n/// - Parameter out: may be NULL.",
        (True, "call", None),
    ),
    ("_ out_id: UnsafeMutablePointer<Int32>?", "/// Does.", (True, "call", None)),
    (
        "_ out_id: UnsafeMutablePointer<Int32>?",
        "/// Does.\n/// - Parameter out_id: required.",
        (False, "call", None),
    ),
    ("_ out: UnsafeMutablePointer<rt_thing?>?", "/// Does.", (False, "owned", "rt_thing_free")),
]


def test_the_model_says_what_a_pointer_is() -> None:
    source = BASE + function(
        "_ thing: rt_thing?", doc="/// Frees. Since 0.1.", name="rt_thing_free"
    )
    for index, (parameters, doc, _) in enumerate(POINTERS):
        doc = doc.replace("Does.", "Does. Since 0.1.", 1)
        source += function(f"_ thing: rt_thing?, {parameters}", doc=doc, name=f"rt_thing_do{index}")
    source += function("_ pair: UnsafePointer<rt_pair>?")
    source += function("_ thing: rt_thing?", " -> UnsafePointer<rt_pair>?", name="rt_thing_get")
    root = package("pointers", source)
    compiled(root)
    run(command(root))
    found = json.loads((root / "include/realtime.abi.json").read_text())
    functions = named(found, "functions")
    for index, (parameters, doc, expected) in enumerate(POINTERS):
        handle, first = functions[f"rt_thing_do{index}"]["parameters"][:2]
        expect(not handle["type"]["nullable"], str(handle))
        pointer = first["pointer"]
        facts = (first["type"]["nullable"], pointer["lifetime"], pointer.get("freedBy"))
        expect(facts == expected, f"{parameters} {doc}: {facts}")
    freed = functions["rt_thing_free"]["parameters"][0]
    expect(freed["type"]["nullable"] and freed["pointer"]["lifetime"] == "taken", str(freed))
    expect(functions["rt_thing_get"]["resultPointer"] == {"lifetime": "owner"}, "no owner")
    text = named(found, "structs")["rt_pair"]["fields"][1]
    expect(text["pointer"] == {"encoding": "utf8", "lifetime": "owner"}, str(text))


def test_the_librarys_model_has_the_facts() -> None:
    """Samples of each fact, so that a change of a name or a comment does not lose one."""
    functions = named(model(), "functions")
    for name, statuses in {
        "rt_websocket_connect": "RT_ERROR_TIMEOUT",
        "rt_ddp_models_save": "RT_ERROR_NOT_FOUND",
        "rt_rest_response_error": "RT_ERROR_AUTH",
    }.items():
        expect(statuses in functions[name]["statuses"], str(functions[name]["statuses"]))
    waiting = {name for name, one in functions.items() if one["blocks"]}
    expect({"rt_loop_run", "rt_call_wait", "rt_pusher_receive"} <= waiting, str(waiting))
    expect("rt_websocket_start" not in waiting, str(waiting))
    one_thread = {name for name, one in functions.items() if one["thread"] == "one"}
    expect("rt_rest_request_set_body" in one_thread, str(one_thread))
    expect("rt_websocket_send_text" not in one_thread, str(one_thread))
    handles = named(model(), "handles")
    made_elsewhere = {name for name, handle in handles.items() if not handle["creators"]}
    given = {"rt_rest_response", "rt_pusher_authorization", "rt_ddp_stub"}
    expect(made_elsewhere == given, str(made_elsewhere))
    unfreed = {name for name, handle in handles.items() if not handle.get("destructor")}
    expect(unfreed == {"rt_ddp_stub"}, str(unfreed))


#: An option of each kind, in the library's model.
OPTIONS = {
    "rt_network_set_tcp_no_delay": {"initial": "true", "isOnce": False, "kind": "flag"},
    "rt_longpoll_set_min_hold_ms": {
        "initial": "1000",
        "isOnce": False,
        "kind": "time",
        "least": 0,
        "setBefore": "start",
        "unit": "ms",
    },
    "rt_network_set_min_tls_version": {
        "initial": "RT_TLS_V1_2",
        "isOnce": False,
        "kind": "choice",
    },
}


def test_setters_have_the_facts_of_their_options() -> None:
    functions = named(model(), "functions")
    for name, facts in OPTIONS.items():
        expect(functions[name].get("option") == facts, str(functions[name].get("option")))


def test_abigen_refuses_an_option_without_its_setter() -> None:
    root = package("fact_option", BASE + function("_ pair: UnsafePointer<rt_pair>?"))
    for folder in ("Session", "Wire", "Realtime"):
        (root / "Sources" / folder).mkdir()
    (root / "Sources/Session/Thing.swift").write_text(annotated("Option: wait, delay"))
    (root / "Sources/Realtime/Thing.swift").write_text(REGION)
    # The symbol graph is older than the setter that this run prints.
    output = run(command(root), status=1)
    expect("RealtimeABI has no 'rt_thing_set_wait_ms'" in output, output)


def test_defaults_and_units_are_those_of_the_comments() -> None:
    kinds: dict[str, int] = {}
    numbers = 0
    for name, setter in named(model(), "functions").items():
        option = setter.get("option")
        if option is None:
            continue
        kinds[option["kind"]] = kinds.get(option["kind"], 0) + 1
        expect((option.get("unit") == "ms") == name.endswith("_ms"), name)
        before = option.get("setBefore")
        said = " ".join(setter["documentation"]["paragraphs"])
        if before:
            expect(f"Before {before}" in said, said)
        if found := re.search(r"Default: ([0-9][0-9,.]*)[;.](?: |$)", said):
            number = float(found[1].replace(",", ""))
            expect(float(option["initial"]) == number, f"{name}: {option}")
            numbers += 1
    expect(min(kinds.values()) > 1 and len(kinds) == 8, str(kinds))
    expect(numbers > 50, f"{numbers} comments name a number")
