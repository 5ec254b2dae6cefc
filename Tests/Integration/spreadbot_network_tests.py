"""A Spreadbot connection to Nchan that loses its network, or whose server restarts."""

import contextlib
import http.client
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from bot import POLL, SSE, WEBSOCKET, Bot
from fault_proxy import Then
from harness import PATIENCE_S, Build, expect, in_namespaces
from leg_gate import Leg, LegGate, Treat
from namespaces import SERVER, Wire
from nchan import Nchan, NchanError
from servers import Servers
from spreadbot_nchan_tests import HOPS, ON_THE_WAY, QUICKLY, Ladder, each_once

Test = Callable[[Build, Servers, Nchan], None]


# Loss of the network (B11)


@contextlib.contextmanager
def cable(
    build: Build, servers: Servers, nchan: Nchan, **options: object
) -> Iterator[tuple[Wire, LegGate, str, Bot]]:
    """A client in its own namespace, a gate at the other end of its cable, and a channel."""
    channel = f"cable_{time.monotonic_ns()}"
    with Wire() as wire:
        gate = LegGate(servers, "127.0.0.1", nchan.port, at=wire.listen())
        with Bot(build, gate.url, f"ps/{channel}", prefix=wire.inside, **options) as bot:
            yield wire, gate, channel, bot
            bot.end()
        gate.cut(Then.CUT)


@in_namespaces
def test_link_is_lost_under_a_websocket(build: Build, servers: Servers, nchan: Nchan) -> None:
    """Pings notice it. Nothing is tried or counted; messages sent meanwhile arrive later."""
    with cable(build, servers, nchan, ping=150) as (wire, gate, channel, bot):
        bot.expect("transport 1", "open 1 0")
        for number in range(2):
            nchan.publish(channel, f"before {number}")
            bot.until(f"message .* before {number}")
            wire.client("ip link set c0 down")
            # It also reports the wait for the network.
            bot.expect(r"error RT_ERROR_(TIMEOUT|CONNECTION_LOST) 1 0 -1 0")
            attempts = gate.count(Leg.WEBSOCKET)
            nchan.publish(channel, f"meanwhile {number}")
            bot.tell("state")
            bot.expect(r"state 3 3 1 \d+:\d+")
            expect(gate.count(Leg.WEBSOCKET) == attempts, "tried without a network")
            wire.client("ip link set c0 up")
            # The neighbours may have to find each other first.
            bot.until("open 1 1", "error .*")
            bot.until(f"message .* meanwhile {number}")
        told = [message.data for message in bot.messages]
        expect(told == ["before 0", "meanwhile 0", "before 1", "meanwhile 1"], f"{told}")


@in_namespaces
@pytest.mark.parametrize("leg", (SSE, POLL), ids=("SSE", "POLL"))
def test_link_is_lost_under_a_lower_leg(
    leg: int, build: Build, servers: Servers, nchan: Nchan
) -> None:
    """When the network changes, the WebSocket is probed at once, long before it is due."""
    with Wire() as wire:
        channel = f"lower_{time.monotonic_ns()}"
        gate = LegGate(servers, "127.0.0.1", nchan.port, at=wire.listen())
        gate.set(*(one for one in (Leg.WEBSOCKET, Leg.SSE) if one < leg), to=404)
        options: dict[str, object] = {"poll_timeout": 300, "poll_interval": 10}
        with Bot(build, gate.url, f"ps/{channel}", prefix=wire.inside, **options) as bot:
            nchan.publish(channel, "before")
            bot.until("message .* before", *ON_THE_WAY)
            gate.set(Leg.WEBSOCKET, to=Treat.PASS)
            wire.client("ip link set c0 down")
            # A loss that is over before anyone looks is none.
            bot.wait_until_logged("the network is gone")
            nchan.publish(channel, "meanwhile")
            wire.client("ip link set c0 up")
            bot.until("transport 1", *ON_THE_WAY)
            nchan.publish(channel, "after")
            bot.until("message .* after", *ON_THE_WAY)
            told = [message.data for message in bot.messages]
            bot.end()
        gate.cut(Then.CUT)
    expect(told == ["before", "meanwhile", "after"], f"received {told}")


