"""Spreadbot in Python against Nchan and the demo server, while its legs are cut and refused."""

import asyncio
import itertools
from typing import Any

import librealtime
import librealtime.sync
import pytest
from demo_process import DemoProcess
from fault_proxy import Then
from harness import PATIENCE_S, expect
from leg_gate import Leg, LegGate, Treat
from nchan import Nchan
from servers import Servers

MESSAGES = 60
QUICKLY: dict[str, Any] = {
    "max_delay": 0.02,
    "upgrade_interval": 0.02,
    "max_upgrade_interval": 0.02,
}

_channels = itertools.count(1)


class Course:
    """Publishes messages, and blocks legs meanwhile."""

    def __init__(self, gate: LegGate, nchan: Nchan, folder: str) -> None:
        self.gate = gate
        self.nchan = nchan
        self.channel = f"python{next(_channels)}"
        self.path = f"{folder}/{self.channel}"
        self.legs: list[str | None] = []

    @property
    def options(self) -> dict[str, Any]:
        return {**QUICKLY, "on_transport": self.legs.append}

    def publish(self, number: int) -> None:
        gate = self.gate
        if number == 10:
            gate.cut(Then.RESET)
        elif number == 20:
            gate.set(Leg.WEBSOCKET, to=404)
            gate.cut(Then.CUT)
        elif number == 30:
            gate.set(Leg.SSE, to=Treat.CLOSE)
            gate.cut(Then.CUT)
        elif number == 40:
            gate.set(Leg.WEBSOCKET, to=Treat.PASS)
        elif number == 50:
            gate.cut(Then.CUT)
        self.nchan.publish(self.channel, str(number))

    def check(self, texts: list[str]) -> None:
        expect(texts == [str(number) for number in range(MESSAGES)], f"received {texts}")
        met = set(self.legs)
        expect(met >= {"websocket", "sse", "poll"}, f"legs {self.legs}")


def each_once(face: str, servers: Servers, nchan: Nchan, folder: str = "ps") -> None:
    course = Course(LegGate(servers, "127.0.0.1", nchan.port), nchan, folder)
    if face == "blocking":
        block(course)
    else:
        asyncio.run(asyncio.wait_for(listen(course), PATIENCE_S))


async def listen(course: Course) -> None:
    texts = []
    async with librealtime.Spreadbot(course.gate.url, **course.options) as bot:
        await bot.establish_connection(course.path)
        for number in range(MESSAGES):
            await asyncio.to_thread(course.publish, number)
            message = await bot.recv()
            expect(message.had_id and message.id == bot.last_event_id, f"{message}")
            texts.append(message.text)
        course.check(texts)
        while bot.transport != "websocket" or bot.state != "connected":
            await asyncio.sleep(0.001)
        await bot.send_message_string("by the WebSocket")
        expect((await bot.recv()).text == "by the WebSocket", "it was not echoed")
        answer = await bot.rest.post_data(course.path, "by a request")
        expect(answer.is_success, f"{answer}")
        expect((await bot.recv()).text == "by a request", "it was not echoed")


def block(course: Course) -> None:
    texts = []
    with librealtime.sync.Spreadbot(course.gate.url, **course.options) as bot:
        bot.establish_connection(course.path, timeout=PATIENCE_S)
        for number in range(MESSAGES):
            course.publish(number)
            texts.append(bot.recv(PATIENCE_S).text)
        course.check(texts)
        bot.send_message_string("last", timeout=PATIENCE_S)
        expect(bot.recv(PATIENCE_S).text == "last", "it was not echoed")


@pytest.mark.parametrize("face", ("asyncio", "blocking"))
def test_each_once(face: str, servers: Servers, nchan: Nchan) -> None:
    each_once(face, servers, nchan)


@pytest.mark.parametrize("face", ("asyncio", "blocking"))
def test_each_once_from_the_demo_server(face: str, servers: Servers, demo: DemoProcess) -> None:
    each_once(face, servers, demo, "channel")
