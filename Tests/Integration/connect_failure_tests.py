"""Why connecting failed: the texts of errors, and which certificates are trusted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import librealtime
import pytest
from certificates import TLS
from command_line import shown
from harness import PATIENCE_S, ROOT, expect
from http2_server import DATA, END_HEADERS, END_STREAM, HEADERS, STATUS_200, HTTP2Server, frame
from nchan import free_port
from patience import patiently
from rest_server import RESTServer

VARIABLES = ("CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
#: More than `max_per_host` by default.
STREAMS = 8
REFUSALS = (403, 405, 502)

PROGRAM = """
import asyncio, sys, librealtime
async def main():
    async with librealtime.RESTClient(attempts=1) as client:
        try:
            print((await client.get(sys.argv[1])).status_code)
        except librealtime.RealtimeError as error:
            print(error.name, error)
asyncio.run(main())
"""


async def failures(
    url: str, timeout: float = PATIENCE_S, **network: Any
) -> list[librealtime.RealtimeError]:
    """The errors of a request and a WebSocket to the same address."""
    errors = []
    options = {"network": librealtime.Network(**network)} if network else {}
    async with librealtime.RESTClient(attempts=1, timeout=timeout, **options) as client:
        try:
            await client.get(url)
        except librealtime.RealtimeError as error:
            errors.append(error)
    try:
        address = url.replace("http", "ws", 1)
        async with librealtime.connect(address, open_timeout=timeout, **options):
            pass
    except librealtime.RealtimeError as error:
        errors.append(error)
    expect(len(errors) == 2, f"connected: {errors}")
    return errors


async def test_refused() -> None:
    port = free_port()
    for error in await failures(f"http://127.0.0.1:{port}/"):
        expect(error.name == "RT_ERROR_CONNECT", f"{error.name}")
        text = f"cannot connect to 127.0.0.1:{port}: connection refused"
        expect(error.message.endswith(text), error.message)


async def test_unknown_name() -> None:
    for error in await failures("http://unknown.invalid/"):
        expect(error.name == "RT_ERROR_RESOLVE", f"{error.name}")
        expect("its name cannot be resolved" in error.message, error.message)
        expect(error.message.count("unknown.invalid") == 1, error.message)


async def test_no_socket() -> None:
    for error in await failures("http://localhost/", unix_socket="/nowhere/at/all"):
        expect("no such file or directory" in error.message, error.message)


async def test_plain_text() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as place:
        for error in await failures(f"https://{place}/"):
            expect(error.name == "RT_ERROR_TLS", f"{error.name}")
            expect("this port does not speak TLS" in error.message, error.message)
            expect("http:// or ws://" in error.message, error.message)


async def test_end_instead_of_tls() -> None:
    """Servers of other protocols end a connection whose first bytes they do not understand."""
    with answering(b"") as place:
        for error in await failures(f"https://{place}/"):
            expect(error.name == "RT_ERROR_TLS", f"{error.name}")
            expect("this port does not speak TLS" in error.message, error.message)


async def test_silence() -> None:
    """The server accepts connections, and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        for attempt in patiently():
            with attempt as limit:
                await silence(place, limit)


async def silence(place: str, limit: float) -> None:
    request, opening = await failures(f"https://{place}/", timeout=limit)
    for error, option in ((request, "timeout"), (opening, "open_timeout")):
        expect(error.name == "RT_ERROR_TIMEOUT", f"{error.name}")
        text = f"cannot connect to {place} within {shown(limit)} ({option}): the TLS handshake"
        expect(f"{text} timed out" in error.message, error.message)
    request, opening = await failures(f"http://{place}/", timeout=limit)
    expect(f"{place} did not answer within {shown(limit)}" in request.message, request.message)
    text = (
        f"{place} accepted the connection, but did not answer the opening handshake"
        f" within {shown(limit)} (open_timeout)"
    )
    expect(text in opening.message, opening.message)


