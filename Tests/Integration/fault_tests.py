"""Echo traffic with reconnection through a proxy that delays, splits, cuts, resets, stalls and
corrupts, at points in TLS, in the handshake and among the messages."""

import functools
import re

from fault_proxy import Fault, FaultProxy, Then, Ways
from harness import Build, Suite, expect
from servers import Servers

MESSAGES = 400
#: After so many bytes a fault comes, on one connection each; the handshake has some 300 up and 200
#: down, that of TLS some 600 up and 2000 down.
POINTS = (0, 30, 180, 700, 2500, 9000, 40_000)
GARBLED_POINTS = range(0, 3000, 139)
#: Each stall lasts as long as the limit that ends it.
STALL_POINTS = (30, 700, 9000)
STALL_MS = 1000
#: Far more than the sockets' and messages' buffers, far less than all that is sent.
GROWTH_LIMIT_KIB = 8 << 10

#: What may be said of a connection that was cut or reset, or stands still: in the TLS handshake it
#: is an error of TLS.
ENDED = {"RT_ERROR_CONNECTION_LOST", "RT_ERROR_TLS"}
STALLED = {"RT_ERROR_TIMEOUT"}
#: Without TLS a changed byte is noticed only where it breaks HTTP, the framing or the text.
GARBLED = {
    "RT_ERROR_HANDSHAKE",
    "RT_ERROR_HTTP_STATUS",
    "RT_ERROR_PROTOCOL",
    "RT_ERROR_TOO_LARGE",
    "RT_ERROR_TIMEOUT",
    "RT_ERROR_CONNECTION_LOST",
}


def add(suite: Suite, build: Build, servers: Servers) -> None:
    def each(name: str, *arguments: object, valgrind: bool = False) -> None:
        function = functools.partial(through, build, servers, *arguments)
        suite.add(f"traffic, {name}", functools.partial(function, False))
        if valgrind:
            suite.add(f"traffic, {name}, valgrind", functools.partial(function, True))

    for transport, secure in (("plain", False), ("TLS", True)):
        slow = Fault(delay_s=0.002)
        each(f"{transport}, delayed", secure, [Ways(up=slow, down=slow)], set())
        bytewise = Fault(split=True)
        each(f"{transport}, byte by byte", secure, [Ways(up=bytewise, down=bytewise)], set())
        kinds = [(Then.CUT, ENDED), (Then.RESET, ENDED), (Then.STALL, STALLED)]
        kinds += [(Then.CORRUPT, ENDED)] if secure else []
        for then, said in kinds:
            for direction in ("up", "down"):
                points = STALL_POINTS if then is Then.STALL else POINTS
                ways = [Ways(**{direction: Fault(point, then)}) for point in points]
                name = f"{transport}, {then.name.lower()} {direction}"
                grind = then is Then.RESET and direction == "down"
                each(name, secure, [*ways, Ways()], said, valgrind=grind)
    for direction in ("up", "down"):
        name = f"traffic, plain, corrupt {direction}"
        suite.add(name, functools.partial(garbled, build, servers, direction))


def garbled(build: Build, servers: Servers, direction: str) -> None:
    """A connection for each changed byte, since the first may be the end: a request or a frame that
    the server refuses is not repeated."""
    for point in GARBLED_POINTS:
        ways = [Ways(**{direction: Fault(point, Then.CORRUPT)}), Ways()]
        through(build, servers, False, ways, GARBLED, False)


def through(
    build: Build, servers: Servers, secure: bool, ways: list[Ways], said: set[str], grind: bool
) -> None:
    tls = servers.tls() if secure else None
    proxy = FaultProxy(servers, servers.echo(tls), ways)
    kinds = {fault.then for way in ways for fault in (way.up, way.down)}
    # Nothing but TLS would notice a changed letter.
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
