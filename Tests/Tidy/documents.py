"""Rules for the Markdown pages: links lead somewhere, examples are files that CI runs, and each
rule that a comment cites is on one of the pages."""

import pathlib
import re
from collections.abc import Iterator

from source import Complaint, Source, blank, comments

# An example is announced by its path in a comment on the line before its fence.
_EXAMPLE = re.compile(r"(?m)^<!-- (\S+) -->\n```\w*\n([\s\S]*?)^```$")
_ANY_FENCE = re.compile(r"(?m)^```(c|python|swift)\n")
_FENCE = re.compile(r"(?m)^```[\s\S]*?^```$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
# A rule's code: a letter for the page, and a number.
_CODE = re.compile(r"(?<![\w.])[GPCLRB][1-9]\d?(?!\w)")
# Not a rule: the standards of C.
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
                yield Complaint(source.path, line, f"the link leads nowhere: {match[1]}")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
                yield Complaint(source.path, line, f"no heading has this name: {match[1]}")


def anchors(text: str) -> set[str]:
    """Heading names as they appear in addresses."""
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
                yield Complaint(source.path, line, f"{code} is a rule of {homes[code]} already")
            homes[code] = source.path
    for source in sources:
        for line, comment in comments(source):
            for code in _CODE.findall(comment):
                if code not in homes and code not in _LANGUAGES:
                    yield Complaint(source.path, line, f"no page of docs/ has the rule {code}")


def examples(sources: list[Source]) -> Iterator[Complaint]:
    """Each block of C, Python or Swift in the README is one whole file of the tree."""
    by_path = {source.path: source for source in sources}
    readme = by_path.get("README.md")
    if readme is None:
        yield Complaint("README.md", 1, "there is no README.md")
        return
    shown = set()
    for match in _EXAMPLE.finditer(readme.text):
        line, path = readme.line_of(match.start()), match[1]
        shown.add(readme.line_of(match.start()) + 1)
        if path not in by_path:
            yield Complaint("README.md", line, f"{path} does not exist")
        elif by_path[path].text != match[2]:
            yield Complaint("README.md", line, f"this is not what {path} says")
    for match in _ANY_FENCE.finditer(readme.text):
        line = readme.line_of(match.start())
        if line not in shown:
            yield Complaint("README.md", line, "an example without the path of its file")
    for language in ("c", "python", "swift"):
        if f"```{language}\n" not in readme.text:
            yield Complaint("README.md", 1, f"no example in {language}")
