"""The chart of the README: CPU time per message as a multiple of the floor, on a log scale."""

from __future__ import annotations

import math
from html import escape

from bench.measure import Results
from bench.report import best, number
from bench.rows import CPU, IDLE

#: Title, row, metric, faces.
_CORE = ("c", "libwebsockets", "beast", "wslay", "nio")
PANELS = (
    ("Receive 64 B text", "receive-64", CPU, (*_CORE, "picows", "websockets")),
    ("Receive 256 B JSON text", "receive-256-json", CPU, (*_CORE, "picows", "websockets")),
    ("Receive 4 KiB", "receive-4k", CPU, _CORE),
    ("Inflate 270 B JSON", "deflate-270-kept", CPU, ("c", "libwebsockets", "beast", "websockets")),
    ("Send 64 B", "send-64", CPU, _CORE),
    ("10,000 idle connections", "idle", IDLE, _CORE),
    (
        "Events of 228 B, SSE",
        "events-228",
        CPU,
        ("c-events", "python-events", "httpx-sse", "aiohttp-sse"),
    ),
    ("Pusher events", "pusher", CPU, ("c-pusher", "python-pusher", "pysher")),
    (
        "Load Meteor documents",
        "ddp-load",
        CPU,
        ("c-ddp", "python-ddpclient", "ddp-asyncio", "python-meteor"),
    ),
)
LABELS = {
    "c": "librealtime",
    "libwebsockets": "libwebsockets",
    "beast": "Boost.Beast",
    "wslay": "wslay",
    "nio": "swift-nio",
    "picows": "picows (Python)",
    "websockets": "websockets (Python)",
    "c-events": "librealtime",
    "python-events": "librealtime (Python)",
    "httpx-sse": "httpx-sse (Python)",
    "aiohttp-sse": "aiohttp (Python)",
    "c-pusher": "librealtime",
    "python-pusher": "librealtime (Python)",
    "pysher": "pysher (Python)",
    "c-ddp": "librealtime",
    "python-ddpclient": "librealtime (Python)",
    "ddp-asyncio": "ddp-asyncio (Python)",
    "python-meteor": "python-meteor (Python)",
}
#: The floors of rows that are not receive floods.
FLOORS = {"events-228": ("floor-events",), "pusher": ("floor-pusher",), "ddp-load": ("floor-ddp",)}

WIDTH, PANEL, BAR, STEP, NAMES, BARS = 900, 450, 14, 20, 140, 170

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 13px }
.note { fill: #57606a }
.peer { fill: #a8b3bf }
.ours { fill: #1f6feb }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9198a1 }
  .peer { fill: #56606b }
  .ours { fill: #4c8dff }
}
"""

Bar = tuple[str, float, str, bool]


def panel_bars(results: Results, row: str, metric: str, faces: tuple[str, ...]) -> list[Bar]:
    """Label, value, text and whether it is librealtime; the best first."""
    cells = results.get(row, {})
    floors = FLOORS.get(row, ("floor", "floor-rcvbuf"))
    floor = best(cells, floors, CPU) if metric == CPU else None
    bars: list[Bar] = []
    for face in faces:
        value = cells[face].value(metric) if face in cells else None
        if value is None:
            continue
        text = f"{number(value)} B" if metric == IDLE else f"{number(value)} ns"
        if floor:
            value /= floor
            text = f"{value:.{1 if value < 100 else 0}f} × · {text}"
        bars.append((LABELS[face], value, text, LABELS[face].startswith("librealtime")))
    return sorted(bars, key=lambda bar: bar[1])


def draw_panel(title: str, unit: str, bars: list[Bar], x: int, y: int) -> list[str]:
    # A little below the smallest value, so that it still has a bar.
    low = min(bar[1] for bar in bars) / 1.25
    high = max(bar[1] for bar in bars)
    scale = BARS / max(math.log(high / low), 0.1)
    parts = [
        f'<text class="title" x="{x}" y="{y}">{escape(title)}'
        f'<tspan class="note" font-weight="400" dx="6">— {escape(unit)}</tspan></text>'
    ]
    for index, (label, value, text, is_ours) in enumerate(bars):
        top = y + 12 + index * STEP
        width = max(3.0, math.log(value / low) * scale)
        kind = "ours" if is_ours else "peer"
        parts += [
            f'<text x="{x + NAMES - 8}" y="{top + 11}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="{kind}" x="{x + NAMES}" y="{top}" width="{width:.1f}" '
            f'height="{BAR}" rx="2"/>',
            f'<text class="note" x="{x + NAMES + width + 6:.1f}" y="{top + 11}">'
            f"{escape(text)}</text>",
        ]
    return parts


def svg(results: Results) -> str:
    parts: list[str] = []
    y = 24
    drawn = [
        (title, metric, bars)
        for title, row, metric, faces in PANELS
        if (bars := panel_bars(results, row, metric, faces))
    ]
    for index in range(0, len(drawn), 2):
        pair = drawn[index : index + 2]
        for column, (title, metric, bars) in enumerate(pair):
            unit = "user-space bytes each" if metric == IDLE else "× floor · CPU a message"
            parts += draw_panel(title, unit, bars, 10 + column * PANEL, y)
        y += 40 + STEP * max(len(bars) for _, _, bars in pair)
    note = (
        "Less is better. Logarithmic scale. Floors: recv, header parser and UTF-8 check; "
        "SSE: libcurl and memchr; Pusher and Meteor: frame and JSON parser."
    )
    parts.append(f'<text class="note" x="10" y="{y}">{escape(note)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 14}" '
        f'role="img" aria-label="librealtime beside its peers">'
        f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )
