"""Errors mention options by names that exist: Sources/Wire/HTTP/OptionOwner.swift and the names of
Python agree with docs/options.md, which abigen generates from the options themselves."""

import re
from collections.abc import Iterator

from source import Complaint, Source

OWNERS = "Sources/Wire/HTTP/OptionOwner.swift"
PYTHON = "bindings/python/src/librealtime/_core/errors.py"
PAGE = "docs/options.md"
#: An option by its stem in a message of the core, which must ask its owner for the name instead.
_STEM = re.compile(
    r"\(((?:max|send|open|pong|ping|idle|queue)_[a-z_]+|[a-z]+_(?:timeout|ttl)|deadline)\)"
)
#: A literal of several words.
_TEXT = re.compile(r'"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"')
_WORD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
#: Parameters of permessage-deflate (RFC 7692 §7.1), after which the options are named.
_PARAMETER = re.compile(r"(?:client|server)_(?:no_context_takeover|max_window_bits)")
_CORE = ("Sources/Wire/", "Sources/Documents/", "Sources/Session/", "Sources/Engine/")
# Setters written by hand, which the page does not list.
_BY_HAND = {("pusher", "reconnect_limits")}


def option_names(sources: list[Source]) -> Iterator[Complaint]:
    texts = {source.path: source.text for source in sources}
    yield from _compare(texts[OWNERS], texts[PYTHON], texts[PAGE])
    options = _words(texts[PAGE])
    for source in sources:
        if source.path.startswith(_CORE) and source.suffix == ".swift":
            for number, line in enumerate(source.text.splitlines(), 1):
                if name := _mentioned(line, options):
                    rule = f"names the option {name}; let its OptionOwner mention it"
                    yield Complaint(source.path, number, rule)


def _mentioned(line: str, options: set[str]) -> str | None:
    """The option that a message in this line names itself."""
    if "//" in line or '"' not in line:
        return None
    if found := _STEM.search(line):
        return found[1]
    for text in _TEXT.findall(line):
        for word in _WORD.findall(text):
            if word in options:
                return str(word)
    return None


def _words(page: str) -> set[str]:
    """The names of all options with an underscore, in C without prefix and unit, and in Python."""
    names = set()
    for setter, (_, python) in _listed(page).items():
        stem = re.sub(r"^rt_.*?_(?:set|add)_", "", setter)
        names |= {stem, stem.removesuffix("_ms"), python}
    return {name for name in names if _WORD.fullmatch(name) and not _PARAMETER.fullmatch(name)}


def _compare(owners: str, python: str, page: str) -> Iterator[Complaint]:
    listed = _listed(page)
    names = dict(re.findall(r'"(rt_\w+_set_\w+)": "([\w.]+)"', python))
    for setter, keyword in names.items():
        if (found := listed.get(setter)) and found[1] not in (keyword, _wrapped(keyword)):
            yield Complaint(PYTHON, 1, f"{setter} is {found[1]} in Python, not {keyword}")
    objects = re.findall(r'(?m)^    case (\w+)(?: = "(\w*)")?$', owners)
    prefixes = [text or name for name, text in objects]
    limits = dict(re.findall(r'(?m)^        case (\w+) = "(\w+)"$', owners))
    for case, stem in limits.items():
        verbs = (f"set_{stem}", f"add_{stem.removesuffix('s')}")
        had = {name for name in prefixes if any(f"rt_{name}_{verb}" in listed for verb in verbs)}
        had |= {prefix for prefix, name in _BY_HAND if name == stem}
        said = _said(owners, case, {name: text or name for name, text in objects})
        if said != had:
            rule = f"says that {sorted(said)} have {stem}; {PAGE} lists {sorted(had)}"
            yield Complaint(OWNERS, 1, rule)


def _wrapped(keyword: str) -> str:
    """As the page writes an option of a group: ``Deflate(level=…)``."""
    group, _, name = keyword.partition(".")
    return f"{group}({name}=…)"


def _listed(page: str) -> dict[str, tuple[str, str]]:
    """Swift's and Python's names, by C's setter."""
    found = {}
    prefix = ""
    for line in page.splitlines():
        if head := re.match(r"\| C: `(rt_\w+_set_)…`", line):
            prefix = head[1]
        elif row := re.match(r"\| `(\w+)` \| `?([^`|]*?)`? \| `?([^`|]*?)`? \|", line):
            name = row[1] if row[1].startswith("rt_") else prefix + row[1]
            found[name] = (row[2], row[3])
    return found


def _said(owners: str, case: str, prefixes: dict[str, str]) -> set[str]:
    """The objects for which ``has`` returns true: a comparison of ``self`` for each."""
    body = owners[owners.index("func has(") :]
    branch = re.search(rf"case [^:]*\.{case}\b[^:]*:([^:]*?)(?=\n        case|\n        }})", body)
    assert branch, f"OptionOwner.has does not know {case}"
    if named := re.findall(r"self == \.(\w+)", branch[1]):
        return {prefixes[name] for name in named}
    without = set(re.findall(r"self != \.(\w+)", branch[1]))
    return {text for name, text in prefixes.items() if name not in without}
