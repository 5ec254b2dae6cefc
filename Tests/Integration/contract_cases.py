"""The cases of the contract tests for event stream clients, as tables: what the server sends, and
the events that the client reports. contract_service_tests.py has the cases that need more."""

from dataclasses import dataclass, field

BOM = b"\xef\xbb\xbf"
#: Large enough to be split in any buffer.
LARGE = (7_000_000, 14_000_000)


def event(data: str, type: str = "message", id: str = "") -> dict[str, object]:
    return {"kind": "event", "event": {"type": type, "data": data, "id": id}}


def comment(text: str) -> dict[str, object]:
    return {"kind": "comment", "comment": text}


@dataclass(frozen=True)
class Case:
    """Chunks to send, and all reports that must follow, in order."""

    name: str
    chunks: list[bytes]
    told: list[dict[str, object]] = field(default_factory=list)


def case(name: str, chunks: str | bytes | list[str | bytes], *told: dict[str, object]) -> Case:
    pieces = chunks if isinstance(chunks, list) else [chunks]
    encoded = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return Case(name, encoded, list(told))


def bytewise(text: str) -> list[str | bytes]:
    return [bytes([byte]) for byte in text.encode()]


def large(size: int) -> Case:
    data = "0123456789" * (size // 10)
    return case(f"an event of {size // 1_000_000} MB", f"data: {data}\n\n", event(data))


BURST = [f"message {number}" for number in range(100)]

BASIC = [
    case("one line in one chunk", "data: Hi\n\n", event("Hi")),
    case("one line in two chunks", ["data: H", "i\n\n"], event("Hi")),
    case(
        "two events over three chunks",
        ["data: He", "llo\n\ndata: Wor", "ld\n\n"],
        event("Hello"),
        event("World"),
    ),
    *(large(size) for size in LARGE),
    case("two events in one chunk", "data: A\n\ndata: B\n\n", event("A"), event("B")),
    case("two lines", "data: A\ndata: B\n\n", event("A\nB")),
    case("empty data", "data:\n\n", event("")),
    case("a type", "event: hello\ndata: x\n\n", event("x", "hello")),
    case("the default type", "data: x\n\n", event("x", "message")),
    case("an id", "id: abc\ndata: x\n\n", event("x", id="abc")),
    case("type and id", "event: hello\nid: abc\ndata: x\n\n", event("x", "hello", "abc")),
    case("an id with NUL is ignored", "id: a\0bc\ndata: x\n\n", event("x")),
    case(
        "an id stays",
        "id: abc\ndata: x\n\ndata: y\n\n",
        event("x", id="abc"),
        event("y", id="abc"),
    ),
    case(
        "an id is emptied",
        "id: abc\ndata: x\n\nid\ndata: y\n\n",
        event("x", id="abc"),
        event("y"),
    ),
    case("fields in reverse", "data: x\nid: abc\nevent: hello\n\n", event("x", "hello", "abc")),
    case("an unknown field", "event: hello\ncolour: red\ndata: x\n\n", event("x", "hello")),
    case("no space", "event:hello\ndata:x\n\n", event("x", "hello")),
    case("a space more", "event:  hello\ndata:  x\n\n", event(" x", " hello")),
    case("no colon", "data\ndata: x\ndata\n\n", event("\nx\n")),
    case("several bytes a character", "data: €豆腐\n\n", event("€豆腐")),
    case("several bytes a character, one by one", bytewise("data: €豆腐\n\n"), event("€豆腐")),
    case(
        "a hundred at once",
        "".join(f"data: {text}\n\n" for text in BURST),
        *(event(text) for text in BURST),
    ),
]

BYTE_ORDER_MARK = [
    case("is taken away", BOM + b"data: x\n\n", event("x")),
    case(
        "before type and id",
        BOM + b"event: hello\nid: abc\ndata: x\n\n",
        event("x", "hello", "abc"),
    ),
    case("before several", BOM + b"data: x\n\ndata: y\n\n", event("x"), event("y")),
    case("before several lines", BOM + b"data: x\ndata: y\n\n", event("x\ny")),
    case("before a comment", BOM + b":hi\ndata: x\n\n", comment("hi"), event("x")),
    case("before empty data", BOM + b"data:\n\n", event("")),
    case("split in two and one", [BOM[:2], BOM[2:] + b"data: x\n\n"], event("x")),
    case("split in each byte", [BOM[:1], BOM[1:2], BOM[2:], "data: x\n\n"], event("x")),
    case(
        "later on it is data",
        ["data: x\n\n", b"data: " + BOM + b"y\n\n"],
        event("x"),
        event("\ufeffy"),
    ),
    case("the second is data", BOM + b"data: " + BOM + b"x\n\n", event("\ufeffx")),
    case("none", "data: x\n\n", event("x")),
]

COMMENTS = [
    case("one", ":Hello\n", comment("Hello")),
    case("two", [":Hello\n", ":World\n"], comment("Hello"), comment("World")),
    case("before an event", [":Hello\n", "data: x\n\n"], comment("Hello"), event("x")),
    case("after an event", ["data: x\n\n", ":Hello\n"], event("x"), comment("Hello")),
]

ENDS = {"LF": "\n", "CR LF": "\r\n", "CR": "\r"}
SHAPES = {
    "one line": ("data: one||", [event("one")]),
    "one line, then two": (
        "data: one||data: two|data: lines||",
        [event("one"), event("two\nlines")],
    ),
    "an empty line first": ("data:|data: b|data: c||", [event("\nb\nc")]),
    "an empty line between": ("data: a|data:|data: c||", [event("a\n\nc")]),
    "a blank line more": ("data: a|||data: b||", [event("a"), event("b")]),
    "two blank lines more": ("data: a||||data: b||", [event("a"), event("b")]),
}


def line_ends() -> list[Case]:
    cases = []
    for end_name, end in ENDS.items():
        for shape, (pattern, told) in SHAPES.items():
            stream = pattern.replace("|", end).encode()
            for size, how in ((len(stream), "whole"), (1, "by 1 byte"), (2, "by 2 bytes")):
                chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
                cases.append(Case(f"{end_name}, {shape}, {how}", chunks, told))
    chunks = [b"data: A\r", b"\ndata: B\r", b"\n\r\ndata: C\r", b"\n", b"\r", b"\n"]
    cases.append(Case("CR LF with CR at the ends of chunks", chunks, [event("A\nB"), event("C")]))
    return cases


TABLES = {
    "basic parsing": BASIC,
    "byte order mark": BYTE_ORDER_MARK,
    "comments": COMMENTS,
    "line ends": line_ends(),
}
