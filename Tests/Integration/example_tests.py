"""The C examples against real servers, plain and TLS, each again under valgrind."""

import functools
import os
import shutil
import subprocess
import threading

from harness import ROOT, Build, Suite, expect
from nchan import Nchan
from rest_server import RESTServer
from servers import Servers
from websockets.asyncio.server import ServerConnection

COUNT = 50


def add(suite: Suite, build: Build, servers: Servers, nchan: Nchan) -> None:
    tls = servers.tls()
    echo_servers = {
        "websockets": (servers.echo(), None),
        "websockets TLS": (servers.echo(tls), tls),
        "aiohttp": (servers.aiohttp_echo(), None),
        "aiohttp TLS": (servers.aiohttp_echo(tls), tls),
    }
    runs = [(echo, grind) for grind in (False, True) for echo in echo_servers]
    for echo, grind in runs:
        url, authority = echo_servers[echo]
        where = f"{echo}{', valgrind' if grind else ''}"
        extra = [str(authority.ca_file)] if authority else []
        for name in ("echo", "poll_loop", "background_thread"):
            test = functools.partial(converses, build, name, [url, *extra], grind)
            suite.add(f"example {name}: {where}", test)
        if authority is None:
            suite.add(f"example readme: {where}", functools.partial(greets, build, url, grind))
    for scheme in ("ws", "wss"):
        for grind in (False, True):
            where = f"Nchan {scheme}{', valgrind' if grind else ''}"
            test = functools.partial(subscribes, build, nchan, scheme, grind)
            suite.add(f"example subscribe: {where}", test)
    suite.add("example subscribe: a gap is told", functools.partial(tells_a_gap, build, nchan))
    for grind in (False, True):
        test = functools.partial(reads_events, build, nchan, grind)
        suite.add(f"example events{', valgrind' if grind else ''}", test)
        test = functools.partial(polls, build, nchan, "c", grind)
        suite.add(f"example poll{', valgrind' if grind else ''}", test)
        test = functools.partial(listens, build, nchan, "c", grind)
        suite.add(f"example listen{', valgrind' if grind else ''}", test)
    suite.add("example readme: nobody listens", functools.partial(tells_refusal, build))
    suite.add("example readme: closed", functools.partial(tells_close, build, servers))
    refusals(suite, build, servers)
    suite.add("examples' Makefile: pkg-config", functools.partial(makes, build, servers))
    suite.add("example readme in Swift", functools.partial(greets_in_swift, build, servers))
    for scheme in ("ws", "wss"):
        test = functools.partial(subscribes_in_swift, build, nchan, scheme)
        suite.add(f"example subscribe in Swift: Nchan {scheme}", test)
    suite.add("example events in Swift", functools.partial(reads_events_in_swift, build, nchan))
    suite.add("example request in Swift", functools.partial(requests_in_swift, build))
    suite.add("example poll in Swift", functools.partial(polls, build, nchan, "swift"))
    suite.add("example poll in Swift: refused", functools.partial(is_refused, build))
    suite.add("example listen in Swift", functools.partial(listens, build, nchan, "swift"))


def converses(build: Build, name: str, arguments: list[str], grind: bool) -> None:
    lines = [f"message {i}" for i in range(10)]
    text = "" if name == "background_thread" else "".join(f"{line}\n" for line in lines)
    result = build.run(build.example(name), *arguments, text=text, valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout.splitlines() == lines, f"printed {result.stdout!r}")


def greets(build: Build, url: str, grind: bool) -> None:
    result = build.run(build.example("readme"), url, valgrind=grind)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}")


def subscribes(build: Build, nchan: Nchan, scheme: str, grind: bool) -> None:
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


def reads_events(build: Build, nchan: Nchan, grind: bool) -> None:
    """Two runs share a file of ids: the second goes on where the first one stopped."""
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


def reads_events_in_swift(build: Build, nchan: Nchan) -> None:
    """The second run begins behind the last event of the first one."""
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
    expect(result.returncode == 1 and "404" in result.stderr, f"said {result.stderr!r}")


def requests_in_swift(build: Build) -> None:
    program = build.swift_example("request")
    with RESTServer() as server:
        result = build.run(program, server.url + "/flaky/x/1")
        expect(result.returncode == 0 and '"GET"' in result.stdout, result.stderr)
        expect("200 in attempt 2" in result.stderr, result.stderr)
        result = build.run(program, server.url + "/echo", '{"a":1}')
        expect(result.returncode == 0 and "application/json" in result.stdout, result.stderr)
        result = build.run(program, server.url + "/status/404")
        expect(result.returncode == 1 and "404" in result.stderr, result.stderr)


