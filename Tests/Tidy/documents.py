"""Rules for the Markdown pages: links are valid, examples are copies of files that CI runs, tests
that a page names exist, and the pages have each rule that a comment cites."""

import pathlib
import re
from collections.abc import Iterator

from source import Complaint, Source, blank, comments

# The line before an example's fence names its file, in a comment.
_EXAMPLE = re.compile(r"(?m)^<!-- (\S+) -->\n```\w*\n([\s\S]*?)^```$")
_ANY_FENCE = re.compile(r"(?m)^```(c|python|swift)\n")
_FENCE = re.compile(r"(?m)^```[\s\S]*?^```$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
# A rule's code: a letter for the page, and a number.
_CODE = re.compile(r"(?<![\w.])[GPCLRBUM][1-9]\d?(?!\w)")
# Tests, after the last folder and the name of their file: `folder/file`: `a`, `b`
_TESTS = re.compile(r"`(\w+)/(\w+)`: ((?:`[^`]+`(?:, )?)+)")
# A suite of Swift tests, without its folder.
_SUITE = re.compile(r"`(\w+Tests)`")
# The C standards look like rules.
_LANGUAGES = {"C11", "C17", "C23", "C99"}


def links(root: pathlib.Path, sources: list[Source]) -> Iterator[Complaint]:
    for source in sources:
        if source.suffix != ".md":
            continue
        for match in _LINK.finditer(blank(source.text, _FENCE)):
            target, _, anchor = match[1].partition("#")
            if re.match(r"\w+:", match[1]):
                continue
            line = source.line_of(match.start())
            path = (root / source.path).parent / target if target else root / source.path
            if not path.exists():
                yield Complaint(source.path, line, f"broken link: {target} does not exist")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
                yield Complaint(source.path, line, f"broken link: {match[1]} is not a heading")


def anchors(text: str) -> set[str]:
    """The fragments that link to the headings and anchors of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    names = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return names | set(_ANCHOR.findall(text))


def codes(sources: list[Source]) -> Iterator[Complaint]:
    """Each rule that a comment cites has an anchor on one page of docs/, and only one."""
    homes: dict[str, str] = {}
    for source in sources:
        if not source.path.startswith("docs/"):
            continue
        for match in _ANCHOR.finditer(source.text):
            line, code = source.line_of(match.start()), match[1]
            if code in homes:
                yield Complaint(source.path, line, f"{homes[code]} already has a rule {code}")
            homes[code] = source.path
    for source in sources:
        for line, comment in comments(source):
            for code in _CODE.findall(comment):
                if code not in homes and code not in _LANGUAGES:
                    yield Complaint(source.path, line, f"no page of docs/ has the rule {code}")


def examples(sources: list[Source]) -> Iterator[Complaint]:
    """Each block of C, Python or Swift in the README and in docs/ is a copy of a whole file."""
    by_path = {source.path: source for source in sources}
    readme = by_path.get("README.md")
    if readme is None:
        yield Complaint("README.md", 1, "there is no README.md")
        return
    for language in ("c", "python", "swift"):
        if f"```{language}\n" not in readme.text:
            yield Complaint("README.md", 1, f"there is no example in {language}")
    for page in sources:
        if page is readme or (page.path.startswith("docs/") and page.suffix == ".md"):
            yield from _examples_of(page, by_path)


def _examples_of(page: Source, by_path: dict[str, Source]) -> Iterator[Complaint]:
    shown = set()
    for match in _EXAMPLE.finditer(page.text):
        line, path = page.line_of(match.start()), match[1]
        shown.add(line + 1)
        if path not in by_path:
            yield Complaint(page.path, line, f"{path} does not exist")
        elif by_path[path].text != match[2]:
            yield Complaint(page.path, line, f"the example differs from {path}")
    for match in _ANY_FENCE.finditer(page.text):
        line = page.line_of(match.start())
        if line not in shown:
            yield Complaint(page.path, line, "the example does not name its file")


def tests(sources: list[Source]) -> Iterator[Complaint]:
    """The tests and suites that the pages in Tests/ name exist."""
    swift = [s for s in sources if s.path.startswith("Tests/") and s.suffix == ".swift"]
    suites = {name for s in swift for name in re.findall(r"\bstruct (\w+Tests)\b", s.code)}
    for page in sources:
        if not (page.path.startswith("Tests/") and page.suffix == ".md"):
            continue
        for match in _SUITE.finditer(page.text):
            if match[1] not in suites:
                rule = f"the suite {match[1]} does not exist"
                yield Complaint(page.path, page.line_of(match.start()), rule)
        for match in _TESTS.finditer(page.text):
            line, folder, stem = page.line_of(match.start()), match[1], match[2]
            text = next((s.text for s in sources if _is_test(s, folder, stem)), None)
            if text is None:
                yield Complaint(page.path, line, f"there is no test file {folder}/{stem}")
                continue
            for name in re.findall("`([^`]+)`", match[3]):
                if not re.search(rf"(?:func|def|void) `?{re.escape(name)}`?\(", text):
                    yield Complaint(page.path, line, f"{folder}/{stem} has no test {name}")


def _is_test(source: Source, folder: str, stem: str) -> bool:
    path = pathlib.PurePosixPath(source.path)
    return path.stem == stem and folder in path.parts and path.suffix != ".h"
