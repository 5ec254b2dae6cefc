#!/usr/bin/env python3
"""Plain English: finds phrases that make readers decode a sentence, in comments, docs and strings.

As a program it prints how often each phrase occurs in each folder of a tree: wording.py [ROOT]
"""

import collections
import pathlib
import re
import sys
from collections.abc import Iterator

from source import C_LIKE, Complaint, Source, tree

ALLOWED = "Tests/Tidy/wording_allowed.txt"
# The rule, its tests and its samples contain the phrases on purpose.
OWN = "Tests/Tidy/wording"

_BE = r"(?:is|are|was|were|be|been|being)"
_PERSON = (
    r"(?:(?:some|any|every)(?:one|body)|no one|nobody|people|persons?|users?|readers?|authors?|"
    r"engineers?|developers?|programmers?|maintainers?|newcomers?|attackers?)"
)
# What a peer can be behind, in space.
_COVER = (
    r"(?:prox(?:y|ies)|firewalls?|NATs?|gateways?|gates?|routers?|load balancers?|balancers?|"
    r"address(?:es)?|nginx|haproxy|caddy|squid|mutex|doors?)"
)
_PREDICATE = r"(?:is|are|was|were|has been|have been)"
_JOINT = r"(?:and|or|but|that|which|what|when|while|where|as|if|than|how)\b"

# Name, pattern, advice. A match of the group `fine` is not a complaint.
PHRASES = tuple(
    (name, re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), advice)
    for name, pattern, advice in (
        (
            "told",
            rf"\b{_BE} (?:\w+ )?told\b(?! apart\b)|\btold of\b",
            "name who calls, notifies or reports",
        ),
        ("whoever", r"\bwhom?ever\b", "name the object or thread"),
        (
            "who",
            rf"(?P<fine>\b{_PERSON},? who\b)|(?<![/(\w])who [a-z]",
            "only people are `who`: name the object or thread, or use `which` or `that`",
        ),
        (
            "is no",
            rf"(?P<fine>\bthere (?:\w+ )?{_BE} no\b)"
            rf"|\b{_BE} no (?!(?:longer|more|less|fewer|one|different|\w+er than)\b)[\w\\{{`]",
            "negate the verb: `is not a …`",
        ),
        ("none of", r"\bnone of (?:what|whom|its|ours|theirs|this one|an?)\b", "say `not …`"),
        (
            "nothing of",
            r"\bnothing of (?!the (?:kind|sort)\b)",
            "say `nothing from`, `nothing about` or `none of it`",
        ),
        (
            "of ours",
            r"\bof (?:ours|theirs)\b"
            r"|\bof (?:another )?[a-z]+'s(?=\s*[.,;:)]| (?:is|are|was|were|that|which|and|to|in|on|"
            r"by|for|with|had|has)\b)",
            "say `our …`, `a libcurl …`",
        ),
        (
            "behind",
            rf"(?P<fine>(?:\w?,? )?\bbehind (?:\w+ ){{0,2}}{_COVER}\b"
            r"|\b(?:hid(?:e|es|den)|lag(?:s|ged)?|fall(?:s|en)?|fell|left|sta(?:y|ys|nd|nds)|"
            r"wait(?:s|ed|ing)?|far)"
            r" behind\b|\b(?:leav(?:e|es|ing)|left) (?:[\w'`]+ ){0,3}behind\b)"
            r"|\bbehind [\w`\\({<]|\w,? behind\b",
            "say `after` for time and order",
        ),
        (
            "go on",
            r"\b(?:go|goes|went|gone) on(?! (?:to|top|line)\b)\b|\bgoing on \w",
            "say `continue`",
        ),
        ("in the place of", r"\bin the (?:place|stead) of\b", "say `instead of`"),
        (
            "what is … is",
            rf"\bwhat {_BE} (?!{_JOINT})\w+ (?:(?!{_JOINT})\w+ ){{0,4}}?{_PREDICATE}\b",
            "the subject is a noun: name it",
        ),
    )
)

