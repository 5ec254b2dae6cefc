"""The ladder of a Spreadbot connection to scripted servers: counts, delays, unreachable servers,
probes of the WebSocket, and times without a network."""

import queue
import socket as sockets
from collections.abc import Callable

from bot import QUICKLY, Bot
from harness import PATIENCE_S, Build, expect
from ladder_server import (
    LadderServer,
    Script,
    Socket,
    cut_socket,
    polled,
    silence,
    socket,
    status,
    stream,
)
from leg_gate import Leg
from nchan import free_port
from servers import Servers
from streams import Exchange

ANY = r"RT_ERROR_\w+"
DELAY = r"(?:1\d|20)"
NO_PROBES: dict[str, object] = {**QUICKLY, "upgrade": "0,0"}

Test = Callable[[Build, LadderServer], None]


# Counts (B10)


def test_attempts_are_counted(build: Build, server: LadderServer) -> None:
    """Three failures in a row on each leg after the first attempt; then it ends."""
    server.plan("/", {leg: [status(503)] for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL)})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        for leg in (1, 2, 3):
            for attempt in (1, 2, 3):
                bot.expect(f"error RT_ERROR_HTTP_STATUS {leg} 503 {DELAY} {attempt}")
            if leg < 3:
                bot.expect(f"error RT_ERROR_HTTP_STATUS {leg} 503 0 0")
        bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 3 503", "transport 0")
        bot.expect("disconnected RT_ERROR_RECONNECTS_EXHAUSTED")
        said = "".join(bot.log)
        bot.end()
    expect("WebSocket: " in said and "SSE: " in said and "long poll: " in said, f"log {said}")
    for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL):
        expect(server.count("/", leg) == 4, f"{leg.name}: {server.count('/', leg)} attempts")


def test_delays_double(build: Build, server: LadderServer) -> None:
    """From half a second to a second, and so on."""
    server.plan("/", {Leg.WEBSOCKET: [status(503)]})
    with Bot(build, server.origin, transports="1") as bot:
        for attempt, (least, most) in enumerate(((500, 1000), (1000, 2000), (2000, 4000)), 1):
            found = bot.expect(rf"error RT_ERROR_HTTP_STATUS 1 503 (\d+) {attempt}")
            expect(least <= int(found[1]) <= most, f"attempt {attempt} in {found[1]} ms")
        bot.tell("state")
        bot.expect("state 3 2 1 -")
        bot.tell("disconnect")
        bot.expect("transport 0", "disconnected RT_OK")
        bot.end()


def test_zero_attempts_leave_a_leg_at_once(build: Build, server: LadderServer) -> None:
    server.plan("/", {Leg.WEBSOCKET: [status(503)], Leg.SSE: [stream()]})
    with Bot(build, server.origin, max_reconnects=0, **NO_PROBES) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 503 0 0", "transport 2", "open 2 0")
        bot.end()


