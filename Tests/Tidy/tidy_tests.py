"""Feeds each rule a tree that breaks it, and one that does not."""

import json
import pathlib
import tempfile
import unittest
from collections.abc import Iterable

import documents
import embedded
import option_names
import python_imports
import rules
import swift_circles
from source import Complaint, Source, functions, tree


def said(complaints: Iterable[Complaint]) -> list[str]:
    return [str(complaint) for complaint in complaints]


def swift(target: str, text: str) -> list[Source]:
    return [Source(f"Sources/{target}/File.swift", text)]


class Imports(unittest.TestCase):
    def test_import_of_an_earlier_target(self) -> None:
        good = swift("Session", "package import Wire\n")
        self.assertEqual(said(rules.imports(good)), [])

    def test_import_of_a_later_target(self) -> None:
        bad = swift("Wire", "import CShims\ninternal import Engine\n")
        (complaint,) = said(rules.imports(bad))
        self.assertRegex(complaint, r"^Sources/Wire/File.swift:2: Wire must not import Engine")

    def test_foundation_in_any_spelling(self) -> None:
        for line in (
            "import Foundation",
            "public import struct Foundation.Date",
            "@preconcurrency import FoundationEssentials",
            "@_exported public import Foundation",
        ):
            (complaint,) = said(rules.imports(swift("Realtime", f"\n{line}\n")))
            self.assertRegex(complaint, r":2: the shared library must not import Foundation")

    def test_operating_system_below_engine(self) -> None:
        (complaint,) = said(rules.imports(swift("Session", "import Glibc\n")))
        self.assertRegex(complaint, r":1: Session must not import Glibc")

    def test_imports_in_comments_and_strings(self) -> None:
        text = '/* /* */\nimport Foundation\n*/\nlet text = """\nimport Foundation\n"""\n'
        self.assertEqual(said(rules.imports(swift("Wire", text))), [])

    def test_users_import_only_realtime(self) -> None:
        text = "import ArgumentParser\nimport Foundation\nimport Realtime\n"
        for target in ("RealtimeCLI", "RealtimeFoundation"):
            self.assertEqual(said(rules.user_imports(swift(target, text))), [])
            (complaint,) = said(rules.user_imports(swift(target, "\nimport Engine\n")))
            self.assertRegex(complaint, f":2: {target} must not import Engine")

    def test_targets_outside_the_library_may_import_anything(self) -> None:
        self.assertEqual(said(rules.imports(swift("abigen", "import Foundation\n"))), [])


class PythonImports(unittest.TestCase):
    def complaints(self, modules: dict[str, str]) -> list[str]:
        files = {"__init__": "", "_a/__init__": "", "_b/__init__": "", **modules}
        root = "bindings/python/src/librealtime"
        sources = [Source(f"{root}/{name}.py", text) for name, text in files.items()]
        return said(python_imports.circles(sources))

    def test_no_circle(self) -> None:
        modules = {"_a/x": "from . import y\n", "_a/y": "", "_b/z": "from .._a.x import name\n"}
        self.assertEqual(self.complaints(modules), [])

    def test_circle_of_modules(self) -> None:
        late = "def f():\n    from .x import X\n"
        (complaint,) = self.complaints({"_a/x": "from . import y\n", "_a/y": late})
        self.assertRegex(complaint, r"_a/[xy]\.py:[12]: circular imports: librealtime\._a\.")

    def test_circle_of_subpackages(self) -> None:
        one, other = "from .._b.z import name\n", "from librealtime._a import w\n"
        (complaint,) = self.complaints({"_a/x": one, "_b/z": "", "_b/y": other, "_a/w": ""})
        self.assertRegex(complaint, r": librealtime\._[ab] → librealtime\._[ab] → ")


