"""Spreadbot against a second server, whose author knew only docs/spreadbot.md."""

import asyncio
import http.client
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import librealtime
import pytest
from harness import PATIENCE_S, ROOT, expect
from patience import patiently
from servers import Servers
from spreadbot_python_tests import each_once

T = TypeVar("T")
SERVER = ROOT / "Tests" / "Support" / "spreadbot_server.py"


class PageServer:
    """The server as a separate process."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, str(SERVER), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rpartition(":")[2])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "PageServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def publish(self, channel: str, text: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("POST", f"/ps/{channel}", text)
        status = connection.getresponse().status
        connection.close()
        expect(status == 204, f"the server answered {status}")


@pytest.mark.parametrize("face", ("asyncio", "blocking"))
def test_cut_and_refused(face: str, servers: Servers) -> None:
    with PageServer() as server:
        each_once(face, servers, server)


@pytest.mark.parametrize("without", ("", "subprotocol", "websocket", "websocket,sse"))
def test_sends_are_echoed(without: str) -> None:
    async def run(url: str) -> None:
        async with librealtime.Spreadbot(url) as bot:
            await bot.establish_connection("chat/room?a=1")
            for number in range(20):
                await bot.send_message_string(f"{number} ä\n\0")
                await bot.send_message_binary(b"\xe4")
            texts = [(await bot.recv()).data for _ in range(40)]
            expect(texts[::2] == [f"{n} ä\n\0".encode() for n in range(20)], f"{texts}")
            # Only some of the transports can carry arbitrary bytes.
            expect(set(texts[1::2]) <= {b"\xe4", "\ufffd".encode()}, f"{texts}")

    with PageServer("--without", without) as server:
        within_time(run, server.url)


def test_early_messages() -> None:
    async def run(server: PageServer) -> None:
        for transport in ("sse", "poll"):
            async with librealtime.Spreadbot(server.url) as bot:
                await bot.establish_connection(f"ps/{transport}")
                cursor = bot.last_event_id
                while not cursor:
                    await asyncio.sleep(0.001)
                    cursor = bot.last_event_id
                await bot.close_connection()
                await asyncio.to_thread(server.publish, transport, "missed")
                await bot.establish_connection(f"ps/{transport}")
                expect((await bot.recv()).text == "missed", transport)

    with PageServer("--without", "websocket") as server:
        within_time(run, server)
    with PageServer("--without", "websocket,sse") as server:
        within_time(run, server)


def test_tokens_are_refreshed() -> None:
    async def run(url: str) -> None:
        tokens: list[tuple[str, str]] = []
        async with librealtime.Spreadbot(
            url,
            access_token="refused",
            refresh_token="first",
            auth_url=f"{url}/token",
            on_tokens=lambda *pair: tokens.append(pair),
        ) as bot:
            await bot.establish_connection("chat")
            for text in ("one", "two"):
                await bot.send_message_string(text)
                expect((await bot.recv()).text == text, "it was not echoed")
                # The server closes the connection when its token expires.
                known = len(tokens)
                while len(tokens) == known:
                    await asyncio.sleep(0.01)
            expect(len(set(tokens)) == len(tokens), f"{tokens}")

    # A message and its echo must fit into the life of a token.
    for attempt in patiently(1):
        with (
            attempt as life,
            PageServer("--token", "first", "--token-life", f"{life:g}") as server,
        ):
            within_time(run, server.url)


def within_time(run: Callable[[T], Coroutine[Any, Any, None]], argument: T) -> None:
    asyncio.run(asyncio.wait_for(run(argument), PATIENCE_S))