def test_a_message_resets_the_count(build: Build, server: LadderServer) -> None:
    server.plan("/", {Leg.WEBSOCKET: [cut_socket(b"one")] * 6 + [socket()]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1")
        for _ in range(6):
            bot.expect("open 1 0", "message - 0 - one")
            bot.expect(f"error RT_ERROR_CONNECTION_LOST 1 0 {DELAY} 1")
        bot.expect("open 1 0")
        bot.end()


def test_time_resets_the_count(build: Build, server: LadderServer) -> None:
    """A connection that stays open for this long resets the count, even without a message."""

    def hold(exchange: Exchange) -> None:
        Socket(exchange)
        exchange.connection.settimeout(0.2)
        try:
            exchange.hold()
        except TimeoutError:
            pass

    server.plan("/", {Leg.WEBSOCKET: [hold] * 5 + [socket()]})
    with Bot(build, server.origin, stable=50, **NO_PROBES) as bot:
        bot.expect("transport 1")
        for _ in range(5):
            bot.expect("open 1 0", f"error RT_ERROR_CONNECTION_LOST 1 0 {DELAY} 1")
        bot.expect("open 1 0")
        bot.end()


def test_short_lives_leave_a_leg(build: Build, server: LadderServer) -> None:
    """A leg that opens three times, only for a moment, does not work."""
    server.plan("/", {Leg.WEBSOCKET: [cut_socket()], Leg.SSE: [stream()]})
    with Bot(build, server.origin, **NO_PROBES) as bot:
        bot.expect("transport 1")
        for attempt in (1, 2):
            bot.expect("open 1 0", f"error RT_ERROR_CONNECTION_LOST 1 0 {DELAY} {attempt}")
        bot.expect("open 1 0", "error RT_ERROR_CONNECTION_LOST 1 0 0 0")
        bot.expect("transport 2", "open 2 0")
        bot.end()


def test_gone_resets_the_cursor(build: Build, server: LadderServer) -> None:
    """A poll that is answered with 410 loses its cursor, but its leg stays."""
    polls = [polled(b"one", "Last-Event-ID: 7"), status(410), polled(b"two", "Last-Event-ID: 1")]
    server.plan("/", {Leg.POLL: [*polls, silence]})
    with Bot(build, server.origin, transports="3", poll_interval=10, **NO_PROBES) as bot:
        bot.expect("transport 3", "open 3 0", "message 7 1 - one")
        bot.expect(r"error RT_ERROR_GONE 3 410 \d+ 0", "message 1 1 - two")
        bot.end()
    ids = [one.headers.get("last-event-id") for one in server.of("/", Leg.POLL)]
    expect(ids[:3] == [None, "7", None], f"ids {ids}")


# Unreachable servers (B9)


def test_unreachable(build: Build, server: LadderServer) -> None:
    """An unknown name, and a port where nobody listens: retried on the same leg."""
    for url, error in (
        ("http://nowhere.invalid", "RT_ERROR_RESOLVE"),
        (f"http://127.0.0.1:{free_port()}", "RT_ERROR_CONNECT"),
    ):
        with Bot(build, url, max_reconnects=1, **NO_PROBES) as bot:
            for leg in (1, 2, 3):
                bot.expect(f"error {error} {leg} 0 {DELAY} 1")
                if leg < 3:
                    bot.expect(f"error {error} {leg} 0 0 0")
            bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 3 0", "transport 0")
            bot.expect("disconnected RT_ERROR_RECONNECTS_EXHAUSTED")
            bot.end()


def test_rounds_have_a_limit(build: Build, server: LadderServer) -> None:
    """Each round begins at the top, after a delay that is reported with the causes."""
    server.plan("/", {leg: [status(503)] for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL)})
    with Bot(build, server.origin, max_reconnects=0, max_rounds=3, **NO_PROBES) as bot:
        for round_number in (1, 2, 3):
            for leg in (1, 2):
                bot.expect(f"error RT_ERROR_HTTP_STATUS {leg} 503 0 0")
            if round_number < 3:
                bot.expect(f"error RT_ERROR_RECONNECTS_EXHAUSTED 3 503 {DELAY} 0")
        bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 3 503", "transport 0")
        bot.expect("disconnected RT_ERROR_RECONNECTS_EXHAUSTED")
        bot.end()
    for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL):
        expect(server.count("/", leg) == 3, f"{leg.name}: {server.count('/', leg)} attempts")


