"""Tables: every figure next to the floor's, and every target with its result."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Cell, Results
from bench.rows import (
    CPU,
    FACES,
    IDLE,
    P50,
    P99,
    PEAK,
    REQUESTS,
    ROWS,
    TARGETS,
    WALL,
    Row,
    Target,
)

#: Title, metric, rows of one table.
TABLES = (
    ("Receive flood, CPU ns per message", CPU, ("receive-64", "receive-256-json",
     "receive-256-unicode", "receive-4k", "receive-64k", "receive-1m")),
    ("Event stream, CPU ns per event", CPU, ("events-228", "events-4k", "events-tick")),
    ("Pusher, CPU ns per event", CPU, ("pusher", "pusher-json")),
    ("Meteor, CPU ns per document or change", CPU, ("ddp-load", "ddp-changes", "ddp-stay-10k",
     "ddp-stay-100k", "ddp-move-10k", "ddp-move-100k")),
    ("Requests, CPU ns each", CPU, ("rest-1", "rest-16")),
    ("permessage-deflate flood, CPU ns per message", CPU, ("deflate-270-kept",
     "deflate-270-reset", "deflate-4k-kept", "deflate-4k-reset")),
    ("Send, CPU ns per message", CPU, ("send-64", "send-4k", "send-1m")),
    ("Echo and connect, CPU ns per round trip or connection", CPU, ("echo-64", "connect",
     "connect-tls")),
)  # fmt: skip

#: Title, rows of one table of messages per second.
RATES = (
    ("Requests a second", ("rest-1", "rest-16")),
    ("Meteor, documents or changes a second", ("ddp-load", "ddp-changes")),
)


@dataclass(frozen=True)
class Verdict:
    target: Target
    #: The ratio to the reference, or the value itself.
    measured: float | None

    @property
    def word(self) -> str:
        if self.measured is None:
            return "not measured"
        # Limits have two decimal places, and so do the figures.
        return "reached" if round(self.measured, 2) <= self.target.limit else "missed"

    @property
    def wanted(self) -> str:
        if self.target.references:
            return f"≤ {self.target.limit:g} × {self.target.reference_text}"
        return f"≤ {self.target.limit:,.0f}"

    @property
    def got(self) -> str:
        if self.measured is None:
            return "–"
        return f"{self.measured:.2f} ×" if self.target.references else f"{self.measured:,.0f}"


FLOORS = tuple(face.name for face in FACES if face.family == "floor")


def best(cells: dict[str, Cell], faces: tuple[str, ...], metric: str) -> float | None:
    values = [cells[face].value(metric) for face in faces if face in cells]
    present = [value for value in values if value is not None]
    return min(present) if present else None


def verdicts(results: Results) -> list[Verdict]:
    found = []
    for target in TARGETS:
        cells = results.get(target.row, {})
        value = best(cells, target.faces, target.metric)
        if value is not None and target.references:
            reference = best(cells, target.references, target.metric)
            value = value / reference if reference else None
        found.append(Verdict(target, value))
    return found


def targets_table(results: Results) -> list[str]:
    lines = ["| row | target | measured | verdict |", "|---|---|---|---|"]
    for verdict in verdicts(results):
        word = f"**{verdict.word}**" if verdict.word == "missed" else verdict.word
        lines.append(f"| {verdict.target.title} | {verdict.wanted} | {verdict.got} | {word} |")
    return lines


def number(value: float) -> str:
    if value < 100:
        return f"{value:.1f}"
    return f"{value:,.0f}"


def figure(cells: dict[str, Cell], face: str, metric: str, *, ratio: bool = True) -> str:
    value = cells[face].value(metric) if face in cells else None
    if value is None:
        return ""
    floor = best(cells, FLOORS, metric) if ratio else None
    # Two significant figures, so that 1.04 and 1.06 differ, but not 471.13.
    times = value / floor if floor else 0
    return number(value) + (f" ({times:.{2 if times < 10 else 0}f})" if times else "")


def table(title: str, columns: list[tuple[str, list[str]]]) -> list[str]:
    """One row per face, one column per row of the benchmark; faces without figures are left out."""
    lines = [f"### {title}", "", "| | " + " | ".join(name for name, _ in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for index, face in enumerate(FACES):
        values = [column[index] for _, column in columns]
        if any(values):
            lines.append(f"| {face.label} | " + " | ".join(values) + " |")
    return [*lines, ""] if len(lines) > 4 else []


def tables(results: Results, rows: list[Row]) -> list[str]:
    titles = {row.name: row.title for row in rows}
    lines: list[str] = []
    for title, metric, names in TABLES:
        columns = [
            (titles[name], [figure(results[name], face.name, metric) for face in FACES])
            for name in names
            if name in results
        ]
        if columns:
            lines += table(title, columns)
    for title, names in RATES:
        rates = [
            (titles[name], [_rate(results[name], face.name) for face in FACES])
            for name in names
            if name in results
        ]
        lines += table(title, rates) if rates else []
    lines += _resubscribing(results)
    echo, flood = results.get("echo-64", {}), results.get("receive-1m", {})
    others = [
        ("echo p50, ns", [figure(echo, face.name, P50) for face in FACES]),
        ("echo p99, ns", [figure(echo, face.name, P99) for face in FACES]),
        ("peak RSS, 1 MiB messages, KiB", _column(flood, PEAK)),
        ("peak RSS, 100,000 documents, KiB", _column(results.get("ddp-load", {}), PEAK)),
        ("idle, bytes each", _column(results.get("idle", {}), IDLE)),
        ("idle after deflate, bytes each", _column(results.get("idle-deflate", {}), IDLE)),
    ]
    return lines + table("Latency and memory", others)


def _resubscribing(results: Results) -> list[str]:
    """One row for each way to authorize, because a single face is measured."""
    found = []
    for row in ROWS:
        cell = results.get(row.name, {}).get("c-pusher")
        if not row.mode.startswith("resubscribe") or cell is None or not cell.samples:
            continue
        cpu, wall = (cell.value(metric) or 0 for metric in (CPU, WALL))
        requests = cell.value(REQUESTS) or 0
        figures = f"{cpu * row.count / 1e6:.1f} | {wall * row.count / 1e6:.1f} | {requests:.0f}"
        found.append(f"| {row.title} | {figures} |")
    if not found:
        return []
    head = "| | CPU, ms | time, ms | requests |"
    return ["### Pusher, after the loss of a connection, through C", "", head, "|---|---|---|---|",
            *found, ""]  # fmt: skip


def _rate(cells: dict[str, Cell], face: str) -> str:
    nanoseconds = cells[face].value(WALL) if face in cells else None
    return number(1e9 / nanoseconds) if nanoseconds else ""


def _column(cells: dict[str, Cell], metric: str) -> list[str]:
    return [figure(cells, face.name, metric, ratio=False) for face in FACES]


def absent(results: Results) -> list[str]:
    """Why figures are missing, each reason once."""
    reasons = {cell.reason: None for cells in results.values() for cell in cells.values()}
    return [reason for reason in reasons if reason]


def widest_spread(results: Results) -> str:
    """How precise the figures are: the range of the five runs of a cell."""
    spreads = sorted(
        cell.spread()
        for cells in results.values()
        for cell in cells.values()
        if len(cell.samples) > 1
    )
    if not spreads:
        return "one run each"
    middle, high = spreads[len(spreads) // 2], spreads[len(spreads) * 9 // 10]
    return f"{middle:.0%} in the middle, below {high:.0%} for nine cells in ten"


METHOD = """\
## Method