class SwiftCircles(unittest.TestCase):
    def engine(self, **files: str) -> list[str]:
        paths = {name: f"Sources/Engine/{name.replace('__', '/')}.swift" for name in files}
        sources = [Source(paths[name], text) for name, text in files.items()]
        return said(swift_circles.circles(sources, {}))

    def test_files_that_need_each_other(self) -> None:
        loop = "package final class Loop {\n    var multi: Multi?\n}\n"
        multi = "@unchecked\nfinal class Multi {\n    unowned let loop: Loop\n}\n"
        (complaint,) = self.engine(A__Loop=loop, A__Multi=multi)
        self.assertRegex(complaint, r"^Sources/Engine/A/Loop.swift:1: .* 2 files: Loop Multi$")
        self.assertEqual(self.engine(A__Loop="class Loop {}\n", A__Multi=multi), [])

    def test_folders_that_need_each_other(self) -> None:
        one = {"A__One": "class One {}\n", "A__Two": "class Two: Three {}\n"}
        (complaint,) = self.engine(**one, B__Three="class Three {\n    var one: One\n}\n")
        self.assertRegex(complaint, r":1: circular dependency of 2 folders: A B$")

    def test_a_circle_with_a_reason(self) -> None:
        one = Source("Sources/Wire/A/One.swift", "struct One {\n    var two: Two\n}\n")
        two = "struct Two {\n    var one: [One]\n}\n"
        allowed = {"Wire": {"One Two": "they contain each other"}}
        together = [one, Source("Sources/Wire/A/Two.swift", two)]
        self.assertEqual(said(swift_circles.circles(together, allowed)), [])
        # A reason does not excuse a circle of folders.
        apart = [one, Source("Sources/Wire/B/Two.swift", two)]
        (complaint,) = said(swift_circles.circles(apart, allowed))
        self.assertRegex(complaint, r":1: circular dependency of 2 folders: A B$")
        (complaint,) = said(swift_circles.circles([one], allowed))
        self.assertRegex(complaint, r":1: the list of circles has one that is none: One Two$")

    def test_files_of_one_type(self) -> None:
        whole = "class Whole {\n    func a() { Part() }\n}\n"
        part = "extension Whole {\n    func b() {}\n}\nstruct Part {}\n"
        self.assertEqual(self.engine(A__Whole=whole, A__WholeMore=part), [])

    def test_names_in_comments_strings_and_members_do_not_count(self) -> None:
        a = 'class Aa {\n    // Bb\n    let text = "Bb"\n    let x = y.Bb\n}\n'
        self.assertEqual(self.engine(A=a, B="class Bb {\n    var a: Aa\n}\n"), [])


class Sizes(unittest.TestCase):
    def test_long_file(self) -> None:
        (complaint,) = said(rules.sizes([Source("a.py", "pass\n" * 451)]))
        self.assertRegex(complaint, r"^a.py:451: the file has 451 lines")
        self.assertEqual(said(rules.sizes([Source("a.py", "pass\n" * 450)])), [])

    def test_long_file_with_a_reason(self) -> None:
        long, short = Source("a.py", "pass\n" * 451), Source("a.py", "pass\n")
        self.assertEqual(said(rules.sizes([long], {"a.py": "one table"})), [])
        self.assertEqual(len(said(rules.sizes([long], {"a.py": ""}))), 1)
        self.assertEqual(len(said(rules.sizes([long], {"b.py": "one table"}))), 2)
        (complaint,) = said(rules.sizes([short], {"a.py": "one table"}))
        self.assertEqual(complaint, "a.py:1: the list of long files names it, but it is not long")

    def test_long_page(self) -> None:
        self.assertEqual(said(rules.sizes([Source("a.md", "text\n" * 451)])), [])

    def test_long_example(self) -> None:
        (complaint,) = said(rules.sizes([Source("examples-c/a.c", "int a;\n" * 121)]))
        self.assertRegex(complaint, r"^examples-c/a.c:121: the file has 121 lines, 120 are")
        self.assertEqual(said(rules.sizes([Source("examples-c/a.c", "int a;\n" * 120)])), [])

    def test_long_line(self) -> None:
        (complaint,) = said(rules.sizes([Source("a.md", "\n" + "x" * 101 + "\n")]))
        self.assertEqual(complaint, "a.md:2: the line has 101 columns, 100 are allowed")
        self.assertEqual(said(rules.sizes([Source("a.md", "|" + "x" * 200 + "|\n")])), [])

    def test_generated_files_are_exempt(self) -> None:
        text = '"""Generated by abigen; do not edit."""\n' + "pass\n" * 500
        self.assertEqual(said(rules.sizes([Source("bindings/abi.py", text)])), [])

    def check_function(self, path: str, head: str, line: str, tail: str, name: str) -> None:
        for count, expected in ((68, 0), (69, 1)):
            text = f"\n{head}\n" + f"{line}\n" * count + f"{tail}\n"
            complaints = said(rules.sizes([Source(path, text)]))
            self.assertEqual(len(complaints), expected, f"{path}: {complaints}")
            if complaints:
                self.assertRegex(complaints[0], rf"^{path}:2: {name} has 71 lines")

    def test_long_functions(self) -> None:
        self.check_function("a.swift", "func f<T>(_ x: [T]) -> T {", "x()", "}", "f")
        self.check_function("a.swift", "init?(a: () -> Void = {}) {", "x()", "}", "init")
        self.check_function("a.c", "static int f(int (*g)(int)) {", "  g(1);", "}", "f")
        self.check_function("a.py", "async def f():", "    pass", "    pass", "f")

    def test_braces_in_strings_and_comments_do_not_count(self) -> None:
        swift_text = 'func f() {\n  x("}") // }\n  /* { */\n  #"{"\\"#\n}\nfunc g() {}\n'
        found = functions(Source("a.swift", swift_text))
        self.assertEqual([(f.name, f.first, f.last) for f in found], [("f", 1, 5), ("g", 6, 6)])
        # The quotation marks inside do not come in pairs.
        raw_text = 'func f() {\n  x(#"{"a":"{ \\"b\\" }","#)\n}\nfunc g() {}\n'
        found = functions(Source("a.swift", raw_text))
        self.assertEqual([(f.name, f.first, f.last) for f in found], [("f", 1, 3), ("g", 4, 4)])
        c_text = (
            "extern \"C\" {\nint f(void) {\n  return '}'; /* } */\n}\n#define X {\nint g() {}\n}\n"
        )
        found = functions(Source("a.c", c_text))
        self.assertEqual([(f.name, f.first, f.last) for f in found], [("f", 2, 4), ("g", 6, 6)])

    def test_protocol_requirements_have_no_body(self) -> None:
        text = "protocol P {\n  func f(_ x: Int)\n  init()\n  var y: Int { get }\n}\n"
        self.assertEqual(functions(Source("a.swift", text)), [])