_STRING = r'"(?:\\[\s\S]|[^"\\\n])*"'
_SWIFT = re.compile(
    r'//[^\n]*|/\*[\s\S]*?\*/|(?P<a>#*)"""[\s\S]*?"""(?P=a)|(?P<b>#*)"(?:\\.|[^"\\\n])*"(?P=b)'
)
_C = re.compile(rf"//[^\n]*|/\*[\s\S]*?\*/|{_STRING}|'(?:\\.|[^'\\\n])*'")
_PYTHON = re.compile(
    r"#[^\n]*|[a-zA-Z]{0,2}(?:" + r'"""[\s\S]*?"""' + r"|'''[\s\S]*?'''|" + _STRING + r"|'[^'\n]*')"
)
# Signs around the prose: of comments, of strings, and line feeds in strings.
_FRAME = re.compile(r"(?m)^[ \t]*(?:///?|/\*+|\*+/?|#+|[a-zA-Z]{0,2}[\"']+)|[\"']+$|\\n|\*/")


def prose(source: Source) -> str:
    """The text with code replaced by NULs, and comment signs and quotes by spaces: offsets stay the
    same, and a sentence can continue on the next line or in the next literal."""
    own = source.path.startswith(OWN)
    if own or source.is_generated or source.suffix == ".json":
        return ""
    if source.suffix == ".swift":
        tokens = _SWIFT
    elif source.suffix in C_LIKE:
        tokens = _C
    elif source.is_python:
        tokens = _PYTHON
    else:
        return _FRAME.sub(_spaces, source.text)
    parts, end = [], 0
    for match in tokens.finditer(source.text):
        parts.append(re.sub(r"\S", "\0", source.text[end : match.start()]))
        parts.append(_FRAME.sub(_spaces, match[0]))
        end = match.end()
    return "".join([*parts, re.sub(r"\S", "\0", source.text[end:])])


def _spaces(match: re.Match[str]) -> str:
    return " " * len(match[0])


def phrases(source: Source) -> Iterator[tuple[str, int, str, str]]:
    """The name, offset, words and advice of each phrase found in the source."""
    text = prose(source)
    for name, pattern, advice in PHRASES:
        for match in pattern.finditer(text):
            if not match.groupdict().get("fine"):
                yield name, match.start(), " ".join(match[0].split()), advice


def wording(sources: list[Source]) -> Iterator[Complaint]:
    """Complains about phrases, except those that a line `path: words around the phrase` of the list
    allows; and about lines of that list that allow nothing."""
    allowed = [
        (number, *line.split(": ", 1))
        for source in sources
        if source.path == ALLOWED
        for number, line in enumerate(source.lines, 1)
        if not line.startswith("#")
    ]
    used = set()
    for source in sources:
        spans = {
            number: [match.span() for match in _words(text).finditer(prose(source))]
            for number, path, text in allowed
            if path == source.path
        }
        for _, offset, words, advice in phrases(source):
            entries = {
                number
                for number, found in spans.items()
                if any(first <= offset < end for first, end in found)
            }
            used |= entries
            if not entries:
                yield Complaint(source.path, source.line_of(offset), f"“{words}”: {advice}")
    for number, path, text in allowed:
        if number not in used:
            yield Complaint(ALLOWED, number, f"{path} has no phrase to allow in “{text}”")


def _words(text: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, text.split())))


def main() -> None:
    """Prints the counts as a table: a line for each folder, a column for each phrase."""
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    names = [name for name, _, _ in PHRASES]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for source in tree(root):
        parts = source.path.split("/")
        folder = "/".join(parts[: min(len(parts) - 1, 2)]) or "."
        for name, _, _, _ in phrases(source):
            counts[folder][name] += 1
            counts["all"][name] += 1
    print("folder".ljust(24), *names, "sum", sep="  ")
    for folder, count in sorted(counts.items()):
        cells = [str(count[name] or "").rjust(len(name)) for name in names]
        print(folder.ljust(24), *cells, str(count.total()).rjust(3), sep="  ")


if __name__ == "__main__":
    main()
