"""abigen: the tree is a fresh print, and what C cannot say is refused with file and line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
from suite import ROOT, SCRATCH, Failure, expect, run

#: They share a build.
pytestmark = pytest.mark.xdist_group("abigen")

#: Time for a build from nothing.
BUILD_SECONDS = 900
BUILD = ["swift", "build", "--product", "abigen"]


@cache
def abigen() -> Path:
    if given := os.environ.get("ABIGEN"):
        return Path(given)
    run(BUILD, seconds=BUILD_SECONDS)
    folder = run([*BUILD, "--show-bin-path"]).strip().splitlines()[-1]
    return Path(folder) / "abigen"


def test_generated_files_are_fresh() -> None:
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


def function(parameters: str, result: str = "", doc: str = "/// Does. Since 0.1.") -> str:
    body = "fatalError()"
    return f'{doc}\n@_cdecl("rt_do") public func rt_do({parameters}){result} {{ {body} }}\n'


def enumeration(cases: str, doc: str = "/// Values of `rt_kind`. Since 0.1.") -> str:
    alias = "/// A kind. Since 0.1.\npublic typealias rt_kind = Int32\n"
    return f"{alias}{doc}\npublic enum RT_KIND: Int32 {{\n{cases}\n}}\n"


#: Name, source after the chapter's line, line of the refusal, what it says.
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
    ("reserved_word", function("_ class: Int32"), 3, "word of C or C++"),
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
]

#: The same interface, with nothing to refuse.
ACCEPTED = (
    HANDLE
    + enumeration("/// One.\ncase ONE = -1")
    + function("_ thing: rt_thing?, _ pair: UnsafePointer<rt_pair>?, _ n: Int", " -> rt_kind")
)


def package(name: str, source: str) -> Path:
    """A folder that looks like the project to abigen, and its symbol graph."""
    root = SCRATCH / "abigen" / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("Sources/RealtimeABI", "Sources/CShims/include", "graph"):
        (root / folder).mkdir(parents=True)
    (root / "VERSION").write_text("1.2.3\n")
    header = root / "Sources/CShims/include/rt_types.h"
    header.write_text("#include <stddef.h>\n#include <stdint.h>\n" + STRUCTS)
    (header.parent / "module.modulemap").write_text('module CShims { header "rt_types.h" }\n')
    file = root / "Sources/RealtimeABI/Test.swift"
    file.write_text(CHAPTER + source + "import CShims\n")
    graph = ["-emit-symbol-graph", "-emit-symbol-graph-dir", str(root / "graph")]
    graph.append("-symbol-graph-skip-synthesized-members")
    module = ["-module-name", "RealtimeABI", "-I", str(header.parent)]
    run(
        [
            "swiftc",
            "-emit-module",
            *module,
            *graph,
            file,
            "-o",
            root / "graph/m.swiftmodule",
        ]
    )
    return root


def command(root: Path) -> list[str | Path]:
    graph = root / "graph/RealtimeABI.symbols.json"
    return [abigen(), "--root", root, "--symbol-graph", graph]


@pytest.mark.parametrize(
    ("name", "source", "line", "says"), REFUSED, ids=[one[0] for one in REFUSED]
)
def test_abigen_refuses(name: str, source: str, line: int, says: str) -> None:
    root = package(name, source)
    output = run(command(root), status=1)
    place = f"Sources/RealtimeABI/Test.swift:{line}: error: "
    expect(
        any(text.startswith(place) and says in text for text in output.splitlines()),
        f"expected '{place}…{says}…', found:\n{output}",
    )
    expect(not (root / "include").exists(), "something was written")


def test_abigen_prints_what_it_accepts() -> None:
    root = package("accepted", "// And for another.\n" + ACCEPTED)
    run(command(root))
    header = (root / "include/realtime.h").read_text()
    for text in (
        " * Chapter: test. For this test. And for another.",
        "typedef struct rt_thing rt_thing;",
        "RT_KIND_ONE = -1,",
        "rt_kind rt_do(rt_thing *thing, const rt_pair *pair, size_t n);",
        "#define RT_VERSION_NUMBER 10203",
        "  const char *text;",
        "} rt_pair;",
    ):
        expect(text in header, f"'{text}' is not in the header:\n{header}")
    run([*command(root), "--check"])


def test_abigen_check_shows_what_differs() -> None:
    root = package("stale", ACCEPTED)
    run(command(root))
    header = root / "include/realtime.h"
    header.write_text(header.read_text().replace("RT_KIND_ONE = -1", "RT_KIND_ONE = -2"))
    output = run([*command(root), "--check"], status=1)
    expect("-  RT_KIND_ONE = -2," in output and "+  RT_KIND_ONE = -1," in output, output)
    expect("RT_KIND_ONE = -2" in header.read_text(), "--check wrote to the tree")


def test_abigen_says_how_it_is_used() -> None:
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


def annotated(*annotations: str, options: str = "") -> str:
    """The configuration of an object, with a property for each annotation."""
    properties = "".join(
        f"    /// How long it waits.\n    /// - {annotation}\n"
        f"    package var property{index}: Duration = .seconds(3)\n"
        for index, annotation in enumerate(annotations)
    )
    return (
        "/// - Object: thing, Thing.Options, before start\n"
        f"package struct ThingConfiguration {{\n{options}{properties}}}\n"
        "package struct Shared {\n"
        "    /// Whether it tries again.\n    /// - Option: retry, flag\n"
        "    package var retries = true\n}\n"
    )


def options_package(name: str, source: str) -> Path:
    """A package whose options are read; the interface is not."""
    root = SCRATCH / "abigen-options" / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("Session", "Wire", "Realtime"):
        (root / "Sources" / folder).mkdir(parents=True)
    (root / "Sources/Session/Thing.swift").write_text(source)
    (root / "Sources/Realtime/Thing.swift").write_text(
        "public struct Options {\n"
        "    // abigen: the options of ThingConfiguration\n    // abigen: end\n}\n"
    )
    return root


#: Name, source, what the refusal says.
REFUSED_OPTIONS = [
    ("no_kind", annotated("Option: wait"), "Thing.swift:5: error: an option has a name and a kind"),
    (
        "kind",
        annotated("Option: wait, time"),
        "Thing.swift:5: error: 'time' is no kind of an option",
    ),
    ("name", annotated("Option: maxWait, delay"), "'maxWait' is no name of an option"),
    ("word", annotated("Option: wait, delay, soon"), "'soon' is no word for an option"),
    (
        "twice",
        annotated("Option: wait, delay", "Option: wait, delay"),
        "Thing.swift:2: error: there are two options 'wait'",
    ),
    ("group", annotated("Options: Absent"), "Thing.swift:5: error: no options of Absent"),
    (
        "only",
        annotated("Options: Shared, only retyr"),
        "Thing.swift:5: error: Shared has no option 'retyr'",
    ),
    (
        "initial",
        annotated("Options: Shared, retyr = false"),
        "Thing.swift:5: error: Shared has no option 'retyr'",
    ),
    ("group_word", annotated("Options: Shared, retry"), "'retry' is no word for a group"),
    (
        "prose",
        annotated(options="    /// - Option: wait, delay\n    package var wait = 1\n"),
        "'wait' says nothing about itself",
    ),
    (
        "computed",
        annotated(options="    /// Waits.\n    /// - Option: wait, delay\n    func wait() {}\n"),
        "Thing.swift:5: error: an option is a stored property of one line",
    ),
    (
        "once",
        annotated("Option: wait, delay, once").replace("before start", "value"),
        "Thing.swift:2: error: 'wait' cannot be 'once'",
    ),
]


@pytest.mark.parametrize(
    ("name", "source", "says"), REFUSED_OPTIONS, ids=[one[0] for one in REFUSED_OPTIONS]
)
def test_abigen_refuses_an_option(name: str, source: str, says: str) -> None:
    root = options_package(name, source)
    output = run(command(root), status=1)
    expect(says in output, f"expected '{says}', found:\n{output}")
    expect(not (root / "docs").exists(), "something was written")


def test_abigen_prints_an_option_for_all_languages() -> None:
    source = annotated(
        "Option: wait, delay",
        "Option: patience, limit, once, since 0.2, parameter longest, swift myPatience,"
        " python my_patience",
        "Options: Shared, only retry, retry = false",
    )
    found = printed("accepted", source)
    setters = found["ThingOptions+Plain.swift"]
    for text in (
        '@_cdecl("rt_thing_set_wait_ms")',
        '@_cdecl("rt_thing_set_patience_ms")',
        '@_cdecl("rt_thing_set_retry")',
        "_ longest",
        "Since 0.2",
        "How long it waits.",
        "    thingOptions(thing) { $0.property0 = ",
        "    thingOptions(thing, once: true) {",
    ):
        expect(text in setters, f"'{text}' is not in:\n{setters}")
    swift = found["Thing.swift"]
    for text in ("var wait = Duration.seconds(3)", "var myPatience: Duration?", "retry = false"):
        expect(text in swift, f"'{text}' is not in:\n{swift}")
    python = found["option_tables.py"]
    for text in ('"wait"', '"my_patience"', '"retry"'):
        expect(text in python, f"'{text}' is not in:\n{python}")
    for text in (
        "| `wait_ms` | `wait` | `wait` | 3 s |",
        "| `retry` | `retry` | `retry` | false |",
    ):
        expect(text in found["options.md"], found["options.md"])


def test_each_object_can_have_options_that_are_taken_once() -> None:
    sources = [path.read_text() for path in (ROOT / "Sources").rglob("*.swift")]
    objects = re.findall(r"/// - Object: (\w+), [\w.]+(.*)", "\n".join(sources))
    expect(len(objects) >= 8, str(objects))
    for chapter, words in objects:
        if "value" in words or "override" in words:
            continue
        first, *rest = chapter.split("_")
        start = f"func {first}{''.join(part.capitalize() for part in rest)}Options("
        (found,) = (text for text in sources if start in text)
        head = found[found.index(start) :].partition("->")[0]
        expect("once: Bool" in head, f"{start} has no 'once'")


def test_prose_with_quotes_is_as_ruff_has_it() -> None:
    quotes = (
        ('"a" and "b"', 1),
        ('it\'s "a"', 1),
        ("it's what \"isn't\"", 1),
        ("it's 'a' and \"b\"", 9),
    )
    options = "".join(
        f"    /// Says {text}{' and more, and all of it' * times}.\n"
        f"    /// - Option: word_{index}, flag\n    package var word{index} = true\n"
        for index, (text, times) in enumerate(quotes)
    ) + option("color, choice rt_color RT_COLOR Color red blue", "color = Color.red")
    found = printed("quotes", annotated(options=options))["option_tables.py"]
    file = SCRATCH / "abigen-options/quotes/tables.py"
    file.write_text(found)
    config = ROOT / "ruff.toml"
    for mode in (["check", "--select", "E501"], ["format", "--diff"]):
        run([Path(sys.executable).with_name("ruff"), *mode, "--config", config, file])


def printed(name: str, source: str) -> dict[str, str]:
    """What abigen makes of a package with these options, by the names of files."""
    root = options_package(name, source)
    # The interface is another test's.
    run(command(root), status=1)
    found = {path.name: path.read_text() for path in root.rglob("*") if path.is_file()}
    return {**found, "Thing.swift": (root / "Sources/Realtime/Thing.swift").read_text()}


def option(kind: str, property_: str) -> str:
    return f"    /// Says how.\n    /// - Option: {kind}\n    package var {property_}\n"


def test_abigen_prints_choices_paths_and_values() -> None:
    options = (
        option("color, choice rt_color RT_COLOR Color red darkBlue=4", "color = Color.darkBlue")
        + option("file, path 0...107", "file: String?")
        + option("factor, real 1...9", "factor = 1.5")
        + option("probe, limit 0...5_000, zero is not set", "probe = Duration.zero")
    )
    source = annotated("Options: Shared, retry as again, swift elsewhere", options=options)
    found = printed("kinds", source.replace("before start", "value, without again"))
    setters = found["ThingOptions+Plain.swift"]
    for text in (
        '$0.color = try named(color, "color", "RT_COLOR_RED or RT_COLOR_DARK_BLUE")',
        "Default RT_COLOR_DARK_BLUE.",
        '$0.file = try filePath(file, "file", atMost: 107)',
        '$0.factor = try real(factor, "factor", in: 1...9)',
        "Default 0: not set. Since",
        "RT_OK; RT_ERROR_INVALID_ARGUMENT when negative or above 5,000.",
    ):
        expect(text in setters, f"'{text}' is not in:\n{setters}")
    expect("again" not in setters, setters)
    expect("RT_ERROR_STATE" not in setters, setters)
    for text in ("color = Color.darkBlue", "file: String?", "factor = 1.5", "probe: Duration?"):
        expect(text in found["Thing.swift"], f"'{text}' is not in:\n{found['Thing.swift']}")
    python = found["option_tables.py"]
    for text in (
        "@dataclass(frozen=True)\nclass ThingOptions:",
        '    color: Literal["red", 4] = 4',
        "            4: rt_color.DARK_BLUE,",
        "    file: StrPath | None = None",
        "    probe: float | None = None",
    ):
        expect(text in python, f"'{text}' is not in:\n{python}")


def test_abigen_says_where_python_has_an_option_and_what_zero_does() -> None:
    source = annotated(
        "Option: wait, limit, zero sends nothing, python elsewhere Deflate.wait",
        "Option: rest, limit, zero never sleeps, python elsewhere nap",
        "Option: pause, delay, python pause = 7",
        "Option: limit, limit, python limit = 0",
    )
    found = printed("places", source)
    for text in (
        "| `wait_ms` | `wait` | `Deflate(wait=…)` | 3 s; 0 sends nothing |",
        "| `rest_ms` | `rest` | `nap` | 3 s; 0 never sleeps |",
        "| `pause_ms` | `pause` | `pause` | 3 s; in Python 7 s |",
        "| `limit_ms` | `limit` | `limit` | 3 s; in Python no limit |",
    ):
        expect(text in found["options.md"], found["options.md"])
    setters = found["ThingOptions+Plain.swift"]
    for text in ("Default 3,000; 0 sends nothing.", "0 never sleeps.", "0 is no limit."):
        expect(text in setters, f"'{text}' is not in:\n{setters}")
    expect('"wait"' not in found["option_tables.py"], found["option_tables.py"])
    expect("Default 7." in found["option_tables.py"], found["option_tables.py"])


def test_abigen_renames_an_option_of_a_group_in_all_languages() -> None:
    found = printed("renamed", annotated("Options: Shared, only retry, retry as again"))
    for file, text in (
        ("ThingOptions+Plain.swift", '@_cdecl("rt_thing_set_again")'),
        ("Thing.swift", "var again = "),
        ("option_tables.py", "    again: bool\n"),
    ):
        expect(text in found[file], f"'{text}' is not in:\n{found[file]}")
    expect('"retry"' not in found["option_tables.py"], found["option_tables.py"])


def test_abigen_prints_an_override() -> None:
    source = annotated("Option: wait, limit, swift myWait", "Option: more, flag")
    found = printed("override", source.replace("before start", "override, python elsewhere more"))
    expect("var myWait: Duration?\n" in found["Thing.swift"], found["Thing.swift"])
    applied = "if let myWait { target.property0 = try OptionCheck.delay(myWait"
    expect(applied in found["PlainOptions.swift"], found["PlainOptions.swift"])
    expect("Default" not in found["ThingOptions+Plain.swift"], "an override has no default")
    expect('"more"' not in found["option_tables.py"], found["option_tables.py"])
