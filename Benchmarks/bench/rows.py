"""The rows, the faces that are measured, and the targets."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One kind of work, done by every face that can do it."""

    name: str
    title: str
    #: Faces with the same mode do the same; ``Face.modes`` translates it.
    mode: str
    #: ``{n}`` is the number of messages.
    path: str
    #: The number of messages in the first calibration run.
    first: int
    size: int = 0
    tls: bool = False
    #: 0 means calibrated.
    count: int = 0
    #: The count for Python's clients, if they would take minutes otherwise.
    python_count: int = 0

    @property
    def is_memory(self) -> bool:
        """Whether the row is about the memory of connections, and so runs only once."""
        return self.mode in ("idle", "greet")

    @property
    def is_answered(self) -> bool:
        """Whether the client sends requests, each with a response."""
        return self.path.startswith("/answer/")

    @property
    def is_http(self) -> bool:
        is_events = self.mode in ("events", "events-tick")
        return is_events or self.is_answered or self.path.startswith("/app/")

    @property
    def is_ddp(self) -> bool:
        """Whether the server is a Meteor server."""
        return self.path.startswith("/ddp-")

    @property
    def flood(self) -> str:
        """The name of the flood at the server; "" for other rows."""
        if self.path.startswith("/app/flood-"):
            return self.path.split("-")[1]
        if self.is_ddp:
            return self.path.removeprefix("/").removesuffix("-{n}/websocket")
        parts = self.path.split("/")
        return parts[2] if parts[1] == "flood" else "json270-kept" if parts[1] == "greet" else ""


def _receive(name: str, title: str, kind: str, first: int) -> Row:
    return Row(name, title, "receive", f"/flood/{kind}/{{n}}", first)


def _deflate(name: str, title: str, kind: str, first: int) -> Row:
    return Row(name, title, "deflate", f"/flood/{kind}/{{n}}", first)


def _events(name: str, title: str, kind: str, first: int) -> Row:
    return Row(name, title, "events", f"/flood/{kind}/{{n}}", first)


def _rest(parallel: int, title: str) -> Row:
    return Row(f"rest-{parallel}", title, f"rest-{parallel}", "/answer/256", 2000, 256)


def _pusher(name: str, title: str) -> Row:
    return Row(name, title, name, "/app/flood-price-{n}", 20_000)


def _resubscribe(name: str, title: str) -> Row:
    return Row(name, title, name, "/app/channels-{n}", 0, count=CHANNELS)


def _ddp(name: str, title: str, mode: str, data: str, count: int, python_count: int = 0) -> Row:
    path = f"/ddp-{data}-{{n}}/websocket"
    return Row(name, title, mode, path, 0, count=count, python_count=python_count)


CHANNELS = 1000
IDLE_CONNECTIONS = 10_000

ROWS = (
    _receive("receive-64", "receive 64 B text", "text64", 50_000),
    _receive("receive-256-json", "receive 256 B JSON text", "json256", 50_000),
    _receive("receive-256-unicode", "receive 256 B non-ASCII text", "unicode256", 50_000),
    _receive("receive-4k", "receive 4 KiB binary", "bin4k", 10_000),
    _receive("receive-64k", "receive 64 KiB binary", "bin64k", 1000),
    _receive("receive-1m", "receive 1 MiB binary", "bin1m", 100),
    _deflate("deflate-270-kept", "inflate 270 B JSON, context kept", "json270-kept", 20_000),
    _deflate("deflate-270-reset", "inflate 270 B JSON, no context", "json270-reset", 10_000),
    _deflate("deflate-4k-kept", "inflate 4 KiB JSON, context kept", "json4k-kept", 2000),
    _deflate("deflate-4k-reset", "inflate 4 KiB JSON, no context", "json4k-reset", 2000),
    Row("send-64", "send 64 B, pipelined", "send", "/sink/64/{n}", 20_000, 64),
    Row("send-4k", "send 4 KiB, pipelined", "send", "/sink/4096/{n}", 5000, 4096),
    Row("send-1m", "send 1 MiB, pipelined", "send", "/sink/1048576/{n}", 50, 1 << 20),
    Row("echo-64", "echo 64 B, one in flight", "echo", "/echo", 1000, 64),
    Row("connect", "connect and close", "connect", "/idle", 100),
    Row("connect-tls", "connect and close, TLS", "connect", "/idle", 50, tls=True),
    _events("events-228", "events of 228 B", "event228", 20_000),
    _events("events-4k", "events of 4 KiB", "event4k", 5000),
    Row("events-tick", "events of 64 B with a type", "events-tick", "/flood/tick64/{n}", 20_000),
    _rest(1, "GET of 256 B, one at a time"),
    _rest(16, "GET of 256 B, 16 at a time"),
    _pusher("pusher", "Pusher events, data as text"),
    _pusher("pusher-json", "Pusher events, data read as JSON"),
    _resubscribe("resubscribe", "1,000 channels again"),
    _resubscribe("resubscribe-private", "1,000 private channels again"),
    _resubscribe("resubscribe-batch", "1,000 private channels again, 100 a request"),
    _ddp("ddp-load", "load 100,000 documents", "ddp-load", "load", 100_000),
    _ddp("ddp-changes", "1,000,000 field changes", "ddp-changes", "stay-10000", 1_000_000,
         100_000),
    _ddp("ddp-stay-10k", "place kept, 10,000 sorted", "ddp-each", "stay-10000", 100_000, 20_000),
    _ddp("ddp-stay-100k", "place kept, 100,000 sorted", "ddp-each", "stay-100000", 100_000,
         20_000),
    _ddp("ddp-move-10k", "place changed, 10,000 sorted", "ddp-each", "move-10000", 100_000,
         20_000),
    _ddp("ddp-move-100k", "place changed, 100,000 sorted", "ddp-each", "move-100000", 100_000,
         20_000),
    Row("idle", "idle connections", "idle", "/idle", 0, count=IDLE_CONNECTIONS),
    Row("idle-deflate", "idle after a compressed message", "greet", "/greet", 0,
        count=IDLE_CONNECTIONS),
)  # fmt: skip


