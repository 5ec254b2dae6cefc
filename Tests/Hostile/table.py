"""Every case: which attack, against which transport, over which protocol, with which result."""

from __future__ import annotations

from cases import NEVER_MS, TIMEOUT, Case, Result

HTTP = ("events", "poll", "rest")
TOO_LARGE = ("RT_ERROR_TOO_LARGE",)
PROTOCOL = ("RT_ERROR_PROTOCOL",)
LOST = ("RT_ERROR_CONNECTION_LOST",)
#: Whichever limit is reached first.
LIMITED = TOO_LARGE + PROTOCOL + TIMEOUT + LOST
REDIRECT = ("RT_ERROR_REDIRECT",)

MIB = 1 << 20

CASES: list[Case] = []


#: The attacks that the Python client faces, too, and their transports in `make test`.
PYTHON: dict[str, tuple[str, ...]] = {
    "head-line": ("rest",),
    "interim": (),
    "slow-head": ("events",),
    "two-lengths": ("rest",),
    "cut-without-length": ("poll", "rest"),
    "trailers": ("events",),
    "redirects": (),
    "redirect-latin1": ("events", "rest"),
    "same-cursor": ("poll",),
    "changing-body": ("poll",),
    "retry-zero": ("events",),
    "empty-answers": (),
    "hangs-up": (),
    "refusals": ("rest",),
    "data-line": (),
    "small-events": ("events",),
    "many-parts": ("poll",),
    "gzip-bomb": ("rest",),
    "gzip-events": (),
    "gzip-members": ("poll",),
    "gzip-empty-blocks": (),
    "coding-unknown": ("rest",),
    "h2-empty-data": ("events",),
    "h2-padding": (),
    "h2-window-update": (),
    "h2-hpack-bomb": (),
    "h2-answers": ("poll",),
    "ws-small-messages": ("websocket",),
    "ws-pings": (),
    "ws-byte-fragments": (),
    "ws-bomb-15": ("websocket",),
    "ws-bomb-text-15": ("websocket",),
    "ws-bomb-endless": ("websocket",),
    "ws-after-close": (),
    "ws-head": ("websocket",),
}


def each(
    transports: tuple[str, ...],
    attack: str,
    short: tuple[str, ...] | None = None,
    **fields: object,
) -> None:
    """Adds a case for each transport. `short` has those that are part of `make test`; all if it is
    not given.

    An attack on code that all transports share needs only one of them there.
    """
    for transport in transports:
        fields["only_long"] = short is not None and transport not in short
        is_short = not fields["only_long"] and transport in PYTHON.get(attack, ())
        fields["python"] = "short" if is_short else "long" if attack in PYTHON else ""
        CASES.append(Case(transport, attack, **fields))  # type: ignore[arg-type]


REST = ("rest",)
EVENTS = ("events",)
POLL = ("poll",)
NONE: tuple[str, ...] = ()


def heads() -> None:
    """Endless heads, and invalid heads."""
    soon = 300
    for attack in ("head-fields", "head-line"):
        each(HTTP, attack, status=TOO_LARGE, within_ms=soon)
    for attack in ("head-fold", "status-line", "interim"):
        each(HTTP, attack, REST, status=TOO_LARGE, within_ms=soon)
    each(HTTP, "empty-lines", REST, status=TOO_LARGE + PROTOCOL, within_ms=soon)
    each(HTTP, "garbage", REST, status=TOO_LARGE + PROTOCOL, within_ms=soon)
    each(HTTP, "nul-in-head", status=PROTOCOL, within_ms=soon, quiet=True)
    each(("events", "rest"), "slow-head", status=TIMEOUT, quiet=True, seconds=2)
    # A server may hold a poll as long as it likes.
    each(POLL, "slow-head", cpu="all", quiet=True, seconds=2)
    each(("events", "rest"), "silent", status=TIMEOUT, quiet=True, seconds=2)