class Words(unittest.TestCase):
    def test_leftovers(self) -> None:
        text = "a\n# " + "TO" + "DO: later\nb \n"
        complaints = said(rules.leftovers([Source("a.py", text)]))
        self.assertRegex(complaints[0], r"^a.py:2: ")
        self.assertRegex(complaints[1], r"^a.py:3: white space")

    def test_traps(self) -> None:
        text = "let a = try! f()\nlet b = a as! B\nlet c = a as? B // as! B\n"
        complaints = said(rules.traps(swift("Engine", text)))
        self.assertEqual([complaint.split(":")[1] for complaint in complaints], ["1", "2"])
        self.assertEqual(said(rules.traps(swift("abigen", text))), [])

    def test_only_the_loop_may_be_referenced_unsafely(self) -> None:
        text = "unowned(unsafe) let loop: Loop\nunowned(unsafe) let loop: LoopTimer\n"
        (complaint,) = said(rules.traps(swift("Engine", text)))
        self.assertRegex(complaint, r":2: unowned\(unsafe\) may trap")


class Embedded(unittest.TestCase):
    def test_what_the_mode_cannot_compile(self) -> None:
        for text, found in (
            ("func f() throws {}", "throws"),
            ("func f(_ g: () throws -> Void) rethrows {}", "rethrows"),
            ("weak var a: A?", "weak var"),
            ("f { [weak self] in g() }", "\\[weak"),
            ("unowned let a: A", "unowned"),
            ("f { [unowned self] in g() }", "unowned"),
            ("a.map(\\.name)", "\\\\.n"),
            ("a.map(\\A.name)", "\\\\A"),
            ("let a: Any", "Any"),
            ("struct A: Codable {}", "Codable"),
            ("protocol P {}\nlet a: any P", "any P"),
        ):
            complaints = said(embedded.constructs(swift("Wire", f"{text}\n")))
            self.assertRegex("\n".join(complaints), found, text)
            self.assertEqual(said(embedded.constructs(swift("Realtime", text))), [])

    def test_what_the_mode_compiles(self) -> None:
        text = (
            "protocol P: AnyObject {}\nprotocol Q: P {}\nlet a: (any P)?, b: [any Q]\n"
            "func f(_ g: () throws(E) -> Void) throws(E) {}\nunowned(unsafe) let loop: Loop\n"
            '// weak var, throws\nlet c = "\\(a) as? \\n"\nlet d = "\\(\\"x\\".count)"\n'
        )
        self.assertEqual(said(embedded.constructs(swift("Engine", text))), [])

    def test_an_object_that_exists_does_not_fail(self) -> None:
        for text in (
            "final class A {\n    package init?(_ a: Int) {\n    }\n}\n",
            "class A {\n    init(\n        _ a: A\n    ) throws(E) {\n    }\n}\n",
            "class A {\n    init(_ a: @escaping () -> Void = {}) throws(E) {\n    }\n}\n",
        ):
            (complaint,) = said(embedded.initializers(swift("Wire", text)))
            self.assertRegex(complaint, r":2: an init of a class that can fail")
        good = (
            "struct A {\n    init?() {}\n    init() throws(E) {}\n}\n"
            "class B {\n    private init(_ a: A) {}\n    convenience init?() {}\n"
            "    convenience init(_ b: () throws(E) -> Int) throws(E) {}\n}\n"
            "class C {\n    struct D {\n        init?() {}\n    }\n    init() {}\n}\n"
            "class D {\n    init() {}\n\n    func f() throws(E) {}\n}\n"
        )
        self.assertEqual(said(embedded.initializers(swift("Engine", good))), [])


