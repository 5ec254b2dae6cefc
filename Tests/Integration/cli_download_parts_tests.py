"""The command-line tool combines parts of a body if they are of the same version (RFC 9110,
15.3.7), and does not succeed before it is complete."""

import pathlib

import pytest
from command_line import LOST, Tool, ends, http, running
from harness import expect
from servers import Peer, Servers

OLD = bytes(range(256)) * 100
NEW = bytes(reversed(OLD))
TAG = 'ETag: "one"'
DATE = "Last-Modified: Sat, 28 Nov 2026 10:00:00 GMT"


class Parts:
    """Sends a body that breaks off after 1000 bytes, and then what is asked for. Of a range it
    sends `most` bytes at most, with the headers `part`."""

    def __init__(
        self, first: tuple[str, ...] = (TAG,), part: tuple[str, ...] = (TAG,), most: int = len(OLD)
    ) -> None:
        self._headers = {False: first, True: part}
        self._most = most
        self.body = OLD
        self.total = str(len(OLD))
        #: What is sent after the bytes that a Content-Range announces.
        self.excess = b""
        #: What was asked for.
        self.asked: list[str] = []

    async def __call__(self, peer: Peer) -> None:
        wanted = peer.header("Range")
        self.asked.append(wanted)
        headers = [*self._headers[bool(wanted)], "Connection: close"]
        size = len(self.body)
        start = int(wanted.removeprefix("bytes=").removesuffix("-") or 0)
        end = min(size, start + self._most) if wanted else size
        if wanted and start >= size:
            status, body = "416 Range Not Satisfiable", b""
            headers.append(f"Content-Range: bytes */{size}")
        elif wanted:
            status, body = "206 Partial Content", self.body[start:end] + self.excess
            headers.append(f"Content-Range: bytes {start}-{end - 1}/{self.total}")
        else:
            status, body = "200 OK", self.body
        headers.append(f"Content-Length: {len(body)}")
        if len(self.asked) == 1 and not wanted:
            body = OLD[:1000]
        await peer.send("\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body)


@pytest.mark.parametrize("total", [str(len(OLD)), "*"])
def test_parts_may_be_shorter_than_asked_for(
    tool: Tool, servers: Servers, tmp_path: pathlib.Path, total: str
) -> None:
    """A server may send less than it was asked for, and need not say how much there is."""
    path, part = tmp_path / "body", tmp_path / "body.part"
    asked = [f"bytes={start}-" for start in range(1000, len(OLD), 5000)]
    for first in ((TAG,), (DATE,)):
        for output in (["-o", str(path)], []):
            server = Parts(first=first, part=first, most=5000)
            server.total = total
            with running(tool, "get", http(servers.script(server)), *output) as process:
                told, said = process.communicate()
                ends(process, 0)
            got = path.read_bytes() if output else told
            expect(got == OLD, f"{len(got)} bytes, {server.asked}, {said!r}")
            expect(server.asked == ["", *asked], f"{server.asked}")
            expect(said.count(b"trying again") == 1 and not part.exists(), repr(said))
    # Each of them brings what it can, so they are not limited as attempts that fail.
    server = Parts(most=5000)
    server.total = total
    part.write_bytes(OLD[:1000])
    tool.run("get", http(servers.script(server)), "-o", str(path), "-C", "-", "--attempts", "1")
    # Where the end is unknown, the server says that nothing follows.
    asked += [f"bytes={len(OLD)}-"] if total == "*" else []
    expect(path.read_bytes() == OLD and server.asked == asked, f"{server.asked}")


@pytest.mark.parametrize(
    ("first", "part", "total"),
    [
        ((TAG,), ('ETag: "two"',), len(NEW)),
        ((TAG,), ('ETag: W/"one"',), len(NEW)),
        ((TAG,), (), len(NEW)),
        ((TAG,), (TAG,), len(NEW) + 1),
        ((TAG,), (TAG, "Content-Encoding: gzip"), len(NEW)),
        ((DATE,), ("Last-Modified: Sat, 28 Nov 2026 10:00:01 GMT",), len(NEW)),
        ((DATE,), (), len(NEW) + 1),
    ],
)
def test_parts_of_another_version(
    tool: Tool,
    servers: Servers,
    tmp_path: pathlib.Path,
    first: tuple[str, ...],
    part: tuple[str, ...],
    total: int,
) -> None:
    """A server that ignores If-Range sends a part of what it has now."""

    def changing() -> Parts:
        server = Parts(first, part)
        server.total = str(total)
        return server

    path = tmp_path / "body"

    async def script(peer: Peer) -> None:
        await server(peer)
        server.body = NEW

    server = changing()
    said = tool.run("get", http(servers.script(script)), "-o", str(path)).stderr
    expect(path.read_bytes() == NEW, "two versions are mixed")
    expect(server.asked == ["", "bytes=1000-", ""], f"{server.asked}")
    expect("another version" in said and "trying again at once" in said, said)
    # A pipe's reader already has the beginning of the old one.
    server = changing()
    with running(tool, "get", http(servers.script(script))) as process:
        told, output = process.communicate()
        ends(process, LOST)
    expect(told == OLD[:1000] and b"another version" in output, repr(output))


def test_parts_without_a_date(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    """A response to If-Range should not repeat it (RFC 9110, 15.3.7)."""
    server = Parts(first=(DATE,), part=())
    tool.run("get", http(servers.script(server)), "-o", str(tmp_path / "body"))
    expect((tmp_path / "body").read_bytes() == OLD, "another body")
    expect(server.asked == ["", "bytes=1000-"], f"{server.asked}")


def test_a_part_that_is_longer_than_the_body(
    tool: Tool, servers: Servers, tmp_path: pathlib.Path
) -> None:
    """What an earlier run has left is of another version."""
    server = Parts()
    (tmp_path / "body.part").write_bytes(OLD + b"x")
    command = ["get", http(servers.script(server)), "-o", str(tmp_path / "body"), "-C", "-"]
    tool.run(*command, "--attempts", "1")
    expect((tmp_path / "body").read_bytes() == OLD, "another body")
    expect(server.asked == [f"bytes={len(OLD) + 1}-", ""], f"{server.asked}")


def test_parts_that_are_wrong(tool: Tool, servers: Servers, tmp_path: pathlib.Path) -> None:
    """More bytes than announced, an impossible range, and a part that nobody has asked for."""
    path = tmp_path / "body"
    server = Parts(most=5000)
    server.excess = b"more"
    said = tool.run("get", http(servers.script(server)), "-o", str(path), status=LOST).stderr
    expect("sends more than bytes 1000-5999/25600" in said, said)
    server = Parts()
    server.total = "1000"
    said = tool.run("get", http(servers.script(server)), "-o", str(path), status=LOST).stderr
    expect("instead of what follows byte 1000" in said, said)

    async def unasked(peer: Peer) -> None:
        head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2"
        await peer.send(f"{head}\r\nConnection: close\r\n\r\nab".encode())

    url = http(servers.script(unasked))
    said = tool.run("get", url, "-o", str(path), status=LOST).stderr
    expect("sends a part (206), although all" in said and not path.exists(), said)
    expect(tool.run("get", url, "-H", "Range: bytes=0-1").stdout == "ab", "it was asked for")
