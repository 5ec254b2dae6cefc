"""Many connections on one loop, and a flooded connection beside a normal one."""

import os
import re

import pytest
from harness import Build, expect, valgrind
from servers import Peer, Servers, frame

CONNECTIONS = 10_000
ROUND_TRIPS = 200


@pytest.mark.parametrize(
    ("count", "grind"),
    [(CONNECTIONS, False), pytest.param(100, True, id="valgrind", marks=valgrind)],
)
def test_many(build: Build, servers: Servers, count: int, grind: bool) -> None:
    result = build.run(build.helper("many"), servers.light_echo(), str(count), valgrind=grind)
    expect(result.returncode == 0, f"{result.stdout}{result.stderr}")
    # The program makes fewer only if a system limit forbids more; that is worth a line.
    limited = re.search("the limit of .*", result.stdout)
    if limited:
        expect("CI" not in os.environ, f"the gate must try all {count}: {limited[0]}")
        print(limited[0])
    else:
        expect(
            f"{count} opened, {count} echoed, {count} closed, 0 failed" in result.stdout,
            result.stdout,
        )


def test_fair(build: Build, servers: Servers) -> None:
    """The flood never ends by itself: a starved connection would hang until the test's limit."""

    async def flood(peer: Peer) -> None:
        await peer.send(peer.answer())
        many_small_messages = frame(2, b"0123456789abcdef") * 65536
        while True:
            await peer.send(many_small_messages)

    result = build.run(
        build.helper("fair"), servers.script(flood), servers.echo(), str(ROUND_TRIPS)
    )
    expect(result.returncode == 0, f"{result.stdout}{result.stderr}")
    expect(f"{ROUND_TRIPS} round trips" in result.stdout, result.stdout)
