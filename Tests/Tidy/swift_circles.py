"""Circular dependencies between Swift files, and between folders.

A file depends on another if it uses a type or a free function that the other declares. Files in one
folder that extend the same type count as one. Names are compared as text, so a private type with
the same name in another file counts, too: rename it.
"""

import pathlib
import re
from collections import defaultdict
from collections.abc import Iterator

from source import Complaint, Source

# Targets whose files must not have circles, not even within a folder.
FREE = ("Engine",)

_DECLARED = re.compile(
    r"(?m)^(?:(?:@\w+(?:\([^)]*\))?|package|public|private|fileprivate|final|indirect)[ \n]+)*"
    r"(class|struct|enum|protocol|func|typealias|extension) (\w+)"
)
Graph = dict[str, set[str]]


def circles(sources: list[Source]) -> Iterator[Complaint]:
    targets: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        parts = pathlib.PurePosixPath(source.path).parts
        if parts[0] == "Sources" and source.suffix == ".swift":
            targets[parts[1]].append(source)
    for target, files in targets.items():
        graph = needs(files)
        graphs = {"folders": folders(graph)}
        if target in FREE:
            graphs["files"] = graph
        for what, one in graphs.items():
            for group in groups(one):
                rule = f"circular dependency of {len(group)} {what}: {' '.join(map(stem, group))}"
                yield Complaint(group[0], 1, rule)


def stem(path: str) -> str:
    return pathlib.PurePosixPath(path).stem


def folder(path: str) -> str:
    return str(pathlib.PurePosixPath(path).parent)


def needs(sources: list[Source]) -> Graph:
    """For each file, the files it depends on."""
    code = {source.path: source.code for source in sources if source.suffix == ".swift"}
    home: dict[str, str] = {}
    extended: list[tuple[str, str]] = []
    for path, text in code.items():
        for match in _DECLARED.finditer(text):
            if match[1] == "extension":
                extended.append((path, match[2]))
            elif "private" not in match[0]:
                home[match[2]] = path
    # The file that stands for each file: extensions count as the file of their type.
    whole = {path: path for path in code}
    for path, name in extended:
        if name in home and folder(home[name]) == folder(path):
            old, new = whole[path], whole[home[name]]
            whole = {one: new if of == old else of for one, of in whole.items()}
    graph: Graph = {path: set() for path in whole.values()}
    for path, text in code.items():
        named = home.keys() & set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", text))
        graph[whole[path]] |= {whole[home[name]] for name in named} - {whole[path]}
    return graph


def folders(graph: Graph) -> Graph:
    found: Graph = defaultdict(set)
    for path, others in graph.items():
        found[folder(path)] |= {folder(other) for other in others} - {folder(path)}
    return found


def groups(graph: Graph) -> list[list[str]]:
    """The circles: sets of nodes that reach each other."""
    reached = {node: reachable(graph, node) for node in graph}
    found = {
        tuple(sorted({node} | {one for one in reached[node] if node in reached[one]}))
        for node in graph
    }
    return sorted(list(group) for group in found if len(group) > 1)


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = graph.get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting += fresh
    return seen