def lengths() -> None:
    """Item 7, and bodies that end too early."""
    for attack in ("two-lengths", "length-overflow", "length-negative"):
        each(HTTP, attack, status=PROTOCOL, quiet=True)
    each(HTTP, "cut-body", status=LOST, quiet=True)
    each(HTTP, "cut-chunks", status=LOST, quiet=True)
    each(("poll", "rest"), "endless-body", status=TOO_LARGE, seconds=4)
    each(REST, "slow-body", status=TIMEOUT, quiet=True, seconds=2)
    for over in ("tls1.2", "tls1.3"):
        each(("poll", "rest"), "cut-without-length", over=over, status=LOST, quiet=True)
        each(("poll", "rest"), "reset-body", over=over, status=LOST, quiet=True)


def chunks() -> None:
    each(HTTP, "trailers", status=TOO_LARGE, within_ms=300)
    each(HTTP, "trailer-line", POLL, status=TOO_LARGE, within_ms=300)
    each(REST, "trailers", over="tls", status=TOO_LARGE, within_ms=300)
    each(HTTP, "chunk-zeros", REST, status=PROTOCOL, within_ms=300)
    for attack in ("chunk-overflow", "chunk-negative", "chunk-0x"):
        each(HTTP, attack, status=PROTOCOL, within_ms=300, quiet=True)
    each(("rest", "poll"), "chunk-extension", REST, status=LIMITED, within_ms=1500, seconds=2)
    each(EVENTS, "chunk-extension", NONE, cpu="none")
    each(HTTP, "chunk-extensions", EVENTS, cpu="none")
    each(HTTP, "chunk-bytes", POLL, cpu="none")
    each(POLL, "trailers-in-pieces", cpu="all", requests_each=1, quiet=True)


def redirects() -> None:
    """Endless redirects, and items 22 and 23."""
    each(HTTP + ("websocket",), "redirects", status=REDIRECT, max_requests=45, quiet=True)
    each(HTTP + ("websocket",), "redirect-long", status=REDIRECT + TOO_LARGE, quiet=True)
    each(HTTP, "redirect-body", status=REDIRECT, max_requests=21)
    each(HTTP, "redirect-space", messages=1, quiet=True)
    each(HTTP, "redirect-latin1", messages=1, quiet=True)


def storms() -> None:
    """Items 4 and 5: how often a server is asked, whatever it answers."""
    for attack in ("same-cursor", "no-cursor", "not-modified", "no-content", "timeouts", "gone"):
        each(POLL, attack, cpu="all", max_requests=6, quiet=True, seconds=2)
    for cursor in (1, 2, 3):
        each(POLL, "same-cursor", options={"cursor": cursor}, max_requests=6, quiet=True)
    for attack in ("changing-body", "bodies-alternate"):
        each(POLL, attack, cpu="all", max_requests=30, quiet=True, seconds=2)
    each(POLL, "two-cursors", cpu="all", quiet=True, seconds=2)
    each(POLL, "cursors-vanish", cpu="all", quiet=True, seconds=2)
    for attack in ("retry-zero", "retry-zero-kept", "event-each", "empty-answers", "hangs-up"):
        each(EVENTS, attack, cpu="all", max_requests=12, quiet=True, seconds=2)
    each(EVENTS, "retry-huge", max_requests=2, messages=1, quiet=True)
    each(("events", "poll"), "resets", cpu="all", max_requests=12, quiet=True, seconds=2)
    each(POLL, "hangs-up", cpu="all", max_requests=12, quiet=True, seconds=2)
    each(REST, "refusals", options={"attempts": 10}, max_requests=10, quiet=True)
    each(HTTP, "refusals", max_requests=12, quiet=True, seconds=2)
    each(HTTP, "unauthorized", options={"credentials": 1}, max_requests=12, quiet=True)
    each(REST, "hangs-up", options={"attempts": 10}, max_requests=20, quiet=True)


