"""The C examples against real servers, plain and TLS, each also under valgrind."""

import functools
import os
import shutil
import subprocess
import threading

import pytest
from harness import ROOT, Build, also_under_valgrind, expect, swift, valgrind
from nchan import Nchan
from pusher_server import PusherServer
from rest_server import RESTServer
from servers import Servers
from streams import Exchange, StreamServer
from websockets.asyncio.server import ServerConnection

COUNT = 50

languages = pytest.mark.parametrize(
    ("language", "grind"),
    [
        pytest.param("c", False, id="c"),
        pytest.param("c", True, id="c-valgrind", marks=valgrind),
        pytest.param("swift", False, id="swift", marks=swift),
    ],
)


@pytest.fixture(params=["websockets", "websockets TLS", "aiohttp", "aiohttp TLS"])
def echo(request: pytest.FixtureRequest, servers: Servers) -> list[str]:
    """The URL of a server, as arguments."""
    tls = servers.tls() if request.param.endswith("TLS") else None
    serve = servers.aiohttp_echo if request.param.startswith("aiohttp") else servers.echo
    return [serve(tls), *([str(tls.ca_file)] if tls else [])]


@pytest.mark.parametrize("name", ["echo", "poll_loop", "background_thread"])
@also_under_valgrind
def test_converses(build: Build, name: str, echo: list[str], grind: bool) -> None:
    lines = [f"message {i}" for i in range(10)]
    text = "" if name == "background_thread" else "".join(f"{line}\n" for line in lines)
    result = build.run(build.example(name), *echo, text=text, valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout.splitlines() == lines, f"printed {result.stdout!r}")


smallest = pytest.mark.parametrize("name", ["readme", "callbacks"])