async def test_no_accept() -> None:
    """The kernel drops connections once the accept queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        with socket.create_connection(listener.getsockname()):
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            for scheme in ("http", "https"):
                for error in await failures(f"{scheme}://{place}/", timeout=0.1):
                    text = f"cannot connect to {place} within 100 ms"
                    expect(text in error.message, error.message)
                    expect("TLS" not in error.message, error.message)


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Host and port of a server that answers every connection in this way."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize("status", REFUSALS)
async def test_proxy_refuses(status: int) -> None:
    with answering(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status) as proxy:
        for error in await failures("https://example.org/", proxy=f"http://{proxy}"):
            expect(error.name == "RT_ERROR_PROXY", f"{error.name}")
            text = f"the proxy {proxy} answered {status} to CONNECT example.org:443"
            expect(text in error.message, error.message)
        lost: asyncio.Queue[Any] = asyncio.Queue()
        source = librealtime.EventSource(
            "https://example.org/", proxy=f"http://{proxy}", on_error=lost.put_nowait
        )
        with contextlib.closing(source):
            event = await asyncio.wait_for(lost.get(), PATIENCE_S)
        expect(event.http_status == status, f"{event}")


async def test_streams() -> None:
    """The server answers each request but the last with a head only; the bodies follow the last
    one."""
    waiting: list[int] = []

    def script(connection: Any, stream: int, number: int) -> bool:
        connection.sendall(frame(HEADERS, END_HEADERS, stream, STATUS_200))
        waiting.append(stream)
        if number > STREAMS:
            for each in waiting:
                connection.sendall(frame(DATA, END_STREAM, each, struct.pack(">I", each)))
        return True

    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        with HTTP2Server(tls.context, script) as server:
            async with librealtime.RESTClient(ca_file=tls.ca_file, timeout=PATIENCE_S) as client:
                gets = [client.get(f"{server.url}/{number}") for number in range(STREAMS + 1)]
                answers = await asyncio.wait_for(asyncio.gather(*gets), PATIENCE_S)
            expect({len(answer.content) for answer in answers} == {4}, f"{answers}")
            expect({number for number, _, _ in server.seen} == {1}, f"{server.seen}")


def run(url: str, **variables: object) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in VARIABLES and not name.lower().endswith("_proxy")
    }
    path = str(ROOT / "bindings" / "python" / "src")
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, url],
        env={**kept, "PYTHONPATH": path, **{name: str(text) for name, text in variables.items()}},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    expect(result.returncode == 0, result.stderr)
    return result.stdout.strip()


@pytest.mark.parametrize("variable", VARIABLES)
async def test_trusts(variable: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        value = tls.ca_folder() if variable == "SSL_CERT_DIR" else tls.ca_file
        with RESTServer(tls.context) as server:
            told = await asyncio.to_thread(run, server.url + "/echo", **{variable: value})
            expect(told == "200", told)
            told = await asyncio.to_thread(run, server.url + "/echo")
            expect(told.startswith("RT_ERROR_TLS"), told)


@pytest.mark.parametrize("variable", VARIABLES[:2])
async def test_misses(variable: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tls = TLS(pathlib.Path(folder), "127.0.0.1")
        with RESTServer(tls.context) as server:
            missing = f"{folder}/missing.pem"
            told = await asyncio.to_thread(run, server.url + "/echo", **{variable: missing})
            expect(told.startswith("RT_ERROR_TLS"), told)
            expect(missing in told and f"({variable})" in told, told)


async def test_ca_file_goes_first() -> None:
    with tempfile.TemporaryDirectory() as folder:
        good = TLS(pathlib.Path(folder), "127.0.0.1")
        other = TLS(pathlib.Path(folder), "127.0.0.1")
        before = {name: os.environ.get(name) for name in VARIABLES}
        os.environ.update(dict.fromkeys(VARIABLES[:2], str(other.ca_file)))
        try:
            with RESTServer(good.context) as server:
                async with librealtime.RESTClient(ca_file=good.ca_file) as client:
                    response = await client.get(server.url + "/echo")
            expect(response.status_code == 200, f"{response}")
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