def right_answers(result: Result) -> list[str]:
    """Bytes that a server sends after a response must not become the next response."""
    wrong = [o["text"] for o in result["outcomes"] if "wrong" in o["text"]]
    return [f"the second answer was taken: {wrong[0]}"] if wrong else []


def kept() -> None:
    """Bytes on a kept connection without a request."""
    for attack in ("idle-flood", "idle-drip", "idle-close"):
        each(REST, attack, status=("RT_OK",), quiet=attack != "idle-flood", seconds=2)
        each(POLL, attack, NONE, messages=1, cpu="all", quiet=attack != "idle-flood", seconds=2)
    each(REST, "h2-idle-flood", over="h2", status=("RT_OK",), seconds=2)
    two = {"requests": 2, "late": 1}
    both: dict[str, object] = {"also": right_answers, "outcomes": 2, "quiet": True}
    each(REST, "second-answer", options=two, **both)
    each(REST, "second-answer-later", options=two, **both)
    each(REST, "second-answer-later", over="tls", options=two, **both)
    pay = {**two, "method": "POST", "body": "pay"}
    each(REST, "second-answer-later", options=pay, messages=2, **both)
    each(HTTP, "switches", REST, status=LIMITED, seconds=2)
    every = (*HTTP, "websocket")
    each(every, "retry-after-huge", status=("RT_ERROR_HTTP_STATUS",), quiet=True)


def streams() -> None:
    """Event streams that follow the rules, and never end."""
    each(EVENTS, "data-line", status=TOO_LARGE, seconds=4)
    each(EVENTS, "data-lines", NONE, status=TOO_LARGE, long_seconds=12)
    each(EVENTS, "id-line", status=TOO_LARGE, seconds=3)
    each(EVENTS, "event-line", status=TOO_LARGE, seconds=3)
    each(EVENTS, "unknown-line", NONE, cpu="none")
    each(EVENTS, "comment-line", NONE, cpu="none")
    each(EVENTS, "comments", cpu="none", seconds=1)
    for attack in ("blank-lines", "carriage-returns", "ids", "retry-lines"):
        each(EVENTS, attack, NONE, cpu="none")
    each(EVENTS, "small-events", cpu="none", messages=1000, seconds=1)
    each(EVENTS, "types", NONE, cpu="none", messages=1000)
    each(POLL, "parts", status=LIMITED, cpu="none", options={"timeout": NEVER_MS}, seconds=4)
    each(POLL, "part-fields", status=LIMITED, cpu="none", options={"timeout": NEVER_MS}, seconds=4)
    each(POLL, "many-parts", cpu="none", messages=1, seconds=2)
    each(POLL, "cursor-huge", cpu="none", quiet=True)
    each(POLL, "held-poll", quiet=True)
    for attack in ("boundary-repeats", "boundary-lines", "boundary-long"):
        short = POLL if attack == "boundary-lines" else NONE
        each(POLL, attack, short, cpu="none", options={"timeout": NEVER_MS}, seconds=2)


