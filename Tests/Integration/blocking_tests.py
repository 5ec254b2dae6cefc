"""C programs without an event loop: their connections live while they do something else."""

import asyncio
import subprocess
import threading

import pytest
from harness import PATIENCE_S, Build, expect
from servers import Servers
from websockets.asyncio.server import ServerConnection


@pytest.mark.parametrize(
    ("interval", "count"), [(0.2, 8), pytest.param(1, 30, marks=pytest.mark.long)]
)
def test_a_program_that_sleeps_stays_connected(
    build: Build, servers: Servers, interval: float, count: int
) -> None:
    """The server pings each interval and closes after two without a pong. In between it sends 20
    messages."""
    has_sent = threading.Event()

    async def handle(connection: ServerConnection) -> None:
        for number in range(20 * count):
            await connection.send(str(number))
            await asyncio.sleep(interval / 20)
        has_sent.set()
        async for message in connection:
            await connection.send(message)

    url = servers.websockets(handle, ping_interval=interval, ping_timeout=2 * interval)
    process = subprocess.Popen(
        [build.helper("sleeper"), url, str(20 * count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=build.environment(valgrind=False),
    )
    try:
        expect(has_sent.wait(PATIENCE_S + 2 * interval * count), "the connection was lost")
        output, _ = process.communicate("go on\n", PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    expected = ["connected", *map(str, range(20 * count)), "still there"]
    expect(output.splitlines() == expected, f"it printed {output!r}")