class Exports(unittest.TestCase):
    EXPORT = '/// Does it. Any thread. Since 0.1.\n@_cdecl("rt_f")\npublic func f() {}\n'

    def complaints(
        self,
        text: str = EXPORT,
        program: str = "int main() { rt_f(); }",
        model: str = "rt_f",
    ) -> list[str]:
        sources = [
            Source("Sources/RealtimeABI/File.swift", text),
            Source("include/realtime.abi.json", json.dumps({"functions": [{"name": model}]})),
            Source("bindings/python/src/librealtime/_core/abi.py", f"FUNCTIONS = ['{model}']\n"),
            Source("examples-c/f.c", program),
        ]
        return said(rules.exports(sources))

    def test_complete_export(self) -> None:
        self.assertEqual(self.complaints(), [])

    def test_no_since(self) -> None:
        (complaint,) = self.complaints(self.EXPORT.replace(" Since 0.1.", ""))
        self.assertRegex(complaint, r'^Sources/RealtimeABI/File.swift:2: rt_f .* without "Since"')

    def test_no_comment(self) -> None:
        (complaint,) = self.complaints(self.EXPORT.split("\n", 1)[1])
        self.assertRegex(complaint, r":1: rt_f has no doc comment")

    def test_no_program_calls_it(self) -> None:
        (complaint,) = self.complaints(program='/* rt_f() */ char *s = "rt_f()";')
        self.assertRegex(complaint, r":2: rt_f is called by no program")

    def test_generated_tables_are_out_of_date(self) -> None:
        complaints = self.complaints(model="rt_g")
        self.assertRegex(complaints[0], r":2: rt_f is not in include/realtime.abi.json")
        self.assertRegex(complaints[1], r":2: rt_f is not in Python's")

    def test_other_prefix(self) -> None:
        text = self.EXPORT.replace('"rt_f"', '"f"')
        self.assertRegex(self.complaints(text)[0], r":2: f is exported without the prefix")

    def test_generated_tables_are_missing(self) -> None:
        self.assertRegex(said(rules.exports([]))[0], r"realtime.abi.json is missing")