def codings() -> None:
    """Items 3, 24 and 25."""
    large: dict[str, object] = {"options": {"timeout": NEVER_MS}, "seconds": 3.0}
    shorts = {"gzip-bomb": ("events", "rest"), "brotli-bomb": POLL}
    for attack in ("gzip-bomb", "deflate-bomb", "zstd-bomb", "brotli-bomb"):
        short = shorts.get(attack, NONE)
        # A stream of comments may continue forever.
        each(EVENTS, attack, short, cpu="none", seconds=1.5)
        each(("poll", "rest"), attack, short, status=TOO_LARGE, **large)
    # Decoders need not support windows above 8 MiB (RFC 8878 §3.1.1.1.2).
    each(HTTP, "zstd-window", EVENTS, status=PROTOCOL)
    each(EVENTS, "gzip-line", status=TOO_LARGE, seconds=3)
    each(EVENTS, "gzip-events", cpu="none", messages=1000)
    each(EVENTS, "gzip-twice", NONE, cpu="none")
    each(("poll", "rest"), "gzip-twice", REST, status=LIMITED, **large)
    each(HTTP, "transfer-gzip-bomb", EVENTS, cpu="none", seconds=2)
    each(HTTP, "gzip-many-times", NONE, status=TOO_LARGE + PROTOCOL, seconds=2)
    nothing = ("gzip-empty-members", "gzip-small-members", "gzip-empty-blocks", "gzip-name")
    for attack in (*nothing, "zstd-nothing", "zstd-skippable", "brotli-nothing"):
        short = EVENTS if attack in ("gzip-small-members", "zstd-nothing") else NONE
        each(EVENTS, attack, short, cpu="none")
        short = REST if attack in ("gzip-empty-members", "gzip-empty-blocks") else NONE
        each(REST, attack, short, status=LIMITED, cpu="none", seconds=2)
        # A member of one byte has content: the body's limit ends the poll.
        limit = {"max": MIB} if attack == "gzip-small-members" else {}
        each(POLL, attack, NONE, status=LIMITED, cpu="none", options=limit)
    each(EVENTS, "gzip-members", messages=2, quiet=True)
    each(("poll", "rest"), "gzip-members", messages=1, quiet=True)
    post = {"method": "POST", "body": "pay", "attempts": 5}
    for attack in ("gzip-cut", "gzip-damaged"):
        each(("poll", "rest"), attack, status=PROTOCOL, quiet=True)
        each(REST, attack, options=post, status=PROTOCOL, max_requests=1, quiet=True)
    each(EVENTS, "gzip-damaged", status=PROTOCOL, max_requests=3, quiet=True)
    for attack in ("gzip-cut", "coding-unknown"):  # servers do both, so both are harmless
        each(EVENTS, attack, status=("RT_ERROR_CLOSED",), max_requests=3, quiet=True)
    each(("poll", "rest"), "coding-unknown", messages=1, quiet=True)


def http2() -> None:
    """Item 2: floods of frames after the response's head, and before it."""
    floods = (
        ("empty-data", "padding", "padding-full", "small-data", "window-update")
        + ("window-update-connection", "altsvc", "ping", "ping-read", "ping-ack", "settings")
        + ("settings-read", "priority", "unknown", "unknown-large", "goaway", "goaway-text")
        + ("push", "trailers", "ping-before-head", "window-before-head", "interim")
    )
    shorts = dict.fromkeys(("padding", "ping-read", "unknown-large"), EVENTS)
    shorts |= dict.fromkeys(("window-update", "altsvc", "settings-read", "interim"), REST)
    shorts |= {"empty-data": ("events", "rest"), "small-data": POLL, "trailers": POLL}
    for attack in floods:
        short = shorts.get(attack, NONE)
        over = {"over": "h2", "seconds": 2.0}
        # libcurl 7.88 ends an HTTP/2 session after such a violation, and reports a complete
        # response.
        status = (*LIMITED, "RT_OK") if attack == "push" else LIMITED
        each(REST, f"h2-{attack}", short, status=status, within_ms=1500, **over)
        each(("events", "poll"), f"h2-{attack}", short, over="h2", cpu="none")
    once = ("reset-others", "trailer-bomb", "continuation", "continuation-fields", "hpack-bomb")
    shorts = dict.fromkeys(("continuation", "continuation-fields", "hpack-bomb"), REST)
    for attack in (*once, "table-updates", "flood-before-settings", "garbage", "no-streams"):
        short = shorts.get(attack, NONE)
        each(REST, f"h2-{attack}", short, status=LIMITED, within_ms=1500, **over)
        each(("events", "poll"), f"h2-{attack}", NONE, over="h2", cpu="none")
    each(REST, "h2-silent", over="h2", status=TIMEOUT, quiet=True, seconds=2)
    each(REST, "h2-slow-body", over="h2", status=TIMEOUT, quiet=True, seconds=2)
    post = {"method": "POST", "body": "b" * 100}
    each(REST, "h2-no-window", over="h2", options=post, status=TIMEOUT, quiet=True, seconds=2)
    each(("poll", "rest"), "h2-endless-body", REST, over="h2", status=TOO_LARGE, seconds=4)
    each(HTTP, "h2-cut-body", over="h2", status=LOST + PROTOCOL, quiet=True)
    storm = {"over": "h2", "quiet": True, "cpu": "all", "seconds": 2.0}
    # libcurl itself repeats a request that was refused in this way, five times.
    each(("events", "poll"), "h2-refused-streams", requests_each=6, **storm)
    each(("events", "poll"), "h2-goes-away", max_requests=12, **storm)
    each(REST, "h2-refused-streams", requests_each=6, options={"attempts": 10}, **storm)
    each(REST, "h2-goes-away", max_requests=20, options={"attempts": 10}, **storm)
    each(POLL, "h2-answers", max_requests=6, **storm)
    seven = {"requests": 7, "late": 1}
    each(REST, "h2-six-streams", over="h2", options=seven, messages=1, quiet=True, seconds=1.2)


