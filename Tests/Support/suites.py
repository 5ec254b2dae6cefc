"""Runs test suites one after the other. A test that fails is run once more, alone, at the end of
its suite; if it passes then, it is unstable: that is reported, and up to three of them in a run
count as passed."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field

#: How many unstable tests a run may have.
UNSTABLE_LIMIT = 3
#: What a suite that repeats its own cases prints before a name.
UNSTABLE = "unstable: "
#: The results of single tests, in the formats of all suites, for the summary.
RESULTS = re.compile(rb"\xe2\x9c\x98|^FAILED|^E   |error:")


class Unclear(Exception):
    """It is not known which tests have failed."""


class Suite:
    """A command whose exit code is the result. It may repeat failed cases itself, and then prints
    `unstable: NAME` for each that passed."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self.command = command

    def first(self, report: pathlib.Path) -> list[str]:
        """The command that runs all tests.

        :param report: a file for its report, which does not exist.
        """
        return list(self.command)

    def failures(self, code: int, report: pathlib.Path) -> list[str]:
        """The names of the tests that can be repeated, after an exit code that is not 0.

        :raises Unclear: if that would not show everything.
        """
        raise Unclear("its tests are not repeated")

    def again(self, test: str, report: pathlib.Path) -> list[str]:
        """The command that runs one test."""
        raise NotImplementedError

    def has_run(self, report: pathlib.Path) -> bool:
        """Whether `again`, which succeeded, has run a test."""
        return True


class Whole(Suite):
    """A suite that is one test."""

    def failures(self, code: int, report: pathlib.Path) -> list[str]:
        return [self.name]

    def again(self, test: str, report: pathlib.Path) -> list[str]:
        return list(self.command)


class Reporting(Suite):
    """A suite whose report is in JUnit's format."""

    def has_run(self, report: pathlib.Path) -> bool:
        return any(case.find("skipped") is None for case in cases(report))

    def failed_cases(self, report: pathlib.Path) -> list[ElementTree.Element]:
        found = [
            case
            for case in cases(report)
            if case.find("failure") is not None or case.find("error") is not None
        ]
        if not found:
            raise Unclear("its report names no failed test")
        return found


class Pytest(Reporting):
    """A suite of pytest.

    :param arguments: those that `again` keeps.
    :param once: further ones for the first run, such as the number of workers.
    """

    def __init__(
        self, name: str, python: str, folder: str, *arguments: str, once: Sequence[str] = ()
    ) -> None:
        super().__init__(name, python, "-m", "pytest", "-q", *arguments)
        self.folder = folder
        self.once = once

    def _reporting(self, report: pathlib.Path) -> list[str]:
        # Only the older format names the file of a test.
        return [*self.command, f"--junitxml={report}", "-o", "junit_family=xunit1"]

    def first(self, report: pathlib.Path) -> list[str]:
        return [*self._reporting(report), "--durations=10", *self.once, self.folder]

    def failures(self, code: int, report: pathlib.Path) -> list[str]:
        if code != 1:
            raise Unclear(f"pytest ended with {code}")
        # A test whose teardown fails as well has two entries.
        return list(dict.fromkeys(self._node(case) for case in self.failed_cases(report)))

    def again(self, test: str, report: pathlib.Path) -> list[str]:
        return [*self._reporting(report), test]

    def _node(self, case: ElementTree.Element) -> str:
        """The name by which pytest finds a test."""
        path = case.get("file")
        if path is None:
            raise Unclear(f"{case.get('name')} could not be loaded")
        # It is relative to the folder with pytest's settings.
        folder = pathlib.Path(self.folder)
        bases = [folder, *folder.parents]
        found = next((base / path for base in bases if (base / path).is_file()), None)
        if found is None:
            raise Unclear(f"the file {path} of a failed test is not found")
        module = pathlib.Path(path).with_suffix("").as_posix().replace("/", ".")
        classes = case.get("classname", "").removeprefix(module).split(".")[1:]
        return "::".join([str(found), *classes, without_group(case.get("name", ""))])


def without_group(name: str) -> str:
    """Workers add the group of a test to its name, after its parameters."""
    head, bracket, tail = name.rpartition("]")
    return head + bracket + tail.partition("@")[0]


class SwiftTests(Reporting):
    """`swift test`."""

    def _reporting(self, report: pathlib.Path) -> list[str]:
        return [*self.command, "--xunit-output", str(report)]

    def first(self, report: pathlib.Path) -> list[str]:
        return self._reporting(report)

    def failures(self, code: int, report: pathlib.Path) -> list[str]:
        return ["/".join(parts_of(case)) for case in self.failed_cases(written_by_swift(report))]

    def again(self, test: str, report: pathlib.Path) -> list[str]:
        module, _, rest = test.partition("/")
        pattern = f"^{re.escape(module)}\\.{re.escape(rest)}(/|$)"
        return [*self._reporting(report), "--skip-build", "--filter", pattern]

    def has_run(self, report: pathlib.Path) -> bool:
        return super().has_run(written_by_swift(report))


