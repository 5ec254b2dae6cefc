"""The tree's own rules. Each takes the sources and yields complaints."""

import json
import re
from collections.abc import Iterator

from source import C_LIKE, MODEL, Complaint, Source, functions

MAX_FILE_LINES = 450
# Source files that must be longer, each with the reason.
LONG_FILES: dict[str, str] = {}
# An example shows one idea, on one screen or two.
MAX_EXAMPLE_LINES = 120
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

# A target may import only the targets before it.
ORDER = ("CShims", "Wire", "Documents", "Session", "Engine", "Realtime", "RealtimeABI")
# The system modules that each target may import.
SYSTEM_OF_TARGET = {"Engine": {"Synchronization", "Glibc"}, "Realtime": {"Synchronization"}}

_IMPORT = re.compile(
    r"(?m)^[ \t]*(?:@[\w()]+\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)"
)


def target_of(source: Source) -> str | None:
    parts = source.path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "Sources" and parts[1] in ORDER else None


def imports(sources: list[Source]) -> Iterator[Complaint]:
    for source in sources:
        target = target_of(source)
        if target is None or source.suffix != ".swift":
            continue
        allowed = set(ORDER[: ORDER.index(target)])
        for match in _IMPORT.finditer(source.code):
            module = match[1]
            line = source.line_of(match.start(1))
            if module.startswith("Foundation"):
                rule = f"the shared library must not import {module}"
            elif module in ORDER and module not in allowed:
                rule = f"{target} must not import {module}: the order is {' → '.join(ORDER)}"
            elif module not in ORDER and module not in SYSTEM_OF_TARGET.get(target, set()):
                rule = f"{target} must not import {module}"
            else:
                continue
            yield Complaint(source.path, line, rule)


def user_imports(sources: list[Source]) -> Iterator[Complaint]:
    """The tool and RealtimeFoundation use the same public Swift module as every other program."""
    for source in sources:
        target = source.path.removeprefix("Sources/").split("/")[0]
        if target not in ("RealtimeCLI", "RealtimeFoundation"):
            continue
        for match in _IMPORT.finditer(source.code):
            if match[1] in ORDER and match[1] != "Realtime":
                rule = f"{target} must not import {match[1]}, only Realtime"
                yield Complaint(source.path, source.line_of(match.start(1)), rule)


def sizes(sources: list[Source], long_files: dict[str, str] = LONG_FILES) -> Iterator[Complaint]:
    """Files, functions and lines are short, except for the files in the list."""
    long = set()
    for source in sources:
        if source.is_generated:
            continue
        is_example = source.path.startswith("examples-c/")
        limit = MAX_EXAMPLE_LINES if is_example else MAX_FILE_LINES
        # A page is as long as its subject.
        if len(source.lines) > limit and source.suffix != ".md":
            long.add(source.path)
            rule = f"the file has {len(source.lines)} lines, {limit} are allowed without a reason"
            if not long_files.get(source.path):
                yield Complaint(source.path, len(source.lines), rule)
        for function in functions(source):
            if function.lines > MAX_FUNCTION_LINES:
                rule = (
                    f"{function.name} has {function.lines} lines, {MAX_FUNCTION_LINES} are allowed"
                )
                yield Complaint(source.path, function.first, rule)
        for number, line in enumerate(source.lines, 1):
            # A row of a Markdown table cannot be wrapped.
            if len(line) > MAX_COLUMNS and not (source.suffix == ".md" and line.startswith("|")):
                rule = f"the line has {len(line)} columns, {MAX_COLUMNS} are allowed"
                yield Complaint(source.path, number, rule)
    for path in sorted(set(long_files) - long):
        yield Complaint(path, 1, "the list of long files names it, but it is not long")


def leftovers(sources: list[Source]) -> Iterator[Complaint]:
    """Work that is left for later belongs in an issue. Also finds trailing white space."""
    word = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            if found := word.search(line):
                yield Complaint(source.path, number, f"{found[0]} left in the tree")
            if line != line.rstrip():
                yield Complaint(source.path, number, "white space at the end of the line")


def traps(sources: list[Source]) -> Iterator[Complaint]:
    """Swift cannot catch its own traps, so outside input must not be able to cause one.

    An unsafe reference is allowed to the loop alone, which outlives everything that lives on it.
    """
    forced = re.compile(r"\b(?:try|as)!|\bfatalError|\bunowned\(unsafe\)(?! let loop: Loop\n)")
    for source in sources:
        if target_of(source) is None or source.suffix != ".swift":
            continue
        for match in forced.finditer(source.code):
            yield Complaint(source.path, source.line_of(match.start()), f"{match[0]} may trap")


def exports(sources: list[Source]) -> Iterator[Complaint]:
    """Each export has a doc comment, is in the model and Python's table, and is called from C."""
    by_path = {source.path: source for source in sources}
    model = by_path.get(MODEL)
    binding = by_path.get("bindings/python/src/librealtime/_core/abi.py")
    if model is None or binding is None:
        missing = MODEL if model is None else "abi.py"
        yield Complaint("include", 1, f"{missing} is missing: run `make abi`")
        return
    described = {function["name"]: function for function in json.loads(model.text)["functions"]}
    users = "\n".join(
        source.code
        for source in sources
        if source.suffix in C_LIKE
        and source.path.startswith(("Tests/CTests/", "Tests/Integration/", "examples-c/"))
    )
    called = set(re.findall(r"\b(rt_\w+)\s*\(", users))
    known = set(re.findall(r"\brt_\w+", binding.text))
    for source in sources:
        if not source.path.startswith("Sources/RealtimeABI/") or source.suffix != ".swift":
            continue
        for number, name, comment in declared_exports(source):
            for rule in broken(name, comment, described, called, known):
                yield Complaint(source.path, number, f"{name} {rule}")


def declared_exports(source: Source) -> Iterator[tuple[int, str, str]]:
    """The line, name and doc comment of each exported function."""
    for number, line in enumerate(source.lines, 1):
        found = re.match(r'\s*@_cdecl\("(\w+)"\)', line)
        if not found:
            continue
        first = number - 1
        while first > 0 and source.lines[first - 1].strip().startswith(("///", "@")):
            first -= 1
        yield number, found[1], "\n".join(source.lines[first : number - 1])


def broken(
    name: str, comment: str, described: dict[str, object], called: set[str], known: set[str]
) -> Iterator[str]:
    if not name.startswith("rt_"):
        yield "is exported without the prefix rt_"
    if "///" not in comment:
        yield "has no doc comment"
    elif not re.search(r"\bSince\s+\d+\.\d+\.", comment.replace("///", "")):
        yield 'has a doc comment without "Since"'
    if name not in described:
        yield "is not in include/realtime.abi.json: run `make abi`"
    if name not in called:
        yield "is called by no program under Tests/CTests, Tests/Integration or examples-c"
    if name not in known:
        yield "is not in Python's abi.py: run `make abi`"