def websockets() -> None:
    one = ("websocket",)
    pieces = {"pieces": 1}
    for attack in ("small-messages", "pings-unread"):
        each(one, f"ws-{attack}", cpu="none", seconds=1)
    for attack in ("empty-messages", "pings", "pongs"):
        each(one, f"ws-{attack}", NONE, cpu="none")
    each(one, "ws-small-messages", NONE, over="tls", cpu="none")
    each(one, "ws-empty-fragments", cpu="none", seconds=1)
    for attack in ("empty-fragments", "byte-fragments", "fragments-and-pings"):
        each(one, f"ws-{attack}", NONE, cpu="none", options=pieces)
    for attack in ("byte-fragments", "fragments-and-pings"):
        each(one, f"ws-{attack}", NONE, cpu="none")
    # The end comes long before the close timeout, although the peer continues to send.
    patient = {"timeout": NEVER_MS}
    small = {**patient, "max": 1 << 20}
    each(one, "ws-byte-fragments", options=small, status=TOO_LARGE, ends=True)
    each(one, "ws-huge-frame", options=patient, status=TOO_LARGE, ends=True)
    for attack in ("negative-frame", "masked", "reserved", "bad-deflate"):
        each(one, f"ws-{attack}", options=patient, status=PROTOCOL, ends=True)
    for attack in ("after-close", "closes"):
        each(one, f"ws-{attack}", options=patient, ends=True)
    each(one, "ws-ignores-close", options={"close": 1}, ends=True, seconds=3)
    for attack in ("drops", "message-and-drop", "restarts", "hangs-up", "resets"):
        name = attack if attack in ("hangs-up", "resets") else f"ws-{attack}"
        reconnect = {"reconnect": 1}
        each(one, name, options=reconnect, cpu="all", max_requests=12, quiet=True, seconds=2)
    each(one, "ws-slow-frame", quiet=True)
    each(one, "ws-promised-frame", quiet=True)
    each(one, "ws-bomb", cpu="none", messages=1)
    each(one, "ws-bomb-text", NONE, cpu="none", messages=1)
    each(one, "ws-bomb-15", cpu="none", messages=1)
    each(one, "ws-bomb-text-15", cpu="none", messages=1)
    each(one, "ws-bomb-small", NONE, cpu="none", messages=1)
    each(one, "ws-bomb", NONE, over="tls", cpu="none", messages=1)
    each(one, "ws-bomb", cpu="none", messages=1, options=pieces)
    each(one, "ws-bomb-endless", status=TOO_LARGE, ends=True, seconds=3)
    each(one, "ws-bomb-endless", NONE, over="tls", status=TOO_LARGE, ends=True, seconds=3)
    each(one, "ws-empty-blocks", cpu="none")
    each(one, "ws-empty-compressed", NONE, cpu="none")
    handshake = ("RT_ERROR_HANDSHAKE", *TOO_LARGE)
    for attack in ("ws-head", "head-line", "status-line", "interim", "garbage", "head-fold"):
        each(one, attack, status=handshake, ends=True)
    each(one, "ws-extensions", status=handshake, ends=True)
    each(one, "ws-accept-wrong", status=("RT_ERROR_HANDSHAKE",), ends=True)
    each(one, "slow-head", status=TIMEOUT, ends=True, quiet=True, seconds=2)
    each(one, "silent", status=TIMEOUT, ends=True, quiet=True, seconds=2)
    each(one, "ws-refusal-body", status=("RT_ERROR_HTTP_STATUS",), ends=True, seconds=3)
    slow = {"quiet": True, "seconds": 3.5, "options": {"open_timeout": 1000}}
    each(one, "ws-refusal-slow", status=("RT_ERROR_HTTP_STATUS",), ends=True, **slow)
    each(one, "ws-answers-with-h2", status=handshake, ends=True)


