"""Echo traffic with reconnection, through a proxy that delays, splits, cuts, resets, stalls and
corrupts it: in the TLS handshake, in the WebSocket handshake and among the messages."""

import re
from collections.abc import Iterator

import pytest
from fault_proxy import Fault, FaultProxy, Then, Ways
from harness import Build, expect, valgrind
from servers import Servers

MESSAGES = 400
#: The number of bytes before the fault, one connection for each. The WebSocket handshake has about
#: 300 bytes up and 200 down, that of TLS about 600 up and 2000 down.
POINTS = (0, 30, 180, 700, 2500, 9000, 40_000)
GARBLED_POINTS = range(0, 3000, 139)
#: Each stall lasts until a time limit ends it.
STALL_POINTS = (30, 700, 9000)
STALL_MS = 1000
#: Far above the buffers of sockets and messages, far below all that is sent.
GROWTH_LIMIT_KIB = 8 << 10

#: The errors of a connection that was cut, reset or stalled; in the TLS handshake it is an error of
#: TLS.
ENDED = {"RT_ERROR_CONNECTION_LOST", "RT_ERROR_TLS"}
STALLED = {"RT_ERROR_TIMEOUT"}
#: Without TLS a changed byte is noticed only if it breaks HTTP, the framing or the text.
GARBLED = {
    "RT_ERROR_HANDSHAKE",
    "RT_ERROR_HTTP_STATUS",
    "RT_ERROR_PROTOCOL",
    "RT_ERROR_TOO_LARGE",
    "RT_ERROR_TIMEOUT",
    "RT_ERROR_CONNECTION_LOST",
}


@pytest.mark.parametrize("direction", ("up", "down"))
def test_garbled(build: Build, servers: Servers, direction: str) -> None:
    """A connection for each changed byte, because the first one may be final: a request or a frame
    that the server refuses is not repeated."""
    for point in GARBLED_POINTS:
        ways = [Ways(**{direction: Fault(point, Then.CORRUPT)}), Ways()]
        through(build, servers, False, ways, GARBLED, grind=False)


@pytest.mark.parametrize(
    "fault", [Fault(delay_s=0.002), Fault(split=True)], ids=["delayed", "byte by byte"]
)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_slowed(build: Build, servers: Servers, secure: bool, fault: Fault) -> None:
    through(build, servers, secure, [Ways(up=fault, down=fault)], set(), grind=False)


def spoilt() -> Iterator[object]:
    for secure in (False, True):
        for then in (Then.CUT, Then.RESET, Then.STALL, *([Then.CORRUPT] if secure else [])):
            for direction in ("up", "down"):
                name = f"{'TLS' if secure else 'plain'}, {then.name.lower()} {direction}"
                yield pytest.param(secure, then, direction, False, id=name)
                if then is Then.RESET and direction == "down":
                    grind = f"{name}, valgrind"
                    yield pytest.param(secure, then, direction, True, id=grind, marks=valgrind)


@pytest.mark.parametrize(("secure", "then", "direction", "grind"), list(spoilt()))
def test_faults(
    build: Build, servers: Servers, secure: bool, then: Then, direction: str, grind: bool
) -> None:
    points = STALL_POINTS if then is Then.STALL else POINTS
    ways = [Ways(**{direction: Fault(point, then)}) for point in points]
    said = STALLED if then is Then.STALL else ENDED
    through(build, servers, secure, [*ways, Ways()], said, grind)


def through(
    build: Build, servers: Servers, secure: bool, ways: list[Ways], said: set[str], grind: bool
) -> None:
    tls = servers.tls() if secure else None
    proxy = FaultProxy(servers, servers.echo(tls), ways)
    kinds = {fault.then for way in ways for fault in (way.up, way.down)}
    # Only TLS would notice a changed letter.
    is_lenient = Then.CORRUPT in kinds and not secure
    arguments = [f"ca={tls.ca_file}"] if tls else []
    arguments += [f"timeout_ms={STALL_MS}"] if kinds & {Then.STALL, Then.CORRUPT} else []
    arguments += ["lenient"] if is_lenient else []
    is_split = any(fault.split for way in ways for fault in (way.up, way.down))
    count = MESSAGES // 10 if is_split else MESSAGES // 4 if grind or is_lenient else MESSAGES
    traffic = build.helper("traffic")
    result = build.run(traffic, proxy.url, str(count), *arguments, valgrind=grind)
    output = result.stdout + result.stderr
    expect(result.returncode == 0, output)
    errors = set(re.findall(r"(?m)^RT_ERROR_\w+", output))
    expect(errors <= said, f"{errors - said} among the errors:\n{output}")
    summary = {name: int(n) for name, n in re.findall(r"(\w+) (-?\d+)", output.splitlines()[-1])}
    if not is_lenient:
        faults = len(ways) - 1
        told = {name: summary[name] for name in ("received", "lost", "errors", "changed")}
        wanted = {"received": count, "lost": faults, "errors": faults, "changed": 0}
        expect(told == wanted, f"{told}, not {wanted}:\n{output}")
    if not grind:
        expect(summary["grown"] < GROWTH_LIMIT_KIB, f"memory grows:\n{output}")