def polls(build: Build, nchan: Nchan, language: str, grind: bool = False) -> None:
    """The second run begins behind the last message of the first one."""
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


def listens(build: Build, nchan: Nchan, language: str, grind: bool = False) -> None:
    """The second run begins behind the last message of the first one."""
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
    expect(result.returncode == 1 and "404" in result.stderr, f"said {result.stderr!r}")


def is_refused(build: Build) -> None:
    """What cannot be polled is told, and is no crash."""
    program = build.swift_example("poll")
    result = build.run(program, "ftp://127.0.0.1/")
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("poll: " in result.stderr and "ftp" in result.stderr, f"said {result.stderr!r}")
    for arguments in ((), ("http://127.0.0.1/", "0"), ("http://127.0.0.1/", "x")):
        result = build.run(program, *arguments)
        expect(result.returncode == 2, f"exit code {result.returncode} for {arguments}")


def makes(build: Build, servers: Servers) -> None:
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
    # Programs built by hand in the checkout were copied too.
    result = run(["make", "--always-make", "-C", str(folder)])
    expect(result.returncode == 0, f"make: {result.stderr}")
    result = run([folder / "readme", servers.echo()])
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}, said {result.stderr!r}")


def greets_in_swift(build: Build, servers: Servers) -> None:
    result = build.run(build.swift_example("readme"), servers.echo())
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    expect(result.stdout == "hello\n", f"printed {result.stdout!r}")


def subscribes_in_swift(build: Build, nchan: Nchan, scheme: str) -> None:
    channel = f"swift_{scheme}"
    for number in range(COUNT):
        nchan.publish(channel, str(number))
    arguments = [nchan.url(f"/ps/{channel}", scheme), str(COUNT)]
    arguments += [str(nchan.ca_file)] if scheme == "wss" else []
    result = build.run(build.swift_example("subscribe"), *arguments)
    expect(result.returncode == 0, f"exit code {result.returncode}: {result.stdout}")
    expect(f"ok: {COUNT} of {COUNT}" in result.stdout, f"printed {result.stdout!r}")


def tells_a_gap(build: Build, nchan: Nchan) -> None:
    for number in (0, 1, 3):
        nchan.publish("gap", str(number))
    result = build.run(build.example("subscribe"), nchan.url("/ps/gap"), "3")
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("expected 2, received 3" in result.stdout, f"printed {result.stdout!r}")


def tells_refusal(build: Build) -> None:
    # Port 1 is below the range of listeners made by tests; nobody listens there.
    result = build.run(build.example("readme"), "ws://127.0.0.1:1/", valgrind=True)
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("RT_ERROR_CONNECT" in result.stderr, f"said {result.stderr!r}")


def tells_close(build: Build, servers: Servers) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.close(4000, "enough")

    result = build.run(build.example("readme"), servers.websockets(handler), valgrind=True)
    expect(result.returncode == 0, f"exit code {result.returncode}")
    expect("closed with 4000 enough" in result.stderr, f"said {result.stderr!r}")


def refusals(suite: Suite, build: Build, servers: Servers) -> None:
    """Certificates that must not be accepted."""
    good, other = servers.tls(), servers.tls()
    elsewhere = servers.tls("elsewhere.example")
    url = servers.echo(good)
    cases = {
        "unknown authority": (url, str(other.ca_file)),
        "system's authorities do not know it": (url, None),
        "wrong host": (servers.echo(elsewhere), str(elsewhere.ca_file)),
        "no such CA file": (url, "/does/not/exist.pem"),
    }
    for name, (address, ca_file) in cases.items():
        for grind in (False, True):
            suffix = ", valgrind" if grind else ""
            test = functools.partial(refuses, build, address, ca_file, grind)
            suite.add(f"TLS refused: {name}{suffix}", test)


def refuses(build: Build, url: str, ca_file: str | None, grind: bool) -> None:
    extra = [ca_file] if ca_file else []
    result = build.run(build.example("echo"), url, *extra, text="secret\n", valgrind=grind)
    expect(result.returncode == 1, f"exit code {result.returncode}")
    expect("RT_ERROR_TLS" in result.stderr, f"said {result.stderr!r}")
    expect(result.stdout == "", f"printed {result.stdout!r}")
