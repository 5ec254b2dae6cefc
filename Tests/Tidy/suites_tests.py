"""The runner of the suites, with suites that fail at first, always, or in a way that is unclear."""

import contextlib
import io
import pathlib
import sys
import tempfile
import textwrap
import unittest

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "Support"
sys.path.insert(0, str(SUPPORT))

from suites import Pytest, Run, Suite, SwiftTests, Whole

#: Fails until it has run once, by a file in the folder.
UNSTABLE = """
import pathlib

def fails_once(name):
    mark = pathlib.Path(__file__).with_name(name)
    if not mark.exists():
        mark.touch()
        raise ValueError(name)
"""
#: Imitates `swift test`: of two tests, one fails unless only tests of one name are run.
SWIFT = """
import pathlib, re, sys
given = dict(zip(sys.argv, sys.argv[1:]))
path = pathlib.Path(given["--xunit-output"])
path = path.with_name(path.stem + "-swift-testing.xml")
names = [("LoopTests.Turns", "ends()"), ("LoopTests", "begins(_:)")]
wanted = re.compile(given.get("--filter", ""))
ids = [f"{owner.replace('.', '/').replace('/', '.', 1)}/{name}" for owner, name in names[:1]]
ids.append("LoopTests.begins(_:)/File.swift:1:2")
lines, failed = [], False
for (owner, name), identity in zip(names, ids):
    if not wanted.search(identity):
        continue
    fails = name in FAILS and ("--filter" not in given or ALWAYS)
    failed |= fails
    inside = "<failure/>" if fails else ""
    lines.append(f'<testcase classname="{owner}" name="{name}">{inside}</testcase>')
path.write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
sys.exit(failed)
"""