@dataclass(frozen=True)
class Face:
    """One way to use one library."""

    name: str
    label: str
    family: str
    #: The program, relative to the build folder; Python's clients name their peer.
    program: str
    #: Maps row modes to client modes.
    modes: dict[str, str] = field(hash=False)

    @property
    def is_python(self) -> bool:
        return self.program.startswith("python:")


def _same(*modes: str, **others: str) -> dict[str, str]:
    return {mode: mode for mode in modes} | others


_NATIVE = ("receive", "send", "echo", "connect", "idle")
_AWAITED = _same("deflate", "send", "echo", "connect", "idle", "greet", receive="receive-iter")
_REST = _same("rest-1", "rest-16")
_DDP = _same("ddp-load", "ddp-changes", "ddp-each")
_SWIFT = "swift/release/bench-librealtime"

FACES = (
    Face("floor", "floor", "floor", "bin/bench-floor",
         _same("receive", "deflate", "send", "echo", "connect", "idle")),
    Face("floor-events", "floor, libcurl and memchr", "floor", "bin/bench-floor-events",
         _same("events", "events-tick")),
    Face("c-events", "librealtime, C EventSource", "ours", "bin/bench-librealtime-events",
         _same("events", "events-tick")),
    Face("python-events", "librealtime, Python EventSource", "ours", "python:librealtime",
         _same("events")),
    Face("httpx-sse", "httpx-sse", "peer", "python:httpx-sse", _same("events")),
    Face("aiohttp-sse", "aiohttp-sse-client2", "peer", "python:aiohttp-sse-client2",
         _same("events")),
    Face("floor-rest", "floor, libcurl's multi interface", "floor", "bin/bench-floor-rest",
         _REST),
    Face("c-rest", "librealtime, C REST", "ours", "bin/bench-librealtime-rest", _REST),
    Face("swift-rest", "librealtime, Swift REST", "ours", _SWIFT, _REST),
    Face("python-rest", "librealtime, Python RESTClient", "ours", "python:librealtime", _REST),
    Face("httpx", "httpx", "peer", "python:httpx", _REST),
    Face("aiohttp-rest", "aiohttp", "peer", "python:aiohttp", _REST),
    Face("floor-pusher", "floor, the library's JSON reader", "floor", "bin/bench-floor-pusher",
         _same("pusher", "pusher-json")),
    Face("c-pusher", "librealtime, C bind", "ours", "bin/bench-librealtime-pusher",
         _same("pusher", "pusher-json", "resubscribe", "resubscribe-private",
               "resubscribe-batch")),
    Face("c-pusher-batch", "librealtime, C batch", "ours", "bin/bench-librealtime-pusher",
         {"pusher": "pusher-batch"}),
    Face("swift-pusher", "librealtime, Swift bind, main actor", "ours", _SWIFT,
         _same("pusher", "pusher-json")),
    Face("swift-pusher-loop", "librealtime, Swift bind, loop's thread", "ours", _SWIFT,
         {"pusher": "pusher-loop"}),
    Face("swift-pusher-async", "librealtime, Swift for await", "ours", _SWIFT,
         {"pusher": "pusher-async"}),
    Face("python-pusher", "librealtime, Python bind", "ours", "python:librealtime",
         _same("pusher", "pusher-json")),
    Face("pysher", "pysher", "peer", "python:pysher", _same("pusher", "pusher-json")),
    Face("floor-ddp", "floor, the library's JSON reader", "floor", "bin/bench-floor-ddp",
         {"ddp-load": "ddp-load", "ddp-changes": "ddp-changes", "ddp-each": "ddp-changes"}),
    Face("c-ddp", "librealtime, C DDP", "ours", "bin/bench-librealtime-ddp", _DDP),
    Face("c-ddp-live", "librealtime, C DDP, live query open", "ours",
         "bin/bench-librealtime-ddp", {"ddp-load": "ddp-load-live"}),
    Face("python-ddpclient", "librealtime, Python DDPClient", "ours", "python:librealtime", _DDP),
    Face("ddp-asyncio", "ddp-asyncio, no live queries", "peer", "python:ddp-asyncio", _DDP),
    Face("python-meteor", "python-meteor, no live queries", "peer", "python:python-meteor", _DDP),
    Face("python-ddp", "python-ddp, keeps no documents", "peer", "python:python-ddp", _DDP),
    Face("floor-rcvbuf", "floor, SO_RCVBUF 256 KiB", "floor", "bin/bench-floor",
         {"receive": "receive-rcvbuf"}),
    Face("floor-each", "floor, one write a message", "reference", "bin/bench-floor",
         {"send": "send-each"}),
    Face("c", "librealtime, C callback", "ours", "bin/bench-librealtime",
         _same(*_NATIVE, "deflate", "greet")),
    Face("c-batch", "librealtime, C batch", "ours", "bin/bench-librealtime",
         {"receive": "receive-batch"}),
    Face("c-rcvbuf", "librealtime, C, SO_RCVBUF 256 KiB", "ours", "bin/bench-librealtime",
         {"receive": "receive-rcvbuf"}),
    Face("swift", "librealtime, Swift handlers", "ours", _SWIFT,
         _same("receive", "deflate", "echo")),
    Face("swift-async", "librealtime, Swift for await", "ours", _SWIFT,
         {"receive": "receive-async", "send": "send-async"}),
    Face("swift-main", "librealtime, Swift for await, main actor", "ours", _SWIFT,
         {"receive": "receive-main"}),
    Face("libwebsockets", "libwebsockets", "peer", "bin/bench-libwebsockets",
         _same(*_NATIVE, "deflate", "greet")),
    Face("beast", "Boost.Beast", "peer", "bin/bench-beast", _same(*_NATIVE, "deflate", "greet")),
    Face("wslay", "wslay", "peer", "bin/bench-wslay", _same(*_NATIVE)),
    Face("nio", "swift-nio", "peer", "nio/release/bench-nio", _same(*_NATIVE)),
    Face("python", "librealtime, Python callback", "ours", "python:librealtime",
         _same("receive")),
    Face("python-batch", "librealtime, Python batch", "ours", "python:librealtime",
         {"receive": "receive-batch"}),
    Face("python-iter", "librealtime, Python async for", "ours", "python:librealtime", _AWAITED),
    Face("picows", "picows, callback", "peer", "python:picows", _same(*_NATIVE)),
    Face("picows-iter", "picows' websockets, async for", "peer", "python:picows.websockets",
         _AWAITED),
    Face("aiohttp", "aiohttp", "peer", "python:aiohttp", _AWAITED),
    Face("websockets", "websockets", "peer", "python:websockets", _AWAITED),
)  # fmt: skip

