"""C programs without an event loop: their connections stay alive while they do something else."""

import subprocess
import threading

import pytest
from harness import PATIENCE_S, Build, expect
from servers import Servers
from streams import Exchange, StreamServer
from websockets.asyncio.server import ServerConnection


def wake(build: Build, url: str, count: int, may_wake: threading.Event, patience: float) -> str:
    """Runs the program, which sleeps until `may_wake` is set; returns what it prints."""
    process = subprocess.Popen(
        [build.helper("sleeper"), url, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=build.environment(valgrind=False),
    )
    try:
        expect(may_wake.wait(patience), "the connection was lost")
        output, _ = process.communicate("continue\n", PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    return output


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.long)])
def test_a_program_that_sleeps_stays_connected(build: Build, servers: Servers, count: int) -> None:
    """The server pings, and waits for the pong before it continues. In between it sends 20
    messages."""
    has_sent = threading.Event()

    async def handle(connection: ServerConnection) -> None:
        for number in range(20 * count):
            await connection.send(str(number))
            if number % 20 == 19:
                await (await connection.ping())
        has_sent.set()
        async for message in connection:
            await connection.send(message)

    url = servers.websockets(handle, ping_interval=None)
    output = wake(build, url, 20 * count, has_sent, PATIENCE_S)
    expected = ["connected", *map(str, range(20 * count)), "still there"]
    expect(output.splitlines() == expected, f"it printed {output!r}")


def test_a_program_that_sleeps_loses_no_event(build: Build) -> None:
    """Each stream has 400 events and ends. While the program sleeps, its event source reconnects
    until the buffer of events is full; it receives the others once the program has taken these."""
    is_third = threading.Event()

    def script(exchange: Exchange) -> None:
        last = int(exchange.headers.get("last-event-id", "0"))
        exchange.begin()
        numbers = range(last + 1, last + 401)
        exchange.send("retry: 1\n\n" + "".join(f"id: {n}\ndata: {n}\n\n" for n in numbers))
        if last == 800:
            is_third.set()

    with StreamServer(script) as server:
        output = wake(build, server.url("/events"), 3000, is_third, PATIENCE_S)
    expect(output.split() == [str(number) for number in range(1, 3001)], f"it printed {output!r}")