class Suites(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="suites-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "logs").mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\npython_files = *_tests.py\n")
        (self.folder / "unstable.py").write_text(UNSTABLE)

    def run_suites(self, *suites: Suite) -> list[str]:
        """Everything that was printed; the last line is the exit code."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            run = Run(self.folder / "logs", is_terminal=False)
            for suite in suites:
                run.suite(suite)
            code = run.end()
        return [*said.getvalue().splitlines(), str(code)]

    def pytest(self, text: str, *, once: tuple[str, ...] = ()) -> Suite:
        (self.folder / "some").mkdir(exist_ok=True)
        (self.folder / "some" / "some_tests.py").write_text(
            "import pytest\nfrom unstable import fails_once\n" + textwrap.dedent(text)
        )
        (self.folder / "conftest.py").touch()
        options = ["-p", "no:cacheprovider"]
        return Pytest("some", sys.executable, str(self.folder / "some"), *options, once=once)

    def assert_ends(self, said: list[str], *lines: str) -> None:
        self.assertEqual(said[-len(lines) :], list(lines), "\n".join(said))

    def script(self, text: str) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(text)]

    def test_suites_that_pass(self) -> None:
        said = self.run_suites(
            self.pytest("def test_a(): pass"), Suite("two", *self.script("print('all is well')"))
        )
        self.assertIn("all is well", said)
        self.assertFalse([line for line in said if "unstable" in line], said)
        self.assert_ends(said, "2 passed, 0 failed", "0")

    def test_unstable_tests_count_as_passed(self) -> None:
        """By whatever name, with workers and their groups, and when the fixture fails."""
        said = self.run_suites(
            self.pytest(
                """
                class TestInside:
                    @pytest.mark.xdist_group("one")
                    @pytest.mark.parametrize("a", ["x]@y z::"])
                    def test_once(self, a): fails_once("1")

                @pytest.mark.xdist_group("one")
                def test_simple(): fails_once("2")

                @pytest.fixture
                def broken():
                    fails_once("3")

                def test_fixture(broken): pass
                def test_good(): pass
                """,
                once=("-n", "2", "--dist", "loadgroup"),
            )
        )
        path = self.folder / "some" / "some_tests.py"
        unstable = sorted(line for line in said[-5:] if line.startswith("unstable: "))
        names = ["TestInside::test_once[x]@y z::]", "test_fixture", "test_simple"]
        self.assertEqual(unstable, [f"unstable: {path}::{name}" for name in names], said)
        self.assert_ends(said, "1 passed, 0 failed", "0")

    def test_a_test_that_fails_twice(self) -> None:
        said = self.run_suites(
            self.pytest("def test_a(): fails_once('1')\ndef test_b(): raise ValueError('often')")
        )
        self.assert_ends(said, "failed suites: some", "0 passed, 1 failed", "1")
        self.assertTrue([line for line in said if "ValueError: often" in line], said)

    def test_more_than_three_in_a_run(self) -> None:
        fails = "def test_{0}(): fails_once('{0}')\n"
        said = self.run_suites(self.pytest("".join(fails.format(n) for n in range(4))))
        self.assertIn("=== some: 4 tests failed, too many to repeat them", said)
        self.assert_ends(said, "failed suites: some", "0 passed, 1 failed", "1")
        once = self.script(
            f"""
            import pathlib, sys
            mark = pathlib.Path({str(self.folder)!r}, "mark")
            if not mark.exists(): mark.touch(); sys.exit("not yet")
            """
        )
        said = self.run_suites(
            self.pytest("".join(fails.format(n) for n in range(5, 8))), Whole("demo", *once)
        )
        self.assertIn("=== demo: 1 tests failed, too many to repeat them", said)
        self.assert_ends(said, "failed suites: demo", "1 passed, 1 failed", "1")
        (self.folder / "mark").unlink()
        said = self.run_suites(Whole("demo", *once))
        self.assert_ends(said, "", "unstable: demo", "1 passed, 0 failed", "0")

    def test_what_is_not_repeated(self) -> None:
        """A file that cannot be loaded, no tests at all, seeds."""
        for text, why in (
            ("import nothing_of_this_name", "pytest ended with 2"),
            ("", "pytest ended with 5"),
        ):
            said = self.run_suites(self.pytest(text))
            self.assertTrue([line for line in said if why in line], said)
            self.assert_ends(said, "failed suites: some", "0 passed, 1 failed", "1")
        said = self.run_suites(Suite("simulation", *self.script("raise SystemExit('seed 7')")))
        self.assertIn("seed 7", said)
        self.assert_ends(said, "failed suites: simulation", "0 passed, 1 failed", "1")

    def test_suites_that_repeat_their_cases(self) -> None:
        def suite(count: int) -> Suite:
            text = f"print('unstable: hostile c a\\n' * {count}, '2 passed', sep='')"
            return Suite("hostile", *self.script(text))

        said = self.run_suites(suite(3))
        self.assertEqual(said.count("unstable: hostile c a"), 6, said)
        self.assert_ends(said, "1 passed, 0 failed", "0")
        self.assert_ends(self.run_suites(suite(4)), "0 passed, 1 failed", "1")

    def test_swift_tests(self) -> None:
        def suite(fails: tuple[str, ...], always: bool = False) -> Suite:
            text = f"FAILS = {fails}\nALWAYS = {always}\n{SWIFT}"
            return SwiftTests("swift", sys.executable, "-c", text)

        self.assert_ends(self.run_suites(suite(())), "1 passed, 0 failed", "0")
        said = self.run_suites(suite(("ends()", "begins(_:)")))
        names = ["unstable: LoopTests/Turns/ends()", "unstable: LoopTests/begins(_:)"]
        self.assert_ends(said, *names, "1 passed, 0 failed", "0")
        said = self.run_suites(suite(("ends()",), always=True))
        self.assert_ends(said, "failed suites: swift", "0 passed, 1 failed", "1")
        # It traps, so there is no report.
        crash = self.script("raise SystemExit('Fatal error: trap')")
        said = self.run_suites(SwiftTests("swift", *crash))
        self.assertTrue([line for line in said if "it has no report" in line], said)
        self.assert_ends(said, "failed suites: swift", "0 passed, 1 failed", "1")

    def test_a_repetition_that_runs_nothing(self) -> None:
        """For example because the test is skipped then."""
        said = self.run_suites(
            self.pytest(
                """
                import pathlib
                mark = pathlib.Path(__file__).parents[1] / "was here"

                def test_a():
                    if mark.exists(): pytest.skip("later")
                    fails_once("was here")
                """
            )
        )
        self.assert_ends(said, "failed suites: some", "0 passed, 1 failed", "1")