@in_namespaces
def test_link_is_lost_while_legs_are_cut(build: Build, servers: Servers, nchan: Nchan) -> None:
    """Each of 200 messages comes once and in order, over 40 legs and four losses of the network."""
    options = {**QUICKLY, "ping": 150, "poll_timeout": 500}
    with cable(build, servers, nchan, **options) as (wire, gate, channel, bot):
        ladder = Ladder(bot, gate, random.Random(6))

        def before_hop() -> None:
            if ladder.hops % (HOPS // 4) == 3:
                wire.client("ip link set c0 down")
                if ladder.leg == WEBSOCKET:
                    bot.until(r"error RT_ERROR_\w+ 1 0 -1 0", *ON_THE_WAY)
                wire.client("ip link set c0 up")

        each_once(ladder, nchan, channel, before_hop)


@in_namespaces
def test_there_is_no_route(build: Build, servers: Servers, nchan: Nchan) -> None:
    """The network has no route to the server, so no leg can reach it."""
    with Wire() as wire:
        wire.client(f"ip route add unreachable {SERVER}/32")
        url = f"http://{SERVER}:1"
        options: dict[str, object] = {"max_reconnects": 1, "max_delay": 20}
        with Bot(build, url, prefix=wire.inside, **options) as bot:
            for leg in (1, 2, 3):
                bot.expect(rf"error RT_ERROR_CONNECT {leg} 0 \d+ 1")
                if leg < 3:
                    bot.expect(f"error RT_ERROR_CONNECT {leg} 0 0 0")
            bot.expect("fatal RT_ERROR_RECONNECTS_EXHAUSTED 3 0", "transport 0", "disconnected .*")
            bot.end()


# A server that restarts


@pytest.mark.parametrize("leg", (WEBSOCKET, SSE, POLL), ids=("WEBSOCKET", "SSE", "POLL"))
def test_reloads(build: Build, servers: Servers, leg: int) -> None:
    """Nchan then forgets its channels and numbers messages from the start: no message comes twice,
    none comes before an older one, and the new ones come. The test has its own server, since
    Nchan's workers do not always find each other again."""
    with Nchan() as own:
        gate = LegGate(servers, "127.0.0.1", own.port)
        gate.set(*(one for one in (Leg.WEBSOCKET, Leg.SSE) if one < leg), to=404)
        channel = f"reload_{leg}"
        options: dict[str, object] = {"upgrade": "0,0", "max_delay": 20, "max_reconnects": 1000}
        options |= {"stable": 1, "poll_interval": 10, "poll_timeout": 2000}
        with Bot(build, gate.url, f"ps/{channel}", **options) as bot:
            own.publish(channel, "0")
            bot.until("message .* 0", *ON_THE_WAY)
            published = 1
            for _ in range(3):
                published = reload_once(own, gate, channel, bot, published)
            told = [int(message.data) for message in bot.messages]
            bot.end()
    expect(told == sorted(set(told)), f"received {told}")


def reload_once(own: Nchan, gate: LegGate, channel: str, bot: Bot, first: int) -> int:
    """Publishes until a message sent after the reload comes; returns the next one's number."""
    before = own.workers()
    own.reload()
    deadline = time.monotonic() + PATIENCE_S
    # A worker that exits may keep a poll forever.
    while own.workers() & before or not own.workers():
        gate.cut(Then.CUT)
        expect(time.monotonic() < deadline, "the workers of before do not go")
        time.sleep(0.05)
    arrived = threading.Event()
    numbers = [first]

    def publish_on_and_on() -> None:
        # Exiting workers take messages with them, and drop publishers.
        while not arrived.wait(0.02):
            with contextlib.suppress(OSError, http.client.HTTPException, NchanError):
                own.publish(channel, str(numbers[0]))
            # Count it whether or not it was accepted, so that no number is published twice.
            numbers[0] += 1
            if (numbers[0] - first) % 50 == 0:
                # A worker may not notice what another one was given.
                gate.cut(Then.CUT)

    publisher = threading.Thread(target=publish_on_and_on)
    publisher.start()
    try:
        bot.until(r"message .*", *ON_THE_WAY)
        bot.until(r"message .*", *ON_THE_WAY)
    finally:
        arrived.set()
        publisher.join()
    return numbers[0]
