"""How a Spreadbot connection ends when its user disconnects, in each phase."""

import queue
import socket
from collections.abc import Callable

from bot import QUICKLY, SECRET, Bot
from harness import PATIENCE_S, Build, expect
from inbox import Inbox
from ladder_server import LadderServer, Socket, polled, silence, status, stream
from leg_gate import Leg
from streams import Exchange
from token_server import TokenServer

NO_PROBES: dict[str, object] = {**QUICKLY, "upgrade": "0,0"}

Test = Callable[[Build, LadderServer], None]


def test_disconnect_closes_normally(build: Build, server: LadderServer) -> None:
    """The WebSocket closes with 1000 after its pending sends; waiting sends end with
    RT_ERROR_CLOSED."""
    inbox = Inbox()
    closes: queue.Queue[bytes] = queue.Queue()
    server.plan("/", {Leg.WEBSOCKET: [lambda one: closes.put(Socket(one).serve(inbox.frame))]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        for line in ("text 1", "text 2", "disconnect", "text 3"):
            bot.tell(line)
        lines = [bot.next() for _ in range(8)]
        bot.tell("text 4")
        bot.expect("numbered 4", "sent 4 RT_ERROR_CLOSED 0")
        payload = closes.get(timeout=PATIENCE_S)
        bot.tell("establish ")
        bot.expect("transport 1", "open 1 0")
        bot.end()
    ends = [line for line in lines if not line.startswith("numbered")]
    wanted = {"sent 1 RT_OK 0", "sent 2 RT_OK 0", "sent 3 RT_ERROR_CLOSED 0"}
    expect(set(ends[:3]) == wanted, f"received {lines}")
    expect(ends[3:] == ["transport 0", "disconnected RT_OK"], f"received {lines}")
    expect(payload == (1000).to_bytes(2, "big"), f"closed with {payload!r}")
    expect(inbox.texts == ["1", "2"], f"received {inbox.texts}")


def test_a_close_that_crosses_ours_confirms_nothing(build: Build, server: LadderServer) -> None:
    """The server closes by itself, and has read none of the frames."""
    # A frame of one byte, and one with a close code: both masked.
    frames = (2 + 4 + 1) + (2 + 4 + 2)

    def crosses(exchange: Exchange) -> None:
        peer = Socket(exchange)
        exchange.connection.recv(frames, socket.MSG_PEEK | socket.MSG_WAITALL)
        peer.send((1001).to_bytes(2, "big"), 8)
        exchange.connection.shutdown(socket.SHUT_WR)
        exchange.hold()

    server.plan("/", {Leg.WEBSOCKET: [crosses]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        for line in ("text 1", "disconnect"):
            bot.tell(line)
        bot.expect("numbered 1")
        bot.until("sent 1 RT_ERROR_CONNECTION_LOST 0")
        bot.expect("transport 0", "disconnected RT_OK")
        bot.end()


def phases(build: Build, server: LadderServer, tokens: TokenServer) -> list[tuple[str, Bot]]:
    """Clients in each phase, with a waiting send where that is possible."""
    tokens.plan(silence)
    server.plan("/dialing", {Leg.WEBSOCKET: [silence], Leg.POST: [silence]})
    server.plan("/backoff", {Leg.WEBSOCKET: [status(503)], Leg.POST: [silence]})
    server.plan("/auth", {Leg.WEBSOCKET: [status(401)], Leg.POST: [silence]})
    server.plan("/sse", {Leg.SSE: [stream()], Leg.POST: [silence]})
    server.plan("/poll", {Leg.POLL: [polled(b"x"), silence], Leg.POST: [silence]})

    def bot(path: str, **options: object) -> Bot:
        return Bot(build, server.origin, path, **{**tokens.options, "upgrade": "0,0", **options})

    return [
        ("1 1 1 -", bot("dialing")),
        ("3 2 1 -", bot("backoff")),
        ("1 4 1 -", bot("auth")),
        ("3 3 1 -", bot("offline", online=0)),
        ("2 0 2 -", bot("sse", transports=2)),
        ("2 0 3 -", bot("poll", transports=3)),
    ]


def settle(bot: Bot, wanted: str) -> None:
    """Waits for this phase."""
    while True:
        bot.tell("state")
        found = bot.until("state (.*)", "error .*", "open .*", "transport .*")
        if found[1] == wanted:
            return


def test_disconnect_in_every_phase(build: Build, server: LadderServer) -> None:
    """At once and without an error; a running request is abandoned."""
    with TokenServer(SECRET) as tokens:
        for wanted, bot in phases(build, server, tokens):
            with bot:
                settle(bot, wanted)
                bot.send("1")
                bot.send("2")
                bot.tell("disconnect")
                bot.expect("sent 1 RT_ERROR_CLOSED 0", "sent 2 RT_ERROR_CLOSED 0")
                bot.expect("transport 0", "disconnected RT_OK")
                bot.tell("disconnect")
                bot.tell("state")
                bot.expect("state 5 0 0 -")
                bot.end()


def test_freed_in_every_phase(build: Build, server: LadderServer) -> None:
    """No event follows."""
    with TokenServer(SECRET) as tokens:
        for wanted, bot in phases(build, server, tokens):
            with bot:
                settle(bot, wanted)
                bot.send("1")
                bot.end()
