"""An HTTP server whose path selects what it does, valid or not, in hand-written bytes.

with RESTServer() as server: server.url, server.seen
rest_server.py prints its URL on one line and runs until its standard input ends.

/echo                     the request as JSON: method, target, headers, body, number of connection
/status/N                 that status; ?retry_after=S, ?length=N bytes of body
/flaky/NAME/N[/STATUS]    STATUS (503) for the first N requests of this NAME, then /echo
/dead/NAME                once: closes a kept connection without a response
/reset/NAME/N             cuts the connection after the request, for the first N of this NAME
/silent/NAME/N            never answers the first N of this NAME
/headless/NAME/N          the same, after half of a head
/short/NAME/N             for the first N of this NAME fewer bytes than its Content-Length
/chunks/NAME/N            for the first N of this NAME a chunked body that breaks off
/redirect/N[/STATUS]      redirects to /redirect/N-1, and /redirect/0 to /echo
/loop, /nowhere           redirects to itself; redirects without a location
/away[/STATUS]            redirects to /echo under another name of this host
/token                    401 except with "Authorization: Bearer good"
/misdirected/NAME         421 once, then /echo
/bytes/N                  N bytes in chunks, which count up
/bad                      a response that is not HTTP
/slow/MS                  /echo after so many milliseconds
"""

from __future__ import annotations

import asyncio
import collections
import json
import queue
import ssl
import sys
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Request:
    def __init__(self, method: str, target: str, headers: list[tuple[str, str]]) -> None:
        self.method = method
        self.target = target
        parts = urlsplit(target)
        self.words = [word for word in parts.path.split("/") if word]
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.headers = headers
        self.body = b""
        self.connection = 0
        self.is_first = True

    def header(self, name: str) -> str:
        return next((v for n, v in self.headers if n.lower() == name.lower()), "")


class Cut(Exception):
    """Ends the connection."""


