"""abigen prints the setters of annotated callbacks, at their places in the header."""

from __future__ import annotations

import pytest
from abigen_tests import CHAPTER, HANDLE, command, compiled, function, package
from suite import expect, run

#: These tests share one build.
pytestmark = pytest.mark.xdist_group("abigen")

#: What annotated callbacks need of RealtimeABI.
SUPPORT = """\
/// Receives. Since 0.1.
public typealias rt_got_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void
/// Releases. Since 0.1.
public typealias rt_destroy_fn = @convention(c) (_ user: UnsafeMutableRawPointer?) -> Void
/// A result. Since 0.1.
public typealias rt_status = Int32
/// Values of `rt_status`. Since 0.1.
public enum RT_STATUS: Int32 {
    /// Success.
    case OK = 0
    /// Wrong.
    case ERROR_INVALID_ARGUMENT = -1
}
final class CallbackBox<Function> {
    init(_ function: Function?, _ user: UnsafeMutableRawPointer?, _ destroy: rt_destroy_fn?) {}
}
struct Handlers {}
func thingHandlers(_ thing: rt_thing?, _ body: (inout Handlers) -> Void) -> rt_status { 0 }
"""

ON_GOT = "mutating func onGot(_ box: CallbackBox<rt_got_fn>) {}"


def annotated(
    method: str = ON_GOT,
    doc: str = "/// Sets it. Since 0.1.",
    words: str = "thing, thingHandlers",
    opening: str = "extension Handlers {",
) -> str:
    """An extension with the setter of one callback; its annotation is in line 22."""
    lines = "".join(f"    {line}\n" for line in (doc + "\n" + method).splitlines() if line)
    return HANDLE + SUPPORT + f"/// - Callbacks: {words}\n{opening}\n{lines}}}\n"


#: Name, source, part of the error.
REFUSED = [
    ("runner", annotated(words="thing"), "General.swift:22: error: write '- Callbacks:"),
    ("noun", annotated(words="Thing, thingHandlers"), ":22: error: write '- Callbacks:"),
    ("place", annotated(opening="struct Others {"), ":22: error: write '- Callbacks:"),
    ("prose", annotated(doc=""), "General.swift:24: error: 'onGot' has no documentation"),
    (
        "only_returns",
        annotated(doc="/// - Returns: RT_OK."),
        ":25: error: 'onGot' has no documentation",
    ),
    ("name", annotated(ON_GOT.replace("onGot", "got")), ":25: error: write 'func onWhat"),
    (
        "box",
        annotated("mutating func onGot(_ fn: rt_got_fn) {}"),
        ":25: error: write 'func onWhat",
    ),
    ("property", annotated("var got: Int { 0 }"), ":25: error: write 'func onWhat"),
    (
        "twice",
        annotated(ON_GOT + "\n/// Sets it again. Since 0.1.\n" + ON_GOT),
        "General.swift:27: error: there are two setters 'rt_thing_on_got'",
    ),
]


@pytest.mark.parametrize(("name", "source", "says"), REFUSED, ids=[one[0] for one in REFUSED])
def test_abigen_refuses_a_callback(name: str, source: str, says: str) -> None:
    root = package(f"callback_{name}", "import CShims\n", is_compiled=False)
    file = root / "Sources/RealtimeABI/General.swift"
    file.write_text(CHAPTER + source)
    output = run(command(root), status=1)
    expect(says in output, f"expected '{says}', found:\n{output}")
    expect(not (file.parent / "General+Setters.swift").exists(), "something was written")


def test_a_printed_setter_is_where_its_callback_is_declared() -> None:
    before = function("_ thing: rt_thing?", name="rt_thing_before")
    pair = "_ thing: rt_thing?, _ pair: UnsafePointer<rt_pair>?"
    after = function(pair, name="rt_thing_after")
    wrapped = "mutating func onGotAgain(\n    _ box: CallbackBox<rt_got_fn>\n) {}"
    again = "/// Sets another. Since 0.2.\n/// - Returns: RT_OK."
    callbacks = annotated(f"{ON_GOT}\n{again}\n{wrapped}").removeprefix(HANDLE)
    root = package("callback_order", "import CShims\n" + HANDLE + before + callbacks + after)
    run(command(root))
    setters = root / "Sources/RealtimeABI/General+Setters.swift"
    compiled(root)
    run(command(root))
    header = (root / "include/realtime.h").read_text()
    places = [
        header.find(f"rt_thing_{name}(") for name in ("before", "on_got", "on_got_again", "after")
    ]
    expect(-1 not in places and places == sorted(places), f"{places} in:\n{header}")
    for text in (
        " * Returns: RT_OK; RT_ERROR_INVALID_ARGUMENT for a NULL handle.\n * Since 0.1.\n",
        " * Sets another.\n *\n * Returns: RT_OK.\n * Since 0.2.\n",
        "rt_status rt_thing_on_got(rt_thing *thing, rt_got_fn fn, void *user, rt_destroy_fn",
    ):
        expect(text in header, f"'{text}' is not in the header:\n{header}")
    expect("import" not in setters.read_text(), setters.read_text())
    run([*command(root), "--check"])


def test_a_setter_that_can_fail_names_its_error() -> None:
    method = ON_GOT.replace(" {}", " throws(RealtimeError) {}")
    root = package("callback_throws", "import CShims\n", is_compiled=False)
    file = root / "Sources/RealtimeABI/General.swift"
    file.write_text(CHAPTER + annotated(method))
    # The package has no symbol graph, but abigen prints the setters before it needs one.
    expect("symbol graph" in run(command(root), status=1), "no error")
    text = (file.parent / "General+Setters.swift").read_text()
    for part in (
        "\nimport Wire\n",
        "    return thingHandlers(thing) { (object) throws(RealtimeError) in\n"
        "        try object.onGot(box)\n    }\n",
    ):
        expect(part in text, f"'{part}' is not in:\n{text}")
