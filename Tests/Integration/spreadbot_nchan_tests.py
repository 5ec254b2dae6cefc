"""A Spreadbot connection to Nchan whose legs are cut, refused and stalled while messages come."""

import random
import threading
import time
from collections.abc import Callable

import pytest
from bot import POLL, SECRET, SSE, WEBSOCKET, Bot
from fault_proxy import Then
from harness import Build, expect
from leg_gate import Leg, LegGate, Treat, Treatment
from nchan import Nchan
from servers import Servers
from token_server import TokenServer

#: Held, held with several messages in an answer, and not held (Nchan's locations).
FORMS = ("ps", "lpm", "ip")
HOPS = 40
MESSAGES = 200
#: At 50 a second.
PACE_S = 0.02
ENDS = [Then.CUT, Then.RESET, Then.STALL]
#: What has a leg left for the next one: at once, after some attempts, or after the time to wait for
#: an answer, which is why it is rare.
BLOCKS: list[Treatment] = [404, 503, Treat.CLOSE, Treat.RESET] * 3 + [Treat.STALL]
#: Of a log that has something to look for credentials in.
SIGNS = (
    "trying WebSocket",
    "trying SSE",
    "trying long poll",
    "asking for a WebSocket again",
    "refreshing the tokens",
    "the tokens are refreshed",
    "without TLS",
    "error text:",
)
#: What may be said while a leg is lost and another one found.
ON_THE_WAY = ("error .*", "open .*", "transport .*", "tokens .*")
QUICKLY: dict[str, object] = {
    "max_delay": 20,
    "upgrade": "10,10",
    "answer_timeout": 300,
    "poll_interval": 10,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Three of four by each form of polls, the fourth with tokens that expire."""
    first = metafunc.config.getoption("--from")
    by_form, expire = [], []
    for seed in range(first, first + metafunc.config.getoption("--seeds")):
        number = (seed - 1) % (len(FORMS) + 1)
        if number < len(FORMS):
            by_form.append((FORMS[number], seed))
        else:
            expire.append(seed)
    if metafunc.function is test_hops:
        metafunc.parametrize(("form", "seed"), by_form)
    else:
        metafunc.parametrize("seed", expire)


class Ladder:
    """A client behind a gate, and which leg it is forced to."""

    def __init__(self, bot: Bot, gate: LegGate, choice: random.Random) -> None:
        self.bot = bot
        self.gate = gate
        self.choice = choice
        self.leg = 0
        self.hops = 0

    def block(self, *legs: Leg) -> None:
        for leg in legs:
            self.gate.set(leg, to=self.choice.choice(BLOCKS))

    def force(self, target: int) -> None:
        """Until it is told that this leg, which is not in use, is."""
        if target == POLL:
            self.block(Leg.WEBSOCKET, Leg.SSE)
        elif target == WEBSOCKET:
            self.gate.set(Leg.WEBSOCKET, to=Treat.PASS)
        elif self.leg == WEBSOCKET:
            self.gate.set(Leg.SSE, to=Treat.PASS)
            self.block(Leg.WEBSOCKET)
        else:
            # From below it is come to by way of a WebSocket that would work, and then does not.
            self.gate.set(Leg.SSE, to=Treat.PASS)
            self.gate.set(Leg.WEBSOCKET, to=Treat.PROBES)
        if self.leg == WEBSOCKET or target == POLL or self.choice.random() < 0.3:
            self.gate.cut(self.choice.choice(ENDS))
        self.bot.until(f"transport {target}", *ON_THE_WAY)
        if target == SSE:
            self.block(Leg.WEBSOCKET)
        self.leg = target
        self.hops += 1


def other(leg: int, choice: random.Random) -> int:
    return choice.choice([one for one in (WEBSOCKET, SSE, POLL) if one != leg])


def publish(nchan: Nchan, channel: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        nchan.publish(channel, str(number))
        time.sleep(PACE_S)


def test_hops(build: Build, servers: Servers, nchan: Nchan, form: str, seed: int) -> None:
    """Each of 200 messages comes once and in order, over 40 legs."""
    channel = f"hops_{form}_{seed}_{time.monotonic_ns()}"
    gate = LegGate(servers, "127.0.0.1", nchan.port)
    options = {**QUICKLY, "poll_url": f"{gate.url}/{form}/{channel}"}
    with Bot(build, gate.url, f"ps/{channel}", **options) as bot:
        ladder = Ladder(bot, gate, random.Random(seed))
        each_once(ladder, nchan, channel, lambda: None)
        bot.end()


def each_once(ladder: Ladder, nchan: Nchan, channel: str, before_hop: Callable[[], None]) -> None:
    bot = ladder.bot
    nchan.publish(channel, "0")
    bot.until("message .* 0", *ON_THE_WAY)
    ladder.leg = WEBSOCKET
    share = MESSAGES // HOPS
    for first in range(1, MESSAGES, share):
        count = min(share, MESSAGES - first)
        publisher = threading.Thread(target=publish, args=(nchan, channel, first, count - 1))
        publisher.start()
        try:
            before_hop()
            ladder.force(other(ladder.leg, ladder.choice))
        finally:
            publisher.join()
        # At least this one comes by the leg that was come to.
        last = first + count - 1
        nchan.publish(channel, str(last))
        bot.until(f"message .* {last}", *ON_THE_WAY)
    expect(ladder.hops >= HOPS, f"{ladder.hops} hops")
    received = [message.data for message in bot.messages]
    expect(received == [str(number) for number in range(MESSAGES)], f"received {received}")


def test_tokens_expire(build: Build, servers: Servers, nchan: Nchan, seed: int) -> None:
    """The same, while access tokens end on every leg; no refresh token is spent twice."""
    channel = f"expire_{time.monotonic_ns()}"
    with TokenServer(SECRET) as tokens:
        gate = LegGate(servers, "127.0.0.1", nchan.port, may_pass=tokens.allows)
        options = {**QUICKLY, **tokens.options}
        with Bot(build, gate.url, f"ps/{channel}", **options) as bot:
            ladder = Ladder(bot, gate, random.Random(seed))

            def before_hop() -> None:
                if ladder.choice.random() < 0.5:
                    tokens.expire()
                    gate.cut(Then.CUT)

            each_once(ladder, nchan, channel, before_hop)
            bot.end()
        bot.has_logged(*SIGNS)
        for leg in (Leg.WEBSOCKET, Leg.SSE, Leg.POLL):
            expect(gate.count(leg, 401) > 0, f"no {leg.name} was refused")
        expect(tokens.refreshes >= 5, f"{tokens.refreshes} refreshes")
