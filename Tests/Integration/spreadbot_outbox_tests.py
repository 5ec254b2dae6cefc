"""Sends outlive their process: once a call has returned, its message is kept however the process
ends."""

import asyncio
import contextlib
import pathlib
import random
import subprocess
import tempfile
import threading

from aiohttp import WSMsgType, web
from command_line import http
from harness import PATIENCE_S, Build, expect
from servers import Servers

ROUNDS = 200
#: The size of an empty outbox, and some bytes to spare.
EMPTY = 64
#: In memory if possible: these tests end processes, not machines, so they do not need a disk.
SCRATCH = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None


class Receiver:
    """Receives numbers by WebSocket and by POST; refuses every other handshake, so that events are
    used."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.changed = threading.Condition()
        self.handshakes = 0
        #: How many requests are answered with 503 before one is accepted.
        self.refuses = 0

    def take(self, text: str) -> None:
        with self.changed:
            self.came.append(int(text))
            self.changed.notify_all()

    def wait_for(self, numbers: set[int]) -> None:
        with self.changed:
            there = self.changed.wait_for(lambda: numbers <= set(self.came), PATIENCE_S)
        expect(there, f"{sorted(numbers - set(self.came))[:20]} did not come")

    async def listen(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Accept") == "text/event-stream":
            stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            # The client may be killed at any time.
            with contextlib.suppress(ConnectionError):
                await stream.prepare(request)
                while True:
                    await stream.write(b": here\n\n")
                    await asyncio.sleep(1)
            return web.Response(status=500)
        self.handshakes += 1
        if self.handshakes % 2:
            return web.Response(status=404)
        socket = web.WebSocketResponse(protocols=("ws+meta.nchan",))
        with contextlib.suppress(ConnectionError):
            await socket.prepare(request)
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self.take(message.data)
            return socket
        return web.Response(status=500)

    async def post(self, request: web.Request) -> web.Response:
        if self.refuses:
            self.refuses -= 1
            return web.Response(status=503)
        self.take(await request.text())
        return web.Response(status=202)


def receive(servers: Servers) -> tuple[Receiver, str]:
    receiver = Receiver()
    routes = [web.get("/in", receiver.listen), web.post("/in", receiver.post)]
    return receiver, http(servers.application(routes))


def start(build: Build, *arguments: str) -> subprocess.Popen[str]:
    command = build.command(build.helper("durable"), valgrind=False)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = build.environment(False)
    return subprocess.Popen([*command, *arguments], env=environment, text=True, **pipes)


def test_killed_again_and_again(build: Build, servers: Servers) -> None:
    """At any moment: before it connects, while it sends, while the server confirms."""
    receiver, url = receive(servers)
    choice = random.Random(7)
    returned: list[int] = []
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        outbox = f"{folder}/outbox"
        for _ in range(ROUNDS):
            first = returned[-1] + 1 if returned else 1
            process = start(build, url, outbox, str(first), "12")
            assert process.stdout is not None and process.stdin is not None
            lines = [process.stdout.readline() for _ in range(choice.randrange(13))]
            if choice.randrange(4) == 0 and lines:
                # Late: the messages so far may have been sent.
                receiver.wait_for({first})
            process.kill()
            lines += process.stdout.readlines()
            process.wait()
            process.stdin.close()
            process.stdout.close()
            # The last line may be cut.
            returned += [int(line) for line in lines if line.endswith("\n")]
        last = start(build, url, outbox, "0")
        receiver.wait_for(set(returned))
        # The outbox empties as the server confirms, so a next process would have nothing to send.
        assert last.stdout is not None
        while pathlib.Path(outbox).stat().st_size >= EMPTY:
            expect(last.stdout.readline() == "sent\n", "it has ended")
        last.communicate(timeout=PATIENCE_S)
        expect(last.returncode == 0, f"exit code {last.returncode}")
    expect(len(returned) > ROUNDS, f"only {len(returned)} calls returned")
    firsts = list(dict.fromkeys(receiver.came))
    expect(firsts == sorted(firsts), f"not in order: {firsts}")


def test_in_use(build: Build, servers: Servers) -> None:
    _, url = receive(servers)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        process = start(build, url, f"{folder}/outbox", "1", "1")
        assert process.stdout is not None
        expect(process.stdout.readline() == "1\n", "it does not send")
        program = build.helper("durable")
        other = build.run(program, url, f"{folder}/outbox", "2")
        expect(other.returncode == 3 and "in use" in other.stderr, other.stderr)
        process.communicate(timeout=PATIENCE_S)
        path = pathlib.Path(folder) / "text"
        path.write_text("no outbox\n")
        other = build.run(program, url, str(path), "1")
        expect(other.returncode == 3 and str(path) in other.stderr, other.stderr)
        expect(path.read_text() == "no outbox\n", "it was overwritten")


def test_refused(build: Build, servers: Servers) -> None:
    """For longer than a request is retried: the message is kept, and retried later."""
    receiver, url = receive(servers)
    receiver.refuses = 4
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        process = start(build, url, f"{folder}/outbox", "3", "1")
        receiver.wait_for({3})
        process.communicate(timeout=PATIENCE_S)
    expect(receiver.came == [3] and not receiver.refuses, f"{receiver.came}")
