"""What Embedded Swift cannot compile, in the modules of the shared library.

The compiler finds the same, but only after a minute, and it does not name a better way.
"""

import re
from collections.abc import Iterator

from source import Complaint, Source

LIBRARY = tuple(
    f"Sources/{module}/" for module in ("Wire", "Documents", "Session", "Engine", "RealtimeABI")
)

#: A construct, and what to write instead.
CONSTRUCTS = (
    (re.compile(r"\b(?:re)?throws\b(?!\()"), "name what is thrown: throws(RealtimeError)"),
    (re.compile(r"\bweak\s+(?:var|let)\b|\[weak\b|, weak\b"), "end the reference explicitly"),
    (re.compile(r"\bunowned\b(?!\(unsafe\))"), "end the reference explicitly"),
    (re.compile(r"(?<![\w)\]])\\\.?\w"), "write a closure for the key path"),
    (
        re.compile(r"\bis\s+any\b|: Any\b|\[Any\b|\bMirror\("),
        "there are no types at run time",
    ),
    (re.compile(r"\bCodable\b|\bEncodable\b|\bDecodable\b"), "there is no Codable"),
)
_PROTOCOL = re.compile(r"\bprotocol\s+(\w+)\s*(?::([^{]*))?\{")
_EXISTENTIAL = re.compile(r"\bany\s+([A-Z]\w*)")
_FAILING = re.compile(
    r"(?m)^( *)((?:[a-z]+ )*)init(?:\?\(|[(<](?:[^{}]|(?<!\) )\{\})*?\) throws\(\w+\) \{)"
)
_TYPE = re.compile(r"(?m)^( *)(?:[a-z]+(?:\([a-z]+\))? )*(class|struct|enum|extension|protocol) \w")


def constructs(sources: list[Source]) -> Iterator[Complaint]:
    library = [s for s in sources if s.path.startswith(LIBRARY) and s.suffix == ".swift"]
    of_classes = _protocols_of_classes(library)
    for source in library:
        for pattern, advice in CONSTRUCTS:
            for match in pattern.finditer(source.code):
                rule = f"Embedded Swift has no '{match[0].strip()}': {advice}"
                yield Complaint(source.path, source.line_of(match.start()), rule)
        for match in _EXISTENTIAL.finditer(source.code):
            if match[1] not in of_classes:
                rule = f"Embedded Swift has '{match[0]}' only if {match[1]} is for classes"
                yield Complaint(source.path, source.line_of(match.start()), rule)


def initializers(sources: list[Source]) -> Iterator[Complaint]:
    """In Embedded Swift an object whose initializer fails half-way is never freed."""
    for source in sources:
        if not source.path.startswith(LIBRARY) or source.suffix != ".swift":
            continue
        for match in _FAILING.finditer(source.code):
            outer = [
                found
                for found in _TYPE.finditer(source.code, 0, match.start())
                if len(found[1]) < len(match[1])
            ]
            if outer and outer[-1][2] == "class" and "convenience" not in match[2]:
                rule = (
                    "an init of a class that can fail must be convenience, before the object exists"
                )
                yield Complaint(source.path, source.line_of(match.start(2)), rule)


def _protocols_of_classes(sources: list[Source]) -> set[str]:
    parents = {
        match[1]: set(re.findall(r"\w+", match[2] or ""))
        for source in sources
        for match in _PROTOCOL.finditer(source.code)
    }
    found = {"AnyObject"}
    while more := {name for name, above in parents.items() if above & found} - found:
        found |= more
    return found
