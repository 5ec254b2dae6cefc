"""A case, and its assertions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Peak memory above that at the start, including data that the program itself keeps, unless the
#: case says how much that is.
MAX_GROWN_KIB = 100 << 10
#: The longest `rt_loop_dispatch`; victim.c says what counts. A machine that runs a gate gets more,
#: since it shares pages, caches and the clock rate.
MAX_DISPATCH_MS = 250.0 if os.environ.get("CI") else 100.0
#: The longest time between two calls of a 10 ms timer on the attacked loop: a turn may take as long
#: as a dispatch, and timers must be checked after few turns.
MAX_TIMER_GAP_MS = MAX_DISPATCH_MS + 50
#: Of one core, once a limit has stopped the attack.
MAX_CPU_PERCENT = 50.0

#: The statuses of time limits.
TIMEOUT = ("RT_ERROR_TIMEOUT", "RT_ERROR_DEADLINE")
#: A time limit that must not be what ends a case: it is longer than any.
NEVER_MS = 600_000
#: The victim's options for time limits. The name of a case leaves them out.
LIMITS = ("timeout", "open_timeout")

Result = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One attack on one transport."""

    transport: str
    attack: str
    #: "" for plain text; "tls" for any version, "tls1.2", "tls1.3"; "h2" for HTTP/2 over TLS;
    #: "openssl" for TLS by servers/records.py; those of servers/groups.py.
    over: str = ""
    #: The victim's options, see targets.c; `{port}` becomes the server's.
    options: dict[str, object] = field(default_factory=dict)
    #: How long it lasts, unless everything ends earlier: in `make test`, and in `make hostile`. It
    #: lasts longer if what is expected needs longer on a busy machine.
    seconds: float = 1.5
    long_seconds: float = 6
    #: The statuses that the first outcome may have; () if none is expected.
    status: tuple[str, ...] = ()
    #: A part of the first outcome's text.
    text: str = ""
    #: Whether everything must end.
    ends: bool = False
    #: How many outcomes to wait for, for `also`; 1 if there is a status.
    outcomes: int = 0
    #: The processor time that the client may spend until the first outcome. How long it has waited
    #: for the server does not count.
    within_ms: float = 0
    #: The minimum number of messages, or of successful requests.
    messages: int = 0
    #: The maximum numbers of requests and connections that the server may see.
    max_requests: int = 0
    max_connections: int = 0
    #: Instead of `max_requests`: the maximum number of requests per attempt; the default backoff
    #: limits the attempts.
    requests_each: int = 0
    #: "after": CPU is limited from the first outcome. "all": from the start, because a rate limit
    #: applies from the start. "none": no limit can fire, because the peer behaves correctly, or the
    #: caller has asked for the bytes; the loop must stay responsive all the same.
    cpu: str = "after"
    #: Whether the victim mostly waits, so that the case can run beside others.
    quiet: bool = False
    #: What the documents take that the program has asked to keep, in MiB.
    kept_mib: int = 0
    #: Leave it out of `make test`.
    only_long: bool = False
    #: "short" if the Python client runs it in `make test`, "long" in `make hostile`, "" never.
    python: str = ""
    #: Prepended to the path if there is a proxy.
    proxied: str = ""
    #: Further checks: returns complaints about a result.
    also: Callable[[Result], list[str]] | None = None

    def is_part(self, face: str, is_long: bool) -> bool:
        if face == "python":
            return self.python == "short" or (is_long and self.python == "long")
        return is_long or not self.only_long

    @property
    def awaited(self) -> dict[str, object]:
        """The victim's options for what it waits for."""
        # Without one of these statuses, time limits could only fire because the machine is busy.
        is_timed = not set(self.status).isdisjoint(TIMEOUT)
        found: dict[str, object] = {"outcomes": self.outcomes or len(self.status[:1])}
        found |= {"messages": self.messages} | ({"ends": 1} if self.ends else {})
        if (self.status or self.messages) and not is_timed and self.cpu != "all":
            found["open_timeout"] = NEVER_MS
            # For a WebSocket, this is the limit of the closing handshake.
            if self.transport != "websocket":
                found["timeout"] = NEVER_MS
        return found

    @property
    def name(self) -> str:
        parts = [self.transport, self.over, self.attack, "proxied" if self.proxied else ""]
        extra = [f"{key}={value}" for key, value in self.options.items() if key not in LIMITS]
        return "/".join([*filter(None, parts), *extra])


def most_attempts(seconds: float) -> int:
    """With the default backoff: a delay is at least half of 1 s, and doubles with each failure."""
    attempts, at, delay = 0, 0.0, 0.5
    while at <= seconds:
        attempts, at, delay = attempts + 1, at + delay, 2 * delay
    return attempts


def judge(case: Case, result: Result, counters: list[int]) -> list[str]:
    """Lists the expectations that a result does not meet."""
    found: list[str] = []

    def expect(condition: bool, complaint: str) -> None:
        if not condition:
            found.append(complaint)

    grown = result["grown_kib"]
    longest = result["dispatch_ms"]
    gap = result["timer_gap_ms"]
    allowed = MAX_GROWN_KIB + (case.kept_mib << 10)
    complaint = f"memory grew by {grown >> 10} MiB, below {allowed >> 10} are allowed"
    expect(grown < allowed, complaint)
    expect(longest < MAX_DISPATCH_MS, f"a dispatch took {longest} ms, below {MAX_DISPATCH_MS}")
    expect(gap < MAX_TIMER_GAP_MS, f"a timer of 10 ms was late by {gap} ms")
    if case.cpu != "none":
        percent = result["cpu_percent" if case.cpu == "all" else "cpu_percent_after"]
        # Over a short time, the CPU of the first outcome itself would be a high percentage.
        known = case.cpu == "all" or (result["outcome_count"] and result["after_ms"] >= 300)
        expect(not known or percent < MAX_CPU_PERCENT, f"CPU was {percent} %")
    outcomes = result["outcomes"]
    first = outcomes[0] if outcomes else None
    got = f'{first["status"]} "{first["text"]}"' if first else "nothing"
    if case.status:
        met = first is not None and first["status"] in case.status and case.text in first["text"]
        wanted = " or ".join(case.status) + (f' with "{case.text}"' if case.text else "")
        expect(met, f"{wanted} expected, got {got}")
    if case.within_ms and case.status:
        met = first is not None and first["cpu_ms"] < case.within_ms
        when = f"after {first['cpu_ms']} ms of CPU" if first else "never"
        expect(met, f"the outcome came {when}, not within {case.within_ms} ms")
    if case.ends:
        expect(result["unfinished"] == 0, f"{result['unfinished']} have not ended; {got}")
    expect(
        result["messages"] >= case.messages,
        f"{result['messages']} messages, {case.messages} expected; {got}",
    )
    connections, requests = counters[0], counters[1]
    seconds = result["lasted_ms"] / 1000
    max_requests = case.max_requests or case.requests_each * most_attempts(seconds)
    if max_requests:
        expect(
            requests <= max_requests,
            f"{requests} requests in {seconds:.1f} s, {max_requests} are allowed",
        )
    if case.max_connections:
        expect(
            connections <= case.max_connections,
            f"{connections} connections, {case.max_connections} are allowed",
        )
    if case.also is not None:
        found += case.also(result)
    return found
