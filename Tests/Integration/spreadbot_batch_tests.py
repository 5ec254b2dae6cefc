"""JSON batches of messages that a Spreadbot connection polls."""

import queue

from bot import Bot
from harness import PATIENCE_S, Build, expect
from ladder_server import LadderServer, Socket, polled, silence, socket, status
from leg_gate import Leg
from spreadbot_message_tests import tells
from streams import Exchange

BATCH = "application/vnd.spreadbot.batch+json; charset=utf-8"


def test_polls_in_batches(build: Build, server: LadderServer) -> None:
    """Messages come in order. The cursor is the last id, even if its element has no data. JSON of
    any other form is a single message."""
    last = b'{"id": "2", "event": "e", "data": 0}'
    batch = b'{"messages": [{"id": 1, "data": "a"}, {"data": [ ]}, ' + last + b"]}"
    scripts = [
        polled(batch, kind=BATCH),
        polled(b'{"messages": []}', "Last-Event-ID: 9", kind=BATCH),
        polled(b'{"messages": [{"id": 3, "event": "deleted"}, 7, {"data": "c"}]}', kind=BATCH),
        polled(b'{"messages": [{"id": 4}, {}]}', kind=BATCH),
        polled(b'{"messages": 1}', kind=BATCH),
        silence,
    ]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10) as bot:
        bot.expect("transport 3", "open 3 0")
        tells(bot, ("1", True, "p", "a"), ("1", False, "p", "[]"), ("2", True, "e", "0"))
        # The id of a response without a message moves the cursor, too.
        tells(bot, ("3", False, "p", "c"), ("4", False, "p", '{"messages": 1}'))
        bot.end()
    ids = [one.headers.get("last-event-id") for one in server.of("/p", Leg.POLL)]
    expect(ids[:5] == [None, "2", "9", "3", "4"], f"ids {ids}")


def test_a_batch_without_ids_takes_the_id_of_the_answer(build: Build, server: LadderServer) -> None:
    batch = b'{"messages": [{"data": "a"}, {"data": "b"}]}'
    scripts = [polled(batch, "Last-Event-ID: 7", kind=BATCH), silence]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, "p", transports=3, poll_interval=10) as bot:
        bot.expect("transport 3", "open 3 0")
        tells(bot, ("", False, "p", "a"), ("7", True, "p", "b"))
        bot.tell("state")
        bot.expect("state 2 0 3 7")
        bot.end()


def test_a_pause_holds_the_rest_of_a_batch(build: Build, server: LadderServer) -> None:
    """The messages of the next poll come after it."""
    messages = (b'{"id": %d, "data": "%d"}' % (n, n) for n in range(4))
    batch = b'{"messages": [%b]}' % b", ".join(messages)
    server.plan("/p", {Leg.POLL: [polled(batch, kind=BATCH), polled(b"last"), silence]})
    with Bot(build, server.origin, None, transports=3, poll_interval=10) as bot:
        bot.tell("pause_at 1")
        bot.tell("establish p")
        bot.expect("transport 3", "open 3 0")
        tells(bot, ("0", True, "p", "0"), ("1", True, "p", "1"))
        while server.count("/p", Leg.POLL) < 2:
            bot.is_silent()
        bot.tell("state")
        bot.expect("state 2 0 3 1")
        bot.tell("pause_at 2")
        bot.tell("resume")
        tells(bot, ("2", True, "p", "2"))
        bot.is_silent()
        bot.tell("resume")
        tells(bot, ("3", True, "p", "3"), ("3", False, "p", "last"))
        bot.end()


def test_a_long_batch_comes_before_what_follows(build: Build, server: LadderServer) -> None:
    """It takes several turns. A pause holds it, and the leg does not end before it."""
    long = b"," + b" " * (1 << 20)
    batch = b'{"messages": [%b]}' % b",".join(b'{"data": %d}' % n for n in range(3000))
    spread = b'{"messages": [%b]}' % long.join(b'{"data": "%d"}' % n for n in range(3000, 3005))
    scripts = [polled(batch, kind=BATCH), polled(spread, kind=BATCH), status(404)]
    server.plan("/p", {Leg.POLL: scripts})
    with Bot(build, server.origin, None, transports=3, poll_interval=10) as bot:
        bot.tell("pause_at 2000")
        bot.tell("establish p")
        bot.until("message - 0 p 2000", "transport 3", "open 3 0", "message - 0 p .*")
        bot.is_silent()
        bot.tell("resume")
        bot.until("fatal .*", "message - 0 p .*")
    told = [message.data for message in bot.messages]
    expect(told == [str(n) for n in range(3005)], f"{len(told)} messages, {told[-5:]}")


def test_json_that_is_too_long_ends_its_leg(build: Build, server: LadderServer) -> None:
    long = b'{"data": "%b"}' % (b"a" * (16 << 20))
    server.plan("/1", {Leg.WEBSOCKET: [socket(long)]})
    server.plan("/3", {Leg.POLL: [polled(long, kind=BATCH)]})
    for leg in (1, 3):
        with Bot(build, server.origin, f"{leg}", transports=leg) as bot:
            bot.until(f"fatal .* {leg} .*", f"transport {leg}", f"open {leg} 0")
        expect(not bot.messages, f"by leg {leg}: {len(bot.messages)} messages")
        expect("of JSON, more than the 16777216" in "".join(bot.log), f"by leg {leg}: {bot.log}")


def test_a_probe_leaves_the_rest_of_a_batch(build: Build, server: LadderServer) -> None:
    """If a probe finds a WebSocket during a pause, the connection changes to it once the old leg
    has delivered what it holds."""
    closes: queue.Queue[bytes] = queue.Queue()

    def probe(exchange: Exchange) -> None:
        closes.put(Socket(exchange).serve())

    batch = b'{"messages": [{"data": "a"}, {"data": "b"}, {"data": "c"}]}'
    sockets = [status(404), probe, socket(b"d")]
    server.plan("/p", {Leg.WEBSOCKET: sockets, Leg.POLL: [polled(batch, kind=BATCH), silence]})
    with Bot(build, server.origin, None, upgrade="50,50") as bot:
        bot.tell("pause_at a")
        bot.tell("establish p")
        bot.until("message - 0 p a", "transport .*", "open .*", "error .*")
        closes.get(timeout=PATIENCE_S)
        bot.is_silent()
        bot.tell("resume")
        bot.expect("message - 0 p b", "message - 0 p c", "transport 1")
        bot.until("message - 0 p d", "open 1 .*")
        bot.end()
