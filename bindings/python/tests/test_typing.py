"""What type checkers say about programs that use the package: the examples, and one of a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import librealtime

HERE = Path(__file__).resolve().parents[1]
SOURCE = HERE / "src"
EXAMPLES = sorted((HERE / "examples").glob("*.py"))

# A guard against hanging.
PATIENCE_S = 300

PROGRAM = """
import asyncio
from typing import Union

import librealtime
import librealtime.sync


async def listen() -> None:
    try:
        async with librealtime.connect("wss://example.org/") as ws:
            latency: float = await (await ws.ping(b"payload"))
            message: Union[str, bytes] = await ws.recv()
            print(latency, message)
    except librealtime.ConnectionClosed as error:
        print(error.code, error.reason)
    except librealtime.InvalidStatus as error:
        print(error.response.status_code)
    except librealtime.InvalidURI as error:
        print(error.message)
    except librealtime.ConnectFailed as error:
        print(error.system_error)
    except librealtime.RealtimeError as error:
        print(error.name)


def count() -> None:
    with librealtime.sync.connect("wss://example.org/", max_queue=10) as ws:
        pong = ws.ping()
        try:
            print(ws.recv(timeout=1), pong.wait(1))
        except librealtime.ConnectionTimeout:
            pass
    for event in librealtime.sync.EventSource("https://example.org/events"):
        print(event.data)
    with librealtime.sync.RESTClient("https://example.org/") as client:
        try:
            print(client.get("users").raise_for_status().text)
        except librealtime.HTTPStatusError as error:
            print(error.response.status_code)


async def more() -> None:
    async with librealtime.Pusher("key", cluster="eu") as pusher:
        try:
            async for event in await pusher.subscribe("private-orders"):
                print(event.event)
        except librealtime.SubscriptionError as error:
            print(error.channel)
    async with librealtime.DDPClient("https://example.org") as client:
        try:
            await client.call("add", 1)
        except librealtime.DDPError as error:
            print(error.reason)


async def handle() -> None:
    ws = await librealtime.connect("wss://example.org/", on_message=lambda message: print(message))
    ws.on_message = lambda message: print(message.upper())
    ws.on_messages = lambda messages: print(len(messages))
    ws.on_lost = lambda lost: print(lost.code, lost.reason)
    ws.on_reconnect = lambda attempt: attempt.number < 5
    source = librealtime.EventSource("https://example.org/", on_any=lambda event: print(event.id))
    source.on_open = lambda: print("open")
    source.on_error = lambda error: print(error.fatal, error.retry_in)
    source.on_message = lambda event: print(event.data)
    source.on_comment = lambda comment: print(comment.strip())
    source.add_event_listener("price", lambda event: print(event.data))
    poll = librealtime.LongPoll("https://example.org/")
    poll.on_message = lambda message: print(message.text)
    bot = librealtime.Spreadbot("https://example.org/")
    bot.on_open = lambda transport, resumed: print(transport.upper(), resumed)
    bot.on_message = lambda message: print(message.text)
    bot.on_error = lambda error: print(error.fatal)
    bot.on_tokens = lambda access, refresh: print(access.upper(), refresh.upper())
    pusher = librealtime.Pusher("key", on_state=lambda change: print(change.new))
    pusher.on_error = lambda error: print(error.code)
    pusher.on_push = lambda result: print(result.error)
    pusher.bind("price", lambda event: print(event.data))
    pusher.bind(lambda event: print(event.event))
    channel = await pusher.subscribe("presence-room", wait=False)
    channel.on_member_added = lambda member: print(member.id)
    channel.bind("price", on_price)
    channel.bind("price")(on_price)
    channel.unbind("price", on_price)
    client = librealtime.DDPClient("https://example.org/")
    client.on_status = lambda change: print(change.status)
    client.on_change = lambda change: print(change.collection)
    client.on_user = lambda user: print(user)


def on_price(event: librealtime.PusherEvent) -> None:
    print(event.data)


def handle_blocking() -> None:
    source = librealtime.sync.EventSource("https://example.org/")
    source.on_error = lambda error: print(error.retry_in)
    ws = librealtime.sync.connect("wss://example.org/")
    ws.on_message = lambda message: print(message.upper())
    pusher = librealtime.sync.Pusher("key")
    pusher.bind("price", lambda event: print(event.data))


asyncio.run(listen())
asyncio.run(more())
asyncio.run(handle())
count()
handle_blocking()
"""

#: What a checker must complain about.
WRONG = """
import librealtime

librealtime.ConnectionClosd
librealtime.connect("wss://example.org/", max_queu=10)


async def handle() -> None:
    source = librealtime.EventSource("https://example.org/")
    source.on_error = lambda error: print(error.fatl)
    librealtime.Pusher("key").bind("price", lambda event: print(event.dat))
"""


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def mypy():
    def check(*paths):
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
        return run([*command, *map(str, paths)], {**os.environ, "MYPYPATH": str(SOURCE)})

    return check


@pytest.fixture
def pyright(tmp_path):
    def check(*paths, mode="strict"):
        settings = {"extraPaths": [str(SOURCE)], "typeCheckingMode": mode}
        settings["include"] = [str(path) for path in paths]
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
        command = [sys.executable, "-m", "basedpyright", "-p", str(tmp_path)]
        return run(command, dict(os.environ))

    return check


def run(command, environment):
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_mypy_accepts_a_program(mypy, program):
    result = mypy(program(PROGRAM))
    assert result.returncode == 0, result.stdout + result.stderr


def test_pyright_accepts_a_program(pyright, program):
    result = pyright(program(PROGRAM))
    assert result.returncode == 0, result.stdout + result.stderr


def test_they_know_each_public_name(mypy, pyright, program):
    lines = ["import librealtime", *(f"print(librealtime.{name})" for name in librealtime.__all__)]
    names = librealtime.exceptions.__all__
    assert set(names) <= set(librealtime.__all__)
    lines += [f"print(librealtime.exceptions.{name})" for name in names]
    lines += [f"print(librealtime.sync.{name})" for name in librealtime.sync.__all__]
    path = program("\n".join([*lines, ""]))
    for result in (mypy(path), pyright(path, mode="standard")):
        assert result.returncode == 0, result.stdout + result.stderr


def test_they_find_mistakes(mypy, pyright, program):
    path = program(WRONG)
    for result in (mypy(path), pyright(path)):
        assert result.returncode == 1, result.stdout + result.stderr
        assert "ConnectionClosd" in result.stdout
        assert "max_queu" in result.stdout
        assert "fatl" in result.stdout
        assert '"dat"' in result.stdout


def test_mypy_accepts_the_examples(mypy):
    result = mypy(*EXAMPLES)
    assert result.returncode == 0, result.stdout + result.stderr


def test_pyright_accepts_the_examples(pyright):
    result = pyright(*EXAMPLES, mode="standard")
    assert result.returncode == 0, result.stdout + result.stderr
