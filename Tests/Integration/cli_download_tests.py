"""The command-line tool gets bodies that break off: it repeats the request for the rest, or for all
of it."""

import contextlib
import os
import pathlib
import signal
from collections.abc import Callable

import pytest
from command_line import (
    INTERRUPTED,
    LOST,
    OTHER,
    REFUSED,
    UNREACHABLE,
    USAGE,
    Tool,
    ends,
    http,
    line_of,
    patiently,
    running,
)
from harness import expect
from servers import Peer, Servers

DATA = bytes(range(256)) * 1000
TAG = 'ETag: "one"'
DATE = "Sat, 28 Nov 2026 10:00:00 GMT"


class Broken:
    """Sends a body that breaks off after some bytes, for each of the given counts; then all of it.
    It serves ranges unless `has_ranges` is false."""

    def __init__(self, *cuts: int, headers: tuple[str, ...] = (TAG,)) -> None:
        self._cuts = list(cuts)
        self._headers = headers
        self.has_ranges = True
        #: What was asked for: Range and If-Range.
        self.asked: list[tuple[str, str]] = []
        #: The statuses of the next responses, before any body.
        self.statuses: list[int] = []

    async def __call__(self, peer: Peer) -> None:
        wanted = peer.header("Range")
        self.asked.append((wanted, peer.header("If-Range")))
        if self.statuses:
            status = self.statuses.pop(0)
            await peer.send(f"HTTP/1.1 {status} So\r\nContent-Length: 2\r\n\r\nno".encode())
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-") or 0)
        status = "200 OK"
        headers = [*self._headers, "Connection: close"]
        if not self.has_ranges:
            start = 0
        elif start >= len(DATA):
            status, start = "416 Range Not Satisfiable", len(DATA)
            headers.append(f"Content-Range: bytes */{len(DATA)}")
        elif wanted:
            status = "206 Partial Content"
            headers.append(f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA)}")
        headers.append(f"Content-Length: {len(DATA) - start}")
        end = self._cuts.pop(0) if self._cuts else len(DATA)
        head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()
        await peer.send(head + DATA[start:end])


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path


