"""What a Spreadbot connection holds while receiving pauses: nothing of it is lost."""

import functools
from collections.abc import Callable

from bot import QUICKLY, Bot
from harness import Build, Suite, expect
from ladder_server import LadderServer, Socket, cut_socket, polled, silence, socket, stream
from leg_gate import Leg
from streams import Exchange

NO_PROBES: dict[str, object] = {**QUICKLY, "upgrade": "0,0"}
BATCH = "application/vnd.spreadbot.batch+json; charset=utf-8"

Test = Callable[[Build, LadderServer], None]


def add(suite: Suite, build: Build) -> None:
    tests: list[Test] = [
        holds_messages,
        holds_the_rest_of_a_batch,
        holds_what_comes_before_a_pong,
        holds_no_more_than_its_limit,
    ]
    for test in tests:
        name = "spreadbot pause, " + test.__name__.replace("_", " ")
        suite.add(name, functools.partial(with_server, test, build))


def with_server(test: Test, build: Build) -> None:
    with LadderServer() as server:
        test(build, server)


def tells(bot: Bot, *wanted: tuple[str, bool, str, str]) -> None:
    """These messages: id, whether it is its own, event, data."""
    for one in wanted:
        message = bot.message()
        told = (message.id, message.had_id, message.event, message.data)
        expect(told == one, f"expected {one}, received {told}")


def holds_messages(build: Build, server: LadderServer) -> None:
    """On each leg, one that comes while it is paused too."""
    server.plan("/1", {Leg.WEBSOCKET: [cut_socket(b"a"), socket(b"b")]})
    server.plan("/2", {Leg.SSE: [stream(b"data: a\n\n", holds=False), stream(b"data: b\n\n")]})
    server.plan("/3", {Leg.POLL: [polled(b"a"), polled(b"b"), silence]})
    for leg in (1, 2, 3):
        with Bot(build, server.origin, None, transports=leg, poll_interval=10, **QUICKLY) as bot:
            bot.tell("pause")
            bot.tell(f"establish {leg}")
            if leg != 3:
                bot.expect(f"transport {leg}", f"open {leg} 0")
            bot.is_silent()
            bot.tell("resume")
            bot.until(f"message .* {leg} b", "transport 3", "open .*", "error .* 1")
            bot.end()
        told = [message.data for message in bot.messages]
        expect(told == ["a", "b"], f"by leg {leg}: {told}")


def holds_the_rest_of_a_batch(build: Build, server: LadderServer) -> None:
    """What the next poll brings comes behind it."""
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
        bot.expect("state 1 0 3 1")
        bot.tell("pause_at 2")
        bot.tell("resume")
        tells(bot, ("2", True, "p", "2"))
        bot.is_silent()
        bot.tell("resume")
        tells(bot, ("3", True, "p", "3"), ("3", False, "p", "last"))
        bot.end()


def holds_what_comes_before_a_pong(build: Build, server: LadderServer) -> None:
    """A send is confirmed, and the end of the leg is told behind what came before it."""
    told = [b'{"id": 1, "data": "a"}', b"b"]

    def talks(exchange: Exchange) -> None:
        peer = Socket(exchange)
        peer.read()
        for payload in told:
            peer.send(payload)
        ping = peer.read()[1]
        peer.send(ping, 10)
        peer.read()
        peer.send(b"c")
        peer.close(1001)

    server.plan("/p", {Leg.WEBSOCKET: [talks, socket()]})
    with Bot(build, server.origin, "p", transports=1, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        bot.tell("pause")
        bot.send("1")
        bot.expect("sent 1 RT_OK 0")
        # Never confirmed: the server closes.
        bot.send("2")
        bot.is_silent()
        bot.tell("resume")
        tells(bot, ("1", True, "p", "a"), ("1", False, "p", "b"), ("1", False, "p", "c"))
        bot.expect(
            "sent 2 RT_ERROR_CONNECTION_LOST 0", "error RT_ERROR_CONNECTION_LOST 1 0 .*", "open 1 1"
        )
        bot.end()


def holds_no_more_than_its_limit(build: Build, server: LadderServer) -> None:
    """Behind it a frame counts as sent once it is written; all messages come with the end."""
    count = 600

    def talks(exchange: Exchange) -> None:
        peer = Socket(exchange)
        peer.read()
        for number in range(count):
            peer.send(b"%d " % number + b"x" * 1000)
        peer.serve()

    server.plan("/p", {Leg.WEBSOCKET: [talks]})
    with Bot(build, server.origin, "p", transports=1, **NO_PROBES) as bot:
        bot.expect("transport 1", "open 1 0")
        bot.tell("pause")
        bot.send("1")
        bot.expect("sent 1 RT_OK 0")
        bot.is_silent()
        bot.tell("resume")
        numbers = [int(bot.message().data.split()[0]) for _ in range(count)]
        expect(numbers == list(range(count)), f"{numbers}")
        bot.end()
