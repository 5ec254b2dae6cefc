"""The Python package's demo server, for tests that run it as users do."""

from __future__ import annotations

import contextlib
import http.client
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "librealtime.demo_server"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python" / "src")}
# A guard against hanging.
PATIENCE_S = 60


class DemoProcess:
    """The server in its own process, which writes to a file."""

    def __init__(
        self,
        output: pathlib.Path,
        *options: str,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self.output = output
        with output.open("w") as file:
            command = [*COMMAND, "--port", "0", *options]
            self.process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
        self.wait_for("curl ")
        lines = output.read_text().splitlines()
        self.url = next(line for line in lines if "/events" in line).split("/events")[0]
        self.ws_url = self.url.replace("http", "ws", 1)
        self.address = urlsplit(self.url).netloc
        self.port = int(self.address.rpartition(":")[2])

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.output.read_text():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.01)

    def open(
        self, path: str, method: str = "GET", body: str | bytes = "", **headers: str
    ) -> http.client.HTTPConnection:
        """Sends a request."""
        address = urlsplit(self.url)
        assert address.hostname
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, named)
        return connection

    def request(
        self, method: str, path: str, body: str | bytes = "", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        with contextlib.closing(self.open(path, method, body, **headers)) as connection:
            response = connection.getresponse()
            return response, response.read()

    def publish(self, channel: str, *messages: str | bytes) -> None:
        """Publishes each message as a POST of its own."""
        for message in messages:
            response, _ = self.request("POST", f"/channel/{channel}", message)
            assert response.status == 201

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_S)