#: Figures of a run; lower is better.
CPU, P50, P99, IDLE, PEAK = "cpu_ns", "p50_ns", "p99_ns", "idle_bytes", "peak_rss_kib"
#: HTTP requests in one run.
REQUESTS = "requests"
#: Also a figure of a run; with the number of messages it gives the messages per second.
WALL = "wall_ns"


@dataclass(frozen=True)
class Target:
    """``value(face) / value(reference) <= limit``; without a reference ``value <= limit``."""

    title: str
    row: str
    metric: str
    limit: float
    #: The best face that was measured counts.
    faces: tuple[str, ...] = ("c",)
    references: tuple[str, ...] = ()
    reference_text: str = ""


_FLOORS = ("floor", "floor-rcvbuf")
_PYTHON = ("python", "python-batch")


def _floor(title: str, row: str, limit: float, metric: str = CPU) -> Target:
    return Target(title, row, metric, limit, references=_FLOORS, reference_text="floor")


TARGETS = (
    _floor("receive 64 B text", "receive-64", 1.5),
    _floor("receive 256 B JSON", "receive-256-json", 1.2),
    _floor("receive 256 B non-ASCII", "receive-256-unicode", 1.2),
    Target("receive 4 KiB", "receive-4k", CPU, 1.1, references=("floor",),
           reference_text="floor at the same SO_RCVBUF"),
    Target("receive 4 KiB, SO_RCVBUF 256 KiB", "receive-4k", CPU, 1.1, ("c-rcvbuf",),
           ("floor-rcvbuf",), "floor at the same SO_RCVBUF"),
    Target("receive 4 KiB", "receive-4k", CPU, 1.0, references=("wslay",),
           reference_text="wslay"),
    _floor("receive 64 KiB", "receive-64k", 1.1),
    _floor("receive 1 MiB", "receive-1m", 1.1),
    _floor("inflate 270 B, context kept", "deflate-270-kept", 1.12),
    _floor("inflate 4 KiB, context kept", "deflate-4k-kept", 1.04),
    _floor("inflate 270 B, no context", "deflate-270-reset", 1.05),
    _floor("inflate 4 KiB, no context", "deflate-4k-reset", 1.05),
    _floor("send 64 B", "send-64", 2.5),
    _floor("send 4 KiB", "send-4k", 1.5),
    _floor("send 1 MiB", "send-1m", 1.05),
    _floor("echo 64 B, CPU", "echo-64", 1.08),
    _floor("echo 64 B, p50", "echo-64", 1.05, P50),
    _floor("echo 64 B, p99", "echo-64", 1.05, P99),
    _floor("connect and close", "connect", 2.0),
    _floor("connect and close, TLS", "connect-tls", 1.1),
    Target("events of 228 B", "events-228", CPU, 2.0, ("c-events",), ("floor-events",),
           "libcurl and memchr"),
    Target("events of 4 KiB", "events-4k", CPU, 2.0, ("c-events",), ("floor-events",),
           "libcurl and memchr"),
    Target("events of 64 B with a type", "events-tick", CPU, 2.0, ("c-events",),
           ("floor-events",), "libcurl and memchr"),
    Target("GET, one at a time", "rest-1", CPU, 1.3, ("c-rest",), ("floor-rest",),
           "libcurl's multi interface"),
    Target("GET, 16 at a time", "rest-16", CPU, 1.3, ("c-rest",), ("floor-rest",),
           "libcurl's multi interface"),
    Target("Pusher events, data as text", "pusher", CPU, 2.0, ("c-pusher",), ("floor-pusher",),
           "the library's JSON reader"),
    Target("Pusher events, data read as JSON", "pusher-json", CPU, 2.0, ("c-pusher",),
           ("floor-pusher",), "the library's JSON reader"),
    Target("Python, Pusher events, data as text", "pusher", CPU, 0.2, ("python-pusher",),
           ("pysher",), "pysher"),
    Target("Python, Pusher events, data read as JSON", "pusher-json", CPU, 0.2,
           ("python-pusher",), ("pysher",), "pysher"),
    Target("load 100,000 documents", "ddp-load", CPU, 4.0, ("c-ddp",), ("floor-ddp",),
           "the library's JSON reader"),
    Target("idle connection, bytes", "idle", IDLE, 1536),
    Target("idle after a compressed message, bytes", "idle-deflate", IDLE, 45 * 1024),
    Target("peak RSS with 1 MiB messages, KiB", "receive-1m", PEAK, 12 * 1024),
    Target("Swift for await, 64 B, ns", "receive-64", CPU, 150, ("swift-async",)),
    Target("Swift for await on the main actor, 64 B, ns", "receive-64", CPU, 150,
           ("swift-main",)),
    Target("Python callback, 64 B", "receive-64", CPU, 0.6, _PYTHON, ("picows",),
           "picows' callback"),
    Target("Python callback, 256 B", "receive-256-json", CPU, 0.6, _PYTHON, ("picows",),
           "picows' callback"),
    Target("Python async for, 64 B", "receive-64", CPU, 0.85, ("python-iter",), ("picows-iter",),
           "picows' look-alike"),
    Target("Python async for, 256 B", "receive-256-json", CPU, 0.85, ("python-iter",),
           ("picows-iter",), "picows' look-alike"),
)  # fmt: skip