def written_by_swift(report: pathlib.Path) -> pathlib.Path:
    """`swift test` writes the results of Swift Testing beside those of XCTest."""
    return report.with_name(f"{report.stem}-swift-testing{report.suffix}")


def parts_of(case: ElementTree.Element) -> list[str]:
    """Module, types and function."""
    return [*case.get("classname", "").split("."), case.get("name", "")]


def cases(report: pathlib.Path) -> list[ElementTree.Element]:
    try:
        return list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        raise Unclear(f"it has no report: {error}") from error


@dataclass
class Run:
    """Runs suites, and keeps the results.

    :param logs: the folder for output and reports.
    :param is_terminal: whether the output of suites is printed, too.
    """

    logs: pathlib.Path
    is_terminal: bool
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)

    def suite(self, suite: Suite) -> None:
        say(f"\n=== {suite.name}: {' '.join(suite.command)}")
        began = time.monotonic()
        log = self.logs / f"{suite.name}.log"
        log.unlink(missing_ok=True)
        is_good = self._passes(suite, log)
        (self.passed if is_good else self.failed).append(suite.name)
        if is_good and not self.is_terminal:
            say(last_line(log))
        seconds = round(time.monotonic() - began)
        say(f"=== {suite.name}: {'ok' if is_good else 'FAILED'} ({seconds} s)")

    def _passes(self, suite: Suite, log: pathlib.Path) -> bool:
        report = self._report(suite)
        code = self._logged(suite.first(report), log)
        # What it repeated itself.
        unstable = [
            line.removeprefix(UNSTABLE).strip()
            for line in log.read_text(errors="replace").splitlines()
            if line.startswith(UNSTABLE)
        ]
        if code != 0:
            try:
                failed = suite.failures(code, report)
            except Unclear as why:
                say(f"=== {suite.name}: {why}")
                return False
            if len(self.unstable) + len(failed) > UNSTABLE_LIMIT:
                say(f"=== {suite.name}: {len(failed)} tests failed, too many to repeat them")
                return False
            for test in failed:
                if not self._passes_again(suite, test, log):
                    return False
            unstable += failed
        for test in unstable:
            say(f"{UNSTABLE}{test}")
        self.unstable += unstable
        if unstable and len(self.unstable) > UNSTABLE_LIMIT:
            say(f"=== {suite.name}: more than {UNSTABLE_LIMIT} tests of this run are unstable")
            return False
        return True

    def _passes_again(self, suite: Suite, test: str, log: pathlib.Path) -> bool:
        report = self._report(suite)
        with log.open("a") as output:
            output.write(f"\n=== once more, alone: {test}\n")
        try:
            return self._logged(suite.again(test, report), log) == 0 and suite.has_run(report)
        except Unclear:
            return False

    def _report(self, suite: Suite) -> pathlib.Path:
        """A file for a report, without those of an earlier run."""
        report = self.logs / f"{suite.name}.xml"
        for old in (report, written_by_swift(report)):
            old.unlink(missing_ok=True)
        return report

    def _logged(self, command: list[str], log: pathlib.Path) -> int:
        """Runs a command and appends its output to the log."""
        with log.open("ab") as output:
            if not self.is_terminal:
                return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            ) as process:
                assert process.stdout is not None
                while piece := process.stdout.read1():
                    output.write(piece)
                    sys.stdout.buffer.write(piece)
                    sys.stdout.buffer.flush()
            return process.returncode

    def end(self) -> int:
        """Prints what failed and the sum.

        :return: the exit code.
        """
        for name in self.failed:
            log = self.logs / f"{name}.log"
            lines = log.read_bytes().splitlines() if log.exists() else []
            say(f"\n=== output of {name} (all of it is in {log})")
            for line in [line for line in lines if RESULTS.search(line)][-60:]:
                say(text(line))
            say("--- the last lines:")
            for line in lines[-30:]:
                say(text(line))
        say("")
        for test in self.unstable:
            say(f"{UNSTABLE}{test}")
        if self.failed:
            say(f"failed suites: {' '.join(self.failed)}")
        say(f"{len(self.passed)} passed, {len(self.failed)} failed")
        return 1 if self.failed else 0


def say(line: str) -> None:
    print(line, flush=True)


def text(line: bytes) -> str:
    return line.decode(errors="replace")[:300]


def last_line(log: pathlib.Path) -> str:
    lines = log.read_bytes().splitlines()
    return text(lines[-1]) if lines else ""
