"""Servers that answer at once and without end. Nothing here depends on time: see eager.c."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from harness import PATIENCE_S, ROOT, expect

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#: Many bytes, and hardly any content.
CHUNKS = (b"1;" + b"a" * 8000 + b"\r\n:\r\n") * 8
SOURCES = 8


def flood(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        connection.sendall(HEAD)
        while True:
            connection.sendall(CHUNKS)


@pytest.fixture
def server() -> Iterator[str]:
    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=flood, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)


def test_one_call_reads_for_few_connections(server: str, tmp_path: pathlib.Path) -> None:
    """Else a turn of the loop would last the longer, the more connections are opened at once: one
    begins in each call of libcurl, beside one that continues."""
    folder, library = ROOT / "Tests" / "Integration", tmp_path / "eager.so"
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library]
    subprocess.run([*command, folder / "eager.c", "-ldl"], check=True)
    result = subprocess.run(
        [sys.executable, folder / "eager.py", server, str(SOURCES)],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    expect(1 <= int(result.stdout) <= 2, f"one call read from {result.stdout} connections")
