"""Runs the programs in examples as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PATIENCE_S = 60


@pytest.fixture
def example(environment):
    def run_example(name, *arguments):
        return subprocess.run(
            [sys.executable, str(EXAMPLES / name), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    return run_example


def test_readme(example, server):
    result = example("readme.py", server.url + "/echo")
    assert (result.returncode, result.stdout) == (0, "hello\n"), result.stderr


def test_echo(example, server):
    result = example("echo.py", server.url + "/echo", "one", "two")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[:2] == ["one", "two"]
    assert lines[2].startswith("round trip: ")


def test_subscribe(example, server):
    result = example("subscribe.py", server.url + "/count?to=50", "50")
    assert result.returncode == 0, result.stderr
    numbers = " ".join(result.stdout.splitlines()[:-1]).split()
    assert numbers == [str(number) for number in range(50)]
    assert result.stdout.splitlines()[-1] == "ok: 50 of 50 messages, in order, each once"


def test_subscribe_with_tls(example, tls_server, ca_file):
    arguments = [tls_server.url + "/count?to=5", "5", "--ca-file", str(ca_file)]
    result = example("subscribe.py", *arguments)
    assert result.returncode == 0, result.stderr


def test_subscribe_reports_a_gap(example, server):
    result = example("subscribe.py", server.url + "/count?to=3", "4")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1].startswith("FAILED: closed before message 3 of 4")


def test_subscribe_reports_a_wrong_number(example, server):
    result = example("subscribe.py", server.url + "/abort", "1")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "FAILED: message 0 of 1 is 'last words'"


def test_subscribe_reports_a_refused_connection(example):
    result = example("subscribe.py", "ws://127.0.0.1:1/", "1")
    assert result.returncode == 1
    assert result.stdout.startswith("FAILED: cannot connect to 127.0.0.1:1")
    assert "Traceback" not in result.stderr


def test_events(example, events):
    result = example("events.py", events.url + "/count", "3")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    # Listeners are called when an event arrives; the iteration takes it later. By then, more events
    # may have arrived than it takes.
    assert [line for line in lines if line.startswith("odd:")][:2] == [
        "odd: number 1",
        "odd: number 3",
    ]
    assert [line for line in lines if not line.startswith("odd:")] == [
        "1 odd number 1",
        "2 message number 2",
        "3 odd number 3",
    ]


def test_events_reports_a_refusal(example, events):
    result = example("events.py", events.url + "/page")
    assert result.returncode == 1
    assert "FAILED: 127.0.0.1" in result.stderr and "text/event-stream" in result.stderr
    assert "Traceback" not in result.stderr


def test_poll(example, events):
    """The second run continues after the last message of the first one."""
    lines = []
    for arguments in (["3"], ["2", "0:3"]):
        result = example("poll.py", events.url + "/poll", *arguments)
        assert result.returncode == 0, result.stderr
        lines += result.stdout.splitlines()
    assert lines == [f"0:{number} number {number}" for number in range(1, 6)]


def test_poll_reports_a_refusal(example, events):
    result = example("poll.py", events.url + "/count")
    assert result.returncode == 1
    assert "FAILED: 127.0.0.1" in result.stderr and "an event stream" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("path", "leg"), [("events", "sse"), ("poll", "poll")])
def test_listen(example, bots, path, leg):
    """The second run continues after the last message of the first one."""
    lines = []
    for arguments in (["3"], ["2", "3"]):
        result = example("listen.py", bots.url, path, *arguments)
        assert result.returncode == 0, result.stderr
        assert f"by {leg}" in result.stderr
        lines += result.stdout.splitlines()
    assert lines == [f"{number} number {number}" for number in range(1, 6)]


def test_listen_reports_a_refusal(example, bots):
    result = example("listen.py", bots.url, "nowhere")
    assert result.returncode == 1
    assert "FAILED: 127.0.0.1" in result.stderr and "404" in result.stderr
    assert "Traceback" not in result.stderr


def test_request(example, bots):
    result = example("request.py", bots.url + "/things", '{"a": 1}')
    assert (result.returncode, result.stdout) == (0, '{"stored": true}\n'), result.stderr
    assert bots.posts.get(timeout=30)[1] == b'{"a":1}'
    result = example("request.py", bots.url + "/poll")
    assert (result.returncode, result.stdout) == (0, "number 1\n"), result.stderr
    result = example("request.py", bots.url + "/nowhere")
    assert result.returncode == 1
    assert "404" in result.stderr and "Traceback" not in result.stderr


def test_channels(environment, pusher_server):
    name, server = "private-orders", f"127.0.0.1:{pusher_server.port}"
    program = subprocess.Popen(
        [
            *(sys.executable, str(EXAMPLES / "channels.py"), pusher_server.key, name),
            *("--server", server, "--auth", pusher_server.http + "/pusher/auth"),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    control, succeeded = pusher_server.control, "pusher_internal:subscription_succeeded"
    control.wait(what="out", event=succeeded)
    control.publish(name, "price", {"euro": 7})
    control.close(code=4009, reason="out")
    output, errors = program.communicate(timeout=PATIENCE_S)
    assert output.splitlines()[-1] == 'private-orders price {"euro":7}'
    assert errors.splitlines()[:2] == ["connecting", "connected"]
    assert errors.splitlines()[-1].startswith("FAILED: ") and program.returncode == 1