def memory() -> None:
    """What is below every limit, but needs more memory than the process can have."""
    few: dict[str, object] = {"options": {"memory": 24}, "status": TOO_LARGE, "text": "no memory"}
    each(("websocket",), "ws-bomb", ends=True, **few)
    each(("websocket",), "ws-bomb-text", ends=True, **few)
    each(("poll", "rest"), "endless-body", seconds=4, **few)
    each(EVENTS, "data-line", seconds=4, **few)


def crowds() -> None:
    """A few connections on one loop, each of which is flooded."""
    crowd: dict[str, object] = {"options": {"count": 4}, "cpu": "none", "seconds": 1.0}
    each(("websocket",), "ws-small-messages", **crowd)
    each(EVENTS, "small-events", **crowd)
    each(EVENTS, "chunk-extensions", **{**crowd, "options": {"count": 8}})
    many = {**crowd, "options": {"count": 60}}
    each(("websocket",), "ws-small-messages", NONE, **many)
    each(EVENTS, "small-events", NONE, **many)
    each(EVENTS, "gzip-events", NONE, **many)
    for attack in ("chunk-extension", "chunk-extensions", "chunk-bytes"):
        each(EVENTS, attack, NONE, **many)
    socket = ("websocket",)
    each((*socket, "events", "poll"), "small-records", socket, over="openssl", **many)
    each(socket, "ws-small-messages", NONE, over="tls", **many)
    for attack in ("chunk-extensions", "chunk-bytes", "small-events"):
        each(EVENTS, attack, NONE, over="tls", **many)
    each(EVENTS, "h2-small-data", NONE, over="h2", **many)
    for attack in ("h2-empty-data", "h2-padding", "h2-ping-read"):
        short = EVENTS if attack == "h2-empty-data" else NONE
        each(("events", "poll"), attack, short, over="h2", **many)


def key_updates() -> None:
    """TLS records without content, which cost far more than their bytes (RFC 8446 §4.6.3)."""
    for attack in ("key-updates", "key-updates-unasked", "key-updates-unread"):
        each(REST, attack, NONE, over="openssl", status=LIMITED, within_ms=1500)
        # The limit on bytes without content takes seconds to reach: a record has 27 of them.
        short = ("websocket", "events") if attack == "key-updates" else NONE
        each(("websocket", "events", "poll"), attack, short, over="openssl", cpu="none")
    crowd: dict[str, object] = {"over": "openssl", "options": {"count": 20}, "seconds": 3}
    each(("websocket", "events", "poll"), "key-updates", ("websocket",), cpu="none", **crowd)