class Documents(unittest.TestCase):
    def test_links(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "b.md").write_text("# The one\n")
            text = "[x](b.md#the-one) [y](https://x.invalid/)\n[z](no.md)\n[w](b.md#other)\n"
            complaints = said(documents.links(root, [Source("a.md", text)]))
        self.assertEqual(
            complaints,
            [
                "a.md:2: broken link: no.md does not exist",
                "a.md:3: broken link: b.md#other is not a heading",
            ],
        )

    def test_anchors(self) -> None:
        self.assertEqual(documents.anchors('# A b\n<a id="C9"></a>\n'), {"a-b", "C9"})

    def test_cited_rules_exist(self) -> None:
        page = Source("docs/a.md", '<a id="C9"></a>\n<a id="C10"></a>\n')
        again = Source("docs/b.md", '<a id="C9"></a>\n')
        swift = Source("a.swift", '// C9, C99\nlet a = "C8"\n/// C12 to C10\n')
        python = Source("a.py", '"""C10.\n\nL7\n"""\nx = "C8"  # R3\n')
        header = Source("a.h", "/* x\n * B4 */\n")
        self.assertEqual(
            said(documents.codes([page, again, swift, python, header])),
            [
                "docs/b.md:1: docs/a.md already has a rule C9",
                "a.swift:3: no page of docs/ has the rule C12",
                "a.py:5: no page of docs/ has the rule R3",
                "a.py:3: no page of docs/ has the rule L7",
                "a.h:2: no page of docs/ has the rule B4",
            ],
        )

    def test_named_tests_exist(self) -> None:
        page = Source(
            "Tests/a.md", "| `X/one`: `f`, `a b` | `X/two`: `g` |\n`X/one`: `h`; `Y/one`: `f`\n"
        )
        one = Source("Tests/X/z/one.swift", "func f() {}\nfunc `a b`() {}\n")
        two = Source("Tests/X/two.py", "def g() -> None: ...\n")
        self.assertEqual(
            said(documents.tests([page, one, two])),
            ["Tests/a.md:2: X/one has no test h", "Tests/a.md:2: there is no test file Y/one"],
        )

    def test_named_suites_exist(self) -> None:
        page = Source("Tests/a.md", "| x | `OneTests`, `TwoTests` |\n")
        one = Source("Tests/X/All.swift", "struct OneTests {}\n// struct TwoTests\n")
        self.assertEqual(
            said(documents.tests([page, one])), ["Tests/a.md:1: the suite TwoTests does not exist"]
        )

    def readme(self, text: str) -> list[str]:
        files = [Source(f"x.{suffix}", f"{suffix}\n") for suffix in ("c", "py", "swift")]
        return said(documents.examples([Source("README.md", text), *files]))

    GOOD = (
        "<!-- x.c -->\n```c\nc\n```\n<!-- x.py -->\n```python\npy\n```\n"
        "<!-- x.swift -->\n```swift\nswift\n```\n"
    )

    def test_examples_equal_their_files(self) -> None:
        self.assertEqual(self.readme(self.GOOD), [])

    def test_example_differs(self) -> None:
        complaints = self.readme(self.GOOD.replace("\npy\n", "\npy2\n"))
        self.assertEqual(complaints, ["README.md:5: the example differs from x.py"])

    def test_example_without_file(self) -> None:
        complaints = self.readme(self.GOOD.replace("<!-- x.py -->\n", ""))
        self.assertEqual(complaints, ["README.md:5: the example does not name its file"])
        complaints = self.readme(self.GOOD.replace("x.py", "y.py"))
        self.assertEqual(complaints, ["README.md:5: y.py does not exist"])

    def test_language_is_missing(self) -> None:
        complaints = self.readme(self.GOOD.split("<!-- x.swift")[0])
        self.assertEqual(complaints, ["README.md:1: there is no example in swift"])

    def test_no_readme(self) -> None:
        self.assertEqual(said(documents.examples([])), ["README.md:1: there is no README.md"])


class Tree(unittest.TestCase):
    def test_finds_this_file(self) -> None:
        root = pathlib.Path(__file__).resolve().parents[2]
        paths = {source.path for source in tree(root)}
        self.assertIn("Tests/Tidy/tidy_tests.py", paths)
        self.assertIn("Tests/Tidy/run", paths)


class OptionNames(unittest.TestCase):
    PAGE = (
        "| C: `rt_pusher_set_…` | Swift | Python |\n"
        "| `pong_timeout_ms` | `pongTimeout` | `pong` |\n"
    )
    OWNERS = (
        "    case pusher\n    case ddp\n"
        '        case pongTimeout = "pong_timeout_ms"\n'
        "    package func has(_ limit: Limit) -> Bool {\n"
        "        case .pongTimeout: self == .pusher\n        }\n"
    )
    PYTHON = '    "rt_pusher_set_pong_timeout_ms": "pong",\n'

    def complaints(self, owners: str, python: str, core: str = "") -> list[str]:
        sources = [
            Source(option_names.OWNERS, owners),
            Source(option_names.PYTHON, python),
            Source(option_names.PAGE, self.PAGE),
            Source("Sources/Session/File.swift", core),
        ]
        return said(option_names.option_names(sources))

    def test_options_that_exist(self) -> None:
        self.assertEqual(self.complaints(self.OWNERS, self.PYTHON), [])

    def test_an_option_of_another_object(self) -> None:
        owners = self.OWNERS.replace("== .pusher", "== .ddp")
        self.assertIn("['ddp'] have pong_timeout_ms", self.complaints(owners, self.PYTHON)[0])

    def test_another_name_in_python(self) -> None:
        python = self.PYTHON.replace('"pong"', '"ping"')
        self.assertIn("is pong in Python, not ping", self.complaints(self.OWNERS, python)[0])

    def test_a_name_in_a_message(self) -> None:
        core = 'throw "too late (pong_timeout)"\n'
        found = self.complaints(self.OWNERS, self.PYTHON, core)
        self.assertIn("File.swift:1: names the option pong_timeout", found[0])

    def test_a_name_among_other_words(self) -> None:
        for name in ("pong_timeout", "pong_timeout_ms"):
            core = f'throw "too late ({name} is short)"\n'
            found = self.complaints(self.OWNERS, self.PYTHON, core)
            self.assertIn(f"names the option {name};", found[0])
        fine = 'throw "no user_id here"\nlet name = "pong_timeout"\n// "a pong_timeout"\n'
        self.assertEqual(self.complaints(self.OWNERS, self.PYTHON, fine), [])