- A neutral server ([server](server), one epoll thread) sends frames that were built before the
  measurement, in writes of up to 1 MiB. It runs on core 0, every client on core 1.
- A client connects, sends a message to begin, and is measured from there to the last message: user
  and system CPU time of the whole process by `getrusage`, divided by the messages. Only CPU time is
  compared, because messages per second depend on how two cores wake each other. They are shown for
  requests, where a client with more concurrent requests has fewer wake-ups.
- Requests use kept HTTP/1.1 connections; each is a new request with its own URL and headers. The
  floor is libcurl's multi interface on epoll: handles that were created before, of which only the
  URL is set, a callback that counts the response's bytes, and librealtime's headers.
- The number of messages is chosen for each client so that a run takes about {seconds} s. The
  clients of a row take turns, {repetitions} times in all; the median counts. Rows of idle
  connections run once with 10,000 of them.
- The floor is a blocking socket, a header parser and an AVX2 check of text. For deflate it also
  inflates with zlib, for sends it writes masked frames in pieces of 64 KiB, and for connects it
  sends one request by hand. The second floor has SO_RCVBUF at 256 KiB and a buffer of 64 KiB, which
  keeps the bytes in the processor's cache. Ratios, in parentheses, refer to the better of the two
  in the same run.
- The floor of Pusher's events is a header parser and librealtime's own JSON reader; the README of
  this folder says what each client does with the data. Resubscribing is measured from the new
  attempt to the last confirmation.
- The floor of Meteor's documents is the same, and keeps none. The number of documents and changes
  is fixed. Each change of the rows `ddp-stay` and `ddp-move` is applied at once.
- Every client reports messages, bytes and, in C, C++ and Swift, the sum of each message's last
  byte; the server checks what clients send. A client with a wrong report has no figure.
- Idle bytes are the growth of the process after its first connection, which includes the one-time
  setup. They do not include the kernel's memory for a socket.
- All clients check that text is UTF-8: libraries that deliver strings do so by creating them.
  Python's libraries run on uvloop.
"""


def markdown(
    results: Results, rows: list[Row], facts: dict[str, str], repetitions: int, seconds: float
) -> str:
    lines = ["# Results", "", "Written by `make bench`; not edited by hand.", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- spread of the runs' CPU time: {widest_spread(results)}", ""]
    lines += ["![Chart](results.svg)", "", "## Targets", ""]
    lines += ["Through the C interface unless another is named.", ""]
    lines += [*targets_table(results), "", "## Figures", ""]
    lines += ["In parentheses: times the better floor.", "", *tables(results, rows)]
    if reasons := absent(results):
        lines += ["## Not measured", "", *[f"- {reason}" for reason in reasons], ""]
    lines += METHOD.format(repetitions=repetitions, seconds=seconds).splitlines()
    return "\n".join(_wrapped(line) for line in lines) + "\n"


def _wrapped(line: str) -> str:
    """Wraps list items of any length at 100 columns."""
    if len(line) <= 100 or line.startswith("|"):
        return line
    words, out = line.split(" "), ""
    lines: list[str] = []
    for word in words:
        if len(out) + len(word) + 1 > 100:
            lines.append(out)
            out = " "
        out = f"{out} {word}" if out else word
    return "\n".join([*lines, out])