def files(folder: pathlib.Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_the_rest_is_requested(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    """Into a file, and into a pipe, whose reader gets each byte once."""
    for headers, validator in (
        ((TAG,), '"one"'),
        ((f"Last-Modified: {DATE}",), DATE),
    ):
        for output in (["-o", str(folder / "body")], []):
            server = Broken(1000, 5000, headers=headers)
            command = ["get", http(servers.script(server)), "--include", *output]
            with running(tool, *command) as process:
                told, said = process.communicate()
                ends(process, 0)
            got = (folder / "body").read_bytes() if output else told
            expect(got == DATA, f"{len(got)} bytes")
            asked = [("", ""), ("bytes=1000-", validator), ("bytes=5000-", validator)]
            expect(server.asked == asked, f"{server.asked}")
            lines = said.decode().splitlines()
            expect(sum("; trying again in " in line for line in lines) == 2, f"{lines}")
            # The status is that of the response that began it.
            expect(lines[-1].endswith(" answered 200 OK"), f"{lines}")
            expect(not list(folder.glob("*.part")), f"{files(folder)}")


def test_all_of_it_is_requested(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    """Without a validator, if the server has no ranges, if the body is coded, or has changed."""

    def without_ranges(server: Broken) -> None:
        server.has_ranges = False

    cases: list[tuple[tuple[str, ...], Callable[[Broken], None], bool]] = [
        ((), lambda _: None, False),
        (('ETag: W/"one"',), lambda _: None, False),
        ((TAG, "Accept-Ranges: none"), lambda _: None, False),
        # It may have changed again in the same second.
        ((f"Last-Modified: {DATE}", f"Date: {DATE}"), lambda _: None, False),
        ((TAG,), without_ranges, True),
    ]
    for headers, change, asks in cases:
        server = Broken(1000, headers=headers)
        change(server)
        url = http(servers.script(server))
        tool.run("get", url, "-o", str(folder / "body"))
        expect((folder / "body").read_bytes() == DATA, "another body")
        expect(bool(server.asked[1][0]) == asks, f"{server.asked}")
        # A pipe's reader already has the beginning.
        server = Broken(1000, headers=headers)
        change(server)
        with running(tool, "get", http(servers.script(server))) as process:
            told, said = process.communicate()
            ends(process, LOST)
        expect(told == DATA[:1000], f"{len(told)} bytes")
        expect(len(server.asked) == 1 + asks, f"{server.asked}")
        cause = b"broke off after 1000 bytes" if asks else b"255000 bytes remaining"
        expect(cause in said, repr(said))


def test_retries_are_objects(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    """Those after a status and those after a body that broke off, with consecutive numbers."""
    server = Broken(10)
    server.statuses = [503]
    told = tool.json("get", http(servers.script(server)), "-o", str(folder / "body"))
    expect([line["event"] for line in told] == ["lost", "lost", "answer"], f"{told}")
    expect([line.get("attempt") for line in told] == [2, 3, None], f"{told}")
    expect(told[0]["code"] == "httpStatus" and "503" in told[0]["message"], f"{told[0]}")
    expect(told[1]["code"] == "connectionLost" and told[1]["delay_ms"] > 0, f"{told[1]}")
    expect(told[2]["status"] == 200 and told[2]["file"] == str(folder / "body"), f"{told[2]}")
    # In one object, all of it, although it came in two parts.
    server = Broken(10)
    told = tool.json("get", http(servers.script(server)))
    expect([line["event"] for line in told] == ["lost", "answer"], f"{told}")
    expect("base64" in told[1], f"{told[1]}")
    server = Broken()
    server.statuses = [503]
    said = tool.run("get", http(servers.script(server)), "-o", "/dev/null").stderr
    expect("was answered with 503" in said and "; trying again in " in said, said)


def test_attempts_are_limited(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    server = Broken(10, 20, 30)
    path = folder / "body"
    path.write_text("as before")
    command = ["get", http(servers.script(server)), "-o", str(path)]
    said = tool.run(*command, "--attempts", "2", status=LOST).stderr
    expect(len(server.asked) == 2, f"{server.asked}")
    # The file is as it was; the beginning is beside it.
    expect(path.read_text() == "as before", "it was changed")
    expect(files(folder) == {"body": 9, "body.part": 20}, f"{files(folder)}")
    expect(f'"{path}.part" has the first 20 bytes; -C - continues it\n' in said, said)
    told = tool.json(*command, "--attempts", "1", status=LOST)
    partial = {"event": "partial", "file": f"{path}.part", "bytes": 30}
    expect(told[0] == partial and told[1]["event"] == "error", f"{told}")


def test_other_methods_are_not_repeated(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    """The server has answered them; and nothing continues the file of their response."""
    path = folder / "body"
    for method, options in (
        ("put", ["-d", "x"]),
        ("post", ["-d", "x", "--idempotency-key"]),
        ("delete", []),
    ):
        why = f"{method.upper()} is not repeated: the server has answered it with 200."
        server = Broken(3000)
        command = [method, http(servers.script(server)), *options, "-o", str(path)]
        said = tool.run(*command, status=LOST).stderr
        expect(f'"{path}.part" has the first 3000 bytes of the response\n' in said, said)
        expect("-C" not in said and said.endswith(f" {why}\n"), said)
        server = Broken(3000)
        error = tool.json(method, http(servers.script(server)), *options, status=LOST)[-1]
        expect(error["event"] == "error" and error["advice"] == why, f"{error}")
        expect(len(server.asked) == 1, f"{server.asked}")
        text = " ".join(tool.run(method, "--help").stdout.split())
        expect("whose response breaks off is not repeated" in text, text)


def test_why_a_body_is_not_requested_again(tool: Tool, servers: Servers) -> None:
    """A pipe's reader has its beginning, and the rest of it cannot be asked for."""
    for headers, options, why in (
        ((), [], "the server names no version of it (ETag)"),
        ((TAG, "Accept-Ranges: none"), [], "the server sends no parts of it"),
        ((TAG,), ["-H", "Range: bytes=0-"], "-H Range asked for a part"),
    ):
        server = Broken(1000, headers=headers)
        with running(tool, "get", http(servers.script(server)), *options) as process:
            _, said = process.communicate()
            ends(process, LOST)
        text = said.decode()
        expect(
            f"1000 bytes are written already, and the rest cannot be asked for, because {why}."
            in text,
            text,
        )
        expect("--output" in text and "; trying again" not in text, text)
        expect(len(server.asked) == 1, f"{server.asked}")


def test_no_delay_exceeds_the_time_limit(
    tool: Tool, servers: Servers, folder: pathlib.Path
) -> None:
    """When there is no time for the delay before another attempt, the last failure is the end."""

    def check(limit: str) -> None:
        server = Broken(*range(10, 1000, 10))
        command = ["get", http(servers.script(server)), "-o", str(folder / "body")]
        said = tool.run(*command, "--max-time", limit, "--attempts", "20", status=LOST).stderr
        expect(len(server.asked) < 20, f"{server.asked}")
        expect(said.count("; trying") == len(server.asked) - 1, said)

    patiently(check)


def test_continuing_an_earlier_run(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    server = Broken(1000)
    path, part = folder / "body", folder / "body.part"
    command = ["get", http(servers.script(server)), "-o", str(path)]
    tool.run(*command, "--attempts", "1", status=LOST)
    expect(part.read_bytes() == DATA[:1000], f"{files(folder)}")
    tool.run(*command, "-C", "-")
    expect(server.asked[1] == ("bytes=1000-", ""), f"{server.asked}")
    expect(path.read_bytes() == DATA and not part.exists(), f"{files(folder)}")
    # Without a part it begins with the first byte; a part can be the whole.
    tool.run(*command, "--continue-at", "-")
    expect(server.asked[2] == ("", ""), f"{server.asked}")
    path.rename(part)
    told = tool.json(*command, "-C", "-")
    expect(told[-1]["status"] == 416 and told[-1]["file"] == str(path), f"{told}")
    expect(path.read_bytes() == DATA and not part.exists(), f"{files(folder)}")
    # A server without ranges sends all of it; without -C the part is of no interest.
    for arguments, has_ranges in ((["-C", "-"], False), ([], True)):
        server.has_ranges = has_ranges
        part.write_bytes(b"x" * 5)
        tool.run(*command, *arguments)
        expect(path.read_bytes() == DATA and not part.exists(), f"{files(folder)}")
    # The body of an error is not a part of it.
    part.write_bytes(DATA[:5])
    server.statuses = [404]
    tool.run(*command, "-C", "-", status=REFUSED)
    expect(part.read_bytes() == DATA[:5] and path.read_bytes() == DATA, f"{files(folder)}")
    for arguments, culprit in (
        ([*command, "-C", "5"], "only - is known"),
        (["get", "http://127.0.0.1/", "-C", "-"], "--output"),
        (["get", "http://127.0.0.1/", "-o", "-", "-C", "-"], "--output"),
        (["put", "http://127.0.0.1/", "-o", "a", "-C", "-"], "is for get"),
        ([*command, "-C", "-", "-H", "Range: bytes=1-"], "sets the header Range"),
        (["get", "http://127.0.0.1/", "-o", ""], '--output is ""'),
    ):
        said = tool.run(*arguments, status=USAGE).stderr
        expect(culprit in said, said)


def test_another_part_than_asked_for(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    async def script(peer: Peer) -> None:
        head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2"
        await peer.send(f"{head}\r\n\r\nab".encode())

    (folder / "body.part").write_text("0123")
    command = ["get", http(servers.script(script)), "-o", str(folder / "body"), "-C", "-"]
    said = tool.run(*command, status=LOST).stderr
    expect("sends bytes 0-1/9 instead of what follows byte 4" in said, said)
    expect((folder / "body.part").read_text() == "0123", "it was changed")


def test_the_file_has_its_name_when_it_is_whole(
    tool: Tool, servers: Servers, folder: pathlib.Path
) -> None:
    more = servers.event()

    async def script(peer: Peer) -> None:
        await peer.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(DATA)}\r\n\r\n".encode())
        await peer.send(DATA[:1000])
        await more.wait()
        await peer.send(DATA[1000:])

    real, link = folder / "real", folder / "link"
    real.write_text("as before")
    real.chmod(0o640)
    link.symlink_to(real)
    url = http(servers.script(script))
    with running(tool, "get", url, "-o", str(link)) as process:
        while files(folder).get("real.part") != 1000:
            expect(process.poll() is None, "it has ended")
        expect(real.read_text() == "as before", "it is not whole")
        process.send_signal(signal.SIGINT)
        ends(process, INTERRUPTED)
    expect(files(folder).get("real.part") == 1000, f"{files(folder)}")
    servers.set(more)
    tool.run("get", url, "-o", str(link))
    expect(link.is_symlink() and real.read_bytes() == DATA, f"{files(folder)}")
    expect(real.stat().st_mode & 0o777 == 0o640, oct(real.stat().st_mode))
    # A request without a response leaves nothing.
    nobody = ["get", "http://127.0.0.1:1/", "-o", str(folder / "none"), "--attempts", "1"]
    tool.run(*nobody, status=UNREACHABLE)
    expect("none.part" not in files(folder), f"{files(folder)}")
    said = tool.run("get", url, "-o", str(folder), status=OTHER).stderr
    expect("cannot be written: Is a directory" in said, said)


@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
def test_a_part_of_others_is_left_alone(
    tool: Tool, servers: Servers, folder: pathlib.Path, kind: str
) -> None:
    """Another user may have put it there, so that a file of this user is overwritten."""
    victim, part = folder / "victim", folder / "out.part"
    victim.write_text("as before")
    if kind == "hard link":
        os.link(victim, part)
    elif kind == "pipe":
        os.mkfifo(part)
    else:
        part.symlink_to(victim)
    url = http(servers.script(Broken()))
    for more in ([], ["--continue-at", "-"]):
        said = tool.run("get", url, "-o", str(folder / "out"), *more, status=OTHER).stderr
        expect("out" in said, said)
        expect(victim.read_text() == "as before", "it was overwritten")
    expect(not (folder / "out").exists(), f"{files(folder)}")


def test_pipes_are_written_as_they_are(tool: Tool, servers: Servers, folder: pathlib.Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    url = http(servers.script(Broken()))
    with running(tool, "get", url, "-o", str(pipe)) as process:
        expect(pipe.read_bytes() == DATA, "another body")
        ends(process, 0)
    expect(files(folder).keys() == {"pipe"}, f"{files(folder)}")


def test_a_body_that_json_cannot_hold(tool: Tool, servers: Servers) -> None:
    """It is found out before the body is sent, if its length is known; nothing is repeated."""
    size = (64 << 20) + 1
    requests: list[bytes] = []

    def sends(*headers: str) -> str:
        async def script(peer: Peer) -> None:
            requests.append(peer.request)
            with contextlib.suppress(ConnectionError):
                await peer.send("\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode())
                for _ in range(65):
                    await peer.send(bytes(1 << 20))

        return http(servers.script(script))

    for headers in ((f"Content-Length: {size}",), ("Connection: close",)):
        requests.clear()
        (told,) = tool.json("get", sends(*headers), status=OTHER)
        expect(told["event"] == "error" and told["code"] == "tooLarge", f"{told}")
        expect("64 MiB" in told["message"] and "--output" in told["advice"], f"{told}")
        expect(len(requests) == 1, f"{requests}")


def test_retries_before_the_response(tool: Tool) -> None:
    """An attempt that does not connect is announced like those of the other commands."""
    with running(tool, "get", "http://127.0.0.1:1/", "--attempts", "2") as process:
        line = line_of(process, "stderr")
        ends(process, UNREACHABLE)
    expect("127.0.0.1:1" in line and "; trying again in " in line, line)