class RESTServer:
    """Runs on its own thread until its context ends."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._counts: collections.Counter[str] = collections.Counter()
        self._connections = 0
        #: Every complete request, in order.
        self.seen: list[Request] = []
        self._ready: queue.Queue[int] = queue.Queue()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._peers: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        return self._connections

    def __enter__(self) -> RESTServer:
        self._thread.start()
        self.port = self._ready.get(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=30)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self._ready.put(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        # Let a connection accepted just now start first: otherwise asyncio leaves it open.
        self._loop.remove_reader(server.sockets[0].fileno())
        await asyncio.sleep(0)
        server.close()
        # A connection whose client reads no more would stay open after the loop.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for writer, task in self._peers.items():
                writer.transport.abort()
                task.cancel()
            await asyncio.wait(tasks, timeout=0.1)
        ends = [writer.wait_closed() for writer in self._peers]
        await asyncio.gather(*ends, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peers[writer] = asyncio.create_task(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number, is_first = self._connections, True
        try:
            while request := await self._read(reader, writer):
                request.connection, request.is_first = number, is_first
                is_first = False
                self.seen.append(request)
                await self._answer(request, writer)
                await writer.drain()
        except Cut:
            # A reset instead of a normal end.
            writer.transport.abort()
        # Cancelled at the end; Python 3.11's asyncio streams would log that.
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Request | None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        pairs = [line.partition(":") for line in lines[1:] if line]
        request = Request(method, target, [(name, value.strip()) for name, _, value in pairs])
        if request.header("Transfer-Encoding") == "chunked":
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                request.body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        elif length := int(request.header("Content-Length") or 0):
            request.body = await reader.readexactly(length)
        return request

    def _is_among(self, request: Request) -> bool:
        """Whether this request is one of the first N of its NAME."""
        name = "/".join(request.words[:2])
        self._counts[name] += 1
        return self._counts[name] <= (int(request.words[2]) if len(request.words) > 2 else 1)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        action, words = request.words[0] if request.words else "echo", request.words[1:]
        method = getattr(self, f"do_{action}", None)
        if method is None:
            return self._say(writer, request, 404, b"no such path\n")
        result = method(request, writer, words)
        if asyncio.iscoroutine(result):
            await result
        return None

    def _say(
        self,
        writer: asyncio.StreamWriter,
        request: Request,
        status: int,
        body: bytes = b"",
        *fields: str,
    ) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *fields]
        if status == 204:
            del lines[1]
        head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
        writer.write(head.encode() + (b"" if request.method == "HEAD" else body))

    def do_echo(self, request: Request, writer: asyncio.StreamWriter, words: Any = None) -> None:
        said = {
            "method": request.method,
            "target": request.target,
            "headers": request.headers,
            "body": request.body.decode("latin-1"),
            "connection": request.connection,
        }
        self._say(writer, request, 200, json.dumps(said).encode(), "Content-Type: application/json")

    def do_status(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        fields = []
        if "retry_after" in request.query:
            fields.append("Retry-After: " + request.query["retry_after"])
        body = b"x" * int(request.query.get("length", 0)) or f"status {words[0]}\n".encode()
        self._say(writer, request, int(words[0]), body, *fields)

    def do_flaky(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if self._is_among(request):
            status = int(words[2]) if len(words) > 2 else 503
            self._say(writer, request, status, b"not yet\n")
        else:
            self.do_echo(request, writer)

    def do_dead(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if not request.is_first and self._is_among(request):
            raise Cut
        self.do_echo(request, writer)

    def do_reset(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if self._is_among(request):
            # Otherwise the client would treat it as a dead kept connection.
            writer.write(b"HTTP/1.1 ")
            raise Cut
        self.do_echo(request, writer)

    async def do_silent(
        self, request: Request, writer: asyncio.StreamWriter, words: list[str]
    ) -> None:
        if self._is_among(request):
            await asyncio.sleep(3600)
        self.do_echo(request, writer)

    async def do_headless(
        self, request: Request, writer: asyncio.StreamWriter, words: list[str]
    ) -> None:
        if self._is_among(request):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await asyncio.sleep(3600)
        self.do_echo(request, writer)

    def do_short(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if self._is_among(request):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfew")
            writer.close()
            return
        self.do_echo(request, writer)

    def do_chunks(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if self._is_among(request):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nfew")
            writer.close()
            return
        self.do_echo(request, writer)

    def do_redirect(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        left = int(words[0])
        status = int(words[1]) if len(words) > 1 else 302
        rest = f"/{status}" if len(words) > 1 else ""
        place = f"/redirect/{left - 1}{rest}" if left else "/echo"
        self._say(writer, request, status, b"elsewhere\n", f"Location: {place}")

    def do_loop(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        self._say(writer, request, 302, b"", "Location: /loop")

    def do_nowhere(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        self._say(writer, request, 302)

    def do_away(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        scheme = "https" if self._tls else "http"
        place = f"Location: {scheme}://localhost:{self.port}/echo"
        self._say(writer, request, int(words[0]) if words else 307, b"", place)

    def do_token(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        if request.header("Authorization") == "Bearer good":
            self.do_echo(request, writer)
        else:
            self._say(writer, request, 401, b"a token is needed\n")

    def do_misdirected(
        self, request: Request, writer: asyncio.StreamWriter, words: list[str]
    ) -> None:
        if self._is_among(request):
            self._say(writer, request, 421)
        else:
            self.do_echo(request, writer)

    async def do_bytes(
        self, request: Request, writer: asyncio.StreamWriter, words: list[str]
    ) -> None:
        left, count = int(words[0]), 0
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while left:
            size = min(left, 10000)
            data = bytes((count + index) % 251 for index in range(size))
            writer.write(b"%x\r\n%b\r\n" % (size, data))
            await writer.drain()
            left, count = left - size, count + size
        writer.write(b"0\r\n\r\n")

    def do_bad(self, request: Request, writer: asyncio.StreamWriter, words: list[str]) -> None:
        writer.write(b"nonsense\r\n\r\n")
        writer.close()

    async def do_slow(
        self, request: Request, writer: asyncio.StreamWriter, words: list[str]
    ) -> None:
        await asyncio.sleep(int(words[0]) / 1000)
        self.do_echo(request, writer)


if __name__ == "__main__":
    with RESTServer() as standing:
        print(standing.url, flush=True)
        sys.stdin.read()
