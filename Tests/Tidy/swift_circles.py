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

# The only circles of files, by their target: what each is, and why it may be one.
ALLOWED: dict[str, dict[str, str]] = {
    "Documents": {
        "DocumentCollection DocumentKey LiveChange LiveList LiveListUpdate LiveQuery": (
            "a collection tells its live queries what changes, and they read it"
        ),
        "DocumentTable NaturalOrder": "the order is a part of the table",
        "DocumentTest FieldOperation FieldPath FieldUpdate PathSearch RequiredValues Selector "
        "SelectorCompiler SortOrder ValueTest": (
            "a selector consists of tests of values, and $not and $elemMatch of selectors"
        ),
        "PatternClass PatternEscape": "a class contains escapes, and some escapes are classes",
    },
    "Realtime": {
        "DDPCollection DDPSubscription": "a result names the collection that made it",
        "DDPModels DDPObjectChanges": "changes belong to the models that report them",
        "EJSONConvertible EJSONDecoder EJSONEncoder": "values contain values of any type",
        "HeaderLayers SourceAttempts": "the layers ask what the options contain",
        "PackedMessages WebSocket": "a type of the WebSocket's messages",
        "PusherAuthorization PusherConnection PusherDispatcher PusherOptions": (
            "PusherSwift's classes refer to each other in both directions"
        ),
    },
    "RealtimeABI": {
        "Border CallbackBox General": "what makes functions safe needs the types of C",
        "Call PendingCall": "a handle, and its object",
        "DDPDocuments DDPViews": "callbacks, and the views that they receive",
        "Handle Loop": "a handle, and its object",
        "PusherAuthorization PusherCallbacks PusherPush PusherUser PusherViews": (
            "callbacks, and the views that they receive"
        ),
        "RESTRequest RESTResponse RESTView": "callbacks, and the views that they receive",
    },
    "RealtimeCLI": {
        "AnswerSink Console DDPFailure Download Files Interruption JSONLine Output PEM PartialFile "
        "Progress Screen": "output waits, is interrupted, and fails in one place",
    },
    "Session": {
        "DDPMethods DDPQuiescence DDPSession DDPSocketEnd DDPStubBook DDPStubWaiters "
        "DDPSubscriptions DDPWaitCounts": "the parts of one machine name its types",
        "PusherChannels PusherSession": "the parts of one machine name its types",
        "RESTEntry RESTLines RESTSession": "the parts of one machine name its types",
    },
    "Wire": {
        "EJSONObject FieldStorage": "the storage of an object contains objects",
        "HTTPResponse HTTPURL HeaderField HeaderFields HostName PercentEncoding RealtimeError "
        "ResponseHead SentSecrets": "an error has a response, and parsing one fails with an error",
        "JSONDocument JSONObject": "objects contain values, and values objects",
        "JSONScanner JSONSpan JSONTape": "the scanner writes the tape, whose tokens it reads",
    },
}

_DECLARED = re.compile(
    r"(?m)^(?:(?:@\w+(?:\([^)]*\))?|package|public|private|fileprivate|final|indirect)[ \n]+)*"
    r"(class|struct|enum|protocol|func|typealias|extension) (\w+)"
)
Graph = dict[str, set[str]]


def circles(
    sources: list[Source], allowed: dict[str, dict[str, str]] = ALLOWED
) -> Iterator[Complaint]:
    targets: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        parts = pathlib.PurePosixPath(source.path).parts
        if parts[0] == "Sources" and source.suffix == ".swift":
            targets[parts[1]].append(source)
    for target, files in targets.items():
        graph = needs(files)
        left = dict(allowed.get(target, {}))
        for what, one in {"folders": folders(graph), "files": graph}.items():
            for group in groups(one):
                names = " ".join(sorted(map(stem, group)))
                if what == "files" and left.pop(names, None):
                    continue
                rule = f"circular dependency of {len(group)} {what}: {names}"
                yield Complaint(group[0], 1, rule)
        for names in left:
            yield Complaint(files[0].path, 1, f"the list of circles has one that is none: {names}")


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
