"""Circular imports in the Python binding, between modules or between subpackages."""

import ast
import graphlib
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from source import Complaint, Source

_ROOT = PurePosixPath("bindings/python/src")

#: Importer and imported module, with the file and line of one such import.
Imports = dict[tuple[str, str], tuple[str, int]]


def circles(sources: list[Source]) -> Iterator[Complaint]:
    """Imports that only the type checker sees count, too."""
    modules = {
        _module(source.path): source
        for source in sources
        if source.suffix == ".py" and PurePosixPath(source.path).is_relative_to(_ROOT)
    }
    found: Imports = {}
    for module, source in modules.items():
        for line, target in _imported(module, source, modules):
            found.setdefault((module, target), (source.path, line))
    folders: Imports = {}
    for (module, target), place in found.items():
        own, other = _folder(module, modules), _folder(target, modules)
        if own != other:
            folders.setdefault((own, other), place)
    for imports in (found, folders):
        yield from _circle(imports)


def _circle(imports: Imports) -> Iterator[Complaint]:
    graph: dict[str, set[str]] = {}
    for importer, target in imports:
        graph.setdefault(importer, set()).add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        # graphlib lists each node before the one that imports it.
        cycle = error.args[1][::-1]
        path, line = imports[cycle[0], cycle[1]]
        yield Complaint(path, line, f"circular imports: {' → '.join(cycle)}")


def _module(path: str) -> str:
    parts = PurePosixPath(path).relative_to(_ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(module: str, modules: dict[str, Source]) -> str:
    """The module's subpackage; the module itself if it is in none."""
    parts = module.split(".")
    package = ".".join(parts[:2])
    known = modules.get(package)
    return package if known is not None and known.path.endswith("/__init__.py") else module


def _imported(module: str, source: Source, names: Collection[str]) -> Iterator[tuple[int, str]]:
    package = module.split(".")
    if not source.path.endswith("/__init__.py"):
        package.pop()
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from package import x`: x may be a module of the package or a name in it.
            inside = [f"{base}.{alias.name}" for alias in node.names]
            targets = [name if name in names else base for name in inside]
        else:
            continue
        yield from ((node.lineno, target) for target in targets if target in names)
