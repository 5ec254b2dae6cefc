"""abigen: the generated files are up to date; types that C cannot express are refused."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest
from suite import SCRATCH, Failure, expect, run

#: These tests share one build.
pytestmark = pytest.mark.xdist_group("abigen")

#: Enough for a build from scratch.
BUILD_SECONDS = 900
BUILD = ["swift", "build", "--product", "abigen"]


@cache
def abigen() -> Path:
    if given := os.environ.get("ABIGEN"):
        return Path(given)
    run(BUILD, seconds=BUILD_SECONDS)
    folder = run([*BUILD, "--show-bin-path"]).strip().splitlines()[-1]
    return Path(folder) / "abigen"


def test_generated_files_are_up_to_date() -> None:
    run([abigen(), "--check"], seconds=BUILD_SECONDS)


STRUCTS = """\
/// A pair. Since 0.1.
typedef struct rt_pair {
  /// The first.
  int32_t first;
  /// Text.
  const char *text;
  /// Its length.
  size_t text_length;
} rt_pair;
"""

CHAPTER = "// Chapter: test. For this test.\n"
HANDLE = "/// A thing. Since 0.1.\npublic typealias rt_thing = OpaquePointer\n"


def function(
    parameters: str, result: str = "", doc: str = "/// Does. Since 0.1.", name: str = "rt_do"
) -> str:
    body = "fatalError()"
    return f'{doc}\n@_cdecl("{name}") public func {name}({parameters}){result} {{ {body} }}\n'


def method(verb: str, parameters: str = "") -> str:
    """A handle, and a function on it."""
    return HANDLE + function(f"_ thing: rt_thing?{parameters}", name=f"rt_thing_{verb}")


def enumeration(cases: str, doc: str = "/// Values of `rt_kind`. Since 0.1.") -> str:
    alias = "/// A kind. Since 0.1.\npublic typealias rt_kind = Int32\n"
    return f"{alias}{doc}\npublic enum RT_KIND: Int32 {{\n{cases}\n}}\n"


#: Name, source after the chapter's line, line of the error, part of its text.
REFUSED = [
    ("no_since", function("", doc="/// Does."), 3, "has no 'Since'"),
    ("no_doc", function("", doc="//"), 3, "has no doc comment"),
    ("swift_type", function("_ n: UInt"), 3, "C has no 'UInt'"),
    ("swift_result", function("", " -> UInt"), 3, "C has no 'UInt'"),
    ("label", function("thing: Int32"), 3, "C has no argument labels"),
    (
        "pointer_not_optional",
        function("_ out: UnsafeMutablePointer<Int32>"),
        3,
        "optional",
    ),
    ("reserved_word", function("_ class: Int32"), 3, "reserved word of C or C++"),
    (
        "unknown_parameter",
        function("", doc="/// Does. Since 0.1.\n/// - Parameter x: y"),
        4,
        "'x'",
    ),
    (
        "unknown_markup",
        function("", doc="/// Does. Since 0.1.\n/// - Note: y"),
        3,
        "'- Note:'",
    ),
    ("end_of_comment", function("", doc="/// Does */. Since 0.1."), 2, "'*/'"),
    ("no_attribute", "/// Does. Since 0.1.\npublic func rt_do() {}\n", 3, "@_cdecl"),
    (
        "wrong_prefix",
        "/// A thing. Since 0.1.\npublic typealias thing = Int32\n",
        3,
        "'rt_'",
    ),
    (
        "closure",
        "/// F. Since 0.1.\npublic typealias rt_fn = () -> Void\n",
        3,
        "@convention(c)",
    ),
    ("structure", "/// S. Since 0.1.\npublic struct rt_s {}\n", 3, "C has no"),
    ("case_without_value", enumeration("/// One.\ncase ONE"), 7, "case NAME = number"),
    ("case_without_doc", enumeration("case ONE = 1"), 6, "has no doc comment"),
    (
        "enum_without_alias",
        enumeration("/// One.\ncase ONE = 1", doc="/// Kinds. Since 0.1."),
        5,
        "Values of",
    ),
    ("word_disconnect", method("disconnect"), 5, "_close is the orderly end"),
    ("word_establish", method("establish"), 5, "_start begins"),
    ("word_on_close", method("on_close"), 5, "_on_closed"),
    ("word_network", method("network_changed"), 5, "_retry_now"),
    (
        "new_without_code",
        HANDLE + function("_ out: UnsafeMutablePointer<rt_thing?>?", name="rt_thing_new"),
        5,
        "begin 'test' with the usual functions",
    ),
    ("connect_without_time", method("connect"), 5, "takes 'timeout_ms'"),
    ("start_with_time", method("start", ", _ timeout_ms: Int64"), 5, "never waits"),
]

#: The same interface without errors.
ACCEPTED = (
    HANDLE
    + enumeration("/// One.\ncase ONE = -1")
    + function("_ thing: rt_thing?, _ pair: UnsafePointer<rt_pair>?, _ n: Int", " -> rt_kind")
    + function("_ thing: rt_thing?, _ timeout_ms: Int64", name="rt_thing_connect")
    + function("_ thing: rt_thing?", name="rt_thing_disconnect_all")
)


def package(name: str, source: str, chapter: str = "General", *, is_compiled: bool = True) -> Path:
    """A folder that looks like the project to abigen, and its symbol graph."""
    root = SCRATCH / "abigen" / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("Sources/RealtimeABI", "Sources/CShims/include", "graph"):
        (root / folder).mkdir(parents=True)
    (root / "VERSION").write_text("1.2.3\n")
    header = root / "Sources/CShims/include/rt_types.h"
    header.write_text("#include <stddef.h>\n#include <stdint.h>\n" + STRUCTS)
    (header.parent / "module.modulemap").write_text('module CShims { header "rt_types.h" }\n')
    file = root / f"Sources/RealtimeABI/{chapter}.swift"
    file.write_text(CHAPTER + source + "import CShims\n")
    if is_compiled:
        compiled(root)
    return root


def compiled(root: Path) -> None:
    """Writes the symbol graph of a package."""
    graph = ["-emit-symbol-graph", "-emit-symbol-graph-dir", str(root / "graph")]
    graph.append("-symbol-graph-skip-synthesized-members")
    include = root / "Sources/CShims/include"
    files = sorted((root / "Sources/RealtimeABI").glob("*.swift"))
    module = ["-module-name", "RealtimeABI", "-I", str(include)]
    out = ["-o", root / "graph/m.swiftmodule"]
    run(["swiftc", "-emit-module", *module, *graph, *files, *out])


def command(root: Path) -> list[str | Path]:
    graph = root / "graph/RealtimeABI.symbols.json"
    return [abigen(), "--root", root, "--symbol-graph", graph]


@pytest.mark.parametrize(
    ("name", "source", "line", "says"), REFUSED, ids=[one[0] for one in REFUSED]
)
def test_abigen_refuses(name: str, source: str, line: int, says: str) -> None:
    root = package(name, source)
    output = run(command(root), status=1)
    place = f"Sources/RealtimeABI/General.swift:{line}: error: "
    expect(
        any(text.startswith(place) and says in text for text in output.splitlines()),
        f"expected '{place}…{says}…', found:\n{output}",
    )
    expect(not (root / "include").exists(), "something was written")


def test_abigen_refuses_a_chapter_without_a_place() -> None:
    root = package("chapter", HANDLE, "Unlisted")
    output = run(command(root), status=1)
    expect("Naming.subjects does not list 'Unlisted'" in output, f"found:\n{output}")


def test_abigen_prints_what_it_accepts() -> None:
    root = package(
        "accepted",
        "// And for another.\n//\n//     rt_thing *thing;\n//     rt_thing_new(&thing);\n//\n"
        + "// It has\n// two paragraphs.\n"
        + ACCEPTED
        + function("_ out: UnsafeMutablePointer<rt_thing?>?", name="rt_thing_new")
        + function("_ thing: rt_thing?", name="rt_thing_free"),
    )
    run(command(root))
    header = (root / "include/realtime.h").read_text()
    for text in (
        " * Chapter: test. For this test. And for another.\n *\n"
        " * The usual functions, in the order of use:\n *\n"
        " *     rt_thing *thing;\n *     rt_thing_new(&thing);\n *\n"
        " * It has two paragraphs.\n */",
        "typedef struct rt_thing rt_thing;",
        "RT_KIND_ONE = -1,",
        "rt_kind rt_do(rt_thing *thing, const rt_pair *pair, size_t n);",
        "#define RT_VERSION_NUMBER 10203",
        "  const char *text;",
        "} rt_pair;",
    ):
        expect(text in header, f"'{text}' is not in the header:\n{header}")
    run([*command(root), "--check"])


def test_abigen_check_shows_the_difference() -> None:
    root = package("stale", ACCEPTED)
    run(command(root))
    header = root / "include/realtime.h"
    header.write_text(header.read_text().replace("RT_KIND_ONE = -1", "RT_KIND_ONE = -2"))
    output = run([*command(root), "--check"], status=1)
    expect("-  RT_KIND_ONE = -2," in output and "+  RT_KIND_ONE = -1," in output, output)
    expect("RT_KIND_ONE = -2" in header.read_text(), "--check wrote to the tree")


def test_abigen_help_and_usage_errors() -> None:
    expect("--check" in run([abigen(), "--help"]), "no --check in the help")
    expect(
        "--chek" in run([abigen(), "--chek"], status=2),
        "the unknown option is not named",
    )
    try:
        run([abigen(), "--symbol-graph", SCRATCH / "none.json"])
    except Failure as failure:
        expect("none.json" in str(failure), str(failure))
    else:
        raise Failure("a missing symbol graph was accepted")