def groups() -> None:
    """Diffie-Hellman groups that cost far too much."""
    every = HTTP + ("websocket",)
    for over in ("dhe8192", "ffdhe8192"):
        each(every, "polite", over=over, status=("RT_ERROR_TLS",), seconds=2)
    each(EVENTS, "polite", over="dhe4096", messages=1)


def below_http() -> None:
    """Servers that do not speak TLS, and proxies."""
    every = HTTP + ("websocket",)
    each(every, "no-tls", over="client-tls", status=TIMEOUT, quiet=True, seconds=2)
    tls = ("RT_ERROR_TLS", *LOST)
    each(every, "plain-text", over="client-tls", status=tls, quiet=True)
    proxy = ("RT_ERROR_PROXY", *TOO_LARGE)
    slow = ("RT_ERROR_PROXY", *TIMEOUT)
    for transport in every:
        scheme = "wss" if transport == "websocket" else "https"
        target = f"{scheme}://example.invalid/"
        short = ("rest", "websocket")
        each((transport,), "connect-head", short, proxied=target, status=proxy, within_ms=300)
        each((transport,), "connect-body", short, proxied=target, status=proxy, within_ms=300)
        each((transport,), "connect-slow", proxied=target, status=slow, quiet=True, seconds=2)


def steps_down(result: Result) -> list[str]:
    """Item 27: if a proxy refuses a WebSocket, the next leg follows at once."""
    first = [o for o in result["outcomes"] if o["text"].startswith("leg 1")]
    return [] if len(first) == 1 else [f"the WebSocket failed {len(first)} times, not once"]


def ends_polls(result: Result) -> list[str]:
    """JSON that is too long ends its transport."""
    found = [o for o in result["outcomes"] if "bytes of JSON" in o["text"]]
    return [] if found else ["the batch was not refused"]


def bots() -> None:
    bot = ("spreadbot",)
    each(bot, "trailers", seconds=1.5)
    for attack in ("head-fields", "head-line", "garbage"):
        each(bot, attack, NONE, seconds=2)
    each(bot, "ws-bomb", cpu="none")
    each(bot, "ws-bomb-15", NONE, cpu="none")
    for attack in ("ws-small-messages", "ws-pings", "ws-empty-blocks"):
        each(bot, attack, NONE, cpu="none")
    for attack in ("ws-drops", "ws-restarts", "hangs-up", "refusals", "no-cursor"):
        each(bot, attack, cpu="all", max_requests=25, quiet=True, seconds=2)
    tokens = {"auth": "http://127.0.0.1:{port}/token"}
    each(bot, "token-storm", options=tokens, cpu="all", max_requests=25, quiet=True, seconds=2)
    each(bot, "token-nested", options=tokens, cpu="all", max_requests=25, seconds=2)
    each(bot, "token-endless", options=tokens, seconds=2)
    each(bot, "token-wide", options=tokens, seconds=2)
    slow: dict[str, object] = {"options": {"timeout": NEVER_MS}, "cpu": "none", "seconds": 3.0}
    each(bot, "batch-messages", messages=1, **slow)
    each(bot, "batch-escapes", NONE, messages=1, **slow)
    each(bot, "batch-keys", NONE, messages=1, **slow)
    each(bot, "batch-numbers", NONE, **slow)
    each(bot, "batch-large", also=ends_polls, outcomes=3, **slow)
    each(bot, "ws-numbers", NONE, messages=1, **slow)
    each(bot, "ws-escapes", messages=1, **slow)
    each(bot, "ws-numbers-large", status=TOO_LARGE, **slow)
    refused = {"proxied": "http://example.invalid/", "quiet": True, "seconds": 2.0}
    each(bot, "connect-refused", also=steps_down, outcomes=1, **refused)


for group in (heads, lengths, chunks, redirects, storms, kept, streams, codings, http2, websockets):
    group()
for group in (key_updates, groups, below_http, bots, memory, crowds):
    group()
