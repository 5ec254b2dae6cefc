"""abigen prints annotated options for all languages, or refuses them with file and line."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from abigen_tests import command
from suite import ROOT, SCRATCH, expect, run

#: These tests share one build.
pytestmark = pytest.mark.xdist_group("abigen")


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


#: Where abigen prints Swift's options of `annotated`.
REGION = (
    "public struct Options {\n"
    "    // abigen: the options of ThingConfiguration\n    // abigen: end\n}\n"
)


def options_package(name: str, source: str) -> Path:
    """A package with these options, and without an interface."""
    root = SCRATCH / "abigen-options" / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("Session", "Wire", "Realtime"):
        (root / "Sources" / folder).mkdir(parents=True)
    (root / "Sources/Session/Thing.swift").write_text(source)
    (root / "Sources/Realtime/Thing.swift").write_text(REGION)
    return root


#: Name, source, part of the error.
REFUSED_OPTIONS = [
    (
        "no_kind",
        annotated("Option: wait"),
        "Thing.swift:5: error: an option needs a name and a kind",
    ),
    (
        "kind",
        annotated("Option: wait, time"),
        "Thing.swift:5: error: 'time' is not a kind of option",
    ),
    ("name", annotated("Option: maxWait, delay"), "'maxWait' is not a valid name"),
    ("word", annotated("Option: wait, delay, soon"), "unknown word 'soon' for an option"),
    (
        "twice",
        annotated("Option: wait, delay", "Option: wait, delay"),
        "Thing.swift:2: error: there are two options 'wait'",
    ),
    (
        "group",
        annotated("Options: Absent"),
        "Thing.swift:5: error: Session and Wire have no options of Absent",
    ),
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
    ("group_word", annotated("Options: Shared, retry"), "unknown word 'retry' for a group"),
    (
        "prose",
        annotated(options="    /// - Option: wait, delay\n    package var wait = 1\n"),
        "'wait' has no documentation",
    ),
    (
        "computed",
        annotated(options="    /// Waits.\n    /// - Option: wait, delay\n    func wait() {}\n"),
        "Thing.swift:5: error: an option must be a stored property on one line",
    ),
    (
        "without",
        annotated("Option: wait, delay").replace("before start", "without wiat"),
        "Thing.swift:2: error: there is no option 'wiat'",
    ),
    (
        "elsewhere",
        annotated("Option: wait, delay").replace("before start", "python elsewhere wiat=nap"),
        "Thing.swift:2: error: there is no option 'wiat'",
    ),
    (
        "once",
        annotated("Option: wait, delay, once").replace("before start", "value"),
        "Thing.swift:2: error: 'wait' cannot be 'once'",
    ),
    ("headers", annotated("Option: headers, headers cookies"), "'headers cookies' is not a kind"),
    ("list", annotated("Option: names, list"), "'list' is not a kind of option"),
    (
        "plural",
        annotated("Option: name, list INVALID_HEADER"),
        "Thing.swift:5: error: 'name' must be a plural",
    ),
    (
        "override",
        annotated("Option: network, network").replace("before start", "override"),
        "Thing.swift:2: error: 'network' cannot be overridden",
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
        "    thingOptions(thing) { (options) throws(RealtimeError) in\n"
        "        options.property0 = ",
        "    thingOptions(thing, once: true) { (options) throws(RealtimeError) in",
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


def test_setters_are_in_the_folder_of_their_chapter() -> None:
    root = options_package("folder", annotated("Option: wait, delay"))
    folder = root / "Sources/RealtimeABI/Things"
    folder.mkdir(parents=True)
    (folder / "ThingOptions.swift").write_text("// Chapter: thing options. Options.\n")
    run(command(root), status=1)
    expect((folder / "ThingOptions+Plain.swift").exists(), "the setters are not there")


def test_each_object_can_have_options_that_take_effect_once() -> None:
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


def test_text_with_quotes_is_printed_in_ruffs_format() -> None:
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


def test_tables_import_the_types_that_they_use() -> None:
    choices = "".join(
        option(f"color_{index}, choice rt_color_of_{index} RT_COLOR Color red", "color = Color.red")
        for index in range(9)
    )
    for name, source in (
        ("many", annotated(options=choices)),
        ("plain", annotated("Option: wait, delay")),
        ("value", annotated("Option: wait, delay").replace("before start", "value")),
        ("path", annotated(options=option("file, path", "file: String?"))),
    ):
        found = printed(f"imports-{name}", source)["option_tables.py"]
        file = SCRATCH / f"abigen-options/imports-{name}/tables.py"
        file.write_text(found)
        for mode in (["check"], ["format", "--diff"]):
            ruff = Path(sys.executable).with_name("ruff")
            run([ruff, *mode, "--config", ROOT / "ruff.toml", file])


def printed(name: str, source: str) -> dict[str, str]:
    """The files that abigen prints for a package with these options, by name."""
    root = options_package(name, source)
    # Without an interface abigen fails, after it has printed the options.
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
        + option("probe, limit 0...5_000, zero means not set", "probe = Duration.zero")
    )
    source = annotated("Options: Shared, retry as again, swift elsewhere", options=options)
    found = printed("kinds", source.replace("before start", "value, without again"))
    setters = found["ThingOptions+Plain.swift"]
    for text in (
        'options.color = try named(color, "color", "RT_COLOR_RED or RT_COLOR_DARK_BLUE")',
        "Default: RT_COLOR_DARK_BLUE.",
        'options.file = try filePath(file, "file", atMost: 107)',
        'options.factor = try real(factor, "factor", in: 1...9)',
        "Default: 0 (not set). Since",
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


def test_abigen_prints_pythons_other_names_and_the_meaning_of_zero() -> None:
    source = annotated(
        "Option: wait, limit, zero sends nothing, python elsewhere Deflate.wait",
        "Option: rest, limit, zero never sleeps, python elsewhere nap",
        "Option: pause, delay, python pause = 7",
        "Option: limit, limit, python limit = 0",
        "Option: bound, limit",
        "Options: Shared, python elsewhere retry=Tries.again",
        "Option: doze, delay",
    )
    found = printed(
        "places", source.replace("before start", "before start, python elsewhere doze=slumber")
    )
    for text in (
        "| `wait_ms` | `wait` | `Deflate(wait=…)` | 3 s; 0 sends nothing |",
        "| `rest_ms` | `rest` | `nap` | 3 s; 0 never sleeps |",
        "| `pause_ms` | `pause` | `pause` | 3 s; in Python 7 s |",
        "| `limit_ms` | `limit` | `limit` | 3 s; in Python no limit |",
        "| `retry` | `retry` | `Tries(again=…)` | true |",
        "| `doze_ms` | `doze` | `slumber` | 3 s |",
    ):
        expect(text in found["options.md"], found["options.md"])
    setters = found["ThingOptions+Plain.swift"]
    for text in ("Default: 3,000; 0 sends nothing.", "0 never sleeps.", "0 means no limit."):
        expect(text in setters, f"'{text}' is not in:\n{setters}")
    expect('"wait"' not in found["option_tables.py"], found["option_tables.py"])
    expect("Default 7." in found["option_tables.py"], found["option_tables.py"])
    expect("means means" not in "".join(found.values()), found["option_tables.py"])
    swift = found["Thing.swift"]
    expect("nil sends nothing." in swift and "nil means no limit." in swift, swift)


def test_each_language_has_its_own_names_of_errors() -> None:
    words = "Ends with RT_ERROR_PROXY, or an RT_ERROR_TOO_LARGE."
    options = f"    /// {words}\n    /// - Option: wait, flag\n    package var wait = true\n"
    root = options_package("errors", annotated(options=options))
    errors = root / "bindings/python/src/librealtime/_core/errors.py"
    errors.parent.mkdir(parents=True)
    errors.write_text("    rt_status.ERROR_PROXY: ProxyError,\n")
    run(command(root), status=1)
    for file, text in (
        ("Sources/RealtimeABI/ThingOptions+Plain.swift", words),
        ("Sources/Realtime/Thing.swift", "with `.proxy`, or a `.tooLarge`."),
        (
            "bindings/python/src/librealtime/_core/option_tables.py",
            "with ``ProxyError``, or a ``RealtimeError`` (``RT_ERROR_TOO_LARGE``).",
        ),
    ):
        found = (root / file).read_text()
        expect(text in found, f"'{text}' is not in:\n{found}")


def test_readme_tables_have_a_row_for_each_python_option() -> None:
    options = option("color, choice rt_color RT_COLOR Color red blue", "color = Color.red")
    source = annotated(
        "Option: wait, limit", "Option: more, delay, python elsewhere", options=options
    )
    root = options_package("readme", source.replace("How long it waits.", "How long. And more."))
    readme = root / "bindings/python/README.md"
    readme.parent.mkdir(parents=True)
    mark = "<!-- abigen: the options of ThingConfiguration -->\n"
    readme.write_text(f"Before.\n\n{mark}Old.\n<!-- abigen: end -->\n\nAfter.\n")
    run(command(root), status=1)
    table = (
        "\n| option | default | |\n|---|---|---|\n"
        '| `color` | `"red"`, or `"blue"` | Says how. |\n| `wait` | 3 s | How long. |\n\n'
    )
    found = readme.read_text()
    expect(found == f"Before.\n\n{mark}{table}<!-- abigen: end -->\n\nAfter.\n", found)


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


#: Function, its parameters after the handle, the code that it calls.
SHARED = [
    ("add_header", "name: UnsafePointer<CChar>?, _ value", "addHeader(name: text(name, "),
    ("set_header", "name: UnsafePointer<CChar>?, _ value", "setHeader(name: text(name, "),
    ("clear_headers", "", "clearHeaders()"),
    ("set_basic_auth", "user_name: UnsafePointer<CChar>?, _ password", "setBasicAuthorization("),
    ("set_bearer_token", "token", "setBearerToken(optionalText(token, "),
    ("add_safe_header", "name", 'addSafeName(text(name, "name"))'),
    ("set_network", "network: rt_network?", "mine = try networkConfiguration(network)"),
    ("set_reachability", "reachability: rt_reachability?", "setReachability(Reachability.borrow"),
    ("set_again", "backoff: rt_backoff?", "again = try backoffConfiguration(backoff)"),
]


def test_abigen_prints_the_setters_that_most_objects_share() -> None:
    options = (
        option("headers, headers credentials", "headers = HeaderFields()")
        + option("safe_headers, list INVALID_HEADER for no token", "safeNames: [String] = []")
        + option("again, backoff, once, python retry", "again: BackoffConfiguration?")
        + option("network, network", "mine = NetworkConfiguration()")
    )
    found = printed("shared", annotated("Option: wait, delay", options=options))
    setters = found["ThingOptions+Plain.swift"]
    for name, parameters, change in SHARED:
        _, _, start = setters.partition(f"public func rt_thing_{name}(")
        head, _, body = start.partition("-> rt_status {")
        expect(f"_ {parameters}" in head, f"{name} has {head}")
        expect(change in body.partition("\n}\n")[0], f"{name} does {body[:200]}")
    for text in (
        "once. Says how. Before start. Since 0.1.",
        "follows within a second. Says how. The object is retained",
        "sockets. The network is copied.",
        "RT_OK; RT_ERROR_INVALID_HEADER for no token; RT_ERROR_STATE.",
        "Removes all headers that were added or set, including those of the other setters.",
        "The backoff is copied. Default: NULL. Before start only.",
        "    thingOptions(thing, once: true) { (options) throws(RealtimeError) in\n"
        "        options.again",
        "    thingCall(thing) { (object) throws(RealtimeError) in\n"
        "        try object.setReachability",
    ):
        expect(text in setters.replace("\n/// ", " "), f"'{text}' is not in:\n{setters}")
    for text in (
        "public var headers: [(name: String, value: String)] {\n"
        "        get { hiddenHeaders.value }\n",
        "    private var hiddenHeaders = Hidden<[(name: String, value: String)]>([])\n",
        "public var safeHeaders: [String] = []",
        "public var mine",
        "public var network = Network()",
        "public var reachability: Reachability?",
        "public var again: Backoff?",
    ):
        expect((text in found["Thing.swift"]) == ("mine" not in text), found["Thing.swift"])
    for text in (
        "for one in safeHeaders { try target.addSafeName(one) }",
        "target.mine = try network.configuration()",
        "target.again = try again?.configuration()",
    ):
        expect(text in found["PlainOptions.swift"], found["PlainOptions.swift"])
    for row in (
        "| `header` | `headers` | `headers` | none | Says how. |",
        "| `basic_auth` |  | `auth` | none |",
        "| `rt_thing_add_safe_header` | `safeHeaders` | `safe_headers` | none |",
        "| `again` | `again` | `retry` | none |",
    ):
        expect(row in found["options.md"], found["options.md"])
    expect("network" not in found["option_tables.py"], found["option_tables.py"])


def test_headers_without_credentials() -> None:
    found = printed("headers", annotated(options=option("headers, headers", "headers = Fields()")))
    setters = found["ThingOptions+Plain.swift"]
    expect("set_basic_auth" not in setters and "import Engine" not in setters, setters)
    expect("that were added or set. Before start." in setters, setters)
