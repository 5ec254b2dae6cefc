"""A Spreadbot connection to Nchan while its legs are cut, refused and stalled."""

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

#: Polls that are held, held with several messages in an answer, and not held (Nchan's locations).
FORMS = ("ps", "lpm", "ip")
HOPS = 40
MESSAGES = 200
#: 50 messages a second.
PACE_S = 0.02
ENDS = [Then.CUT, Then.RESET, Then.STALL]
#: Faults after which a leg is left: at once, after some attempts, or after the answer timeout,
#: which takes long and is therefore rare.
BLOCKS: list[Treatment] = [404, 503, Treat.CLOSE, Treat.RESET] * 3 + [Treat.STALL]
#: Lines that a complete log has, so that the search for credentials is not in vain.
SIGNS = (
    "trying WebSocket",
    "trying SSE",
    "trying long poll",
    "asking for a WebSocket again",
    "refreshing the tokens",
    "the tokens were refreshed",
    "without TLS",
    "error text:",
)
#: Events while one leg is lost and another one is found.
ON_THE_WAY = ("error .*", "open .*", "transport .*", "tokens .*")
QUICKLY: dict[str, object] = {
    "max_delay": 20,
    "upgrade": "10,10",
    "answer_timeout": 300,
    "poll_interval": 10,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Three of four seeds with each form of polls, the fourth with tokens that expire."""
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
    """A client behind a gate, and the leg that the test forces it to."""

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
        """Blocks the others until the client reports this leg, which is not in use."""
        if target == POLL:
            self.block(Leg.WEBSOCKET, Leg.SSE)
        elif target == WEBSOCKET:
            self.gate.set(Leg.WEBSOCKET, to=Treat.PASS)
        elif self.leg == WEBSOCKET:
            self.gate.set(Leg.SSE, to=Treat.PASS)
            self.block(Leg.WEBSOCKET)
        else:
            # From below, the client reaches it through a WebSocket that seems to work, then does
            # not.
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
        # At least this message comes by the new leg.
        last = first + count - 1
        nchan.publish(channel, str(last))
        bot.until(f"message .* {last}", *ON_THE_WAY)
    expect(ladder.hops >= HOPS, f"{ladder.hops} hops")
    received = [message.data for message in bot.messages]
    expect(received == [str(number) for number in range(MESSAGES)], f"received {received}")


def test_tokens_expire(build: Build, servers: Servers, nchan: Nchan, seed: int) -> None:
    """The same, while access tokens expire on every leg; no refresh token is used twice."""
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