def test_rounds_without_a_limit_survive_an_outage(build: Build, server: LadderServer) -> None:
    """It continues after the last message."""
    away = [status(503)] * 20

    def back(exchange: Exchange) -> None:
        expect(exchange.headers["last-event-id"] == "1", f"{exchange.headers}")
        Socket(exchange).send(b'{"id": "2", "data": "two"}')
        exchange.hold()

    first = cut_socket(b'{"id": "1", "data": "one"}')
    server.plan("/", {Leg.WEBSOCKET: [first, *away, back], Leg.SSE: away, Leg.POLL: away})
    rounds = 0
    with Bot(build, server.origin, max_reconnects=1, max_rounds=0, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0", "message 1 1 [^ ]* one")
        while not (line := bot.next()).startswith("open"):
            rounds += "EXHAUSTED" in line
            expect(line.startswith(("error RT_ERROR_", "transport")), line)
        expect(line == "open 1 1", line)
        bot.expect("message 2 1 [^ ]* two")
        bot.end()
    expect(rounds >= 9, f"{rounds} rounds")


def test_server_restarts(build: Build) -> None:
    """Its port is closed meanwhile, for longer than two rounds over the ladder."""
    exhausted = f"error RT_ERROR_RECONNECTS_EXHAUSTED 3 0 {DELAY} 0"
    with LadderServer() as server:
        server.plan("/", {Leg.WEBSOCKET: [socket(b'{"id": "1", "data": "one"}')]})
        bot = Bot(build, server.origin, max_rounds=0, **NO_PROBES)
        with bot:
            bot.expect("transport 1", "open 1 0", "message 1 1 [^ ]* one")
            server.__exit__(None)
            for _ in range(2):
                bot.until(exhausted, rf"error {ANY} [123] 0 \d+ \d")
            with LadderServer(port=server.port) as again:
                again.plan("/", {Leg.WEBSOCKET: [socket(b'{"id": "2", "data": "two"}')]})
                bot.until("open . 1", rf"error {ANY} [123] \d+ \d+ \d", "transport .")
                expect(bot.message().data == "two", "another message")
                bot.end()


def test_server_does_not_accept(build: Build, server: LadderServer) -> None:
    """Its kernel accepts no more connections: each leg waits for its own timeout."""
    with sockets.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        with sockets.create_connection(address), Bot(
            build, f"http://127.0.0.1:{address[1]}", max_reconnects=0, connect_timeout=200,
            **NO_PROBES,
        ) as bot:  # fmt: skip
            for leg in (1, 2):
                bot.expect(f"error RT_ERROR_TIMEOUT {leg} 0 0 0")
            bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 3 0", "transport 0", "disconnected .*")
            bot.end()


def test_failures_are_logged_once(build: Build, server: LadderServer) -> None:
    """Only the connection logs them, since it knows the consequences; its legs log at DEBUG."""
    told = []
    with Bot(build, f"http://127.0.0.1:{free_port()}", max_reconnects=1, **NO_PROBES) as bot:
        while not (line := bot.next()).startswith("disconnected"):
            if line.startswith(("error ", "fatal ")):
                told.append(line)
        bot.end()
    said = [line.split(" ", 2)[1:] for line in bot.log if line.startswith("log ")]
    serious = [line for level, line in said if int(level) <= 2]
    expect(len(told) >= 4 and len(serious) == len(told), f"{told}, log {serious}")
    legs = [line.partition(":")[0] for line in serious]
    expect(set(legs) == {"WebSocket", "SSE", "long poll"}, f"log {serious}")
    ends = [line for level, line in said if int(level) <= 3 and "closed" in line]
    expect(not ends, f"never open, but logged: {ends}")


def test_other_host_is_unreachable(build: Build, server: LadderServer) -> None:
    """A leg with a host of its own is left at once if that host is unreachable."""
    server.plan("/", {Leg.POLL: [polled(b"here"), silence]})
    dead = f"127.0.0.1:{free_port()}"
    urls = {"ws_url": f"ws://{dead}/", "sse_url": f"http://{dead}/"}
    with Bot(build, server.origin, **urls, **NO_PROBES) as bot:
        bot.expect("error RT_ERROR_CONNECT 1 0 0 0", "error RT_ERROR_CONNECT 2 0 0 0")
        bot.expect("transport 3", "open 3 0", "message - 0 - here")
        bot.end()


def test_untrusted(build: Build, servers: Servers) -> None:
    """An untrusted certificate does not lead to another leg."""
    tls = servers.tls()
    with LadderServer(tls.context) as server:
        server.plan("/", {Leg.SSE: [stream(b"data: one\n\n")]})
        with Bot(build, server.origin, max_reconnects=1, transports="1", **NO_PROBES) as bot:
            bot.expect(f"error RT_ERROR_TLS 1 0 {DELAY} 1")
            bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 1 0", "transport 0", "disconnected .*")
            bot.end()
        with Bot(build, server.origin, ca=tls.ca_file, **NO_PROBES) as bot:
            bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
            bot.expect("message - 0 - one")
            bot.end()


# Returning to the WebSocket (B12)


def test_returns_to_the_websocket(build: Build, server: LadderServer) -> None:
    """First a handshake without the id, which is closed again; then one with the id."""
    closes: queue.Queue[bytes] = queue.Queue()

    def probe(exchange: Exchange) -> None:
        closes.put(Socket(exchange).serve())

    server.plan(
        "/",
        {
            Leg.WEBSOCKET: [status(404), probe, socket(b'{"id": 8, "data": "two"}')],
            Leg.SSE: [stream(b"id: 7\ndata: one\n\n")],
        },
    )
    with Bot(build, server.origin, upgrade="50,50") as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
        bot.expect("message 7 1 - one", "transport 1", "open 1 1", "message 8 1 - two")
        bot.end()
    ids = [one.headers.get("last-event-id") for one in server.of("/", Leg.WEBSOCKET)]
    expect(ids == [None, None, "7"], f"ids {ids}")
    payload = closes.get(timeout=PATIENCE_S)
    expect(payload == (1000).to_bytes(2, "big"), f"the probe was closed with {payload!r}")


def test_a_probe_that_fails_is_followed_by_another(build: Build, server: LadderServer) -> None:
    """The leg in use is not affected."""
    probes: list[Script] = [status(404)] * 4 + [cut_socket(), socket(b"three")]
    polls = [polled(b"one", "Last-Event-ID: 1"), silence]
    server.plan("/", {Leg.WEBSOCKET: probes, Leg.POLL: polls})
    with Bot(build, server.origin, upgrade="10,40") as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "error RT_ERROR_HTTP_STATUS 2 404 0 0")
        bot.expect("transport 3", "open 3 0", "message 1 1 - one")
        bot.expect("transport 1", "open 1 1", "message 1 0 - three")
        bot.end()
    expect(server.count("/", Leg.POLL) <= 2, "the poll was restarted")