@smallest
@pytest.mark.parametrize("echo", ["websockets", "aiohttp"], indirect=True)
@also_under_valgrind
def test_greets(build: Build, name: str, echo: list[str], grind: bool) -> None:
    result = build.run(build.example(name), *echo, valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}")


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@also_under_valgrind
def test_subscribes(build: Build, nchan: Nchan, scheme: str, grind: bool) -> None:
    """Half of the messages wait for the subscriber, half come while it listens."""
    channel = f"numbers_{scheme}_{int(grind)}"
    for number in range(COUNT // 2):
        nchan.publish(channel, str(number))

    def publish_the_rest() -> None:
        for number in range(COUNT // 2, COUNT):
            nchan.publish(channel, str(number))

    publisher = threading.Thread(target=publish_the_rest)
    publisher.start()
    arguments = [nchan.url(f"/ps/{channel}", scheme), str(COUNT)]
    arguments += [str(nchan.ca_file)] if scheme == "wss" else []
    try:
        result = build.run(build.example("subscribe"), *arguments, valgrind=grind)
    finally:
        publisher.join()
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(f"ok: {COUNT} of {COUNT}" in result.stdout, f"printed {result.stdout!r}")


@also_under_valgrind
def test_reads_events(build: Build, nchan: Nchan, grind: bool) -> None:
    """Two runs share an id file: the second continues where the first one stopped."""
    channel = f"events_{int(grind)}"
    for number in range(5):
        nchan.publish(channel, f"number {number}")
    url, ids = nchan.url(f"/ps/{channel}", "http"), build.folder / f"ids_{int(grind)}"
    data = []
    for count in (3, 2):
        result = build.run(build.example("events"), url, str(count), str(ids), valgrind=grind)
        expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        lines = [line.split(" ", 2) for line in result.stdout.splitlines()]
        expect(all(event == "message" for _, event, _ in lines), f"printed {result.stdout!r}")
        data += [text for _, _, text in lines]
    expect(data == [f"number {number}" for number in range(5)], f"received {data}")


@also_under_valgrind
def test_waits_for_events(build: Build, grind: bool) -> None:
    """It reconnects after the end of a stream, and ends when the server has no more events."""

    def script(exchange: Exchange) -> None:
        if exchange.number == 2:
            return exchange.answer("204 No Content")
        exchange.begin()
        exchange.send("retry: 1\n\ndata: a\ndata: b\n\nevent: named\ndata: c\n\n")

    with StreamServer(script) as server:
        result = build.run(build.example("read_events"), server.url(), valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout == "message: a\nb\nnamed: c\n" * 2, f"printed {result.stdout!r}")


@swift
def test_reads_events_in_swift(build: Build, nchan: Nchan) -> None:
    """The second run starts after the last event of the first one."""
    program = build.swift_example("events")
    for number in range(5):
        nchan.publish("events_swift", f"number {number}")
    url, last, data = nchan.url("/ps/events_swift", "http"), "", []
    for count in (3, 2):
        result = build.run(program, url, str(count), *([last] if last else []))
        expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        lines = [line.split(" ", 2) for line in result.stdout.splitlines()]
        expect(all(event == "message" for _, event, _ in lines), f"printed {result.stdout!r}")
        data += [text for _, _, text in lines]
        last = lines[-1][0]
    expect(data == [f"number {number}" for number in range(5)], f"received {data}")
    result = build.run(program, nchan.url("/nowhere", "http"), "1")
    expect(result.returncode == 1 and "404" in result.stderr, f"stderr {result.stderr!r}")


@swift
def test_requests_in_swift(build: Build) -> None:
    program = build.swift_example("request")
    with RESTServer() as server:
        result = build.run(program, server.url + "/flaky/x/1")
        expect(result.returncode == 0 and '"GET"' in result.stdout, result.stderr)
        expect("200 in attempt 2" in result.stderr, result.stderr)
        result = build.run(program, server.url + "/echo", '{"a":1}')
        expect(result.returncode == 0 and "application/json" in result.stdout, result.stderr)
        result = build.run(program, server.url + "/status/404")
        expect(result.returncode == 1 and "404" in result.stderr, result.stderr)


@languages
def test_polls(build: Build, nchan: Nchan, language: str, grind: bool) -> None:
    """The second run starts after the last message of the first one."""
    program = build.example("poll") if language == "c" else build.swift_example("poll")
    channel = f"polled_{language}_{int(grind)}"
    for number in range(5):
        nchan.publish(channel, f"number {number}")
    url, last, texts = nchan.url(f"/ps/{channel}", "http"), "", []
    for count in (3, 2):
        result = build.run(program, url, str(count), last, valgrind=grind)
        expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        lines = [line.split(" ", 1) for line in result.stdout.splitlines()]
        texts += [text for _, text in lines]
        last = lines[-1][0]
    expect(texts == [f"number {number}" for number in range(5)], f"received {texts}")


@languages
def test_listens(build: Build, nchan: Nchan, language: str, grind: bool) -> None:
    """The second run starts after the last message of the first one."""
    program = build.example("listen") if language == "c" else build.swift_example("listen")
    channel = f"heard_{language}_{int(grind)}"
    for number in range(5):
        nchan.publish(channel, f"number {number}")
    base, last, texts = nchan.url("", "http"), "", []
    for count in (3, 2):
        result = build.run(program, base, f"ps/{channel}", str(count), last, valgrind=grind)
        expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        expect("by WebSocket" in result.stderr or "by webSocket" in result.stderr, result.stderr)
        lines = [line.split(" ", 1) for line in result.stdout.splitlines()]
        texts += [text for _, text in lines]
        last = lines[-1][0]
    expect(texts == [f"number {number}" for number in range(5)], f"received {texts}")
    result = build.run(program, base, "nowhere/a", "1", valgrind=grind)
    expect(result.returncode == 1 and "404" in result.stderr, f"stderr {result.stderr!r}")


@also_under_valgrind
def test_reads_channels(
    build: Build, pusher_server: PusherServer, grind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A presence channel with one member; it ends with the first event."""
    program = build.example("pusher")
    monkeypatch.setenv("AUTH_ENDPOINT", f"{pusher_server.http}/pusher/auth")
    pusher_server.control.user(user_id="ann", user_info={"name": "Ann"})
    event = '{"event":"greeting","channel":"presence-room","data":"{\\"text\\":\\"hello\\"}"}'
    pusher_server.control.fault(
        point="sent", do="send", event="pusher_internal:subscription_succeeded", text=event
    )
    server = f"127.0.0.1:{pusher_server.port}"
    result = build.run(program, "demo", server, "presence-room", "1", valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect("subscribed to presence-room" in result.stderr, result.stderr)
    lines = result.stdout.splitlines()
    member = 'presence-room ann is here {"name":"Ann"}'
    expect(lines == [member, 'presence-room greeting {"text":"hello"}'], f"printed {lines}")
    pusher_server.control.auth(mode="deny", body="no seat")
    result = build.run(program, "demo", server, "private-room", valgrind=grind)
    expect(result.returncode == 1 and "403" in result.stderr, f"stderr {result.stderr!r}")
    result = build.run(program, "wrong", server, "news", valgrind=grind)
    expect(result.returncode == 1 and "4001" in result.stderr, f"stderr {result.stderr!r}")


@swift
def test_is_refused(build: Build) -> None:
    """A URL that cannot be polled is an error, not a crash."""
    program = build.swift_example("poll")
    result = build.run(program, "ftp://127.0.0.1/")
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("poll: " in result.stderr and "ftp" in result.stderr, f"stderr {result.stderr!r}")
    for arguments in ((), ("http://127.0.0.1/", "0"), ("http://127.0.0.1/", "x")):
        result = build.run(program, *arguments)
        expect(result.returncode == 2, f"exit code {result.returncode} for {arguments}")


def test_examples_build_against_an_installation(build: Build, servers: Servers) -> None:
    """As a user does it: the installed library, its pkg-config file, make."""
    prefix = build.folder / "prefix"
    folder = build.folder / "examples-c"
    shutil.copytree(ROOT / "examples-c", folder)
    environment = dict(os.environ)
    environment.pop("LD_LIBRARY_PATH", None)
    run = functools.partial(subprocess.run, capture_output=True, text=True, env=environment)
    result = run(["cmake", "--install", str(build.library), "--prefix", str(prefix)])
    expect(result.returncode == 0, f"cmake --install: {result.stderr}")
    environment["PKG_CONFIG_PATH"] = str(next(prefix.rglob("realtime.pc")).parent)
    # The install also copied programs that were built by hand in the checkout.
    result = run(["make", "--always-make", "-C", str(folder)])
    expect(result.returncode == 0, f"make: {result.stderr}")
    result = run([folder / "readme", servers.echo()])
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}, stderr {result.stderr!r}")


@swift
def test_greets_in_swift(build: Build, servers: Servers) -> None:
    result = build.run(build.swift_example("readme"), servers.echo())
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}")


@swift
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_subscribes_in_swift(build: Build, nchan: Nchan, scheme: str) -> None:
    channel = f"swift_{scheme}"
    for number in range(COUNT):
        nchan.publish(channel, str(number))
    arguments = [nchan.url(f"/ps/{channel}", scheme), str(COUNT)]
    arguments += [str(nchan.ca_file)] if scheme == "wss" else []
    result = build.run(build.swift_example("subscribe"), *arguments)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stdout}")
    expect(f"ok: {COUNT} of {COUNT}" in result.stdout, f"printed {result.stdout!r}")


def test_reports_a_gap(build: Build, nchan: Nchan) -> None:
    for number in (0, 1, 3):
        nchan.publish("gap", str(number))
    result = build.run(build.example("subscribe"), nchan.url("/ps/gap"), "3")
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("expected 2, received 3" in result.stdout, f"printed {result.stdout!r}")


@smallest
def test_reports_refusal(build: Build, name: str) -> None:
    # Port 1 is below the ports that tests use; nobody listens there.
    result = build.run(build.example(name), "ws://127.0.0.1:1/", valgrind=True)
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("RT_ERROR_CONNECT" in result.stderr, f"stderr {result.stderr!r}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        # The send may fail first.
        ("readme", "RT_ERROR_CLOSED"),
        ("callbacks", "closed with 4000 enough"),
    ],
)
def test_reports_close(build: Build, servers: Servers, name: str, said: str) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.close(4000, "enough")

    result = build.run(build.example(name), servers.websockets(handler), valgrind=True)
    expect(result.returncode == (name == "readme"), f"exit code {result.returncode}")
    expect(said in result.stderr, f"stderr {result.stderr!r}")


#: The host of the certificate, and the authorities that the client trusts.
REFUSED = {
    "unknown authority": ("localhost", "other"),
    "system's authorities do not know it": ("localhost", "system"),
    "wrong host": ("elsewhere.example", "it"),
    "no such CA file": ("localhost", "/does/not/exist.pem"),
}


@pytest.mark.parametrize(("host", "trusted"), REFUSED.values(), ids=REFUSED)
@also_under_valgrind
def test_tls_is_refused(
    build: Build, servers: Servers, host: str, trusted: str, grind: bool
) -> None:
    """Certificates that must be refused."""
    tls = servers.tls(host)
    known = {"other": servers.tls().ca_file, "system": None, "it": tls.ca_file}
    url, ca_file = servers.echo(tls), known.get(trusted, trusted)
    extra = [str(ca_file)] if ca_file else []
    result = build.run(build.example("echo"), url, *extra, text="secret\n", valgrind=grind)
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("RT_ERROR_TLS" in result.stderr, f"stderr {result.stderr!r}")
    expect(result.stdout == "", f"printed {result.stdout!r}")