def test_a_change_of_the_network_triggers_a_probe(build: Build, server: LadderServer) -> None:
    server.plan("/", {Leg.WEBSOCKET: [status(404), socket()], Leg.SSE: [stream()]})
    with Bot(build, server.origin, online=1) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
        bot.tell("online 0")
        bot.is_silent()
        bot.tell("online 1")
        bot.expect("transport 1", "open 1 0")
        bot.end()


# The network (B11)


def test_without_a_network_nothing_is_counted(build: Build, server: LadderServer) -> None:
    """A delay ends with the network; when the network returns, the ladder starts at its top."""
    server.plan(
        "/",
        {
            Leg.WEBSOCKET: [status(404), socket(b"back")],
            Leg.SSE: [stream(b"data: one\n\n", holds=False), status(503)],
        },
    )
    with Bot(build, server.origin, upgrade="0,0", max_delay=60_000, online=1) as bot:
        bot.expect("error RT_ERROR_HTTP_STATUS 1 404 0 0", "transport 2", "open 2 0")
        bot.expect("message - 0 - one", rf"error {ANY} 2 \d+ \d+ 1")
        bot.tell("online 0")
        bot.waits_for_network()
        bot.wait_for_state("3 3 2 -")
        bot.tell("online 1")
        bot.expect("transport 1", "open 1 0", "message - 0 - back")
        bot.end()
    expect(server.count("/", Leg.SSE) == 1, "tried without a network")


def test_without_a_network_from_the_beginning(build: Build, server: LadderServer) -> None:
    server.plan("/", {Leg.WEBSOCKET: [socket()]})
    with Bot(build, server.origin, online=0) as bot:
        bot.waits_for_network()
        bot.wait_for_state("3 3 1 -")
        expect(server.count("/", Leg.WEBSOCKET) == 0, "tried without a network")
        bot.tell("online 1")
        bot.expect("transport 1", "open 1 0")
        bot.end()


# Established again (B15)


def test_another_path_starts_over(build: Build, server: LadderServer) -> None:
    """Ids are valid for their path only."""
    for path in ("/one", "/two"):
        server.plan(path, {Leg.SSE: [stream(b"id: 7\ndata: x\n\n")]})
    with Bot(build, server.origin, "one", transports="2") as bot:
        for path, resumed in (("one", 0), ("one", 1), ("two", 0)):
            if (path, resumed) != ("one", 0):
                bot.tell("disconnect")
                bot.expect("transport 0", "disconnected RT_OK")
                bot.tell(f"establish {path}")
            bot.expect("transport 2", f"open 2 {resumed}")
            if not resumed:
                bot.expect(f"message 7 1 {path} x")
        bot.end()
    ids = [one.headers.get("last-event-id") for _, one in server.seen]
    expect(ids == [None, "7", None], f"ids {ids}")
